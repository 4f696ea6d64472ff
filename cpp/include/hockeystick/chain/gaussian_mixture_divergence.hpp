// The hockey-stick divergence of two projected mixtures of Gaussians with one noise s, certified:
// what the last step of a scalar chain leaves to be compared (chain/scalar_chain.hpp).
//
//   P = Pi_[-R,R] sum_j p_j N(m_j, s^2),  Q likewise,  d = p - gamma q,  u = log(p/(gamma q))
//   E = (P - gamma Q)(-inf, -R]_+  +  int_{-R}^{R} d_+  +  (P - gamma Q)[R, inf)_+
//
// Any set A gives the lower bound (P - gamma Q)(A), from tails that are summed in long double. It
// misses E by the integral of |d| over the places where A has the wrong sign. Two ways certify that
// A is right nearly everywhere.
//
//   count    If both mixtures have the same centres, d changes sign at most as often as the
//            sequence p_j - gamma q_j, since the Gaussian kernel is totally positive (Karlin, Total
//            Positivity, 1968, Theorem 3.1 of Chapter 5). Once that many changes have been seen,
//            there are no others. Also, E <= sum_j (p_j - gamma q_j)_+ by data processing.
//   slope    Where |u| exceeds what it can change within a cell (chain/density_contrast.hpp), its
//            sign is certain. Other cells are halved until |d| <= p |1 - e^{-u}| makes them
//            negligible.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include <hockeystick/chain/density_contrast.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

class GaussianMixturePair {
  public:
    GaussianMixturePair(const Mixture& p, const Mixture& q, long double noise, long double radius, double eps)
        : p_(p), q_(q), noise_(noise), s_(static_cast<double>(noise)), radius_(radius),
          gamma_(std::exp(static_cast<long double>(eps))), same_centres_(p.centre == q.centre),
          contrast_(p, q, s_, static_cast<double>(radius), static_cast<double>(gamma_)) {
        const double terms = static_cast<double>(p.weight.size() + q.weight.size());
        const double farthest = std::min(contrast_.farthest(), 150.0);
        // Long double tails: an ulp times the square of the argument, and the sum. The last summand
        // pays for skipped signs and for weights that are stored as doubles.
        tail_error_ = long_double_ulp * (terms + 64.0 + 16.0 * farthest * farthest) + thirty_two_roundings;
    }

    MixtureDivergence hockey_stick() const {
        MixtureDivergence divergence = attempt(1e-14);
        const auto [lower, upper] = divergence.value;
        if (upper - lower > 1e-4 * lower && lower > 1e-290) divergence = attempt(1e-5 * lower);
        return divergence;
    }

  private:
    struct Segment {
        double low, high;
        bool positive;
    };
    struct Segments {
        std::vector<Segment> list;
        double slack = 0.0;  // what undecided cells may add
        std::size_t evaluations = 0;
    };
    struct Masses {
        long double p, gamma_q;
    };

    const Mixture& p_;
    const Mixture& q_;
    long double noise_;
    double s_;
    long double radius_, gamma_;
    bool same_centres_;
    DensityContrast contrast_;
    double tail_error_;

    using Point = DensityContrast::Point;
    Point evaluate(double y, Segments& out) const {
        ++out.evaluations;
        return contrast_.at(y);
    }

    // A's part in [low, high], by halving cells until their sign is certain or they are negligible.
    void by_slope(double low, double high, double tolerance, Segments& out) const {
        const auto start = static_cast<std::size_t>(std::min(4000.0, std::ceil(4.0 * (high - low) / s_))) + 8;
        const double width = high - low;
        std::vector<Segment> open;
        for (std::size_t k = start; k-- > 0;) {
            const auto cut = [&](std::size_t i) {
                return low + width * (static_cast<double>(i) / static_cast<double>(start));
            };
            open.push_back({cut(k), k + 1 == start ? high : cut(k + 1), false});
        }
        const std::size_t max_evaluations = out.evaluations + 20000;
        while (!open.empty()) {
            Segment cell = open.back();
            open.pop_back();
            const double h = cell.high - cell.low, middle = 0.5 * (cell.low + cell.high);
            const Point at = evaluate(middle, out);
            cell.positive = at.u > 0.0 && at.p >= resolved_density;
            if (!contrast_.certain(at, h)) {
                const double undecided = contrast_.difference_bound(at, h);
                // Within rounding of 0 everywhere, so that halving would not help.
                const bool blurred = std::fabs(at.u) + contrast_.change_over(at, h) <= 4.0 * contrast_.log_error();
                const bool divisible =
                    middle > cell.low && middle < cell.high && !blurred && out.evaluations < max_evaluations;
                if (undecided > tolerance * h / width && divisible) {
                    open.push_back({middle, cell.high, false});
                    open.push_back({cell.low, middle, false});
                    continue;
                }
                out.slack += undecided;
            }
            out.list.push_back(cell);
        }
    }

    // The signs of p_j - gamma q_j in the order of the centres, without those within rounding of 0,
    // whose worth is added to `slack`.
    std::vector<bool> weight_signs(double& slack) const {
        std::vector<std::size_t> order(p_.weight.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(),
                  [&](std::size_t a, std::size_t b) { return p_.centre[a] < p_.centre[b]; });
        std::vector<bool> signs;
        // Of `difference`, relative to `size`.
        constexpr long double sign_error = 8.0L * static_cast<long double>(long_double_ulp);
        for (const std::size_t j : order) {
            const long double gamma_q = gamma_ * q_.weight[j];
            const long double difference = p_.weight[j] - gamma_q;
            const long double size = p_.weight[j] + gamma_q;
            if (std::fabs(difference) > static_cast<long double>(eight_roundings) * size)
                signs.push_back(difference > 0.0L);
            else slack += static_cast<double>(std::max(0.0L, difference + sign_error * size));
        }
        return signs;
    }

    // A by the count of sign changes; returns whether all of them were seen.
    bool by_count(double tolerance, Segments& out) const {
        const std::vector<bool> signs = weight_signs(out.slack);
        if (signs.empty()) return false;
        std::size_t changes = 0;
        for (std::size_t j = 1; j < signs.size(); ++j) changes += signs[j] != signs[j - 1];
        const double edge = static_cast<double>(radius_);
        const double first = std::min(-edge, contrast_.low() - 10.0 * s_),
                     last = std::max(edge, contrast_.high() + 10.0 * s_);
        const auto steps = static_cast<std::size_t>(std::min(20000.0, std::ceil(4.0 * (last - first) / s_)));
        double at = first, begin = -edge;
        bool sign = signs.front();
        std::size_t seen = 0;
        for (std::size_t k = 0; k <= steps; ++k) {
            const double y = first + (last - first) * (static_cast<double>(k) / static_cast<double>(steps));
            const Point point = evaluate(y, out);
            if (!contrast_.sign_known(point)) continue;
            if ((point.u > 0.0) != sign) {
                ++seen;
                const Segment cell = bracket_crossing(at, y, sign, tolerance, out);
                const double middle = 0.5 * (cell.low + cell.high);
                const double crossing = std::min(std::max(middle, -edge), edge);
                if (crossing > begin) out.list.push_back({begin, crossing, sign});
                begin = crossing;
                if (cell.high > -edge && cell.low < edge)
                    out.slack += contrast_.difference_bound(evaluate(middle, out), cell.high - cell.low);
                sign = !sign;
            }
            at = y;
        }
        if (begin < edge) out.list.push_back({begin, edge, sign});
        return seen == changes && sign == signs.back();
    }

    // Narrows [low, high], in which the sign changes from `before`.
    Segment bracket_crossing(double low, double high, bool before, double tolerance, Segments& out) const {
        for (int k = 0; k < 100; ++k) {
            const double middle = 0.5 * (low + high);
            if (!(middle > low && middle < high)) break;
            const Point at = evaluate(middle, out);
            if (contrast_.difference_bound(at, high - low) <= tolerance) break;
            if (!contrast_.sign_known(at)) {
                // Tightens around it from both sides.
                const double quarter = 0.25 * (high - low);
                const Point left = evaluate(middle - quarter, out), right = evaluate(middle + quarter, out);
                bool moved = false;
                if (contrast_.sign_known(left) && (left.u > 0.0) == before) low = middle - quarter, moved = true;
                if (contrast_.sign_known(right) && (right.u > 0.0) != before) high = middle + quarter, moved = true;
                if (!moved) break;
                continue;
            }
            ((at.u > 0.0) == before ? low : high) = middle;
        }
        return {low, high, before};
    }

    Masses masses(long double y, bool above) const {
        return {gaussian_tail_mass(p_, y, noise_, above), gamma_ * gaussian_tail_mass(q_, y, noise_, above)};
    }

    MixtureDivergence attempt(double tolerance) const {
        Segments segments;
        const double edge = static_cast<double>(radius_);
        if (!(same_centres_ && by_count(tolerance, segments))) {
            segments = Segments{};
            by_slope(-edge, edge, tolerance, segments);
        }
        return measure(segments);
    }

    MixtureDivergence measure(const Segments& segments) const {
        const Masses left = masses(-radius_, false), right = masses(radius_, true);
        long double sum = 0.0L, used = 0.0L, positive = 0.0L;
        const auto add = [&](const Masses& plus, const Masses& minus) {
            sum += (plus.p - plus.gamma_q) - (minus.p - minus.gamma_q);
            used += plus.p + plus.gamma_q + minus.p + minus.gamma_q;
            positive += plus.p - minus.p;
        };
        const bool left_in = left.p > left.gamma_q, right_in = right.p > right.gamma_q;
        const Masses nothing{0.0L, 0.0L};
        if (left_in) add(left, nothing);
        if (right_in) add(right, nothing);
        for (std::size_t k = 0; k < segments.list.size();) {
            const bool positive_segment = segments.list[k].positive;
            std::size_t end = k;
            while (end < segments.list.size() && segments.list[end].positive == positive_segment) ++end;
            if (positive_segment) {
                const long double low = segments.list[k].low, high = segments.list[end - 1].high;
                add_interval(low, high, add);
            }
            k = end;
        }
        const auto error = static_cast<double>(used * tail_error_);
        const auto value = static_cast<double>(sum);
        double upper = value + error + segments.slack;
        // An atom that is left out may be worth what rounding hides of it.
        for (const Masses& atom : {left, right}) {
            const auto hidden = static_cast<double>(atom.p - atom.gamma_q + (atom.p + atom.gamma_q) * tail_error_);
            if (!(atom.p > atom.gamma_q)) upper += std::max(0.0, hidden);
        }
        if (same_centres_) upper = std::min(upper, before_noise());
        return {{std::max(0.0, value - error), std::min(1.0, upper * up)},
                std::min(1.0, static_cast<double>(positive) + segments.slack + error)};
    }

    template <class Add> void add_interval(long double low, long double high, const Add& add) const {
        const Masses below_high = masses(high, false), above_low = masses(low, true);
        // From the side with the smaller tail, so that little cancels.
        if (above_low.p + above_low.gamma_q < below_high.p + below_high.gamma_q) add(above_low, masses(high, true));
        else add(below_high, masses(low, false));
    }

    // sum_j (p_j - gamma q_j)_+, rounded up: the divergence before the noise is added.
    double before_noise() const {
        long double sum = 0.0L, used = 0.0L;
        for (std::size_t j = 0; j < p_.weight.size(); ++j) {
            const long double gamma_q = gamma_ * q_.weight[j];
            sum += std::max(0.0L, p_.weight[j] - gamma_q);
            used += p_.weight[j] + gamma_q;
        }
        return static_cast<double>(sum + static_cast<long double>(eight_roundings) * std::min(used, 2.0L * gamma_));
    }
};

// E_{e^eps} of the two mixtures, for the weights as they are stored.
inline MixtureDivergence gaussian_mixture_divergence(const Mixture& p, const Mixture& q, long double noise,
                                                     long double radius, double eps) {
    return GaussianMixturePair(p, q, noise, radius, eps).hockey_stick();
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain

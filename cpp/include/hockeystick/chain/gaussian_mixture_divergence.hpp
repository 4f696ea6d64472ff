// The hockey-stick divergence of two projected mixtures of Gaussians, certified: what the last step of a scalar chain
// leaves to be compared (chain/scalar_chain.hpp).
//
//   P = Pi_[-R,R] sum_j p_j N(m_j, s^2),  Q likewise,  d = p - gamma q,  u = log(p/(gamma q))
//   E = (P - gamma Q)(-inf, -R]_+  +  int_{-R}^{R} d_+  +  (P - gamma Q)[R, inf)_+
//
// Any set A gives the lower bound (P - gamma Q)(A), from tails that are summed in long double. It misses E by the integral
// of |d| over where A has the wrong sign. That A is right nearly everywhere is certified in one of two ways.
//   Count.    If both mixtures have the same centres, d has at most as many changes of sign as the sequence p_j - gamma q_j
//             (the Gaussian kernel is totally positive: Karlin, Total Positivity, 1968, Theorem 3.1 of Chapter 5). When that
//             many have been seen, there are no others. And E <= sum_j (p_j - gamma q_j)_+ (data processing).
//   Slope.    Where |u| exceeds what it can move within a cell (chain/density_contrast.hpp), its sign is certain; other cells are
//             halved until |d| <= p |1 - e^{-u}| makes them negligible.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
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
        const double reach = std::min(contrast_.farthest(), 150.0);
        // long double tails: arguments squared times an ulp, and the sum; 2^-48: skipped signs and stored weights
        tail_error_ = std::numeric_limits<long double>::epsilon() * (terms + 64.0 + 16.0 * reach * reach) + 0x1p-48;
    }

    CertifiedEnds hockey_stick() const {
        CertifiedEnds ends = attempt(1e-14);
        if (ends.upper - ends.lower > 1e-4 * ends.lower && ends.lower > 1e-290) ends = attempt(1e-5 * ends.lower);
        return ends;
    }

  private:
    struct Segment {
        double low, high;
        bool positive;
    };
    struct Segments {
        std::vector<Segment> list;
        double slack = 0.0;  // of what the undecided cells may add
        std::size_t looks = 0;
    };
    struct Masses {
        long double p, gq;
    };

    const Mixture& p_;
    const Mixture& q_;
    long double noise_;
    double s_;
    long double radius_, gamma_;
    bool same_centres_;
    DensityContrast contrast_;
    double tail_error_;

    using Local = DensityContrast::Local;
    Local look(double y, Segments& out) const {
        ++out.looks;
        return contrast_.look(y);
    }

    // A's part in [low, high], by halving.
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
        const std::size_t budget = out.looks + 20000;
        while (!open.empty()) {
            Segment cell = open.back();
            open.pop_back();
            const double h = cell.high - cell.low, middle = 0.5 * (cell.low + cell.high);
            const Local at = look(middle, out);
            cell.positive = at.u > 0.0 && at.p >= tiny;
            if (!contrast_.certain(at, h)) {
                const double at_stake = contrast_.stake(at, h);
                const bool blurred = std::fabs(at.u) + contrast_.drift(at, h) <=
                                     4.0 * contrast_.log_error();  // halving would not sharpen it
                const bool divisible = middle > cell.low && middle < cell.high && !blurred && out.looks < budget;
                if (at_stake > tolerance * h / width && divisible) {
                    open.push_back({middle, cell.high, false});
                    open.push_back({cell.low, middle, false});
                    continue;
                }
                out.slack += at_stake;
            }
            out.list.push_back(cell);
        }
    }

    // The signs of p_j - gamma q_j in the order of the centres. Those within rounding of 0 are left out, and what they may be
    // worth is added to `slack`: the signs are those of the mixture without them.
    std::vector<bool> weight_signs(double& slack) const {
        std::vector<std::size_t> order(p_.weight.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(),
                  [&](std::size_t a, std::size_t b) { return p_.centre[a] < p_.centre[b]; });
        std::vector<bool> signs;
        for (const std::size_t j : order) {
            const long double gq = gamma_ * q_.weight[j];
            const long double difference = p_.weight[j] - gq;
            const long double size = p_.weight[j] + gq;
            if (std::fabs(difference) > 0x1p-50L * size) signs.push_back(difference > 0.0L);
            else slack += static_cast<double>(std::max(0.0L, difference + 0x1p-60L * size));
        }
        return signs;
    }

    // A by the count of sign changes; false if not all of them were seen.
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
            const Local l = look(y, out);
            if (!contrast_.resolved(l) || std::fabs(l.u) <= contrast_.log_error()) continue;
            if ((l.u > 0.0) != sign) {
                ++seen;
                const Segment cell = bracket(at, y, sign, tolerance, out);
                const double middle = 0.5 * (cell.low + cell.high);
                const double crossing = std::min(std::max(middle, -edge), edge);
                if (crossing > begin) out.list.push_back({begin, crossing, sign});
                begin = crossing;
                if (cell.high > -edge && cell.low < edge)
                    out.slack += contrast_.stake(look(middle, out), cell.high - cell.low);
                sign = !sign;
            }
            at = y;
        }
        if (begin < edge) out.list.push_back({begin, edge, sign});
        return seen == changes && sign == signs.back();
    }

    // Narrows a bracket of one sign change.
    Segment bracket(double low, double high, bool before, double tolerance, Segments& out) const {
        for (int k = 0; k < 100; ++k) {
            const double middle = 0.5 * (low + high);
            if (!(middle > low && middle < high)) break;
            const Local at = look(middle, out);
            if (contrast_.stake(at, high - low) <= tolerance) break;
            if (std::fabs(at.u) <= contrast_.log_error() ||
                !contrast_.resolved(at)) {  // tighten around it from both sides
                const double quarter = 0.25 * (high - low);
                const Local left = look(middle - quarter, out), right = look(middle + quarter, out);
                const auto clear = [&](const Local& l) {
                    return contrast_.resolved(l) && std::fabs(l.u) > contrast_.log_error();
                };
                bool moved = false;
                if (clear(left) && (left.u > 0.0) == before) low = middle - quarter, moved = true;
                if (clear(right) && (right.u > 0.0) != before) high = middle + quarter, moved = true;
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

    CertifiedEnds attempt(double tolerance) const {
        Segments segments;
        const double edge = static_cast<double>(radius_);
        if (!(same_centres_ && by_count(tolerance, segments))) {
            segments = Segments{};
            by_slope(-edge, edge, tolerance, segments);
        }
        return measure(segments);
    }

    CertifiedEnds measure(const Segments& segments) const {
        const Masses left = masses(-radius_, false), right = masses(radius_, true);
        long double sum = 0.0L, used = 0.0L, positive = 0.0L;
        const auto add = [&](const Masses& plus, const Masses& minus) {
            sum += (plus.p - plus.gq) - (minus.p - minus.gq);
            used += plus.p + plus.gq + minus.p + minus.gq;
            positive += plus.p - minus.p;
        };
        const bool left_in = left.p > left.gq, right_in = right.p > right.gq;
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
        // an atom left out may be worth what rounding hides of it
        for (const Masses& atom : {left, right}) {
            const auto hidden = static_cast<double>(atom.p - atom.gq + (atom.p + atom.gq) * tail_error_);
            if (!(atom.p > atom.gq)) upper += std::max(0.0, hidden);
        }
        if (same_centres_) upper = std::min(upper, before_noise());
        return {std::max(0.0, value - error), std::min(1.0, upper * (1.0 + 0x1p-50)),
                std::min(1.0, static_cast<double>(positive) + segments.slack + error)};
    }

    template <class Add> void add_interval(long double low, long double high, const Add& add) const {
        const Masses below_high = masses(high, false), above_low = masses(low, true);
        // from the side with the smaller tail, so that little cancels
        if (above_low.p + above_low.gq < below_high.p + below_high.gq) add(above_low, masses(high, true));
        else add(below_high, masses(low, false));
    }

    double before_noise() const {
        long double sum = 0.0L, used = 0.0L;
        for (std::size_t j = 0; j < p_.weight.size(); ++j) {
            const long double gq = gamma_ * q_.weight[j];
            sum += std::max(0.0L, p_.weight[j] - gq);
            used += p_.weight[j] + gq;
        }
        return static_cast<double>(sum + 0x1p-50L * std::min(used, 2.0L * gamma_));
    }
};

// E_{e^eps} of the two mixtures, for the weights as they are stored.
inline CertifiedEnds gaussian_mixture_divergence(const Mixture& p, const Mixture& q, long double noise,
                                                 long double radius, double eps) {
    return GaussianMixturePair(p, q, noise, radius, eps).hockey_stick();
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain

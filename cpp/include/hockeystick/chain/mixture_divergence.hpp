// The hockey-stick divergence of two projected mixtures of one noise, Gaussian or Laplace,
// certified: what the last step of a scalar chain leaves to be compared (chain/scalar_chain.hpp).
//
//   P = Pi_[-R,R] sum_j p_j N(m_j, s^2),  Q likewise,  d = p - gamma q,  u = log(p/(gamma q))
//   E = (P - gamma Q)(-inf, -R]_+  +  int_{-R}^{R} d_+  +  (P - gamma Q)[R, inf)_+
//
// Gaussian noise: by bounds of how densities compare at a point and near it (DensityContrast), or
// by the number of their changes of sign. Laplace noise: in closed form.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include <hockeystick/chain/mixture.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

// How two mixtures of Gaussians with one noise s compare at a point, and near it.
//
// With u = log(p/(gamma q)): u' = (mean_P - mean_Q)/s^2 and u'' = (var_P - var_Q)/s^4, for the laws
// of the centre given y. Hence |u'| <= W/s^2 and |u''| <= W^2/(4 s^4), W the range of the centres
// (Popoviciu).

inline constexpr double resolved_density = 1e-280;  // smaller densities are not told apart

class DensityContrast {
  public:
    struct Point {
        double p, gamma_q;  // densities, without the factor 1/(s sqrt(2 pi))
        double u, slope;    // log(p/(gamma q)) and its derivative
    };

    DensityContrast(const Mixture& p, const Mixture& q, double noise, double radius, double gamma)
        : p_(p), q_(q), s_(noise), gamma_(gamma) {
        const auto ends = [](const Mixture& m) { return std::minmax_element(m.centre.begin(), m.centre.end()); };
        const auto [p_low, p_high] = ends(p);
        const auto [q_low, q_high] = ends(q);
        low_ = static_cast<double>(std::min(*p_low, *q_low));
        high_ = static_cast<double>(std::max(*p_high, *q_high));
        farthest_ = (radius + std::max(std::fabs(low_), std::fabs(high_))) / s_;
        const double terms = static_cast<double>(p.weight.size() + q.weight.size());
        // Exponents above -745 are right to 4 ulps of themselves, positions to an ulp; sums add an
        // ulp a term.
        log_error_ = one_ulp * (4.0 * 745.0 + 80.0 * farthest_ + terms);
        slope_bound_ = (high_ - low_) / (s_ * s_);
    }

    double low() const { return low_; }
    double high() const { return high_; }
    // Of a centre from a point of the interval, in deviations.
    double farthest() const { return farthest_; }
    // Of u where it is resolved.
    double log_error() const { return log_error_; }

    Point at(double y) const {
        const Density p = density(p_, y), q = density(q_, y);
        const double gamma_q = q.value * gamma_;
        const double u = std::log(std::max(p.value, resolved_density)) - std::log(std::max(gamma_q, resolved_density));
        return {p.value, gamma_q, u, p.slope - q.slope};
    }

    bool resolved(const Point& point) const { return point.p >= resolved_density && point.gamma_q >= resolved_density; }

    // Whether the sign of u is that of the exact one.
    bool sign_known(const Point& point) const { return resolved(point) && std::fabs(point.u) > log_error_; }

    // How far u may be from its value in the middle of a cell of width h.
    double change_over(const Point& middle, double h) const {
        const double by_slope_bound = 0.5 * slope_bound_ * h;
        const double by_slope =
            0.5 * std::fabs(middle.slope) * h * (1.0 + 1e-10) + 0.03125 * slope_bound_ * slope_bound_ * h * h;
        return log_error_ +
               (resolved(middle) ? std::min(by_slope_bound, by_slope + log_error_ * slope_bound_ * h) : by_slope_bound);
    }

    // Bound of int |p - gamma q| over a cell of width h.
    double difference_bound(const Point& middle, double h) const {
        // 0.4 > 1/sqrt(2 pi)
        const double density = std::exp(0.5 * farthest_ / s_ * h) * 0.4 * h / s_ * (1.0 + 1e-9);
        const double max_u = std::fabs(middle.u) + change_over(middle, h);
        if (!resolved(middle) || max_u > 30.0) return density * (middle.p + middle.gamma_q + 2.0 * resolved_density);
        return density * middle.p * std::expm1(max_u);
    }

    // Whether u has one sign in a cell of width h.
    bool certain(const Point& middle, double h) const { return std::fabs(middle.u) > change_over(middle, h); }

  private:
    const Mixture& p_;
    const Mixture& q_;
    double s_, gamma_, low_ = 0.0, high_ = 0.0, farthest_ = 0.0, log_error_ = 0.0, slope_bound_ = 0.0;

    struct Density {
        double value, slope;
    };
    Density density(const Mixture& m, double y) const {
        double value = 0.0, moment = 0.0;
        for (std::size_t j = 0; j < m.weight.size(); ++j) {
            const double z = (static_cast<double>(m.centre[j]) - y) / s_;
            const double term = m.weight[j] * std::exp(-0.5 * z * z);
            value += term;
            moment += term * z;
        }
        return {value, value > 0.0 ? moment / value / s_ : 0.0};
    }
};

// The divergence of two projected mixtures of Gaussians with one noise s.
//
// Any set A gives the lower bound (P - gamma Q)(A), from tails that are summed in long double. It
// misses E by the integral of |d| over the places where A has the wrong sign. Two ways certify that
// A is right nearly everywhere.
//
//   count    If both mixtures have the same centres, d changes sign at most as often as the
//            sequence p_j - gamma q_j, since the Gaussian kernel is totally positive (Karlin, Total
//            Positivity, 1968, Theorem 3.1 of Chapter 5). Once that many changes have been seen,
//            there are no others. Also, E <= sum_j (p_j - gamma q_j)_+ by data processing.
//   slope    Where |u| exceeds what it can change within a cell (DensityContrast), its
//            sign is certain. Other cells are halved until |d| <= p |1 - e^{-u}| makes them
//            negligible.
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

// The hockey-stick divergence of two projected mixtures of Laplace laws, in closed form.
//
// Between two neighbouring centres of either mixture, at a distance t from the left one and l the
// gap,
//
//   d = p - gamma q = (a e^{-t/b} + c e^{-(l - t)/b})/(2b),
//
// which changes sign at most once, where t = (l + b log(-a/c))/2. One sweep from either side gives
// a and c. Their relative errors move gamma by as much, so that both ends are sums for a gamma
// nearby.

// A sorted mixture seen from both sides: left[k] = sum_{m_j <= z_k} w_j e^{-(z_k - m_j)/b}, and
// right[k] its mirror image.
struct LaplaceSides {
    std::vector<double> left, right;
};

// E_{e^eps} of two projected Laplace mixtures with one noise scale, in closed form between their
// centres.
class LaplaceMixturePair {
  public:
    LaplaceMixturePair(const Mixture& p, const Mixture& q, double noise, double radius)
        : noise_(noise), radius_(radius) {
        std::vector<double> at;  // the centres of p, then those of q
        for (const Mixture* m : {&p, &q}) {
            for (const long double centre : m->centre) at.push_back(static_cast<double>(centre));
        }
        std::vector<std::size_t> order(at.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return at[a] < at[b]; });
        bool low = false, high = false;
        const auto knot = [&](double z, double weight_p, double weight_q) {
            z_.push_back(z);
            p_.push_back(weight_p);
            q_.push_back(weight_q);
        };
        for (const std::size_t j : order) {
            if (!low && at[j] >= -radius) knot(-radius, 0.0, 0.0), low = true;
            if (!high && at[j] > radius) knot(radius, 0.0, 0.0), high = true;
            const bool of_p = j < p.weight.size();
            knot(at[j], of_p ? p.weight[j] : 0.0, of_p ? 0.0 : q.weight[j - p.weight.size()]);
        }
        if (!low) knot(-radius, 0.0, 0.0);
        if (!high) knot(radius, 0.0, 0.0);
        sweep();
    }

    // The sums are right to a factor 1 +- kappa, an ulp of the positions included. So the ends are
    // those of gammas nearby.
    MixtureDivergence hockey_stick(double eps) const {
        const double gamma = std::exp(eps);
        const double farthest = std::max(-z_.front(), z_.back()) / noise_;
        const double kappa = std::min(0.25, eight_roundings * (static_cast<double>(z_.size() + 64) + farthest));
        const Sum low = positive_part(gamma * (1.0 + 3.0 * kappa)), high = positive_part(gamma * (1.0 - 3.0 * kappa));
        return {{std::max(0.0, low.value * (1.0 - 3.0 * kappa) - low.error),
                 std::min(1.0, high.value * (1.0 + 3.0 * kappa) + high.error)},
                std::min(1.0, high.mass * (1.0 + 3.0 * kappa))};
    }

  private:
    struct Masses {
        double p, q;
    };
    struct Sum {
        double value, mass;  // of d and of p, where d > 0
        double error;        // what cancellation may have lost of the value
    };
    double noise_, radius_;
    std::vector<double> z_, p_, q_;
    LaplaceSides p_sides_, q_sides_;

    void sweep() {
        const std::size_t n = z_.size();
        for (LaplaceSides* s : {&p_sides_, &q_sides_}) s->left.resize(n), s->right.resize(n);
        double p = 0.0, q = 0.0;
        for (std::size_t k = 0; k < n; ++k) {
            const double decay = k == 0 ? 0.0 : std::exp((z_[k - 1] - z_[k]) / noise_);
            p_sides_.left[k] = p = p * decay + p_[k];
            q_sides_.left[k] = q = q * decay + q_[k];
        }
        p = q = 0.0;
        for (std::size_t k = n; k-- > 0;) {
            const double decay = k + 1 == n ? 0.0 : std::exp((z_[k] - z_[k + 1]) / noise_);
            p_sides_.right[k] = p = p * decay + p_[k];
            q_sides_.right[k] = q = q * decay + q_[k];
        }
    }

    // The masses that projection puts on -R (below) or R.
    Masses masses_beyond(bool below) const {
        Masses mass{0.0, 0.0};
        for (std::size_t k = 0; k < z_.size(); ++k) {
            const double inside = (below ? z_[k] + radius_ : radius_ - z_[k]) / noise_;
            const double share = inside > 0.0 ? 0.5 * std::exp(-inside) : 1.0 - 0.5 * std::exp(inside);
            mass.p += p_[k] * share;
            mass.q += q_[k] * share;
        }
        return mass;
    }

    Sum positive_part(double gamma) const {
        Sum sum{0.0, 0.0, 0.0};
        for (const bool below : {true, false}) {
            const Masses atom = masses_beyond(below);
            if (atom.p > gamma * atom.q) sum.value += atom.p - gamma * atom.q, sum.mass += atom.p;
        }
        for (std::size_t k = 0; k + 1 < z_.size(); ++k) {
            if (z_[k] >= -radius_ && z_[k + 1] <= radius_) add_gap(k, gamma, sum);
        }
        return sum;
    }

    // Adds int d_+ over the gap after knot k.
    void add_gap(std::size_t k, double gamma, Sum& sum) const {
        const double length = (z_[k + 1] - z_[k]) / noise_;
        if (length <= 0.0) return;
        const double a = p_sides_.left[k] - gamma * q_sides_.left[k];
        const double c = p_sides_.right[k + 1] - gamma * q_sides_.right[k + 1];
        if (a <= 0.0 && c <= 0.0) return;
        double begin = 0.0, end = length;
        if (a < 0.0 || c < 0.0) {
            const double zero = 0.5 * (length + std::log(-a / c));  // a e^{-t} = -c e^{-(l - t)}
            if (a > 0.0) end = std::min(std::max(zero, 0.0), length);
            else begin = std::min(std::max(zero, 0.0), length);
        }
        const double falling = std::exp(-begin) * -std::expm1(begin - end);
        const double rising = std::exp(end - length) * -std::expm1(begin - end);
        sum.value += std::max(0.0, 0.5 * (a * falling + c * rising));
        sum.mass += 0.5 * (p_sides_.left[k] * falling + p_sides_.right[k + 1] * rising);
        if (a < 0.0 || c < 0.0) sum.error += sixteen_roundings * (std::fabs(a) * falling + std::fabs(c) * rising);
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain

// A round of a hidden state whose two runs may be moved apart by d, as one map of its whole loss
// curve: the bound `joint`.
//
// Let E_s bound the curve before the round, in both directions, let the round's map have an image
// of diameter r, and let the two runs' maps differ by at most d, in deviations of the round's
// noise. Then after the round (docs/core/hidden_state.md, section 9)
//
//   E_gamma <= sup_u [ Phi(u) - gamma Phi(u - d) + integral_u^{u+r} E_{s(v)} phi(v) dv ],
//   s(v) = gamma e^{dv - d^2/2}.
//
// With the excess of E over the curve of equal laws (hidden_state/chord_curve.hpp) this is
//
//   (Phi - gamma Phi(. - d))(w) + integral_u^{u+r} excess(s(v)) phi(v) dv,
//
// where w is the point of [u, u + r] nearest to v_1, s(v_1) = 1: at v_1 the first term is theta(log
// gamma, d). All other terms are positive.
//
// The supremum. In u the bracket has the slope falling(s(u + r)) phi(u + r) - rising(s(u)) phi(u),
// which changes its sign once. A search finds u_a and u_b close to each other where the sign is
// surely + and surely -. For u between them, [u, u + r] lies in [u_a, u_b + r], and a wider
// interval gives no less: that is what is charged. Where no sign is found before u < -39 - r or u >
// 39, that end is open, and charged as such.
//
// Rounding: hidden_state/cell_measure.hpp for the integral; round_error pays for the sums.
//
// Cost: per point of the curve some ten evaluations of the slope, and an integral over the cells in
// [u, u + r].
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <hockeystick/hidden_state/cell_measure.hpp>
#include <hockeystick/hidden_state/chord_curve.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double round_error = 1e-11;
inline constexpr double smallest_bound = 1e-300;  // keeps logarithms of bounds finite

// The ends of [u_a, u_b], which hold the supremum over u of a bracket, for one point of the curve
// after the other.
class MaximumSearch {
  public:
    MaximumSearch(double r, double start) : r_(r), fine_(std::min(1.0, r)), guess_(start) {}

    // slope(u) has the sign of the bracket's slope, and falls; with its error. The secant through
    // the last two points of a search starts the next one.
    template <class Slope> std::pair<double, double> enclose(const Slope& slope) {
        const double start = guess_, root = search(slope);
        guess_ = 2.0 * root - last_root_.value_or(root);
        last_root_ = root;
        if (!(guess_ > lowest() && guess_ < normal_reach)) guess_ = std::min(std::max(start, lowest()), normal_reach);
        return {surely(slope, root, -1.0, lowest()), surely(slope, root, 1.0, infinity)};
    }

  private:
    double r_, fine_, guess_, steepness_ = -1.0;
    std::optional<double> last_root_;

    double lowest() const { return -normal_reach - r_; }

    template <class Slope> double search(const Slope& slope) {
        double low = lowest(), high = normal_reach, u = guess_;
        double before = u, slope_before = 0.0;
        for (int pass = 0; pass < 60; ++pass) {
            const double at = slope(u).value;
            (at > 0.0 ? low : high) = u;
            if (pass > 0 && at != slope_before) steepness_ = (at - slope_before) / (u - before);
            double next = u - at / steepness_;
            if (!(next > low && next < high)) next = 0.5 * (low + high);
            const double step = std::fabs(next - u);
            before = u;
            slope_before = at;
            u = next;
            if (step < 1e-6 * fine_ || high - low < 1e-7 * fine_) break;
        }
        return u;
    }

    // The nearest point in this direction whose sign is sure, or the end.
    template <class Slope> double surely(const Slope& slope, double root, double direction, double end) const {
        for (double away = 1e-6 * fine_;; away *= 4.0) {
            const double u = root + direction * away;
            if (!(u > lowest() && u < normal_reach)) return end;
            const Rounded at = slope(u);
            if (-direction * at.value > at.error) return u;
        }
    }
};

// Integrals of excess(s(v)) phi(v) for s(v) = gamma e^{dv - d^2/2}, log gamma = k step.
class ShiftCells {
  public:
    ShiftCells(std::size_t points, double step, double d)
        : points_(points), step_(step), d_(d), cells_(d, knots(points, step, d)) {}

    double loss(std::size_t k, double v) const { return static_cast<double>(k) * step_ + d_ * (v - 0.5 * d_); }

    double integral(const ChordCurve& curve, std::size_t k, double from, double to) const {
        if (!(to > from)) return 0.0;
        const std::vector<double>& excess = curve.excess();
        const std::size_t first = points_ - k;
        const double lowest = cells_.knot(first), highest = cells_.knot(3 * points_ - k);
        double sum = cells_.integral(excess.data(), first, std::max(from, lowest), std::min(to, highest));
        if (to > highest) sum += excess.back() * normal_mass(std::max(from, highest), to);
        if (from < lowest) {  // gamma s(v) phi(v) = gamma phi(v - d)
            const double gamma = std::exp(static_cast<double>(k) * step_);
            sum += gamma * excess.back() * normal_mass(from - d_, std::min(to, lowest) - d_);
        }
        return sum * (1.0 + round_error);
    }

  private:
    std::size_t points_;
    double step_, d_;
    CellMeasure cells_;  // at knot 2 points + i - k, s is the curve's point i

    static std::vector<double> knots(std::size_t points, double step, double d) {
        std::vector<double> at;
        for (std::size_t j = 0; j <= 3 * points; ++j)
            at.push_back(0.5 * d + (static_cast<double>(j) - 2.0 * static_cast<double>(points)) * step / d);
        return at;
    }
};

class ShiftedRound {
  public:
    // For the curve at the losses k step, k = 0..points.
    ShiftedRound(std::size_t points, double step, double d) : step_(step), d_(d), cells_(points, step, d) {}

    void advance(std::vector<double>& y, double image_diameter) const {
        const ChordCurve curve(y, step_);
        MaximumSearch search(image_diameter, 0.5 * (d_ - image_diameter));
        for (std::size_t k = 0; k < y.size(); ++k) {
            const auto slope = [&](double at) { return log_slope(curve, k, at, image_diameter); };
            const auto [from, to] = search.enclose(slope);
            const double bound = value(curve, k, from, std::min(to + image_diameter, 2.0 * normal_reach));
            y[k] = std::min(1.0, std::max(bound, smallest_bound));
        }
    }

  private:
    double step_, d_;
    ShiftCells cells_;

    // log(falling(s(u + r)) phi(u + r)) - log(rising(s(u)) phi(u))
    Rounded log_slope(const ChordCurve& curve, std::size_t k, double u, double r) const {
        const Rounded upper = curve.falling(cells_.loss(k, u + r)), lower = curve.rising(cells_.loss(k, u));
        const double exponent = r * (u + 0.5 * r);
        const double error = upper.error / upper.value + lower.error / lower.value;
        return {std::log(upper.value / lower.value) - exponent, 2.0 * error + 1e-12 * (1.0 + std::fabs(exponent))};
    }

    // Phi(w) - gamma Phi(w - d) at the point w of [from, to] nearest to v_1, rounded up.
    double of_equal_laws(std::size_t k, double from, double to) const {
        const double eps = static_cast<double>(k) * step_, v_1 = 0.5 * d_ - eps / d_;
        if (from <= v_1 && v_1 <= to) return theta(eps, d_) * (1.0 + 1e-13 * (1.0 + eps + v_1 * v_1));
        const double w = from > v_1 ? from : to;
        const double with = q(-w), without = std::exp(eps) * q(d_ - w);
        return with - without + 1e-13 * (1.0 + eps) * (with + without);
    }

    double value(const ChordCurve& curve, std::size_t k, double from, double to) const {
        return (cells_.integral(curve, k, from, to) + of_equal_laws(k, from, to)) * up + smallest_bound;
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

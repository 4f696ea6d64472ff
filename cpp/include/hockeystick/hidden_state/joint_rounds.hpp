// A round of a hidden state as one map of its whole loss curve: the bound `joint`
// (hidden_state/joint.hpp), in four parts.
//
//   CellMeasure    normal weights of the cells of a line
//   ChordCurve     the curve before the round, linear in gamma between its points
//   ShiftedRound   the round, where the two runs' maps differ by at most d
//   SampledRound   the same, where the record is used with probability q, unseen
//
// Each gives upper ends: what rounding and quadrature may lose is added. docs/core/hidden_state.md,
// sections 9 and 10, has the proofs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/hidden_state/loss_curve.hpp>
#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

using namespace divergence;
using namespace numeric;

// Normal weights of the cells of a line, for integrals of functions that are linear in e^{dv} on
// each cell:
//
//   integral f(v) phi(v) dv,   f = (1 - share) f_left + share f_right,
//   share(v) = (e^{d(v - left)} - 1)/(e^{d(right - left)} - 1) on the cell [left, right].
//
// Cells are divided into parts; a part that an end falls into is integrated anew. All f must be >=
// 0; results are rounded up.
//
// Error. Six nodes of Gauss and Legendre miss at most (6!)^4/(13 (12!)^3) h^13 max|F^(12)| <
// 1.9e-16 h^13 max|F^(12)| on a part of length h. |phi^(m)| = |He_m| phi, and |He_m(v)| = |E (v +
// iZ)^m| <= K^m, K = |v| + 2.2, for m <= 12 (Minkowski, with E Z^12 = 10395 = 2.162^12). The m-th
// derivative of the share is at most d^m e^D/(e^D - 1), D = d(right - left). So with H = h (K + d)
//
//   |F^(12)| <= phi (K + d)^12 (1 + 12 (1 + D)/((right - left)(K + d))),
//   |error|  <= 1.9e-16 (H^12 + 12 (1 + D) H^11) h max phi.
//
// A part that begins at a is at most 1.5/(|a| + d + 3.7) long, so that |v| < |a| + 1/2 on it and
// H <= 3/2, where the largest density is at most 4.5 times the smallest: that is less than 1.1e-12
// (1 + D) of the part's normal mass. Each weight is raised by weight_error (1 + D) of the part's
// mass, which pays for the error, for rounding, and for the position v itself (v^2 times some ulps,
// |v| < 39).
//
// The mass beyond 39 is left out; it is below 1e-331. Cost: a part has six densities.

inline constexpr double normal_reach = 39.0;
inline constexpr double weight_error = 1e-11;

// Phi(to) - Phi(from), rounded up; no less than the smaller tail's rounding.
inline double normal_mass(double from, double to) {
    if (!(to > from)) return 0.0;
    const double near = from > 0.0 ? q(from) : q(-to), far = from > 0.0 ? q(to) : q(-from);
    return near - far + sixteen_roundings * near;
}

struct CellWeights {
    double left, right;
};

// Of [from, to] within the cell [left, left + width]; `from` and `to` are counted from `left`. A
// part in the sense above.
inline CellWeights cell_weights(double d, double left, double width, double from, double to) {
    static constexpr double nodes[] = {0.23861918608319691, 0.66120938646626451, 0.93246951420315203};
    static constexpr double rule[] = {0.46791393457269105, 0.36076157304813861, 0.17132449237917035};
    const double middle = 0.5 * (from + to), half = 0.5 * (to - from), inverse = 1.0 / std::expm1(d * width);
    CellWeights sum{0.0, 0.0};
    for (std::size_t i = 0; i < 6; ++i) {
        const double offset = middle + (i < 3 ? -half : half) * nodes[i % 3];
        const double mass = rule[i % 3] * half * gaussian_density(left + offset);
        const double share = std::min(1.0, std::expm1(d * offset) * inverse);
        sum.right += mass * share;
        sum.left += mass * (1.0 - share);
    }
    const double error = weight_error * (1.0 + d * width) * (sum.left + sum.right);
    return {sum.left + error, sum.right + error};
}

class CellMeasure {
  public:
    // The cells lie between neighbours of the increasing sequence `knots`.
    CellMeasure(double d, std::vector<double> knots) : d_(d), knots_(std::move(knots)) {
        for (std::size_t i = 0; i + 1 < knots_.size(); ++i) {
            const double end = std::min(knots_[i + 1], normal_reach);
            for (double at = std::max(knots_[i], -normal_reach); at < end;) {
                const double next = std::min(end, at + 1.5 / (std::fabs(at) + d + 3.7));
                parts_.push_back({at, next, i, weights(i, at, next)});
                at = next;
            }
        }
    }

    double knot(std::size_t i) const { return knots_[i]; }

    // The integral over [from, to], between knot(first) and knot(last), of the function that has
    // values[i - first] at knot i.
    double integral(const double* values, std::size_t first, double from, double to) const {
        double sum = 0.0;
        const auto before = [](const Part& part, double v) { return part.to <= v; };
        for (auto part = std::lower_bound(parts_.begin(), parts_.end(), from, before);
             part != parts_.end() && part->from < to; ++part) {
            const bool whole = from <= part->from && part->to <= to;
            const CellWeights w =
                whole ? part->weights : weights(part->cell, std::max(from, part->from), std::min(to, part->to));
            sum += values[part->cell - first] * w.left + values[part->cell - first + 1] * w.right;
        }
        return sum;
    }

  private:
    struct Part {
        double from, to;
        std::size_t cell;
        CellWeights weights;
    };

    double d_;
    std::vector<double> knots_;
    std::vector<Part> parts_;

    CellWeights weights(std::size_t cell, double from, double to) const {
        const double left = knots_[cell];
        return cell_weights(d_, left, knots_[cell + 1] - left, from - left, to - left);
    }
};

// A bound of gamma -> E_gamma of a hidden state that is linear in gamma between the points of a
// LossCurve (hidden_state/loss_curve.hpp).
//
// The curve is y_k at the losses k step, k = 0..points, for both directions. E_gamma is convex, so
// that its chords bound it. What this class holds is the excess over the curve of two equal laws,
//
//   excess(s) = E_s - (1 - s)_+,
//
// at the losses i step, i = -points..points: y_i for i >= 0 and, by reflection, s_i y_{-i} for
// i < 0. It is linear in s between them, constant beyond the last one and proportional to s below
// the first one. Two more functions follow from it without cancellation:
//
//   falling(s) = E_s = excess + (1 - s)_+,        rising(s) = E_s - 1 + s = excess + (s - 1)_+.
//
// The points are first lowered to their convex hull. The line through a point (s, y) and its
// reflection (1/s, 1 - 1/s + y/s) passes through (-1, 1), so that the hull of both sides is, for
// s >= 1, that of y and this one point more (docs/core/hidden_state.md, section 9). Then falling
// falls and rising rises.

// A number and what rounding may have moved it by.
struct Rounded {
    double value, error;
};

class ChordCurve {
  public:
    ChordCurve(std::vector<double> y, double step)
        : points_(y.size() - 1), end_(static_cast<double>(points_) * step), step_(step), expm1_step_(std::expm1(step)),
          excess_(2 * points_ + 1) {
        lower_to_hull(y);
        for (std::size_t k = 0; k <= points_; ++k) {
            excess_[points_ - k] = y[k] * (std::exp(-static_cast<double>(k) * step) * up);
            excess_[points_ + k] = y[k];
        }
    }

    std::size_t points() const { return points_; }
    double step() const { return step_; }

    // excess(s_i) at [points + i]. The same array has excess(s_i)/s_i at [points - i], since the
    // curve bounds both directions.
    const std::vector<double>& excess() const { return excess_; }

    Rounded falling(double loss) const { return with(loss, loss < 0.0 ? -std::expm1(loss) : 0.0); }
    Rounded rising(double loss) const { return with(loss, loss > 0.0 ? std::expm1(loss) : 0.0); }

  private:
    std::size_t points_;
    double end_, step_, expm1_step_;
    std::vector<double> excess_;

    static constexpr std::size_t outside = static_cast<std::size_t>(-1);  // the point (-1, 1)

    double width(std::size_t a, std::size_t b) const {
        const double at_b = std::exp(static_cast<double>(b) * step_);
        return a == outside ? at_b + 1.0 : -at_b * std::expm1(-static_cast<double>(b - a) * step_);
    }

    void lower_to_hull(std::vector<double>& y) const {
        const auto ordinate = [&y](std::size_t k) { return k == outside ? 1.0 : y[k]; };
        std::vector<std::size_t> corners{outside};
        for (std::size_t k = 0; k <= points_; ++k) {
            if (k > 0) y[k] = std::min(y[k], y[k - 1]);
            while (corners.size() > 1) {
                const std::size_t b = corners.back(), a = corners[corners.size() - 2];
                if ((ordinate(a) - y[b]) * width(b, k) > (y[b] - y[k]) * width(a, b)) break;
                corners.pop_back();
            }
            corners.push_back(k);
        }
        for (std::size_t i = 1; i < corners.size(); ++i) {
            const std::size_t a = corners[i - 1], b = corners[i];
            for (std::size_t k = a + 1; k < b; ++k)
                y[k] = std::min(y[k], (y[b] + (ordinate(a) - y[b]) * (width(k, b) / width(a, b))) * up);
        }
    }

    Rounded with(double loss, double rest) const {
        const Rounded at = interpolated(loss);
        return {at.value + rest, at.error + curve_error * rest};
    }

    // The loss is right to some ulps, which are up to 2^-44 of a step.
    Rounded interpolated(double loss) const {
        if (!(loss < end_)) return {excess_.back(), curve_error * excess_.back()};
        if (!(loss > -end_)) {
            const double value = excess_.front() * std::exp(loss + end_);
            return {value, curve_error * value};
        }
        const double place = std::floor(loss / step_) + static_cast<double>(points_);
        const std::size_t i = std::min(static_cast<std::size_t>(std::max(place, 0.0)), 2 * points_ - 1);
        const double offset = loss - (static_cast<double>(i) - static_cast<double>(points_)) * step_;
        const double share = std::min(1.0, std::max(0.0, std::expm1(offset) / expm1_step_));
        const double left = excess_[i], right = excess_[i + 1];
        return {left + (right - left) * share, curve_error * std::max(left, right)};
    }

    static constexpr double curve_error = 1e-12;
};

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
// With the excess of E over the curve of equal laws (ChordCurve) this is
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
// Rounding: CellMeasure's for the integral; round_error pays for the sums.
//
// Cost: per point of the curve some ten evaluations of the slope, and an integral over the cells in
// [u, u + r].

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
        guess_ = std::isnan(last_root_) ? root : 2.0 * root - last_root_;
        last_root_ = root;
        if (!(guess_ > lowest() && guess_ < normal_reach)) guess_ = std::min(std::max(start, lowest()), normal_reach);
        return {surely(slope, root, -1.0, lowest()), surely(slope, root, 1.0, infinity)};
    }

  private:
    double r_, fine_, guess_, steepness_ = -1.0;
    double last_root_ = std::numeric_limits<double>::quiet_NaN();  // that of no search yet

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

// A round that uses the record with probability q, unseen, as one map of the whole loss curve: the
// bound `joint` for random use.
//
// Let the round's map without the record have an image of diameter r, and let the maps without the
// record, with it and with its replacement differ by at most d from each other, in deviations of
// the noise. The best events and maps give (docs/core/hidden_state.md, section 10)
//
//   E_gamma <= sup_a int dnu max_{v in [a, b], w in [v, v + d]} [ (1 - q)(t - gamma) Phi(v)
//                                                + q (t Phi(w) - gamma Phi(w - d)) ],   b = a + r,
//
// with nu the second law of a pair that dominates, t its ratio. As t rises from 0, the maximiser
// (v, w) goes from (a, a) to (b, b + d) along
//
//   s = gamma e^{dw - d^2/2}                        w in [a, a + d], s < gamma     v stays
//   s = gamma/(1 - q + q e^{-dv - d^2/2})           v in [a, b], s < gamma         w = v + d
//   s = gamma                                       v from -d/2 to d/2             w = d/2
//   s = gamma (1 - q + q e^{dv - d^2/2})            v in [a, b], s > gamma         w = v
//   s = gamma e^{dw - d^2/2}                        w in [b, b + d], s > gamma     v stays
//
// and the integral is the value at t = 1, which equal laws would give, and the integral of
// excess(s) d((1 - q) Phi(v) + q Phi(w)) along the path. On the second piece the measure is gamma
// phi(v)/s dv, excess(s)/s is linear in 1/s, and -v is the v of the fourth piece at gamma^2/s: one
// table serves both.
//
// Tails: a, b and v are followed down to -39, and w = v + d to -39 + d; the masses below and what
// underflows are charged.
//
// The supremum over a is enclosed as in ShiftedRound: the bracket's slope in a is
// phi(b) U(b) - phi(a) L(a), with U falling and L rising.

inline Rounded operator*(double factor, const Rounded& x) { return {factor * x.value, factor * x.error}; }
inline Rounded operator+(const Rounded& x, const Rounded& y) { return {x.value + y.value, x.error + y.error}; }
inline Rounded operator-(const Rounded& x, const Rounded& y) {
    return {x.value - y.value, x.error + y.error + 1e-15 * (x.value + y.value)};
}

class SampledRound {
  public:
    // For the curve at the losses k step, k = 0..points; 0 < rate < 1.
    SampledRound(std::size_t points, double step, double d, double rate)
        : points_(points), step_(step), d_(d), rate_(rate), shifted_(points, step, d), both_(d, knots()) {}

    void advance(std::vector<double>& y, double image_diameter) const {
        const ChordCurve curve(y, step_);
        MaximumSearch search(image_diameter, -0.5 * image_diameter);
        for (std::size_t k = 0; k < y.size(); ++k) {
            const auto slope = [&](double at) { return log_slope(curve, k, at, at + image_diameter); };
            const auto [from, to] = search.enclose(slope);
            const double bound = value(curve, k, from, std::min(to + image_diameter, 2.0 * normal_reach));
            y[k] = std::min(1.0, std::max(bound, smallest_bound));
        }
    }

  private:
    std::size_t points_;
    double step_, d_, rate_;
    ShiftCells shifted_;  // of w alone
    CellMeasure both_;    // of v and w together: at knot j, s = gamma e^{j step}

    std::vector<double> knots() const {
        std::vector<double> at;
        for (std::size_t j = 0; j <= 2 * points_; ++j)
            at.push_back(0.5 * d_ + std::log1p(std::expm1(static_cast<double>(j) * step_) / rate_) / d_);
        return at;
    }

    double eps(std::size_t k) const { return static_cast<double>(k) * step_; }
    // 1 - q + q e^{+-dv - d^2/2}
    double mixed(double exponent) const { return 1.0 + rate_ * std::expm1(std::min(exponent, 700.0)); }

    // What pushes the bracket up at b, over phi(b).
    Rounded upward(const ChordCurve& curve, std::size_t k, double v) const {
        const double weight = rate_ * std::exp(std::min(-d_ * v - 0.5 * d_ * d_, 700.0));
        if (v <= -0.5 * d_) {
            const double mix = mixed(-d_ * v - 0.5 * d_ * d_);
            return mix * curve.falling(eps(k) - std::log(mix));
        }
        const Rounded far = weight * curve.falling(shifted_.loss(k, v + d_));
        if (v < 0.5 * d_) return (1.0 - rate_) * curve.falling(eps(k)) + far;
        const Rounded near = curve.falling(eps(k) + std::log(mixed(d_ * v - 0.5 * d_ * d_)));
        return near - rate_ * curve.falling(shifted_.loss(k, v)) + far;
    }

    // What pushes it down at a, over phi(a).
    Rounded downward(const ChordCurve& curve, std::size_t k, double v) const {
        if (v >= 0.5 * d_) return curve.rising(eps(k) + std::log(mixed(d_ * v - 0.5 * d_ * d_)));
        const Rounded near = rate_ * curve.rising(shifted_.loss(k, v));
        if (v > -0.5 * d_) return (1.0 - rate_) * curve.rising(eps(k)) + near;
        const double mix = mixed(-d_ * v - 0.5 * d_ * d_);
        const double weight = mix - (1.0 - rate_);
        const Rounded far = mix * curve.rising(eps(k) - std::log(mix));
        return far - weight * curve.rising(shifted_.loss(k, v + d_)) + near;
    }

    Rounded log_slope(const ChordCurve& curve, std::size_t k, double a, double b) const {
        const Rounded upper = upward(curve, k, b), lower = downward(curve, k, a);
        const double exponent = 0.5 * (b - a) * (a + b);
        const double error = upper.error / upper.value + lower.error / lower.value;
        return {std::log(upper.value / lower.value) - exponent, 2.0 * error + 1e-12 * (1.0 + std::fabs(exponent))};
    }

    // The value at t = 1, rounded up.
    double of_equal_laws(std::size_t k, double a, double b) const {
        const double best = -both_.knot(k);
        if (a <= best && best <= b) return sampled_theta(eps(k), d_, rate_) * (1.0 + 1e-12 * (1.0 + best * best));
        const double v = a > best ? a : b;
        const double w = std::min(std::max(0.5 * d_ - eps(k) / d_, v), v + d_);
        const double used = rate_ * q(-w), replaced = rate_ * std::exp(eps(k)) * q(d_ - w);
        const double unused = (1.0 - rate_) * std::expm1(eps(k)) * q(-v);
        return used - replaced - unused + 1e-12 * (1.0 + eps(k)) * (used + replaced + unused);
    }

    // The second piece (from the curve's point k downwards) or the fourth (upwards), as an integral
    // over |v| in [from, to] of values that begin at s = gamma.
    double both(const double* values, std::size_t cells, double last, double from, double to) const {
        const double highest = both_.knot(cells);
        double sum = to > from ? both_.integral(values, 0, from, std::min(to, highest)) : 0.0;
        if (to > std::max(from, highest)) sum += last * normal_mass(std::max(from, highest), to);
        return sum * (1.0 + round_error);
    }

    double value(const ChordCurve& curve, std::size_t k, double a, double b) const {
        const std::vector<double>& excess = curve.excess();
        const double half = 0.5 * d_, gamma = std::exp(eps(k)), last = excess.back();
        double alone = shifted_.integral(curve, k, a, std::min(a + d_, half));
        alone += shifted_.integral(curve, k, std::max(b, half), b + d_);
        double together = gamma * both(excess.data() + points_ - k, points_ + k, last, std::max(half, -b), -a);
        together += both(excess.data() + points_ + k, points_ - k, last, std::max(half, a), b);
        const auto clip = [a, b](double v) { return std::min(std::max(v, a), b); };
        const double jump = normal_mass(clip(-half), clip(half));
        const double sum = rate_ * alone + together + (1.0 - rate_) * excess[points_ + k] * jump;
        // Beyond the reach of v, w is up to d nearer. gamma times what underflows is not
        // negligible.
        const double left_out = rate_ * q(normal_reach - d_) + gamma * 1e-310;
        return (sum + of_equal_laws(k, a, b) + left_out) * up + smallest_bound;
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

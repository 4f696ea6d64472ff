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
// The supremum over a is enclosed as in hidden_state/shifted_round.hpp: the bracket's slope in a is
// phi(b) U(b) - phi(a) L(a), with U falling and L rising.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/hidden_state/loss_curve.hpp>
#include <hockeystick/hidden_state/shifted_round.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

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

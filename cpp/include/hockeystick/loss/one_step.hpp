// delta(eps) and epsilon(delta) of a single step between certified ends: the exact formula of its
// loss, with its rounding charged. All Gaussian steps of a composition are one: theta(eps, sqrt(sum
// of squared shifts)).
//
// Error budget. Errors of delta are charged to delta:
//   (a) a relative delta_error (1 + |log delta|); of 1 - delta where delta is above one half;
//   (b) a relative 8u for every atom that is summed.
// Errors of losses are charged as moves of eps:
//   (c) 16u relative; nothing where the losses are given (loss/pure.hpp);
//   (d) 8u times the logarithms of which the losses of atoms are made;
//   (e) 8u rate e^eps, where a sampled record is added, for log(1 - (1 - e^-eps)/rate); where a
//       batch has a fixed size, no more than at eps = 0, since larger losses are those of the
//       remove pair (loss/fixed_size_sampled.hpp);
//   (f) 16u (1 - log rate) d eps/dl, where one is removed, for the unsampled loss l, with
//       d eps/dl = 1 - (1 - rate) e^-eps <= rate + eps.
//
// Cost: one delta is two tails; one epsilon a dozen of them.
#pragma once

#include <limits>

#include <hockeystick/loss/gaussian.hpp>
#include <hockeystick/numeric/feasible_search.hpp>
#include <hockeystick/numeric/floating_environment.hpp>
#include <hockeystick/numeric/interval.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

class OneStep {
  public:
    explicit OneStep(Loss loss) : loss_(std::move(loss)), errors_(loss_->errors()) {}

    Interval delta(double eps) const {
        const FloatingEnvironment environment;
        const Interval infinite = infinite_mass();
        if (eps == infinity || eps >= highest().upper) return infinite;
        const double moved = move(eps);
        return {max(lowered(loss_->delta(eps + moved)), infinite.lower), raised(loss_->delta(eps - moved))};
    }

    // The upper end of delta alone, at half the cost.
    double delta_above(double eps) const {
        const FloatingEnvironment environment;
        if (eps == infinity || eps >= highest().upper) return infinite_mass().upper;
        return raised(loss_->delta(eps - move(eps)));
    }

    // The smallest epsilon >= 0 at which delta(epsilon) <= delta.
    Interval epsilon(double delta) const {
        const FloatingEnvironment environment;
        const Interval infinite = infinite_mass();
        if (delta < infinite.lower) return {infinity, infinity};
        const Interval largest = highest();
        if (delta == infinite.lower && delta == infinite.upper)
            return {max(largest.lower, 0.0), max(largest.upper, 0.0)};
        if (delta == 0.0) return {max(largest.lower, 0.0), infinite.upper > 0.0 ? infinity : max(largest.upper, 0.0)};
        const double level = std::log(delta) * up;  // at most log delta
        const auto excess = [this](double eps) { return std::log(this->delta(eps).upper); };
        const Evaluation zero{0.0, excess(0.0)};
        if (zero.f <= level) return {0.0, 0.0};
        const Evaluation end{largest.upper < infinity ? largest.upper * up : infinity,
                             infinite.upper <= delta ? -infinity : 0.0};
        if (!(end.f <= level)) return {0.0, infinity};  // cannot be told from the mass at infinity
        FeasibleBracket s = bracket_feasible(excess, level, zero, 1.0, end);
        if (s.good.x == infinity) return {0.0, infinity};
        s = narrow_feasible(excess, level, s, [](double eps) { return epsilon_resolution * eps; }, false);
        return {certainly_infeasible(s.good.x, delta), s.good.x};
    }

    // The largest finite loss.
    Interval highest() const {
        const FloatingEnvironment environment;
        const double at = loss_->highest();
        if (at == infinity) return {at, at};
        const double moved = errors_.relative * std::fabs(at) + (errors_.loss + errors_.highest);
        return {at - moved, at + moved};
    }

    // The mass of P at an infinite loss; exactly 0 where there is none.
    Interval infinite_mass() const {
        const FloatingEnvironment environment;
        const double mass = loss_->p_infinite(), error = errors_.infinite * 2.0 * unit_roundoff * mass;
        return {mass - error, min(mass + error, 1.0)};
    }

  private:
    // By how much the losses at eps err.
    double move(double eps) const {
        const double growing = errors_.growing * std::exp(min(min(eps, errors_.growing_until), 700.0));
        return errors_.relative * std::fabs(eps) + errors_.loss + growing + removed_move(eps);
    }

    double removed_move(double eps) const {
        if (errors_.removed_rate == 0.0) return 0.0;
        const double slope = min(errors_.removed_rate + std::fabs(eps), 1.0);
        return sixteen_roundings * (1.0 - std::log(errors_.removed_rate)) * slope;
    }

    double relative(double value) const {
        return value > 0.0 ? delta_error * (1.0 + std::fabs(std::log(value))) + errors_.atoms * eight_roundings : 0.0;
    }

    double raised(double value) const {
        const double above = value * (1.0 + relative(value)) + 64.0 * std::numeric_limits<double>::denorm_min();
        const double from_complement =
            1.0 - (1.0 - value) * (1.0 - delta_error) + eight_roundings * (1.0 + errors_.atoms);
        return min(value > 0.5 ? min(above, from_complement) : above, 1.0);
    }

    double lowered(double value) const {
        const double below = value * (1.0 - relative(value)) - 64.0 * std::numeric_limits<double>::denorm_min();
        const double from_complement =
            1.0 - (1.0 - value) * (1.0 + delta_error) - eight_roundings * (1.0 + errors_.atoms);
        return max(value > 0.5 ? max(below, from_complement) : below, 0.0);
    }

    // An eps close below a feasible one at which delta is certainly larger.
    double certainly_infeasible(double eps, double delta) const {
        for (double step = epsilon_resolution; step < 1.0; step *= 2.0) {
            const double lower = eps * (1.0 - step);
            if (this->delta(lower).lower > delta) return lower;
        }
        return 0.0;
    }

    Loss loss_;
    LossErrors errors_;
};

// A step whose delta is theta(eps, shift), for a shift known up to rounding.
inline OneStep gaussian_step(double shift) { return OneStep(std::make_shared<GaussianLoss>(shift)); }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss

// delta(eps) and epsilon(delta) of a single step between certified ends: the exact formula of mechanism.hpp, with its
// rounding charged. All Gaussian steps of a composition are one: theta(eps, sqrt(sum of squared shifts)).
//
// Charged: relative errors of delta, (1 + |log delta|) 2^-43 (five times what kernels promise; of 1 - delta above one
// half), n u for n atoms; and errors of losses, as moves of eps: 16 u relative, 8 u times the logarithms of which the
// losses of atoms are made, where a sampled step is added, 8 u rate e^eps for log(1 - (1 - e^-eps)/rate), and where one is
// removed, 16 u (1 - log rate) of the unsampled loss l, by d eps/dl = 1 - (1 - rate) e^-eps <= rate + eps.
//
// Cost: one delta is two tails; one epsilon a dozen of them.
#pragma once

#include <limits>

#include <hockeystick/feasible.hpp>
#include <hockeystick/mechanism.hpp>

namespace hockeystick {
inline namespace HOCKEYSTICK_ISA {

struct Enclosure {
    double lower, upper;
};

class OneStep {
  public:
    OneStep(const Mechanism& mechanism, bool forward)
        : loss_(make_loss(mechanism, forward)), added_rate_(forward || mechanism.rate == 1.0 ? 0.0 : mechanism.rate),
          removed_rate_(forward && mechanism.rate > 0.0 && mechanism.rate < 1.0 ? mechanism.rate : 0.0) {
        if (mechanism.kind == "discrete" && mechanism.rate > 0.0) {
            atoms_ = static_cast<double>(mechanism.parameters.size());
            double largest = 1.0;
            for (const double mass : mechanism.parameters)
                if (mass > 0.0) largest = detail::max(largest, -std::log(mass));
            move_ = 0x1p-50 * largest;
            infinite_error_ =
                mechanism.rate == 1.0 && unmatched(mechanism.parameters, forward) == 1 ? 0.0 : atoms_ + 8.0;
        }
        const double unsampled = mechanism.rate > 0.0 ? -std::log(mechanism.rate) : 0.0;
        highest_move_ = move_ + (unsampled > 0.0 ? 0x1p-49 * (unsampled + 1.0) : 0.0);
    }

    Enclosure delta(double eps) const {
        const Enclosure infinite = infinite_mass();
        if (eps == detail::infinity || eps > highest().upper) return infinite;
        const double moved = 0x1p-49 * std::fabs(eps) + move_ +
                             0x1p-50 * added_rate_ * std::exp(detail::min(eps, 700.0)) + removed_move(eps);
        return {detail::max(down(loss_->delta(eps + moved)), infinite.lower), up(loss_->delta(eps - moved))};
    }

    // Of the smallest epsilon >= 0 at which delta(epsilon) <= delta.
    Enclosure epsilon(double delta) const {
        using namespace detail;
        const Enclosure infinite = infinite_mass();
        if (delta < infinite.lower) return {infinity, infinity};
        const Enclosure most = highest();
        if (delta == 0.0) return {max(most.lower, 0.0), infinite.upper > 0.0 ? infinity : max(most.upper, 0.0)};
        const double level = std::log(delta) * (1.0 + 0x1p-50);  // at most log delta, rounding included
        const auto excess = [this](double eps) { return std::log(this->delta(eps).upper); };
        const Probe zero{0.0, excess(0.0)};
        if (zero.f <= level) return {0.0, 0.0};
        const Probe end{most.upper < infinity ? most.upper * (1.0 + 0x1p-50) : infinity,
                        infinite.upper <= delta ? -infinity : 0.0};
        if (!(end.f <= level)) return {0.0, infinity};  // cannot be told from the mass at infinity
        Straddle s = straddle(excess, level, zero, 1.0, end);
        if (s.good.x == infinity) return {0.0, infinity};
        s = narrow_feasible(excess, level, s, [](double eps) { return 0x1p-44 * eps; }, false);
        return {below(s.good.x, delta), s.good.x};
    }

    // The largest finite loss.
    Enclosure highest() const {
        const double at = loss_->highest();
        if (at == detail::infinity) return {at, at};
        const double moved = 0x1p-49 * std::fabs(at) + highest_move_;
        return {at - moved, at + moved};
    }

    // What has an infinite loss; exactly 0 where there is none.
    Enclosure infinite_mass() const {
        const double mass = loss_->p_infinite(), error = infinite_error_ * 0x1p-52 * mass;
        return {mass - error, detail::min(mass + error, 1.0)};
    }

  private:
    // Outcomes of infinite loss; the mass of a single one is exact.
    static int unmatched(const std::vector<double>& masses, bool forward) {
        const std::size_t half = masses.size() / 2;
        int found = 0;
        for (std::size_t i = 0; i < half; ++i)
            found += (forward ? masses[half + i] : masses[i]) == 0.0 && (forward ? masses[i] : masses[half + i]) > 0.0;
        return found;
    }

    double removed_move(double eps) const {
        if (removed_rate_ == 0.0) return 0.0;
        return 0x1p-49 * (1.0 - std::log(removed_rate_)) * detail::min(removed_rate_ + std::fabs(eps), 1.0);
    }

    double relative(double value) const {
        return value > 0.0 ? 0x1p-43 * (1.0 + std::fabs(std::log(value))) + atoms_ * 0x1p-50 : 0.0;
    }

    double up(double value) const {
        const double raised = value * (1.0 + relative(value)) + 64.0 * std::numeric_limits<double>::denorm_min();
        const double from_complement = 1.0 - (1.0 - value) * (1.0 - 0x1p-43) + 0x1p-50 * (1.0 + atoms_);
        return detail::min(value > 0.5 ? detail::min(raised, from_complement) : raised, 1.0);
    }

    double down(double value) const {
        const double lowered = value * (1.0 - relative(value)) - 64.0 * std::numeric_limits<double>::denorm_min();
        const double from_complement = 1.0 - (1.0 - value) * (1.0 + 0x1p-43) - 0x1p-50 * (1.0 + atoms_);
        return detail::max(value > 0.5 ? detail::max(lowered, from_complement) : lowered, 0.0);
    }

    // An eps close below a feasible one at which delta is certainly larger.
    double below(double eps, double delta) const {
        for (double step = 0x1p-44; step < 1.0; step *= 2.0) {
            const double lower = eps * (1.0 - step);
            if (this->delta(lower).lower > delta) return lower;
        }
        return 0.0;
    }

    Loss loss_;
    double added_rate_, removed_rate_;  // 0 if not so
    double atoms_ = 0.0, move_ = 0.0, highest_move_ = 0.0, infinite_error_ = 0.0;
};

// One step whose delta is theta(eps, shift), for a shift known up to rounding.
inline OneStep gaussian_step(double shift) { return OneStep({"gaussian", {shift}, 1.0}, true); }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick

// Shifted interpolation (hidden_state/shifted_interpolation.hpp) for a record that is used every `period` rounds, all rounds alike: gap g in its
// rounds, none in between, Lipschitz constant c in all, lengths in noise deviations.
//
// A round without the record always merges into the block before it, so that a round with it and the n - 1 after it are one:
//
//   A = c^{n-1} g,   B = sum_{i < n} c^{2i},   R = c^n.
//
// The problem is over participations, not rounds. On a domain of diameter D it may start with a gap of D at a participation, right after
// one, or after the last; any set of starts is sound. The gap of two coupled runs never exceeds g/(1 - c^period) either.
// Where there are more than `most_pooled` participations, those before the last ones are charged in full or left to a later
// start; with period 1 the closed forms for constants hold instead.
// Cost: O(min(J, most_pooled) log J) for J participations, O(log T) for period 1.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <hockeystick/hidden_state/shifted_interpolation.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double most_pooled = 4096.0;

class CyclicShift {
  public:
    CyclicShift(double lipschitz, double gap, double diameter, double period)
        : log_c_(std::log(lipschitz)), g_(gap), diameter_(diameter), period_(period) {
        // the gap of coupled runs right after a participation, and right before the next one
        const double kept = -std::expm1(period * log_c_);
        const double coupled = kept > 0.0 ? gap / kept * (1.0 + 1e-12) : infinity;
        after_ = std::min(diameter, coupled);
        before_ = std::min(diameter, coupled * std::exp((period - 1.0) * log_c_));
    }

    // The Gaussian-DP parameter `later` rounds after the last of `participations`, rounded up; later < period unless there is one.
    double parameter(double participations, double later) const {
        const double raised = std::sqrt(cost(participations, later)) * (1.0 + 1e-11);
        return std::max(raised, 0x1p-500);  // what underflows on the way is smaller
    }

    // The same for the gap that there may be right after any participation, hidden by n rounds alone; infinite if it is unbounded.
    double forgetting(double n) const {
        if (!(after_ < infinity)) return infinity;
        return std::max(std::sqrt(run(after_ * std::exp(log_c_), n).cost()) * (1.0 + 1e-11), 0x1p-500);
    }

  private:
    double log_c_, g_, diameter_, period_, after_, before_;

    // n rounds as one block that begins with a gap of `rise` in its first round's image.
    ShiftBlock run(double rise, double n) const {
        const double scale = (n - 1.0) * log_c_;
        if (log_c_ >= 0.0) return block(rise, geometric_sum(-2.0 * log_c_, n), scale, n);
        return block(rise * std::exp(scale), geometric_sum(2.0 * log_c_, n), 0.0, n);
    }
    ShiftBlock block(double rise, double width, double scale, double n) const {
        return {rise, width, scale, n * log_c_, std::log(rise / width) - scale, 0};
    }

    double cost(double participations, double later) const {
        if (period_ == 1.0 && participations > 1.0)
            return constant_best_start(log_c_, g_, participations, 0.0, diameter_).cost;
        const double pooled = std::min(participations, most_pooled);
        SuffixBlocks suffix;
        double best = later > 0.0 && diameter_ < infinity ? run(diameter_ * std::exp(log_c_), later).cost() : infinity;
        for (double s = 0.0; s < pooled; s += 1.0) {
            const double n = s == 0.0 ? later + 1.0 : period_;
            if (before_ < infinity) best = std::min(best, suffix.cost_behind(run(g_ + before_ * std::exp(log_c_), n)));
            suffix.push_round(run(g_, n));
            if (after_ < infinity && period_ > 1.0 && s + 1.0 < participations)
                best = std::min(best, suffix.cost_behind(run(after_ * std::exp(log_c_), period_ - 1.0)));
        }
        const double earlier = participations - pooled;
        return std::min(best, suffix.cost() + (earlier > 0.0 ? earlier * run(g_, period_).cost() : 0.0));
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

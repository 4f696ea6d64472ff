// Shifted interpolation (hidden_state/shifted_interpolation.hpp) for a record that is used every
// `period` rounds. All rounds are alike: the two runs part by g in the record's rounds and by
// nothing in between, and every map has the Lipschitz constant c. Lengths are in noise deviations.
//
// A round without the record always merges into the block before it. So a round with the record and
// the n - 1 rounds after it are one block,
//
//   A = c^{n-1} g,   B = sum_{i < n} c^{2i},   R = c^n,
//
// and the problem is over uses of the record, not over rounds.
//
// Starts. On a domain of diameter D the interpolation may start with a gap of D right before a use,
// right after one, or after the last; any set of starts is sound. The gap of two coupled runs never
// exceeds g/(1 - c^period) either, right after a use.
//
// Cost: O(min(J, max_pooled_uses) log J) for J uses. Of more uses than max_pooled_uses, the first
// ones are charged in full or left to a later start. With period 1 the closed forms for constants
// hold, in O(log J).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <hockeystick/hidden_state/shifted_interpolation.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double max_pooled_uses = 4096.0;

// In noise deviations. A length that underflows is charged as this, so that no parameter is 0.
inline constexpr double smallest_length = 0x1p-1000;
// One that overflows is charged as this: its square still does, so that it hides nothing.
inline constexpr double largest_length = 0x1p1000;
inline constexpr double smallest_parameter = 0x1p-500;

class CyclicShift {
  public:
    CyclicShift(double lipschitz, double sensitivity, double diameter, double period)
        : log_c_(std::log(lipschitz)), sensitivity_(sensitivity), diameter_(diameter), period_(period) {
        const double forgotten = -std::expm1(period * log_c_);  // 1 - c^period
        const double coupled = forgotten > 0.0 ? sensitivity / forgotten * (1.0 + 1e-12) : infinity;
        gap_after_use_ = std::min(diameter, coupled);
        gap_before_use_ = std::min(diameter, coupled * std::exp((period - 1.0) * log_c_));
    }

    // The Gaussian-DP parameter `later` rounds after the last of `uses`, rounded up. `later` must
    // be less than the period if there was an earlier use.
    double parameter(double uses, double later) const { return upper_parameter(cost(uses, later)); }

    // The parameter n rounds after any use, for the gap that there may be right after it; infinite
    // if nothing bounds that gap.
    double parameter_of_gap(double n) const {
        if (!(gap_after_use_ < infinity)) return infinity;
        return upper_parameter(block(gap_after_use_ * std::exp(log_c_), n).cost());
    }

  private:
    double log_c_, sensitivity_, diameter_, period_, gap_after_use_, gap_before_use_;

    // 1e-11: ten times the error of a cost. What underflows on the way is smaller than
    // smallest_parameter.
    static double upper_parameter(double cost) { return std::max(std::sqrt(cost) * (1.0 + 1e-11), smallest_parameter); }

    // n rounds as one block. `gap` is the gap after the first round's map.
    ShiftBlock block(double gap, double n) const {
        const double scale = (n - 1.0) * log_c_;
        if (log_c_ >= 0.0) return scaled_block(gap, geometric_sum(-2.0 * log_c_, n), scale, n);
        return scaled_block(gap * std::exp(scale), geometric_sum(2.0 * log_c_, n), 0.0, n);
    }
    ShiftBlock scaled_block(double rise, double width, double scale, double n) const {
        return {rise, width, scale, n * log_c_, std::log(rise / width) - scale, 0};
    }

    double cost(double uses, double later) const {
        if (period_ == 1.0 && uses > 1.0) return constant_best_start(log_c_, sensitivity_, uses, 0.0, diameter_).cost;
        const double c = std::exp(log_c_);
        const double pooled = std::min(uses, max_pooled_uses);
        SuffixBlocks suffix;
        double best = later > 0.0 && diameter_ < infinity ? block(diameter_ * c, later).cost() : infinity;
        for (double s = 0.0; s < pooled; s += 1.0) {
            const double n = s == 0.0 ? later + 1.0 : period_;
            if (gap_before_use_ < infinity)
                best = std::min(best, suffix.cost_behind(block(sensitivity_ + gap_before_use_ * c, n)));
            suffix.push_round(block(sensitivity_, n));
            if (gap_after_use_ < infinity && period_ > 1.0 && s + 1.0 < uses)
                best = std::min(best, suffix.cost_behind(block(gap_after_use_ * c, period_ - 1.0)));
        }
        const double earlier = uses - pooled;
        return std::min(best, suffix.cost() + (earlier > 0.0 ? earlier * block(sensitivity_, period_).cost() : 0.0));
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

// The steps of a ledger: equal pairs are counted together, and all Gaussian steps are one.
//
// Gaussian steps of shifts r_j compose to one Gaussian step of the shift sqrt(sum_j T_j r_j^2),
// which is rounded up for upper ends and down for lower ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <hockeystick/mechanism/gaussian.hpp>
#include <hockeystick/numeric/compensated_sum.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

// The steps of a ledger in the order in which they first came.
class StepList {
  public:
    void add(const PairPointer& pair, double count) {
        if (!pair->leaks()) return;
        const std::size_t hash = pair->hash();
        const auto same = places_.equal_range(hash);
        for (auto place = same.first; place != same.second; ++place) {
            CountedPair& step = steps_[place->second];
            if (!step.pair->equals(*pair)) continue;
            if (step.count + count > 0x1p53) throw std::invalid_argument("counts must sum to at most 2^53");
            step.count += count;
            return;
        }
        places_.emplace(hash, steps_.size());
        steps_.push_back({pair, count});
    }
    const Steps& steps() const { return steps_; }

  private:
    Steps steps_;
    std::unordered_multimap<std::size_t, std::size_t> places_;
};

// The root of the sum of squares of all Gaussian shifts, to nearest up to a few roundings; 0 if
// there are none.
inline double gaussian_shift(const Steps& steps) {
    double largest = 0.0;
    CompensatedSum squares;
    for (const CountedPair& step : steps)
        if (step.pair->is_gaussian()) largest = max(largest, step.pair->gaussian_noise().shift);
    for (const CountedPair& step : steps) {
        if (!step.pair->is_gaussian()) continue;
        const double scaled = step.pair->gaussian_noise().shift / largest;
        squares.add(step.count * scaled * scaled);
    }
    return largest < infinity ? largest * std::sqrt(squares.value()) : largest;
}

// The same steps with all Gaussian ones as one, first; `end` says which way its shift is rounded.
inline Steps with_one_gaussian(const Steps& steps, End end) {
    const auto gaussians =
        std::count_if(steps.begin(), steps.end(), [](const CountedPair& step) { return step.pair->is_gaussian(); });
    if (gaussians == 0) return steps;
    Steps result;
    const auto first =
        std::find_if(steps.begin(), steps.end(), [](const CountedPair& step) { return step.pair->is_gaussian(); });
    if (gaussians == 1 && first->count == 1.0) result.push_back(*first);  // as it is, without a rounding
    else result.push_back({Gaussian::of_shift(rounded_to(gaussian_shift(steps), end)), 1.0});
    for (const CountedPair& step : steps)
        if (!step.pair->is_gaussian()) result.push_back(step);
    return result;
}

inline bool equal(const Steps& one, const Steps& other) {
    return std::equal(
        one.begin(), one.end(), other.begin(), other.end(),
        [](const CountedPair& x, const CountedPair& y) { return x.count == y.count && x.pair->equals(*y.pair); });
}

// What a composition leaks lies between two: steps that leak at least as much, and steps that leak
// at most as much.
struct StepsBetween {
    Steps above, below;
    bool exact;  // both are the same
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting

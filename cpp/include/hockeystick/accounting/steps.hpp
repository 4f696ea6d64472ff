// The steps of a ledger. Equal pairs are counted together, and all Gaussian steps are merged into
// one: T_j steps of shift r_j compose to one of shift sqrt(sum_j T_j r_j^2), which is rounded up
// for upper ends and down for lower ends.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <unordered_map>

#include <hockeystick/mechanism/gaussian.hpp>
#include <hockeystick/mechanism/steps.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

// The steps of a ledger, in the order in which each pair was first added.
class StepList {
  public:
    void add(const PairPointer& pair, double count) {
        if (!pair->leaks()) return;
        const std::size_t hash = pair->hash();
        const auto same_hash = indices_.equal_range(hash);
        for (auto found = same_hash.first; found != same_hash.second; ++found) {
            CountedPair& step = steps_[found->second];
            if (!step.pair->equals(*pair)) continue;
            if (step.count + count > 0x1p53) throw std::invalid_argument("counts must sum to at most 2^53");
            step.count += count;
            return;
        }
        indices_.emplace(hash, steps_.size());
        steps_.push_back({pair, count});
    }
    const Steps& steps() const { return steps_; }

  private:
    Steps steps_;
    std::unordered_multimap<std::size_t, std::size_t> indices_;  // hash of a pair -> index in steps_
};

// The same steps, with all Gaussian steps merged into one that comes first. Its shift is rounded
// towards `end`.
inline Steps with_one_gaussian(const Steps& steps, End end) {
    const auto is_gaussian = [](const CountedPair& step) { return step.pair->is_gaussian(); };
    const auto gaussians = std::count_if(steps.begin(), steps.end(), is_gaussian);
    if (gaussians == 0) return steps;
    Steps result;
    const auto first = std::find_if(steps.begin(), steps.end(), is_gaussian);
    if (gaussians == 1 && first->count == 1.0) result.push_back(*first);  // no merging, so no rounding
    else result.push_back({Gaussian::of_shift(rounded_to(gaussian_shift(steps), end)), 1.0});
    std::remove_copy_if(steps.begin(), steps.end(), std::back_inserter(result), is_gaussian);
    return result;
}

// Two compositions that enclose the true one: `above` leaks at least as much, `below` at most as
// much.
struct StepsBetween {
    Steps above, below;
    bool exact;  // `above` equals `below`
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting

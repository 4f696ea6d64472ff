// The steps of a ledger. Equal pairs are counted together, and all Gaussian steps are merged into
// one: T_j steps of shift r_j compose to one of shift sqrt(sum_j T_j r_j^2), which is rounded up
// for upper ends and down for lower ends.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include <hockeystick/mechanism/gaussian.hpp>
#include <hockeystick/mechanism/steps.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

// The steps of a ledger, in an order that does not depend on that of composition: sums of many
// steps round differently in each order.
class StepList {
  public:
    void add(const PairPointer& pair, double count) {
        if (!pair->leaks()) return;
        const std::uint64_t digest = pair->law_digest();
        const auto [first, last] = steps_.equal_range(digest);
        for (auto found = first; found != last; ++found) {
            CountedPair& step = found->second;
            if (!step.pair->equals(*pair)) continue;
            if (step.count + count > 0x1p53) throw std::invalid_argument("counts must sum to at most 2^53");
            step.count += count;
            return;
        }
        steps_.emplace(digest, CountedPair{pair, count});
    }
    Steps steps() const {
        Steps all;
        all.reserve(steps_.size());
        for (const auto& step : steps_) all.push_back(step.second);
        return all;
    }

  private:
    std::multimap<std::uint64_t, CountedPair> steps_;  // by Pair::law_digest
};

// The same steps, with all Gaussian steps merged into one that comes first. Its shift is rounded
// towards `end`.
inline Steps with_one_gaussian(Steps steps, End end) {
    const auto is_gaussian = [](const CountedPair& step) { return step.pair->is_gaussian(); };
    const auto first = std::find_if(steps.begin(), steps.end(), is_gaussian);
    if (first == steps.end()) return steps;
    const bool alone = first->count == 1.0 && std::none_of(first + 1, steps.end(), is_gaussian);
    if (!alone) *first = {Gaussian::of_shift(rounded_to(gaussian_shift(steps), end)), 1.0};  // else nothing is rounded
    steps.erase(std::remove_if(first + 1, steps.end(), is_gaussian), steps.end());
    std::rotate(steps.begin(), first, first + 1);
    return steps;
}

// The same steps, each by its pair's alternative if it has one; empty if no pair has one.
inline Steps alternatives(Steps steps) {
    bool any = false;
    for (CountedPair& step : steps)
        if (PairPointer other = step.pair->alternative()) step.pair = std::move(other), any = true;
    return any ? steps : Steps{};
}

// Two compositions that enclose the true one: `above` leaks at least as much, `below` at most as
// much.
struct BracketingSteps {
    Steps above, below;
    bool exact;  // `above` equals `below`
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting

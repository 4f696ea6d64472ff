// An epoch of random allocation of any steps that have pairs: of t releases of the steps every
// record takes part in k, drawn uniformly. A record is added or removed.
//
// One release is brought to two discrete pairs, one for each direction of the record, above or
// below (release/composed.hpp); those of finitely many outcomes are taken as they are. One of t:
// allocation/outcome_counts.hpp. k of t: the blocks of release/random_allocation.hpp for the upper
// end, and the labels of allocation/outcome_labels.hpp for the lower one. Gaussian noise has
// tighter pairs in release/random_allocation.hpp. Proofs: docs/core/allocation.md.
//
// Cost: some tenths of a second, most of it for the sums of steps with thousands of losses.
#pragma once

#include <hockeystick/allocation/outcome_counts.hpp>
#include <hockeystick/allocation/outcome_labels.hpp>
#include <hockeystick/release/composed.hpp>
#include <hockeystick/release/random_allocation.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

// The pairs of an allocated release. Each step's output is a mixture, so that no Renyi divergence
// exceeds that of the steps that are allocated.
class AllocatedOutcomes final : public DiscretePairs {
  public:
    AllocatedOutcomes(allocation::AllocationPairs pairs, const Steps& steps)
        : DiscretePairs(std::move(pairs.removed), std::move(pairs.added), steps) {}
    double renyi(double order, double rate, Direction direction) const override {
        return min(Pair::renyi(order, rate, direction), coarse_renyi(order, rate, direction));
    }
};

// The outcomes of one release of the steps in one direction, for either end.
inline Masses release_outcomes(const Steps& steps, Direction direction, End end, const Merge& merge) {
    const PairPointer whole = closed_form(steps, end);
    if (const auto* pairs = dynamic_cast<const DiscretePairs*>(whole.get())) return pairs->masses(direction);
    if (const auto* pair = dynamic_cast<const Discrete*>(whole.get())) {
        if (direction == Direction::remove) return pair->masses();
        return {pair->masses().q, pair->masses().p};
    }
    return merge_discrete(steps, direction, end, merge);
}

// What is selected of how many releases.
struct Share {
    std::int64_t steps, selected;
};

// The pair of one of several releases for either end, or of several of them for the lower end.
inline PairPointer allocated_release(const Steps& steps, const Share& share, End end, const Merge& merge,
                                     const std::atomic<bool>* stop = nullptr) {
    const allocation::Form form = end == End::upper ? allocation::Form::spread : allocation::Form::merged;
    const auto pair_of = [&](Direction direction) {
        const bool removed = direction == Direction::remove;
        WorkBudget budget(stop);
        const Masses outcomes = release_outcomes(steps, direction, end, merge);
        if (share.selected == 1) return allocation::allocated_pair(outcomes, share.steps, removed, form, budget);
        return allocation::labelled_pair(outcomes, {0.0, share.steps, share.selected}, removed, budget);
    };
    allocation::AllocationPairs pairs{pair_of(Direction::remove), pair_of(Direction::add)};
    if (end == End::upper) return std::make_shared<AllocatedOutcomes>(std::move(pairs), steps);
    return std::make_shared<AttainedPairs>(std::move(pairs));
}

// The pairs of an epoch's releases, `allocated_release` and that of Gaussian noise, which a caller
// may remember.
struct Allocators {
    std::function<PairPointer(const Steps&, const Share&, End)> release;
    Allocate gaussian;
};

inline Allocators allocators_now() {
    return {
        [](const Steps& steps, const Share& share, End end) { return allocated_release(steps, share, end, merge_now); },
        allocate_now};
}

inline bool is_one_gaussian(const Steps& steps) {
    return steps.size() == 1 && steps[0].count == 1.0 && steps[0].pair->is_gaussian();
}

// The releases of an epoch for either end. For the lower end there may be none: of many mechanisms
// no pair is known that they attain.
inline Steps allocated_steps(const Steps& steps, const Allocation& epoch, End end, const Allocators& allocate) {
    if (steps.empty() && end == End::lower) return {};
    require(!steps.empty(), "steps", "hold at least one", 0.0);
    if (is_one_gaussian(steps))
        return random_allocation(steps[0].pair->gaussian_noise().noise_multiplier, epoch, end, allocate.gaussian);
    require_epoch(epoch);
    const PairPointer whole = closed_form(steps, end);
    if (whole && !whole->leaks()) return {{whole, 1.0}};
    const auto all = static_cast<std::int64_t>(epoch.num_steps), parts = static_cast<std::int64_t>(epoch.num_selected);
    if (end == End::lower && parts > 1 && parts < all) return {{allocate.release(steps, {all, parts}, end), 1.0}};
    Steps result;
    for (const CountedPair& block : blocks(all, parts, [&](std::int64_t length) {
             return length == 1 ? PairPointer() : allocate.release(steps, {length, 1}, end);
         })) {
        if (block.pair) result.push_back(block);
        else
            for (const CountedPair& step : steps) result.push_back({step.pair, step.count * block.count});
    }
    return result;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release

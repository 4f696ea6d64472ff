// An epoch of random allocation of any steps that have pairs: of t releases of the steps every
// record takes part in k, drawn uniformly.
//
// A record added or removed (allocated_steps). One release is brought to two discrete pairs, one
// for each direction of the record, above or below (release/composed.hpp); those of finitely many
// outcomes are taken as they are. One of t: allocation/outcome_counts.hpp. k of t: the blocks of
// release/random_allocation.hpp for the upper end, and the labels of allocation/outcome_labels.hpp
// for the lower one. Gaussian noise has tighter pairs in release/random_allocation.hpp. Proofs:
// docs/core/allocation.md.
//
// A record replaced (replaced_epoch) draws its steps as the record in its place does: from what is
// known of a record that is removed, see OwnCurve and replaced_release below.
//
// Cost: some tenths of a second, most of it for the sums of steps with thousands of losses.
#pragma once

#include <hockeystick/allocation/outcome_counts.hpp>
#include <hockeystick/allocation/outcome_labels.hpp>
#include <hockeystick/allocation/replaced_sums.hpp>
#include <hockeystick/release/composed.hpp>
#include <hockeystick/release/privacy_profile.hpp>
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
inline Masses release_outcomes(const Steps& steps, Direction direction, End end, const MergeFunction& merge) {
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
inline PairPointer allocated_release(const Steps& steps, const Share& share, End end, const MergeFunction& merge,
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

// A record is replaced, which draws its steps as the record in its place does: the pair from what
// is known of a record that is removed.
//
// Upper end. One of t steps: the curve of allocation/replaced_sums.hpp at some epsilons, between
// which chords bound it (release/privacy_profile.hpp). As divergences are jointly convex, that is
// at most the curve of a release without allocation, if this is known. k of t: blocks, as for a
// record removed.
// Lower end. That of a replacement that contributes nothing. Gaussian noise on opposite
// contributions has the sum of all outputs, N(k r/sqrt t, 1) and N(-k r/sqrt t, 1).
// Proofs: docs/core/allocation.md. Cost: a few seconds for each size of a block.

inline constexpr double replaced_points = 160.0;
inline constexpr double least_replaced_delta = 1e-30;  // below, all that is left counts as revealed
inline constexpr double last_replaced_epsilon = 600.0;

// Upper ends of the curve of one release, where a record is replaced: of either direction. None is
// known of several pairs.
class OwnCurve {
  public:
    explicit OwnCurve(const Steps& own) {
        if (own.size() != 1 || own[0].count != 1.0) return;
        for (const Direction direction : {Direction::remove, Direction::add})
            curves_.emplace_back(own[0].pair->loss(direction));
    }
    bool known() const { return !curves_.empty(); }
    double delta(double eps) const {
        double largest = known() ? 0.0 : 1.0;
        for (const loss::OneStep& curve : curves_) largest = max(largest, curve.delta_above(eps));
        return largest;
    }
    double largest_loss() const {
        double largest = known() ? 0.0 : infinity;
        for (const loss::OneStep& curve : curves_) largest = max(largest, curve.highest().upper);
        return largest;
    }

  private:
    std::vector<loss::OneStep> curves_;
};

// The pair that dominates one of several releases of steps which have these pairs for removing and
// adding a record, and `own` for replacing one.
inline PairPointer replaced_release(const Steps& steps, const Steps& own, std::int64_t num_steps,
                                    const MergeFunction& merge, const std::atomic<bool>* stop = nullptr) {
    const auto ratios = [&](Direction direction) {
        return allocation::step_ratios(release_outcomes(steps, direction, End::upper, merge),
                                       direction == Direction::remove, allocation::Form::spread);
    };
    const allocation::OppositeRatios step =
        allocation::opposite_ratios(ratios(Direction::remove), ratios(Direction::add));
    WorkBudget budget(stop);
    const OwnCurve alone(own);
    const auto delta = [&](double eps) {
        return min(allocation::replaced_delta(step, num_steps, eps, budget), alone.delta(eps));
    };
    const double least = alone.known() ? least_replaced_delta : max(least_replaced_delta, 2.0 * step.infinite);
    double last = 1e-3;
    while (last < last_replaced_epsilon && delta(last) > least) last *= 2.0;
    last = min(min(last, last_replaced_epsilon), max(alone.largest_loss(), 1e-3));
    Profile profile;
    for (double i = 0.0; i <= replaced_points; ++i) {
        profile.epsilons.push_back(last * (i / replaced_points) * (i / replaced_points));
        const double before = profile.remove.empty() ? 1.0 : profile.remove.back();
        profile.remove.push_back(min(delta(profile.epsilons.back()), before));
    }
    profile.add = profile.remove;
    return privacy_profile(profile, End::upper).front().pair;
}

// `replaced_release`, which a caller may remember.
using ReplaceRelease = std::function<PairPointer(const Steps&, const Steps& own, std::int64_t)>;

inline Steps replaced_upper(const Steps& steps, const Steps& own, const Allocation& epoch,
                            const ReplaceRelease& replaced) {
    require(!steps.empty(), "steps", "hold at least one", 0.0);
    require_epoch(epoch);
    const PairPointer whole = closed_form(steps, End::upper);
    if (whole && !whole->leaks()) return {{whole, 1.0}};
    return blocks(static_cast<std::int64_t>(epoch.num_steps), static_cast<std::int64_t>(epoch.num_selected),
                  [&](std::int64_t length) { return replaced(steps, own, length); });
}

inline Steps replaced_lower(const Steps& steps, const Allocation& epoch, const Allocators& allocate) {
    if (!is_one_gaussian(steps)) return allocated_steps(steps, epoch, End::lower, allocate);
    require_epoch(epoch);
    const double shift = 2.0 * epoch.num_selected * steps[0].pair->gaussian_noise().shift;
    return {{Gaussian::of_shift(rounded_to(shift / std::sqrt(epoch.num_steps), End::lower)), 1.0}};
}

// An epoch where a record is replaced, from the pairs of one release for removing one and, for
// upper ends, `own` for replacing one; nothing is remembered.
inline Steps replaced_epoch(const Steps& steps, const Steps& own, const Allocation& epoch, End end) {
    if (end == End::lower) return replaced_lower(steps, epoch, allocators_now());
    return replaced_upper(steps, own, epoch, [](const Steps& all, const Steps& alone, std::int64_t length) {
        return replaced_release(all, alone, length, merge_now);
    });
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release

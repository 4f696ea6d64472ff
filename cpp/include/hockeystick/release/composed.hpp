// Several releases of the same records as one: what a sample's step releases.
//
// The composition of single steps is the product of their pairs. It has a closed form if at most
// one step leaks, or if all of them are Gaussian. Otherwise two discrete pairs enclose it, one
// above and one below at every epsilon (pld/composed_pair.hpp).
//
// Cost: a grid of 8192 points above or 16384 below, and the convolutions of composed_pair. `Merge`
// is that computation; a caller may pass a function that remembers its results.
#pragma once

#include <algorithm>
#include <functional>

#include <hockeystick/mechanism/registry.hpp>
#include <hockeystick/mechanism/steps.hpp>
#include <hockeystick/pld/composed_pair.hpp>
#include <hockeystick/release/smooth_composition.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

using Merge = std::function<Masses(const Steps&, Direction, End)>;

// Points of the grid of losses. A lowered pair has the larger error for each point.
inline constexpr double raised_points = 8192.0, lowered_points = 16384.0;

// At most so many steps other than Gaussian ones are merged: for more, the grid is too coarse.
inline constexpr double most_releases = 1e4;

// The outcomes of a pair that leaks at least, or at most, what one direction of the steps does.
inline Masses merged_pair(const Steps& steps, Direction direction, End end, const std::atomic<bool>* stop = nullptr) {
    std::vector<pld::Step> losses;
    for (const CountedPair& step : steps) losses.push_back({step.pair->loss_for_grid(direction), step.count});
    const bool raised = end == End::upper;
    return pld::composed_pair(losses, raised, raised ? raised_points : lowered_points, stop);
}

// The same, computed at once and not remembered.
inline Masses merge_now(const Steps& steps, Direction direction, End end) { return merged_pair(steps, direction, end); }

// The steps as one pair, if it has a closed form; else null.
inline PairPointer closed_form(const Steps& steps, End end) {
    Steps leaking;
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(leaking),
                 [](const CountedPair& step) { return step.pair->leaks(); });
    if (leaking.empty()) return nothing();
    if (leaking.size() == 1 && leaking[0].count == 1.0) return leaking[0].pair;
    for (const CountedPair& step : leaking)
        if (!step.pair->is_gaussian()) return nullptr;
    return Gaussian::of_shift(rounded_to(gaussian_shift(leaking), end));
}

// The key by which steps are sorted, so that their order does not change a result.
inline std::vector<std::vector<double>> place(const CountedPair& step) {
    std::vector<std::vector<double>> result{{step.count}};
    for (PairPointer pair = step.pair; pair; pair = pair->base()) result.push_back(pair->parameters());
    return result;
}

// Steps without a closed form, in an order of their own. All Gaussian steps are merged into one.
inline Steps merged_gaussians(const Steps& steps, End end) {
    Steps gaussians, kept;
    for (const CountedPair& step : steps)
        if (step.pair->leaks()) (step.pair->is_gaussian() ? gaussians : kept).push_back(step);
    if (!gaussians.empty()) kept.push_back({closed_form(gaussians, end), 1.0});
    double releases = 0.0;
    for (const CountedPair& step : kept) releases += step.count;
    require(releases <= most_releases, "a sample's releases other than Gaussian", "be at most 10000", releases);
    std::stable_sort(kept.begin(), kept.end(),
                     [](const CountedPair& x, const CountedPair& y) { return place(x) < place(y); });
    return kept;
}

// One direction of steps without a closed form.
inline Masses merge_discrete(const Steps& steps, Direction direction, End end, const Merge& merge) {
    const Steps kept = merged_gaussians(steps, end);
    if (kept.empty()) return {{1.0}, {1.0}};
    return merge(kept, direction, end);
}

// A composition as one release, for both directions.
inline PairPointer as_one(const Steps& steps, End end, const Merge& merge = merge_now) {
    if (PairPointer whole = closed_form(steps, end)) return whole;
    const Steps kept = merged_gaussians(steps, end);
    if (SmoothComposition::covers(kept))
        return std::make_shared<SmoothComposition>(kept, end,
                                                   [=](Direction direction) { return merge(kept, direction, end); });
    return std::make_shared<DiscretePairs>(merge_discrete(steps, Direction::remove, end, merge),
                                           merge_discrete(steps, Direction::add, end, merge), steps);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release

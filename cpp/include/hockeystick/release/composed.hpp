// Several releases of the same records as one: what a sample's step releases.
//
// The composition of single steps is the product of their pairs. It has a closed form if at most
// one step leaks, or if all of them are Gaussian. Otherwise two discrete pairs enclose it, one
// above and one below at every epsilon (pld/composed_pair.hpp). With a Gaussian part, losses and
// cumulants have no such gap (SmoothComposition).
//
// Cost: a grid of 8192 points above or 16384 below, and the convolutions of composed_pair.
// `MergeFunction` is that computation; a caller may pass a function that remembers its results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <typeinfo>

#include <hockeystick/mechanism/discrete.hpp>
#include <hockeystick/mechanism/registry.hpp>
#include <hockeystick/mechanism/steps.hpp>
#include <hockeystick/pld/composed_pair.hpp>
#include <hockeystick/release/composed_transform.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

// A composition with a Gaussian part as one release: its loss and its cumulants are exact up to
// certified errors (release/composed_transform.hpp), whichever end of a bracket asks. Only engines
// that need a table of losses get the discrete pair of that end, merged when it is asked for first.

// Merges one direction of the composition on a grid.
using MergeDirection = std::function<Masses(Direction)>;

class SmoothComposition final : public Pair {
  public:
    // All Gaussian steps are one, of count 1. `covers` must hold.
    SmoothComposition(Steps steps, End end, MergeDirection merge)
        : steps_(std::move(steps)), end_(end), merge_(std::move(merge)) {}

    static bool covers(const Steps& steps) {
        const CountedPair* const gaussian = gaussian_part(steps);
        if (!gaussian) return false;
        const double shift = gaussian->pair->gaussian_noise().shift;
        if (!(shift >= least_shift && shift <= most_shift)) return false;
        const CumulantTools tools{&simd::own_kernels, std::make_shared<FourierWorkspace>()};
        for (const CountedPair& step : steps)
            for (const Direction direction : {Direction::remove, Direction::add}) {
                if (!step.pair->has_cumulant(1.0) || step.pair->has_cutoff(1.0, direction)) return false;
                const auto cumulant = step.pair->cumulant(1.0, direction, infinity, tools);
                if (cumulant->log_missing() > -infinity || cumulant->decay_end(1.0) < infinity) return false;
                if (&step == gaussian) continue;
                const OneStep one(step.pair->loss(direction));
                if (one.infinite_mass().upper > 0.0 || !(one.highest().upper * step.count <= most_ratio * shift))
                    return false;
            }
        return transform(steps, Direction::remove).short_sums() && transform(steps, Direction::add).short_sums();
    }

    Loss loss(Direction direction) const override {
        return std::make_shared<ComposedLoss>(transform(steps_, direction));
    }
    Loss loss_for_grid(Direction direction) const override {
        const Masses& masses = merged(direction);
        return std::make_shared<DiscreteLoss>(masses.p, masses.q);
    }
    bool is_rounded_to_grid() const override { return true; }
    bool has_law_of(const Pair& other) const override {
        const auto* same = dynamic_cast<const SmoothComposition*>(&other);
        return same && equal(steps_, same->steps_);
    }
    std::uint64_t law_digest() const override {
        std::uint64_t digest = empty_digest;
        for (const CountedPair& step : steps_) digest = digested(digested(digest, step.pair->law_digest()), step.count);
        return digest;
    }
    bool symmetric() const override {
        return std::all_of(steps_.begin(), steps_.end(),
                           [](const CountedPair& step) { return step.pair->symmetric(); });
    }
    bool has_cumulant(double) const override { return true; }
    bool has_cutoff(double, Direction) const override { return true; }
    std::unique_ptr<Cumulant> cumulant(double rate, Direction direction, double cutoff,
                                       const CumulantTools& tools) const override {
        return std::make_unique<ComposedCumulant>(transform(steps_, direction), SampledFrom{rate, direction},
                                                  rest_range(), cutoff, tools);
    }
    double renyi(double order, double rate, Direction direction) const override {
        if (rate != 1.0) return curve_renyi(order, rate, direction);
        return sum([=](const Pair& pair) { return pair.renyi(order, 1.0, direction); });
    }
    double coarse_renyi(double order, double, Direction direction) const override {
        return sum([=](const Pair& pair) { return pair.coarse_renyi(order, 1.0, direction); });
    }
    std::vector<double> parameters() const override {
        std::vector<double> all{end_ == End::upper ? 1.0 : 0.0};
        for (const CountedPair& step : steps_) {
            all.push_back(step.count);
            for (PairPointer pair = step.pair; pair; pair = pair->base()) {
                const std::vector<double> own = pair->parameters();
                const std::uint64_t name = typeid(*pair).hash_code();
                all.push_back(static_cast<double>(name >> 32)), all.push_back(static_cast<double>(name & 0xffffffffu));
                all.push_back(static_cast<double>(own.size()));
                all.insert(all.end(), own.begin(), own.end());
            }
        }
        return all;
    }

  private:
    static constexpr double least_shift = 1e-3, most_shift = 20.0, most_ratio = 10.0;

    static const CountedPair* gaussian_part(const Steps& steps) {
        const CountedPair* found = nullptr;
        for (const CountedPair& step : steps) {
            if (!step.pair->is_gaussian()) continue;
            if (found || step.count != 1.0) return nullptr;
            found = &step;
        }
        return found;
    }

    static ComposedTransform transform(const Steps& steps, Direction direction) {
        const CumulantTools tools{&simd::own_kernels, std::make_shared<FourierWorkspace>()};
        std::vector<ComposedTransform::Part> parts;
        for (const CountedPair& step : steps)
            parts.push_back({step.pair->cumulant(1.0, direction, infinity, tools), step.count});
        return {std::move(parts), gaussian_part(steps)->pair->gaussian_noise().shift};
    }

    // The length of an interval that has the losses of all parts but the Gaussian.
    double rest_range() const {
        double range = 0.0;
        for (const CountedPair& step : steps_)
            for (const Direction direction : {Direction::remove, Direction::add})
                if (!step.pair->is_gaussian())
                    range += step.count * OneStep(step.pair->loss(direction)).highest().upper;
        return range * (1.0 + 1e-9);
    }

    template <class Function> double sum(const Function& f) const {
        double total = 0.0;
        for (const CountedPair& step : steps_) total += step.count * f(*step.pair);
        return total * (1.0 + sixteen_roundings * static_cast<double>(steps_.size()));
    }

    const Masses& merged(Direction direction) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::optional<Masses>& known = merged_[direction == Direction::remove ? 0 : 1];
        if (!known) known = merge_(direction);
        return *known;
    }

    Steps steps_;
    End end_;
    MergeDirection merge_;
    mutable std::mutex mutex_;
    mutable std::optional<Masses> merged_[2];
};

using MergeFunction = std::function<Masses(const Steps&, Direction, End)>;

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
inline std::vector<std::vector<double>> sort_key(const CountedPair& step) {
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
                     [](const CountedPair& x, const CountedPair& y) { return sort_key(x) < sort_key(y); });
    return kept;
}

// One direction of steps without a closed form.
inline Masses merge_discrete(const Steps& steps, Direction direction, End end, const MergeFunction& merge) {
    const Steps kept = merged_gaussians(steps, end);
    if (kept.empty()) return {{1.0}, {1.0}};
    return merge(kept, direction, end);
}

// A composition as one release, for both directions.
inline PairPointer merge_into_one_pair(const Steps& steps, End end, const MergeFunction& merge = merge_now) {
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

// A composition with a Gaussian part as one release: its loss and its cumulants are exact up to
// certified errors (release/composed_transform.hpp), whichever end of a bracket asks. Only engines
// that need a table of losses get the discrete pair of that end, merged when it is asked for first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <typeinfo>

#include <hockeystick/mechanism/discrete.hpp>
#include <hockeystick/mechanism/steps.hpp>
#include <hockeystick/release/composed_cumulant.hpp>
#include <hockeystick/release/composed_loss.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

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
        return std::make_unique<ComposedCumulant>(transform(steps_, direction),
                                                  SampledFrom{rate, direction == Direction::remove}, rest_range(),
                                                  cutoff, tools);
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

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release

// An epoch of random allocation: Gaussian noise on each of t steps, of which every record takes
// part in k, drawn uniformly. A record is added or removed.
//
// One of t steps: allocation/random_allocation.hpp. k of t steps leak at most what k epochs leak
// that draw one of floor(t/k) or ceil(t/k) steps each. Their lower end is that of a statistic of
// all outputs: the sum of their labels (allocation/label_counts.hpp), or, where labels would be too
// coarse, the sum of the outputs, N(k r/sqrt t, 1) and N(0, 1). Proofs: docs/core/allocation.md.
#pragma once

#include <functional>
#include <mutex>

#include <hockeystick/allocation/label_counts.hpp>
#include <hockeystick/allocation/mean_moments.hpp>
#include <hockeystick/allocation/random_allocation.hpp>
#include <hockeystick/mechanism/registry.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

struct Allocation {
    double num_steps, num_selected;
};

using allocation::Selection;

// The pairs of one of several steps, which end in an infinite loss, with the Renyi divergences of
// the mechanism, which has none. Where a record is removed, the chord between the moments of
// integer orders bounds them too. docs/core/loss.md has the proofs.
class AllocatedPairs final : public DiscretePairs {
  public:
    AllocatedPairs(allocation::AllocationPairs pairs, double shift, std::int64_t num_steps)
        : DiscretePairs(std::move(pairs.removed), std::move(pairs.added)), shift_(shift),
          num_steps_(static_cast<double>(num_steps)) {}
    bool is_rounded_to_grid() const override { return true; }
    double renyi(double order, double rate, Direction direction) const override {
        const double by_curve = Pair::renyi(order, rate, direction);
        return direction == Direction::remove ? min(by_curve, by_moments(order)) : by_curve;
    }
    double coarse_renyi(double order, double, Direction direction) const override {
        const double squares = direction == Direction::remove ? order : 1.0 + (order - 1.0) / num_steps_;
        return 0.5 * squares * shift_ * shift_ * up;
    }
    std::vector<double> parameters() const override {
        std::vector<double> all = DiscretePairs::parameters();
        all.insert(all.end(), {shift_, num_steps_});
        return all;
    }

  private:
    double by_moments(double order) const {
        if (order <= 2.0) return logs()[2] * renyi_up;
        if (order > allocation::most_moment) return infinity;
        const double low = std::floor(order), part = order - low;
        const auto n = static_cast<std::size_t>(low);
        const double right = part > 0.0 ? logs()[n + 1] : 0.0;
        return ((1.0 - part) * logs()[n] + part * right) / (order - 1.0) * renyi_up;
    }

    // Of the moments where a record is removed; few questions need them.
    const std::vector<double>& logs() const {
        std::call_once(
            made_, [this] { logs_ = allocation::mean_moments(shift_, static_cast<std::int64_t>(num_steps_)).logs; });
        return logs_;
    }

    double shift_, num_steps_;
    mutable std::once_flag made_;
    mutable std::vector<double> logs_;
};

// The same for the lower end.
class AttainedPairs final : public DiscretePairs {
  public:
    explicit AttainedPairs(allocation::AllocationPairs pairs)
        : DiscretePairs(std::move(pairs.removed), std::move(pairs.added)) {}
    bool is_rounded_to_grid() const override { return true; }
};

// The pair of one of several steps for either end, or that of several of them for the lower end. A
// caller may pass a function that remembers results.
using Allocate = std::function<PairPointer(const Selection&, End)>;

inline double kullback_leibler(const Masses& masses) {
    double sum = 0.0;
    for (std::size_t i = 0; i < masses.p.size(); ++i)
        if (masses.p[i] > 0.0 && masses.q[i] > 0.0) sum += masses.p[i] * std::log(masses.p[i] / masses.q[i]);
    return sum;
}

// Of two statistics the one that tells more.
inline PairPointer dominated_by_subset(const Selection& s, const std::atomic<bool>* stop) {
    const double all = static_cast<double>(s.selected) * s.shift / std::sqrt(static_cast<double>(s.steps));
    WorkBudget budget(stop);
    allocation::CountPairs counts = allocation::count_pairs(s, budget);
    if (kullback_leibler(counts.removed) < 0.5 * all * all) return Gaussian::of_shift(rounded_to(all, End::lower));
    return std::make_shared<DiscretePairs>(std::move(counts.removed), std::move(counts.added));
}

inline PairPointer allocated(const Selection& s, End end, const std::atomic<bool>* stop = nullptr) {
    if (s.selected > 1) return dominated_by_subset(s, stop);
    auto pairs = allocation::random_allocation_pairs(s.shift, s.steps, end == End::upper, stop);
    if (end == End::lower) return std::make_shared<AttainedPairs>(std::move(pairs));
    return std::make_shared<AllocatedPairs>(std::move(pairs), s.shift, s.steps);
}

inline PairPointer allocate_now(const Selection& s, End end) { return allocated(s, end); }

inline void require_epoch(const Allocation& epoch) {
    require(count(epoch.num_steps) && epoch.num_steps <= 1e6, "steps", "be an integer in [1, 1000000]",
            epoch.num_steps);
    require(count(epoch.num_selected) && epoch.num_selected <= epoch.num_steps, "num_selected",
            "be an integer in [1, steps]", epoch.num_selected);
}

inline void require_allocation(double noise_multiplier, const Allocation& epoch) {
    require_noise_multiplier(noise_multiplier);
    require_epoch(epoch);
    require(epoch.num_selected == epoch.num_steps || (noise_multiplier >= 0.25 && noise_multiplier <= 1000.0),
            "noise_multiplier of a random allocation", "lie in [0.25, 1000]", noise_multiplier);
}

// One release of `one_of(size)` for each block of so many steps that one step is selected of.
inline Steps blocks(std::int64_t steps, std::int64_t parts, const std::function<PairPointer(std::int64_t)>& one_of) {
    const std::int64_t size = steps / parts, longer = steps % parts;
    Steps result{{one_of(size), static_cast<double>(parts - longer)}};
    if (longer > 0) result.push_back({one_of(size + 1), static_cast<double>(longer)});
    return result;
}

inline Steps random_allocation(double noise_multiplier, const Allocation& epoch, End end,
                               const Allocate& allocate = allocate_now) {
    require_allocation(noise_multiplier, epoch);
    const double shift = 1.0 / noise_multiplier;
    const auto steps = static_cast<std::int64_t>(epoch.num_steps);
    const auto parts = static_cast<std::int64_t>(epoch.num_selected);
    if (end == End::lower && parts > 1 && parts < steps) return {{allocate({shift, steps, parts}, end), 1.0}};
    return blocks(steps, parts, [&](std::int64_t length) -> PairPointer {
        if (length == 1) return Gaussian::of_shift(shift);
        return allocate({shift, length, 1}, end);
    });
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release

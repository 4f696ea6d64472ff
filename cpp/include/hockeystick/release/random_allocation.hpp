// An epoch of random allocation: Gaussian noise on each of t steps, of which every record takes
// part in k, drawn uniformly. A record is added or removed.
//
// One of t steps: allocation/random_allocation.hpp, which has the proofs. k of t steps leak at most
// what k epochs leak that draw one of floor(t/k) or ceil(t/k) steps each. Their lower end is that
// of the sum of all outputs, N(k r/sqrt t, 1) and N(0, 1).
#pragma once

#include <functional>

#include <hockeystick/allocation/mean_moments.hpp>
#include <hockeystick/allocation/random_allocation.hpp>
#include <hockeystick/mechanism/registry.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

struct Allocation {
    double num_steps, num_selected;
};

// One of `num_steps` >= 2 steps of this shift. A caller may pass a function that remembers results.
using Allocate = std::function<PairPointer(double shift, std::int64_t num_steps, End)>;

// The pairs of one of several steps, which end in an infinite loss, with the Renyi divergences of
// the mechanism, which has none. Where a record is removed, the chord between the moments of
// integer orders bounds them too. docs/core/loss.md has the proofs.
class AllocatedPairs final : public DiscretePairs {
  public:
    AllocatedPairs(allocation::AllocationPairs pairs, double shift, std::int64_t num_steps)
        : DiscretePairs(std::move(pairs.removed), std::move(pairs.added)), shift_(shift),
          num_steps_(static_cast<double>(num_steps)), logs_(allocation::mean_moments(shift, num_steps).logs) {}
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
        if (order <= 2.0) return logs_[2] * renyi_up;
        if (order > allocation::most_moment) return infinity;
        const double low = std::floor(order), part = order - low;
        const auto n = static_cast<std::size_t>(low);
        const double right = part > 0.0 ? logs_[n + 1] : 0.0;
        return ((1.0 - part) * logs_[n] + part * right) / (order - 1.0) * renyi_up;
    }

    double shift_, num_steps_;
    std::vector<double> logs_;  // of the moments where a record is removed
};

inline PairPointer allocated(double shift, std::int64_t num_steps, End end, const std::atomic<bool>* stop = nullptr) {
    auto pairs = allocation::random_allocation_pairs(shift, num_steps, end == End::upper, stop);
    if (end == End::lower) return std::make_shared<DiscretePairs>(std::move(pairs.removed), std::move(pairs.added));
    return std::make_shared<AllocatedPairs>(std::move(pairs), shift, num_steps);
}

inline PairPointer allocate_now(double shift, std::int64_t num_steps, End end) {
    return allocated(shift, num_steps, end);
}

inline void require_allocation(double noise_multiplier, const Allocation& epoch) {
    require_noise_multiplier(noise_multiplier);
    require(count(epoch.num_steps) && epoch.num_steps <= 1e6, "num_steps", "be an integer in [1, 1000000]",
            epoch.num_steps);
    require(count(epoch.num_selected) && epoch.num_selected <= epoch.num_steps, "num_selected",
            "be an integer in [1, num_steps]", epoch.num_selected);
    require(epoch.num_selected == epoch.num_steps || (noise_multiplier >= 0.25 && noise_multiplier <= 1000.0),
            "noise_multiplier of a random allocation", "lie in [0.25, 1000]", noise_multiplier);
}

inline Steps random_allocation(double noise_multiplier, const Allocation& epoch, End end,
                               const Allocate& allocate = allocate_now) {
    require_allocation(noise_multiplier, epoch);
    const double shift = 1.0 / noise_multiplier, selected = epoch.num_selected;
    if (end == End::lower && selected > 1.0 && selected < epoch.num_steps)
        return {{Gaussian::of_shift(rounded_to(shift * selected / std::sqrt(epoch.num_steps), end)), 1.0}};
    const auto steps = static_cast<std::int64_t>(epoch.num_steps), parts = static_cast<std::int64_t>(selected);
    const std::int64_t size = steps / parts, longer = steps % parts;
    const auto one_of = [&](std::int64_t length) -> PairPointer {
        if (length == 1) return Gaussian::of_shift(shift);
        return allocate(shift, length, end);
    };
    Steps result{{one_of(size), static_cast<double>(parts - longer)}};
    if (longer > 0) result.push_back({one_of(size + 1), static_cast<double>(longer)});
    return result;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release

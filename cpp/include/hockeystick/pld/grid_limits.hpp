// How fine a grid, and how long a transform, memory and work allow for one composition.
//
// A grid holds a point every h of a distinct step's losses; a transform holds the losses of the
// whole composition. A composition of many distinct steps may cost more, up to 16 times `max_work`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <hockeystick/pld/grid_plan.hpp>
#include <hockeystick/pld/spectrum_power.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

class GridLimits {
  public:
    GridLimits(const std::vector<Step>& steps, double max_bytes, double max_work)
        : max_bytes_(max_bytes), max_work_(max_work * min(1.0 + static_cast<double>(steps.size()) / 32.0, 16.0)) {
        for (const Step& step : steps) counts_.push_back(step.count);
    }

    double max_work() const { return max_work_; }

    // Points of all grids together.
    double max_points(const WorkBudget& budget) const {
        const double left = max(0.4 * max_work_ - 0.5 * budget.spent(), 0.02 * max_work_);
        return min(left / (2.0 * (masses_work + 2.0 * tilting_work)), max_bytes_ / bytes_per_point);
    }

    // Length of the transforms.
    double max_length(bool large_losses_split_off, const WorkBudget& budget) const {
        double passes = 2.0 * reading_work + transform_passes;
        double powers = 0.0;
        for (const double count : counts_)
            if (count > 1.0 || large_losses_split_off || counts_.size() < 8)
                powers += bits_of(static_cast<std::uint64_t>(count)), passes += transform_passes;
        passes = (passes + powers * power_work) * (large_losses_split_off ? 3.0 : 1.0) * 2.0;
        const double left = max(max_work_ - budget.spent(), 0.4 * max_work_);
        return min(left / passes, max_bytes_ / bytes_per_point);
    }

  private:
    static constexpr double bytes_per_point = 128.0;  // a transform's buffers, or a grid's two measures and errors
    static constexpr double transform_passes = 20.0;  // log2 of a length near 2^20: a transform's work per point

    std::vector<double> counts_;  // of the distinct steps
    double max_bytes_, max_work_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld

// The plan of a sliced composition (contour/sliced_contour.hpp): which parts are summed and which
// only bounded, and for each summed part the line of its sum, by tilt, spacing and last frequency.
//
// Chernoff's bounds of the parts say which of them make delta, and which are too light for a sum. A
// part's tilt is that of the shortest period. Plans are made for T and eps - T l, l the least loss.
// Those that near questions share are for these numbers rounded up to parts of powers of 2. They
// depend on nothing else, so that an answer depends on its question alone.
#pragma once

#include <memory>
#include <vector>

#include <hockeystick/contour/slice_bounds.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

// A part that is summed, on the grids of LossSlices.
struct SliceLine {
    int slice, tilt_index, spacing_index, cutoff_index;
    double log_decay;    // of the slice's transform beyond the last node
    double log_damping;  // of each other step's there, relatively to the tilt's
    // The nodes, good while the slices are of this generation.
    mutable const LossSlices::Table* table = nullptr;
    mutable std::size_t generation = 0;
};

// A part that is only bounded, and the tilt of its bound.
struct BoundedSlice {
    int slice, tilt_index;
};

// T, eps, and the distance eps - T l of eps from the least loss.
struct SliceCell {
    double times, eps, distance;

    bool operator==(const SliceCell& other) const { return times == other.times && distance == other.distance; }
};

struct SlicePlan {
    // What it is made for, and by how much, in natural logarithms, delta is below what Chernoff's
    // bounds let expect.
    SliceCell cell{};
    int lowered_by = 0;
    bool usable = false;
    double log_value = 0.0;       // of delta, roughly
    int first_bounded_slice = 0;  // it and all below are bounded together
    std::vector<SliceLine> summed;
    // The last one stands for `first_bounded_slice` and all below.
    std::vector<BoundedSlice> bounded;
};

// Makes plans. Not for several threads at once.
//
// A question asks for the same plan two or three times, and near questions ask for it again. So the
// last plans are kept: a delta that is asked for again takes 18 % fewer instructions.
class SlicePlanner {
  public:
    explicit SlicePlanner(const LossSlices& slices) : slices_(slices), bounds_(slices) {}

    // Invalidates references to earlier plans.
    void begin_question() {
        if (plans_.size() > max_kept) plans_.clear();
    }

    const SlicePlan& plan_for(double times, double eps, int lowered_by) {
        const SliceCell cell = cell_of(times, max(eps, 0.0));
        for (const auto& plan : plans_)
            if (plan->cell == cell && plan->lowered_by == lowered_by) return *plan;
        plans_.push_back(std::make_unique<SlicePlan>());
        SlicePlan& plan = *plans_.back();
        plan.cell = cell;
        plan.lowered_by = lowered_by;
        fill(plan);
        return plan;
    }

    const SliceBounds& bounds() const { return bounds_; }

  private:
    static constexpr std::size_t max_kept = 64;  // plans of a few hundred bytes

    static constexpr int log2_max_nodes_of_slice = 14;

    // What the plan of a question is made for: T <= 2^{i/8} and eps - T l <= 2^{j/16} where plans
    // are shared, or the question itself.
    SliceCell cell_of(double times, double eps) const {
        const double distance = eps - times * slices_.least_loss();
        if (!slices_.shape().plans_are_shared) return {times, eps, distance};
        SliceCell cell{std::exp2(0.125 * std::ceil(8.0 * std::log2(times))), 0.0,
                       std::exp2(0.0625 * std::ceil(16.0 * std::log2(distance)))};
        cell.eps = max(cell.distance + cell.times * slices_.least_loss(), 0.0);
        return cell;
    }

    void fill(SlicePlan& plan) const {
        const SliceCell& cell = plan.cell;
        double largest = -infinity;
        std::vector<double> log_bounds;
        int& slice = plan.first_bounded_slice;
        for (;; ++slice) {
            if (slice == slices_.size()) return;
            log_bounds.push_back(bounds_.least_log_chernoff(slice, cell.times, cell.eps));
            largest = max(largest, log_bounds.back());
            const double all_below = bounds_.least_log_chernoff(slice + 1, cell.times, cell.eps, true);
            if (all_below < largest + plan.lowered_by - 3.0 + slices_.shape().log_tolerance) break;
        }
        ++slice;
        plan.log_value = largest + plan.lowered_by - 3.0;
        for (int p = 0; p < plan.first_bounded_slice; ++p) {
            if (log_bounds[static_cast<std::size_t>(p)] < plan.log_value + slices_.shape().log_tolerance) {
                plan.bounded.push_back({p, bounds_.best_tilt(p, cell.times, cell.eps)});
                continue;
            }
            SliceLine line{p, 0, 0, 0, 0.0, 0.0, nullptr, 0};
            if (!choose_line(line, cell, plan.log_value)) return;
            plan.summed.push_back(line);
        }
        plan.bounded.push_back({slice, bounds_.best_tilt(slice, cell.times, cell.eps, true)});
        plan.usable = !plan.summed.empty();
    }

    // The period that a part needs at some tilt, and a measure of the nodes for that; digits lost
    // count as nodes, too.
    struct Choice {
        double period, cost;
    };
    Choice choice_at(int slice, int tilt_index, const SliceCell& cell, double log_value) const {
        const LossSlices::Moments& m = slices_.at(tilt_index);
        const double log_allowed = log_value + slices_.shape().log_tolerance,
                     log_mass = bounds_.log_mass(slice, cell.times);
        const double log_unit = bounds_.log_transform(slice, tilt_index, cell.times, false) - m.c * cell.eps;
        if (!(log_unit < log_value + slices_.shape().max_growth)) return {0.0, infinity};
        // For the aliases n < 0, and for n > 0.
        double needed[2] = {(log_mass - log_allowed) / m.c, infinity};
        for (const int side : {0, 1}) {
            for (int away = 1; away <= slices_.max_tilts_away(); away *= 2) {
                const int other = side == 1 ? tilt_index + away : tilt_index - away;
                if (other < slices_.first_tilt() || other > slices_.last_tilt()) break;
                const double excess = bounds_.log_chernoff(slice, other, cell.times, cell.eps) - log_allowed;
                const double next = max(excess, 1.0) / std::fabs(slices_.at(other).c - m.c);
                if (away > 1 && next > needed[side]) break;
                needed[side] = min(needed[side], next);
            }
        }
        // From that period on the aliases n < 0 are known.
        const double known = max(1.001 * cell.distance, 2.0 / m.c);
        const bool cancels = log_mass - m.c * known > log_value + slices_.shape().max_growth;
        const double period = max(needed[1], cancels ? needed[0] : min(needed[0], known));
        const double digits_lost = max(log_unit - log_value - 9.0, 0.0);
        return {period, period * (1.0 + 0.025 * (log_unit - log_allowed) + 0.15 * digits_lost)};
    }

    // The tilt of least cost, the spacing that its period asks for, and the last frequency.
    bool choose_line(SliceLine& line, const SliceCell& cell, double log_value) const {
        const auto at = [&](int index) { return choice_at(line.slice, index, cell, log_value); };
        line.tilt_index = bounds_.best_tilt(line.slice, cell.times, cell.eps);
        Choice best = at(line.tilt_index);
        for (const int stride : {4, 1}) {
            for (const int direction : {1, -1}) {
                for (int next = line.tilt_index + direction * stride;
                     next >= slices_.first_tilt() && next <= slices_.last_tilt(); next += direction * stride) {
                    const Choice there = at(next);
                    if (!(there.cost < best.cost)) break;
                    best = there;
                    line.tilt_index = next;
                }
            }
        }
        // Under a tilt too large for the slice's largest losses its ends carry weight, which does
        // not decay: lower it.
        for (int tries = 0; tries < 8 && best.cost < infinity; ++tries) {
            line.spacing_index = static_cast<int>(std::ceil(4.0 * std::log2(best.period / (2.0 * pi))));
            // Truncation may take a seventh (e^-2) of the tolerance: parts fall so fast there that
            // a sharper last frequency costs little.
            if (choose_last_frequency(line, cell, log_value + slices_.shape().log_tolerance - 2.0)) return true;
            if (--line.tilt_index < slices_.first_tilt()) return false;
            best = at(line.tilt_index);
        }
        return false;
    }

    // The fewest steps besides one that a question of this plan has: a shared plan is for a
    // number of steps that was rounded up by a factor of at most 2^(1/8).
    double fewest_others(double times) const {
        return (slices_.shape().plans_are_shared ? times * std::exp2(-0.125) : times) * (1.0 - 1e-12) - 1.0;
    }

    bool choose_last_frequency(SliceLine& line, const SliceCell& cell, double log_allowed) const {
        const double log_scale =
            bounds_.log_other_steps(line.slice, line.tilt_index, cell.times) - slices_.at(line.tilt_index).c * cell.eps;
        const double others = fewest_others(cell.times);
        const double log_own = slices_.at(line.tilt_index).slice[static_cast<std::size_t>(line.slice)] + 1e-9;
        const auto enough = [&](int index) {
            line.log_decay = min(slices_.log_decay(line.slice, line.tilt_index, index), log_own);
            line.log_damping = 0.0;
            const double missing =
                log_scale + line.log_decay - std::log(pi * LossSlices::frequency(index)) - log_allowed;
            if (missing <= 0.0) return true;
            line.log_damping = others > 0.0 ? slices_.log_damping(line.slice, line.tilt_index, index) : 0.0;
            return missing + others * line.log_damping <= 0.0;
        };
        const int first = -line.spacing_index, last = first + 4 * log2_max_nodes_of_slice;
        int index = first + 4 * 5;
        while (index <= last && !enough(index)) index += 4;
        if (index > last) return false;
        while (index - 4 >= first && enough(index - 4)) index -= 4;
        while (index - 1 >= first && enough(index - 1)) --index;
        line.cutoff_index = index;
        return enough(index);
    }

    const LossSlices& slices_;
    SliceBounds bounds_;
    std::vector<std::unique_ptr<SlicePlan>> plans_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour

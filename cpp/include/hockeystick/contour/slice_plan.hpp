// Which slices of the losses a contour needs (contour/sliced_contour.hpp), and for each its line: tilt, spacing, last frequency.
//
// Chernoff's bounds of the slices say where delta is made, and what is too light for a line; a line's tilt is that with the shortest
// period. Plans are made for T and eps - T l, l the least loss, rounded up to parts of powers of 2: they depend on nothing else.
#pragma once

#include <cstdint>
#include <unordered_map>

#include <hockeystick/contour/truncated_ledger.hpp>
#include <hockeystick/cumulant/loss_slices.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace cumulant;

struct SliceLine {
    int p, k, j, i;                                    // slice, tilt, spacing, last frequency
    double log_last;                                   // of the slice's decay beyond the last node
    mutable const LossSlices::Table* table = nullptr;  // the nodes, while the slices are of this generation
    mutable std::size_t generation = 0;
};

// A slice that is only bounded, and the tilt of its bound.
struct LightSlice {
    int p, k;
};

struct SlicePlan {
    bool usable = false;
    int lowered = 0;
    double log_value = 0.0;  // what is expected, roughly
    int rest = 0;            // the first slice that is only bounded, with all below it
    std::vector<SliceLine> lines;
    std::vector<LightSlice> light;  // that from `rest` on last
};

// Not for several threads at once.
class SlicePlanner {
  public:
    explicit SlicePlanner(const LossSlices& slices) : slices_(slices) {}

    static constexpr double sharp = -20.5;  // what alias, truncation and rest may be, each, relatively

    // Of the transform of what the slices from p on make that those from p + 1 on do not, or, with `rest`, of all from p on.
    double log_transform(int p, int k, double times, bool rest) const {
        const LossSlices::Moments& m = slices_.at(k);
        const auto at = static_cast<std::size_t>(p);
        const double slack = times * (m.error + 4.0 * unit_roundoff * std::fabs(m.upto[at])) + 1e-9;
        const double whole = times * m.upto[at];
        return slack + (rest ? whole : min(whole, std::log(times) + m.slice[at] + (times - 1.0) * m.upto[at]));
    }
    double log_chernoff(int p, int k, double times, double eps, bool rest = false) const {
        const LossSlices::Moments& m = slices_.at(k);
        return log_transform(p, k, times, rest) - m.c * eps + m.log_kappa;
    }
    int best_tilt(int p, double times, double eps, bool rest = false) const {
        const auto bound = [&](int k) { return log_chernoff(p, k, times, eps, rest); };
        return lowest_point(bound, 4, LossSlices::first_tilt, slices_.last_tilt());
    }
    double least_chernoff(int p, double times, double eps, bool rest = false) const {
        return log_chernoff(p, best_tilt(p, times, eps, rest), times, eps, rest);
    }
    double log_mass(int p, double times) const {
        const LossSlices::Moments& m = slices_.mass(true);
        return min(std::log(times) + m.slice[static_cast<std::size_t>(p)], 0.0) + 1e-9;
    }

    // Where the slices' bounds together are delta, to a few per cent, by secants of the logarithm over that of eps.
    double guess(double times, double log_delta) const {
        double low = std::log(1e-6), high = std::log(1e3), x = 0.0;
        double before = 0.0, excess_before = 0.0;
        for (int step = 0; step < 40 && high - low > 0.02; ++step) {
            const double excess = log_estimate(times, std::exp(x)) - log_delta;
            (excess > 0.0 ? low : high) = x;
            const double slope = step > 0 ? (excess - excess_before) / (x - before) : -5.0;
            const double move = -excess / slope;
            if (step > 0 && std::fabs(move) < 0.02) return std::exp(x + move);
            before = x;
            excess_before = excess;
            x += min(max(move, -2.0), 2.0);
            if (!(x > low && x < high)) x = 0.5 * (low + high);
        }
        return std::exp(x);
    }

    // Good until forget(); `lowered` as far as a first answer was below what had been expected.
    const SlicePlan& plan_for(double times, double eps, int lowered) {
        const double above = max(eps, 0.0) - times * slices_.least_loss();
        const int steps = static_cast<int>(std::ceil(8.0 * std::log2(times)));
        const int far = static_cast<int>(std::ceil(16.0 * std::log2(above)));
        const auto key = (static_cast<std::uint64_t>(steps) << 40) ^
                         (static_cast<std::uint64_t>(far + (1 << 15)) << 24) ^
                         static_cast<std::uint64_t>(lowered + (1 << 23));
        auto& plan = plans_[key];
        if (!plan)
            plan = std::make_unique<SlicePlan>(make_plan(std::exp2(0.125 * steps), std::exp2(0.0625 * far), lowered));
        return *plan;
    }

    void forget() {
        if (plans_.size() > most_plans) plans_.clear();
    }
    std::size_t bytes() const { return plans_.size() * bytes_of_plan; }

  private:
    static constexpr std::size_t most_plans = 10000, bytes_of_plan = 600;
    static constexpr double most_growth = 12.5;  // of the terms beyond the value: rounding takes e^12.5 1e-15

    // Chernoff's bounds of the slices, rather too large than too small.
    double log_estimate(double times, double eps) const {
        double sum = -infinity;
        for (int p = 0; p < slices_.size(); ++p) {
            const double bound = least_chernoff(p, times, eps);
            if (bound < sum - 8.0) break;
            sum = log_sum(sum, bound);
        }
        return sum - 0.5;
    }
    // For T up to `times` and eps - T l up to `above`.
    SlicePlan make_plan(double times, double above, int lowered) const {
        const double eps = max(above + times * slices_.least_loss(), 0.0);
        SlicePlan plan;
        plan.lowered = lowered;
        double most = -infinity;
        std::vector<double> bounds;
        for (;; ++plan.rest) {
            if (plan.rest == slices_.size()) return plan;
            bounds.push_back(least_chernoff(plan.rest, times, eps));
            most = max(most, bounds.back());
            if (least_chernoff(plan.rest + 1, times, eps, true) < most + lowered - 3.0 + sharp) break;
        }
        ++plan.rest;
        plan.log_value = most + lowered - 3.0;
        for (int p = 0; p < plan.rest; ++p) {
            if (bounds[static_cast<std::size_t>(p)] < plan.log_value + sharp) {
                plan.light.push_back({p, best_tilt(p, times, eps)});
                continue;
            }
            SliceLine line{p, 0, 0, 0, 0.0, nullptr, 0};
            if (!choose(line, times, eps, above, plan.log_value)) return plan;
            plan.lines.push_back(line);
        }
        plan.light.push_back({plan.rest, best_tilt(plan.rest, times, eps, true)});
        plan.usable = !plan.lines.empty();
        return plan;
    }

    // Some tilt of slice p: the period that it needs, and what that costs.
    struct Choice {
        double period, cost;
    };
    Choice choice(int p, int k, double times, double eps, double above, double log_value) const {
        const LossSlices::Moments& m = slices_.at(k);
        const double unit = log_transform(p, k, times, false) - m.c * eps, allowed = log_value + sharp;
        if (!(unit < log_value + most_growth)) return {0.0, infinity};
        double needed[2] = {(log_mass(p, times) - allowed) / m.c, infinity};  // for the terms n < 0 and n > 0
        for (const int side : {0, 1}) {
            for (int away = 1; away <= 16; away *= 2) {
                const int other = side == 1 ? k + away : k - away;
                if (other < LossSlices::first_tilt || other > slices_.last_tilt()) break;
                const double excess = log_chernoff(p, other, times, eps) - allowed;
                const double next = max(excess, 1.0) / std::fabs(slices_.at(other).c - m.c);
                if (away > 1 && next > needed[side]) break;
                needed[side] = min(needed[side], next);
            }
        }
        const double known = max(1.001 * above, 2.0 / m.c);
        const bool cancels = log_mass(p, times) - m.c * known > log_value + most_growth;
        const double period = max(needed[1], cancels ? needed[0] : min(needed[0], known));
        const double digits_lost = max(unit - log_value - 9.0, 0.0);
        return {period, period * (1.0 + 0.025 * (unit - allowed) + 0.15 * digits_lost)};
    }

    // The tilt with the shortest period, the spacing for that, and the last frequency.
    bool choose(SliceLine& line, double times, double eps, double above, double log_value) const {
        const auto at = [&](int k) { return choice(line.p, k, times, eps, above, log_value); };
        line.k = best_tilt(line.p, times, eps);
        Choice best = at(line.k);
        for (const int stride : {4, 1}) {
            for (const int direction : {1, -1}) {
                for (int next = line.k + direction * stride;
                     next >= LossSlices::first_tilt && next <= slices_.last_tilt(); next += direction * stride) {
                    const Choice there = at(next);
                    if (!(there.cost < best.cost)) break;
                    best = there;
                    line.k = next;
                }
            }
        }
        // Where a tilt is too much for the slice's largest losses, its ends do not decay: then a lower one.
        for (int tries = 0; tries < 8 && best.cost < infinity; ++tries) {
            line.j = static_cast<int>(std::ceil(4.0 * std::log2(best.period / (2.0 * pi))));
            if (choose_last(line, times, eps, log_value + sharp)) return true;
            if (--line.k < LossSlices::first_tilt) return false;
            best = at(line.k);
        }
        return false;
    }

    bool choose_last(SliceLine& line, double times, double eps, double allowed) const {
        const LossSlices::Moments& m = slices_.at(line.k);
        const auto at = static_cast<std::size_t>(line.p);
        const double unit =
            log_transform(line.p, line.k, times, true) - slices_.at(line.k).c * eps - m.upto[at] + std::log(times);
        const auto enough = [&](int i) {
            return unit + slices_.log_decay(line.p, line.k, i) - std::log(pi * LossSlices::frequency(i)) <= allowed;
        };
        const int first = -line.j, last = first + 4 * 14;
        int i = first + 4 * 5;
        while (i <= last && !enough(i)) i += 4;
        if (i > last) return false;
        while (i - 4 >= first && enough(i - 4)) i -= 4;
        while (i - 1 >= first && enough(i - 1)) --i;
        line.i = i;
        line.log_last = slices_.log_decay(line.p, line.k, i);
        return true;
    }

    const LossSlices& slices_;
    std::unordered_map<std::uint64_t, std::unique_ptr<SlicePlan>> plans_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour

// What the sum over a plan's parts (contour/slice_sum.hpp) may be off by, besides truncation and
// rounding.
//
// Alias: every part is a measure >= 0, so that Poisson's formula holds for each of them as it does
// for a whole ledger (contour/alias_error.hpp), with the part's own Chernoff bounds. Parts that are
// not summed are bounded by Chernoff.
#pragma once

#include <cmath>

#include <hockeystick/contour/slice_sum.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

// How far delta may lie below and above the sum, in units of the sum.
struct SliceErrors {
    double alias, missing, bounded;  // `bounded`: the parts that were not summed
    double below, above;
};

// The alias of one part: geometric series over n, each at the tilt where its first term is least.
// For n < 0 also at the tilt 0, where the bound is the part's mass.
inline double alias_of_slice(const LossSlices& slices, const SliceBounds& bounds, const SliceLine& line, double times,
                             double eps, double log_unit) {
    const LossSlices::Table& t = nodes_of(slices, line);
    const double period = 2.0 * pi / t.h;
    const auto series = [&](double distance, double log_first) {
        return std::exp(log_first - log_unit) / -std::expm1(-distance * period);
    };
    const auto smallest = [&](int direction) {
        double best = infinity, best_distance = infinity;
        for (int away = 1; away <= 16; away *= 2) {
            const int index = line.tilt_index + direction * away;
            if (index < LossSlices::first_tilt || index > slices.last_tilt()) break;
            const double distance = std::fabs(slices.at(index).c - t.c);
            const double log_first = bounds.log_chernoff(line.slice, index, times, eps) - distance * period;
            if (!(log_first < best)) break;
            best = log_first;
            best_distance = distance;
        }
        return series(best_distance, best);
    };
    if (aliases_are_known(slices, t, times, eps)) return smallest(1);
    return smallest(1) + min(smallest(-1), series(t.c, bounds.log_mass(line.slice, times) - t.c * period));
}

inline SliceErrors errors_of(const LossSlices& slices, const SliceBounds& bounds, const SlicePlan& plan,
                             const SliceSum& s, double times, double eps) {
    SliceErrors e{};
    for (const SliceLine& line : plan.summed) e.alias += alias_of_slice(slices, bounds, line, times, eps, s.log_unit);
    for (const BoundedSlice& part : plan.bounded) {
        const bool whole = part.slice == plan.first_bounded_slice;
        e.bounded += std::exp(bounds.log_chernoff(part.slice, part.tilt_index, times, eps, whole) - s.log_unit);
    }
    e.missing = std::exp(std::log(times) + slices.log_missing() - s.log_unit);
    const double either_way = s.truncation + s.rounding + e.missing;
    e.below = either_way + e.alias;
    e.above = either_way + e.bounded;
    return e;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour

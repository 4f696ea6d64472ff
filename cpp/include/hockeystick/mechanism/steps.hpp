// Lists of steps: when two are equal, and the shift of composed Gaussian steps. T_j steps of shift
// r_j are one step of shift sqrt(sum_j T_j r_j^2).
#pragma once

#include <algorithm>
#include <cmath>

#include <hockeystick/mechanism/pair.hpp>
#include <hockeystick/numeric/compensated_sum.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

// sqrt(sum_j T_j r_j^2) within a few roundings, where r_j = shift(pair) of step j; steps of shift 0
// are left out. Shifts are divided by the largest one, so that no square overflows.
template <class Shift> double composed_shift(const Steps& steps, const Shift& shift) {
    double largest = 0.0;
    for (const CountedPair& step : steps) largest = max(largest, shift(*step.pair));
    if (!(largest > 0.0 && largest < infinity)) return largest;
    CompensatedSum squares;
    for (const CountedPair& step : steps) {
        const double scaled = shift(*step.pair) / largest;
        if (scaled > 0.0) squares.add(step.count * scaled * scaled);
    }
    return largest * std::sqrt(squares.value());
}

// The shift of all Gaussian steps together; 0 if there are none.
inline double gaussian_shift(const Steps& steps) {
    return composed_shift(steps,
                          [](const Pair& pair) { return pair.is_gaussian() ? pair.gaussian_noise().shift : 0.0; });
}

inline bool equal(const Steps& one, const Steps& other) {
    return std::equal(
        one.begin(), one.end(), other.begin(), other.end(),
        [](const CountedPair& x, const CountedPair& y) { return x.count == y.count && x.pair->equals(*y.pair); });
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism

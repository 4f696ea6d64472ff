// Sums of numbers that are known by their logarithms, log Gamma, and the larger and smaller of two doubles.
//
// `max` and `min` compile to one instruction in loops, unlike std::max and std::min, which return
// references.
#pragma once

#include <cmath>

#include <hockeystick/numeric/elementary.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

inline double max(double x, double y) { return x > y ? x : y; }
inline double min(double x, double y) { return x < y ? x : y; }

// log Gamma(x) for x > 0. glibc's lgamma writes the sign into a variable that all threads share.
inline double log_gamma(double x) {
#ifdef __GLIBC__
    int sign;
    return ::lgamma_r(x, &sign);
#else
    return std::lgamma(x);
#endif
}

// log(e^x + e^y)
inline double log_sum(double x, double y) {
    const double larger = max(x, y), smaller = min(x, y);
    return std::fabs(larger) == infinity ? larger : larger + std::log1p(std::exp(smaller - larger));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric

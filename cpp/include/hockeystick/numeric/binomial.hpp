// The binomial law of j successes among n trials: masses by their logarithms, and a far quantile.
#pragma once

#include <algorithm>
#include <cmath>

#include <hockeystick/version.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

// log of the probability of j successes among n trials, 0 < rate < 1. Absolute error: about 1e-10
// for n <= 2^16, where the three lgamma are up to 7e5 and cancel.
inline double log_binomial(double n, double j, double rate) {
    return std::lgamma(n + 1.0) - std::lgamma(j + 1.0) - std::lgamma(n - j + 1.0) + j * std::log(rate) +
           (n - j) * std::log1p(-rate);
}

// A number of successes that is exceeded with a probability below binomial_tail.
//
// Bernstein's inequality: the mean is exceeded by t with probability at most
// exp(-t^2/(2 mean + 2t/3)), and t = sqrt(140 mean) + 70 makes the exponent less than -69.
inline constexpr double binomial_tail = 1.1e-30;  // > e^-69

inline double rarely_exceeded(double n, double rate) {
    const double mean = n * rate;
    return std::min(n, std::ceil(mean + std::sqrt(140.0 * mean) + 70.0));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric

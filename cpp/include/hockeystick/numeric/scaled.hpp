// A positive double as a mantissa in [1, 2) and a power of two. A product may be a double while a
// step on the way to it is too large or too small for one. Here the mantissas are multiplied and
// the exponents are added, so no such step does harm. The same holds for quotients.
//
// Splitting and joining are exact where no double is subnormal or overflows, so a formula keeps its
// last digits. A subnormal result is rounded once. The code has no branches.
#pragma once

#include <cstdint>

#include <hockeystick/numeric/elementary.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

struct Scaled {
    double mantissa, exponent;
};

// For 0 < x < inf.
inline Scaled split(double x) {
    const bool tiny = x < 0x1p-1022;
    const std::uint64_t bits = to_bits(tiny ? x * 0x1p54 : x);
    const double biased = from_bits((bits >> 52) | to_bits(0x1p52)) - 0x1p52;
    return {from_bits((bits & 0x000fffffffffffffu) | to_bits(1.0)), biased - 1023.0 - (tiny ? 54.0 : 0.0)};
}

// mantissa 2^exponent for a mantissa of moderate size, by three powers of two that are doubles.
inline double joined(double mantissa, double exponent) {
    const double bounded = exponent < -2400.0 ? -2400.0 : exponent > 2400.0 ? 2400.0 : exponent;
    const double third = (bounded * (1.0 / 3.0) + round_magic) - round_magic;
    const double power = power_of_two(third + round_magic);
    return mantissa * power * power * power_of_two((bounded - 2.0 * third) + round_magic);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric

// A positive double as a mantissa in [1, 2) and a power of two, for products and quotients whose
// intermediate results leave the doubles while the whole does not: the mantissas are multiplied,
// the exponents added.
//
// Splitting and joining are exact where no double is subnormal or overflows, so that a formula
// keeps its last digits; a subnormal result is rounded once. Without branches.
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

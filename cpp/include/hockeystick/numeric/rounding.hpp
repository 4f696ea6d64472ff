// The margins that pay for rounding, by name. Every certified end is moved by one of them, away from the truth.
//
// u = 2^-53 is the unit roundoff: one operation on doubles errs by at most u, relatively. std::exp, std::log, std::sqrt
// and their kin err by less than an ulp, that is by at most 2u; log1p and expm1 of common libraries by at most 2u too.
#pragma once

#include <hockeystick/version.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double unit_roundoff = 0x1p-53;

// The error of a short formula: up to eight roundings, such as two divisions, a square root and two products.
inline constexpr double eight_roundings = 0x1p-50;

// Twice that, where a formula has a logarithm or a sum of a few terms besides.
inline constexpr double sixteen_roundings = 0x1p-49;

// A positive result of a short formula, times `up`, is at least the exact value; times `down`, at most.
inline constexpr double up = 1.0 + eight_roundings;
inline constexpr double down = 1.0 - eight_roundings;

// The unit roundoff, raised by a part of 2^-8: n of these are at least n u/(1 - n u), what n roundings in a row make, for n < 2^40.
inline constexpr double nearly_unit_roundoff = 0x1.01p-53;

// What a sum of up to 2^14 positive terms, each the product of up to 2^14 factors, loses at most, with room to spare for powers.
inline constexpr double long_sum_of_rounds = 0x1p-35;

// What is known of a positive sum that has overflowed, with room for a square and a product.
inline constexpr double max_known_spread = 0x1p1000;

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric

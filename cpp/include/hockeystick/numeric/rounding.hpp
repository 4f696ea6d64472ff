// The margins that pay for rounding, by name. Every certified end is moved by one of them, away
// from the truth.
//
// u = 2^-53 is the unit roundoff: one operation on doubles errs by at most u, relatively. std::exp,
// std::log, std::sqrt and their kin err by less than an ulp, that is by at most 2u; log1p and expm1
// of common libraries by at most 2u too.
#pragma once

#include <cfloat>
#include <cmath>  // tells __GLIBC__
#include <limits>

#include <hockeystick/version.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double unit_roundoff = 0x1p-53;

// The error of a short formula: up to eight roundings, such as two divisions, a square root and two
// products.
inline constexpr double eight_roundings = 0x1p-50;

// Twice that, where a formula has a logarithm or a sum of a few terms besides.
inline constexpr double sixteen_roundings = 0x1p-49;

// A positive result of a short formula, times `up`, is at least the exact value; times `down`, at
// most.
inline constexpr double up = 1.0 + eight_roundings;
inline constexpr double down = 1.0 - eight_roundings;

// Half of eight_roundings, where a formula has one sum and one product.
inline constexpr double four_roundings = 0x1p-51;

// Four times eight_roundings: long double tails times weights that are stored as doubles.
inline constexpr double thirty_two_roundings = 0x1p-48;

// A product of a hundred factors, or a difference of probabilities close to each other: 512
// roundings.
inline constexpr double product_error = 0x1p-44;

// A mass e^-x with x up to 700: the rounding of x counts x times.
inline constexpr double weight_error = 0x1p-40;

// The spacing of doubles at 1; for results that a library function returns to within an ulp.
inline constexpr double one_ulp = 0x1p-52;

// The spacing at 1 of what the C library's functions of long double return. Where long double has
// 113 bits, erfcl, expl and their kin in musl (Alpine on Arm, emscripten) are those of double.
#if LDBL_MANT_DIG == 113 && !defined(__GLIBC__)
inline constexpr double long_double_ulp = one_ulp;
#else
inline constexpr double long_double_ulp = static_cast<double>(std::numeric_limits<long double>::epsilon());
#endif

// One rounding, and room for the products of such errors when hundreds of them are added up.
inline constexpr double padded_roundoff = 0x1.01p-53;

// A slope of a loss curve's hull: a difference of two ordinates over a width that is right to 2^-43
// for losses up to 600 (hidden_state/loss_curve.hpp).
inline constexpr double hull_slope_error = 0x1p-42;

// A quantity that is positive in exact arithmetic is never reported as less than this, since 0
// would claim perfect privacy.
inline constexpr double smallest_positive = 0x1p-1074;

// Below, the relative margins above are none. A product rounded to nearest errs by half of
// smallest_positive there, a second one by as much again, if its other factor is at most 1.
inline constexpr double smallest_normal = 0x1p-1022;

// The error of theta and of every other one-step delta, in units of 1 + |log delta|: five times the
// 2e-14 that divergence/hockey_stick.hpp promises, because a formula of loss/ adds a few
// exponentials and products of its own.
inline constexpr double delta_error = 0x1p-43;

// The error of a mass beyond every finite loss, 1 - prod (1 - p_j)^{T_j}: some ninety roundings.
inline constexpr double infinite_mass_error = 1e-14;

// The error of a sum of exponents, each a loss times a tilt: some ninety roundings of the largest.
inline constexpr double exponent_error = 1e-14;

// A bisection stops at a bracket of this relative width: it holds eight doubles, too few to be
// worth an evaluation.
inline constexpr double search_resolution = 0x1p-50;

// A search for a one-step epsilon stops at this relative width: delta cannot be told apart within
// it.
inline constexpr double epsilon_resolution = 0x1p-44;

// Grid points that differ by less than this, relatively, count as one: rounding alone never moves a
// point so far.
inline constexpr double distinct_points = 0x1p-40;

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric

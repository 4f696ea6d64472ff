// The domains that arguments share, and that of results. Functions of the core return NaN outside
// theirs; callers who want an error check first.
#pragma once

#include <algorithm>
#include <cmath>

#include <hockeystick/numeric/elementary.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

inline bool positive(double x) { return x > 0.0 && x < infinity; }
inline bool non_negative(double x) { return x >= 0.0 && x < infinity; }
inline bool count(double x) { return x >= 1.0 && x <= 0x1p53 && x == std::floor(x); }  // counted exactly by doubles

// length/(a b) for positive a and b. Dividing by the smaller one first keeps the intermediate
// result from underflowing where the quotient does not.
inline double deviations(double length, double a, double b) { return length / std::min(a, b) / std::max(a, b); }

// A delta that is positive in exact arithmetic. Where it underflows it must not be reported as 0,
// which would claim pure differential privacy.
inline double positive_delta(double value, double eps) { return eps < infinity ? std::max(value, 0x1p-1074) : value; }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric

// The domains that arguments share, and that of results. Functions of the core return NaN outside
// theirs; callers who want an error check first.
#pragma once

#include <cmath>

#include <hockeystick/numeric/elementary.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

// Without branches, so that loops over them vectorise.
inline bool positive(double x) { return (x > 0.0) & (x < infinity); }
inline bool non_negative(double x) { return (x >= 0.0) & (x < infinity); }

// The integer nearest to 0 <= x < 2^52: above, doubles have no room for a fraction.
inline double nearest_integer(double x) { return x < 0x1p52 ? (x + 0x1p52) - 0x1p52 : x; }
inline double floor_positive(double x) { return nearest_integer(x) - (nearest_integer(x) > x ? 1.0 : 0.0); }
inline double ceil_positive(double x) { return nearest_integer(x) + (nearest_integer(x) < x ? 1.0 : 0.0); }

// Counted exactly by doubles.
inline bool count(double x) { return (x >= 1.0) & (x <= 0x1p53) & ((x >= 0x1p52) | (x == (x + 0x1p52) - 0x1p52)); }

// Whether x says how often something is done, which may be never.
inline bool count_or_none(double x) { return x == 0.0 || count(x); }

// length/(a b) for positive a and b. Dividing by the smaller one first keeps the intermediate
// result from underflowing where the quotient does not.
inline double deviations(double length, double a, double b) { return length / (a < b ? a : b) / (a < b ? b : a); }

// A quantity that is positive in exact arithmetic, rounded up where it is subnormal, so that it is
// never 0, which would claim perfect privacy. NaN passes.
inline double positive_quantity(double value) { return value < smallest_normal ? value + smallest_positive : value; }

// The same for a delta, which is 0 at an infinite eps.
inline double positive_delta(double value, double eps) { return eps < infinity ? positive_quantity(value) : value; }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric

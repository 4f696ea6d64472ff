// A vector of eight doubles, built on the vector extensions of GCC and Clang.
//
// The width is fixed, so that sums round identically on every instruction set. The compiler maps a
// vector to whatever registers exist. Other compilers get a plain struct.
#pragma once

#include <cstddef>
#include <cstring>

#include <hockeystick/version.hpp>

namespace hockeystick::simd {

inline constexpr std::size_t lanes = 8;

// The smallest multiple of `lanes` that is at least n: how long the arrays of n items are for the
// loops of this room.
inline constexpr std::size_t padded_to_lanes(std::size_t n) { return (n + lanes - 1) / lanes * lanes; }

inline namespace HOCKEYSTICK_ISA {

#if defined(__GNUC__)
using Lanes = double __attribute__((vector_size(lanes * sizeof(double))));
#else
struct Lanes {
    double x[lanes];
    double operator[](std::size_t k) const { return x[k]; }
};
#define HOCKEYSTICK_LANES(op)                                                                                          \
    inline Lanes operator op(const Lanes& a, const Lanes& b) {                                                         \
        Lanes c;                                                                                                       \
        for (std::size_t k = 0; k < lanes; ++k) c.x[k] = a.x[k] op b.x[k];                                             \
        return c;                                                                                                      \
    }
HOCKEYSTICK_LANES(+)
HOCKEYSTICK_LANES(-)
HOCKEYSTICK_LANES(*)
#undef HOCKEYSTICK_LANES
inline Lanes& operator+=(Lanes& a, const Lanes& b) { return a = a + b; }
#endif

inline void load(const double* from, Lanes& to) { std::memcpy(&to, from, sizeof to); }
inline void store(const Lanes& from, double* to) { std::memcpy(to, &from, sizeof from); }
inline double total(const Lanes& x) { return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])); }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd

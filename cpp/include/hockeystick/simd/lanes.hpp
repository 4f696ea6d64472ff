// Eight doubles at a time, for loops with sums that must not depend on the vector width, and that compilers do not vectorise well by
// themselves: GCC and Clang have vectors of any size, which they make of what the instruction set has.
#pragma once

#include <cstddef>
#include <cstring>

#include <hockeystick/version.hpp>

namespace hockeystick::simd {

inline constexpr std::size_t lanes = 8;

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

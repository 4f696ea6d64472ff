// Eight doubles that are worked on together.
//
// The width is fixed, so that sums have the same terms in the same order on every instruction set.
// The doubles are kept in as many registers as the instruction set needs for them: one of AVX-512,
// two of AVX, four of SSE2. GCC and Clang have the types for that; other compilers work on the
// doubles one by one. (A vector of 64 bytes does for all of them on paper, but GCC 12 passes its
// halves through memory on AVX2.)
#pragma once

#include <cassert>
#include <cstddef>
#include <cstring>

#include <hockeystick/version.hpp>

// APART: compiled once, and not in each caller, since a call costs nothing beside a loop over many lanes. FLATTEN inlines all calls: one
// that GCC finds too large would end the vectorisation of the loop around it.
#if defined(__GNUC__)
#define HOCKEYSTICK_APART __attribute__((noinline))
#define HOCKEYSTICK_FLATTEN __attribute__((flatten))
#else
#define HOCKEYSTICK_APART
#define HOCKEYSTICK_FLATTEN
#endif

namespace hockeystick::simd {

inline constexpr std::size_t lanes = 8;

// The smallest multiple of `lanes` that is at least n: how long the arrays of n items are for the
// loops of this room.
inline constexpr std::size_t padded_to_lanes(std::size_t n) { return (n + lanes - 1) / lanes * lanes; }

inline namespace HOCKEYSTICK_ISA {

// n, which must be a multiple of `lanes`, in a form that tells the compiler so. It then compiles no code for the rest of a
// loop, which would be as long as the loop.
inline std::size_t whole_lanes(std::size_t n) {
    assert(n % lanes == 0);
    return n / lanes * lanes;
}

#if defined(__GNUC__) && defined(__AVX512F__)

using Lanes = double __attribute__((vector_size(lanes * sizeof(double))));
inline void load(const double* from, Lanes& to) { std::memcpy(&to, from, sizeof to); }
inline void store(const Lanes& from, double* to) { std::memcpy(to, &from, sizeof from); }

#else

#if defined(__GNUC__) && defined(__AVX__)
using Register = double __attribute__((vector_size(32)));
using AnyAddress = Register __attribute__((aligned(8), may_alias));
#elif defined(__GNUC__)
using Register = double __attribute__((vector_size(16)));
using AnyAddress = Register __attribute__((aligned(8), may_alias));
#else
using Register = double;
using AnyAddress = Register;
#endif

struct Lanes {
    static constexpr std::size_t registers = lanes * sizeof(double) / sizeof(Register);
    Register part[registers];
};

inline Lanes operator+(const Lanes& a, const Lanes& b) {
    Lanes c;
    for (std::size_t k = 0; k < Lanes::registers; ++k) c.part[k] = a.part[k] + b.part[k];
    return c;
}
inline Lanes operator-(const Lanes& a, const Lanes& b) {
    Lanes c;
    for (std::size_t k = 0; k < Lanes::registers; ++k) c.part[k] = a.part[k] - b.part[k];
    return c;
}
inline Lanes operator*(const Lanes& a, const Lanes& b) {
    Lanes c;
    for (std::size_t k = 0; k < Lanes::registers; ++k) c.part[k] = a.part[k] * b.part[k];
    return c;
}
inline Lanes operator*(const Lanes& a, double b) {
    Lanes c;
    for (std::size_t k = 0; k < Lanes::registers; ++k) c.part[k] = a.part[k] * b;
    return c;
}
inline Lanes& operator+=(Lanes& a, const Lanes& b) { return a = a + b; }

inline void load(const double* from, Lanes& to) {
    const AnyAddress* parts = reinterpret_cast<const AnyAddress*>(from);
    for (std::size_t k = 0; k < Lanes::registers; ++k) to.part[k] = parts[k];
}
inline void store(const Lanes& from, double* to) {
    AnyAddress* parts = reinterpret_cast<AnyAddress*>(to);
    for (std::size_t k = 0; k < Lanes::registers; ++k) parts[k] = from.part[k];
}

#endif

inline double total(const Lanes& terms) {
    double x[lanes];
    store(terms, x);
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd

// The version, once: the build, the package and the C++ embedder all read it here. Every other
// header includes this one, so that it also refuses compilers and flags under which the numbers
// would not be what they promise.
#pragma once

#include <cfloat>

#define HOCKEYSTICK_VERSION "1.0.0rc1"

// Every header with numerical code lives in an inline namespace that names the instruction set it
// was compiled for. One library may then hold the same kernel several times without the linker
// merging the copies and calling AVX-512 code on a machine that has none. An embedder who compiles
// once needs no setting.
#ifndef HOCKEYSTICK_ISA
#define HOCKEYSTICK_ISA portable
#endif

// MSVC keeps __cplusplus at 199711L unless told otherwise, and has the truth in _MSVC_LANG.
#if defined(_MSVC_LANG) ? _MSVC_LANG < 201703L : __cplusplus < 201703L
#error "hockeystick needs C++17 or later: compile with -std=c++17 (MSVC: /std:c++17)"
#endif

// Certified bounds count every rounding, carry NaN and infinity through their formulas, and recover
// what a rounding took by (a - b) - c. A compiler that may assume exact arithmetic or finite
// numbers deletes these steps. The answers stay plausible and are wrong: for sigma = 2 and 1000
// steps an upper end of 0.3008 came out where the truth is 0.6220.
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ != 0) ||                          \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(_M_FP_FAST)
#error "hockeystick is unsound under -ffast-math, -Ofast, -ffinite-math-only and -funsafe-math-optimizations:"
#error "certified bounds rely on IEEE 754 rounding, infinities and NaN; compile this file without these flags"
#endif

// Every operation on doubles must round to a double. The x87 unit keeps more digits, and rounds
// again wherever it stores one. (16 is said of machines that compute in half precision, too.)
#if !defined(FLT_EVAL_METHOD) || (FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16)
#error                                                                                                                 \
    "hockeystick needs arithmetic in the precision of its types: compile without -mfpmath=387 (on 32 bits: -msse2 -mfpmath=sse)"
#endif
static_assert(sizeof 0.1 == sizeof(double) && 0.1 != 0.1f,
              "hockeystick is unsound under -fsingle-precision-constant: its coefficients have the digits of doubles");

// The C library's functions of long double take the type that it was built with. Under
// -mlong-double-64 they are given another one, and return anything: a bracket of epsilon was [0, 0]
// where the truth is 8.
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__i386__)) && __LDBL_MANT_DIG__ != 64
#error "hockeystick is unsound where long double is not that of the C library: compile without -mlong-double-64 or -128"
#endif

// Clang (14 and 16 were tried) announces -funsafe-math-optimizations by no macro. Then the code
// that follows is at least not reassociated, which is what deletes compensations; CMakeLists.txt
// looks for the flag itself.
#if defined(__clang__)
#pragma clang fp reassociate(off)
#endif

// Sums that do not depend on the width of a vector register.
//
// A sum of n terms runs in `lanes` independent partial sums, on every instruction set. Each partial
// sum has n/lanes terms, and adding the partial sums takes log2(lanes) more additions: the result
// errs by at most (n/lanes + lanes) u times the sum of the absolute values of the terms (Higham,
// Accuracy and Stability, 2002, section 4.2). A dot product adds one rounding for each product.
//
// Lengths are multiples of `lanes`: callers pad their arrays with zeros.
#pragma once

#include <cstddef>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/simd/lanes.hpp>

namespace hockeystick::simd {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

inline double largest(const double* x, std::size_t n) {
    double best[lanes];
    for (std::size_t k = 0; k < lanes; ++k) best[k] = x[k];
    for (std::size_t j = lanes; j < n; j += lanes)
        for (std::size_t k = 0; k < lanes; ++k) best[k] = best[k] > x[j + k] ? best[k] : x[j + k];
    double result = best[0];
    for (std::size_t k = 1; k < lanes; ++k) result = result > best[k] ? result : best[k];
    return result;
}

inline double sum(const double* x, std::size_t n) {
    Lanes sums = {};
    for (std::size_t j = 0; j < n; j += lanes) {
        Lanes next;
        load(x + j, next);
        sums += next;
    }
    return total(sums);
}

inline double dot(const double* x, const double* y, std::size_t n) {
    Lanes sums = {};
    for (std::size_t j = 0; j < n; j += lanes) {
        Lanes a, b;
        load(x + j, a), load(y + j, b);
        sums += a * b;
    }
    return total(sums);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd

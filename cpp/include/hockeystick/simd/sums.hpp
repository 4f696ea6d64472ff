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

// Adds the terms of `groups` times `lanes` points to the sums of all nodes; the state of these
// points stays in registers.
template <std::size_t groups>
inline void rotate_points(const double* losses, const double* weights, double h, std::size_t nodes, double* real,
                          double* imag) {
    Lanes weight[groups], turn_re[groups], turn_im[groups], at_re[groups] = {}, at_im[groups] = {};
    for (std::size_t g = 0; g < groups; ++g) {
        double re[lanes], im[lanes];
        for (std::size_t i = 0; i < lanes; ++i) {
            double cosine, sine;
            cos_sin(0.5 * h * losses[g * lanes + i], cosine, sine);
            re[i] = -2.0 * sine * sine;
            im[i] = 2.0 * sine * cosine;
        }
        load(re, turn_re[g]), load(im, turn_im[g]), load(weights + g * lanes, weight[g]);
    }
    for (std::size_t k = 0; k < nodes; ++k) {
        Lanes re, im;
        load(real + k * lanes, re), load(imag + k * lanes, im);
        for (std::size_t g = 0; g < groups; ++g) {
            const Lanes a = weight[g] + at_re[g], b = at_im[g];
            at_re[g] += a * turn_re[g] - b * turn_im[g];
            at_im[g] += a * turn_im[g] + b * turn_re[g];
            re += at_re[g];
            im += at_im[g];
        }
        store(re, real + k * lanes), store(im, imag + k * lanes);
    }
}

// real[k-1] + i imag[k-1] = sum_j weights[j] (e^{i k h losses[j]} - 1), k = 1..nodes.
//
// With r = e^{i h loss} - 1, the terms u_k of one point obey u_{k+1} = u_k + (weight + u_k) r: a
// complex multiplication and addition for a point and a node. `scratch` has room for 2 lanes nodes
// doubles. docs/core/cumulant.md bounds the error.
inline void characteristic_sums(const double* __restrict losses, const double* __restrict weights, std::size_t n,
                                double h, std::size_t nodes, double* __restrict real, double* __restrict imag,
                                double* __restrict scratch) {
    double *sums_re = scratch, *sums_im = scratch + lanes * nodes;
    for (std::size_t k = 0; k < 2 * lanes * nodes; ++k) scratch[k] = 0.0;
    std::size_t j = 0;
#if defined(__AVX512F__)  // only AVX-512 has enough registers (32) to keep four blocks of state
    for (; j + 4 * lanes <= n; j += 4 * lanes) rotate_points<4>(losses + j, weights + j, h, nodes, sums_re, sums_im);
#endif
    for (; j < n; j += lanes) rotate_points<1>(losses + j, weights + j, h, nodes, sums_re, sums_im);
    for (std::size_t k = 0; k < nodes; ++k) {
        real[k] = sum(sums_re + k * lanes, lanes);
        imag[k] = sum(sums_im + k * lanes, lanes);
    }
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd

// The loops over the nodes c + i k h, k = 0, 1, ..., of a contour (contour/truncated_ledger.hpp, contour/line_sum.hpp), compiled for every
// instruction set: powers of the characteristic function, the factors 1/(s(s+1)), and the terms of the sum.
#pragma once

#include <cmath>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/simd/lanes.hpp>

namespace hockeystick::simd {

// One step's phi(k h) - 1 and a bound of its error.
struct Shares {
    const double *real, *imag, *absolute;
    double count;  // of such steps
    std::size_t n;
};

struct NodePowers {
    double *log_abs, *phase, *error;  // log |phi|, arg phi, relative error of phi
};

// Nodes and the smoothing's variance.
struct NodeLine {
    double c, h, variance;
    std::size_t n;
};

struct NodeFactors {
    double *real, *imag, *size;
};

// What a sum is made of. Node 0 has half weight.
struct Nodes {
    const double *log_abs, *phase, *error;
    const double *real, *imag, *size;  // of what phi is multiplied by, and its size
    double c, h;
    std::size_t n;
};

inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// Compilers believe `__restrict` of parameters, not of local pointers: hence the arrays one by one.
inline void raise_arrays(const double* __restrict real, const double* __restrict imag,
                         const double* __restrict absolutes, double count, std::size_t n, double* __restrict log_abs,
                         double* __restrict phase, double* __restrict error) {
    for (std::size_t k = 0; k < n; ++k) {
        const double re = real[k], im = imag[k], absolute = absolutes[k];
        // log |1 + v|: near 1 from |1 + v|^2 - 1, which would cancel where phi is small
        const double above_one = 2.0 * re + (re * re + im * im), square = (1.0 + re) * (1.0 + re) + im * im;
        const double size = std::sqrt(square);
        const double log_near = log1p_positive(re > -0.3 ? above_one : 0.0);
        const double log_far = log_positive(square), log_size = 0.5 * (re > -0.3 ? log_near : log_far);
        const bool known = size > absolute && absolute < 1.0;  // `!` of a comparison would not vectorise
        const double log_lost = log_positive(absolute), log_kept = known ? log_size : log_lost;
        const double angle = angle_of(1.0 + re, im);
        log_abs[k] += count * (log_kept < 0.0 ? log_kept : 0.0);
        phase[k] += known ? count * angle : 0.0;
        error[k] += count * (known ? absolute / size : 2.0);
    }
}

// Multiplies every power by phi^count. Logarithm and angle err by 8u of themselves.
inline void raise(const Shares& step, const NodePowers& to) {
    raise_arrays(step.real, step.imag, step.absolute, step.count, step.n, to.log_abs, to.phase, to.error);
}

inline void factor_arrays(double c, double h, double variance, std::size_t n, double* __restrict real,
                          double* __restrict imag, double* __restrict size, double* __restrict divided_real,
                          double* __restrict divided_imag, double* __restrict divided_size) {
    const double base = c * (c + 1.0);
    for (std::size_t k = 0; k < n; ++k) {
        const double omega = static_cast<double>(static_cast<int>(k)) * h;
        const double turn = variance * omega * (c + 0.5), fall = 0.5 * variance * omega * omega;
        const double half = (k == 0 ? 0.5 : 1.0) * exp_nonpositive(-fall);
        double cosine, sine;
        cos_sin(turn, cosine, sine);
        real[k] = half * cosine;
        imag[k] = half * sine;
        const double own_size = half * (1.0 + fall + (turn < 0.0 ? -turn : turn));
        size[k] = own_size;
        const double a = base - omega * omega, b = omega * (2.0 * c + 1.0);
        const double inverse = 1.0 / (a * a + b * b);
        divided_real[k] = half * (cosine * a + sine * b) * inverse;
        divided_imag[k] = half * (sine * a - cosine * b) * inverse;
        divided_size[k] = own_size * std::sqrt(inverse);
    }
}

// The factors of the terms, e^{variance (s(s+1) - c(c+1))/2}, alone and times 1/(s(s+1)). An error of u times `size` is allowed for.
inline void factors(const NodeLine& line, const NodeFactors& alone, const NodeFactors& divided) {
    factor_arrays(line.c, line.h, line.variance, line.n, alone.real, alone.imag, alone.size, divided.real, divided.imag,
                  divided.size);
}

// terms: real parts z of phi^times e^{-i k h eps} factor; slopes: those of s z; errors: bounds of the terms' errors.
inline void evaluate(const Nodes& at, double times, double eps, double* __restrict terms, double* __restrict slopes,
                     double* __restrict errors) {
    constexpr double u = unit_roundoff;
    const double summing = static_cast<double>(static_cast<int>(at.n / lanes)) + 24.0;  // of a sum of the terms
    for (std::size_t k = 0; k < at.n; ++k) {
        const double omega = static_cast<double>(static_cast<int>(k)) * at.h;
        const double turn = omega * eps;
        const double spin = times * at.phase[k];
        const double size = exp_nonpositive(times * at.log_abs[k]);
        double cosine, sine;
        cos_sin(spin - turn, cosine, sine);
        terms[k] = size * (cosine * at.real[k] - sine * at.imag[k]);
        slopes[k] = at.c * terms[k] - omega * (size * (cosine * at.imag[k] + sine * at.real[k]));
        const double drift = times * at.error[k];
        const double relative = expm1_bounded(drift < 600.0 ? drift : 600.0);
        const double rounding =
            summing + 3.0 * ((spin < 0.0 ? -spin : spin) + (turn < 0.0 ? -turn : turn)) - 2.0 * times * at.log_abs[k];
        errors[k] = size * at.size[k] * (relative + u * rounding);
    }
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd

// The loops over the nodes s_k = c + i k h, k = 0, 1, ..., of a contour (contour/line.hpp):
// powers of the characteristic function phi(k h) = M(s_k)/M(c), the factors 1/(s(s+1)), and the
// terms of the sum with bounds of their errors.
#pragma once

#include <cmath>
#include <cstddef>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/simd/lanes.hpp>

namespace hockeystick::simd {

// phi(k h) - 1 of one kind of step at the nodes, a bound of its absolute error, and how many such
// steps there are.
struct StepTransform {
    const double *real, *imag, *error;
    double count;
    std::size_t n;
};

// log |phi|, arg phi and the relative error of phi at the nodes, of all steps together.
struct NodePowers {
    double *log_abs, *phase, *error;
};

// Where the nodes are, and the variance of the smoothing.
struct NodeLine {
    double c, h, variance;
    std::size_t n;
};

// What phi is multiplied by at the nodes, and a bound of its error in units of u.
struct NodeFactors {
    double *real, *imag, *size;
};

// What a sum is made of: powers, factors, and where the nodes are. The factor of node 0 has half
// weight. n is a multiple of `lanes`.
struct Nodes {
    const double *log_abs, *phase, *error;
    const double *real, *imag, *size;
    double c, h;
    std::size_t n;
};

inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// Compilers believe `__restrict` of parameters, but not of local pointers or members: hence one
// argument for each array.
inline void multiply_power_arrays(const double* __restrict real, const double* __restrict imag,
                                  const double* __restrict errors, double count, std::size_t n,
                                  double* __restrict log_abs, double* __restrict phase, double* __restrict error) {
    for (std::size_t k = 0; k < n; ++k) {
        const double re = real[k], im = imag[k], absolute = errors[k];
        // log |1 + v|: near 1 from |1 + v|^2 - 1, which would cancel where phi is small
        const double above_one = 2.0 * re + (re * re + im * im), square = (1.0 + re) * (1.0 + re) + im * im;
        const double size = std::sqrt(square);
        const double log_near = log1p_positive(re > -0.3 ? above_one : 0.0);
        const double log_far = log_positive(square), log_size = 0.5 * (re > -0.3 ? log_near : log_far);
        // Where the error exceeds the value, |phi| <= 2 absolute, and nothing is known of the
        // angle. `!` would not vectorise.
        const bool known = size > absolute && absolute < 1.0;
        const double log_lost = log_positive(absolute), log_kept = known ? log_size : log_lost;
        const double angle = angle_of(1.0 + re, im);
        log_abs[k] += count * (log_kept < 0.0 ? log_kept : 0.0);
        phase[k] += known ? count * angle : 0.0;
        error[k] += count * (known ? absolute / size : 2.0);
    }
}

// Multiplies the power at every node by phi^count. Logarithm and angle err by 8u of themselves,
// which the caller has in `step.error`.
inline void multiply_powers(const StepTransform& step, const NodePowers& to) {
    multiply_power_arrays(step.real, step.imag, step.error, step.count, step.n, to.log_abs, to.phase, to.error);
}

inline void smoothing_factor_arrays(double c, double h, double variance, std::size_t n, double* __restrict real,
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

// The factors e^{variance (s(s+1) - c(c+1))/2} of a smoothed sum: alone, and divided by s(s+1).
inline void smoothing_factors(const NodeLine& line, const NodeFactors& alone, const NodeFactors& divided) {
    smoothing_factor_arrays(line.c, line.h, line.variance, line.n, alone.real, alone.imag, alone.size, divided.real,
                            divided.imag, divided.size);
}

// terms: the real parts of z = phi^times e^{-i k h eps} factor. slopes: those of s z. errors:
// bounds of the errors of the terms, which pay for summing the terms, too.
inline void fill_sum_terms(const Nodes& at, double times, double eps, double* __restrict terms,
                           double* __restrict slopes, double* __restrict errors) {
    constexpr double u = unit_roundoff;
    const double summing = static_cast<double>(static_cast<int>(at.n / lanes)) + 24.0;
    const std::size_t n = whole_lanes(at.n);
    for (std::size_t k = 0; k < n; ++k) {
        const double omega = static_cast<double>(static_cast<int>(k)) * at.h;
        const double turn = omega * eps;
        const double spin = times * at.phase[k];
        const double size = exp_nonpositive(times * at.log_abs[k]);
        double cosine, sine;
        cos_sin(spin - turn, cosine, sine);
        terms[k] = size * (cosine * at.real[k] - sine * at.imag[k]);
        slopes[k] = at.c * terms[k] - omega * (size * (cosine * at.imag[k] + sine * at.real[k]));
        const double power_error = times * at.error[k];
        const double relative = expm1_bounded(power_error < 600.0 ? power_error : 600.0);
        const double rounding =
            summing + 3.0 * ((spin < 0.0 ? -spin : spin) + (turn < 0.0 ? -turn : turn)) - 2.0 * times * at.log_abs[k];
        errors[k] = size * at.size[k] * (relative + u * rounding);
    }
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd

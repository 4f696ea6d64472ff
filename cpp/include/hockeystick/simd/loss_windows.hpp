// The loops of cumulant/loss_slices.hpp and contour/slices.hpp: windows on a lattice in x,
// sums on paths above and below the real axis, and the terms of a difference of two powers. Lengths
// are multiples of `lanes`.
#pragma once

#include <cmath>
#include <cstddef>

#include <hockeystick/numeric/gaussian_tail.hpp>
#include <hockeystick/simd/lanes.hpp>
#include <hockeystick/simd/sampled_gaussian.hpp>

namespace hockeystick::simd {

// A(x) = P(low <= x + width N(0,1) <= high), a smooth window on the x between low and high. `low`
// may be -inf, `high` inf.
struct Window {
    double low, high, width;
};

// Transforms at the nodes c + i k h: that of a slice, and that of all slices below it less 1, both
// divided by the latter's total at c; with bounds of their errors.
struct SliceTransforms {
    const double *slice_real, *slice_imag, *slice_error;
    const double *below_real, *below_imag, *below_error;
    std::size_t n;
};

// d = log(1 + slice/below), and a bound of its error.
struct LogRatios {
    double *real, *imag, *error;
};

// What a difference (slice + below)^T - below^T is made of at the nodes: phi, the transform of what
// is below; d; and factors, whose sizes are bounds of them.
struct SliceNodes {
    const double *log_abs, *phase, *error;
    const double *ratio_real, *ratio_imag, *ratio_error;
    const double *real, *imag, *size;
    double c, h;
    std::size_t n;
};

inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// The window at the points of a lattice, and bounds of its relative rounding errors in units of u.
//
// With v = max(low - x, x - high)/width, A = Q(v) - Q(v + gap). Q errs by 16u of itself, and the
// difference by u. x errs by at most 2.5 |x| u, hence v by 2.5 |x|/width + 3 |v|. |d log A/dv| is
// at most v + 1 for v >= 0, and for v < 0 below 1 and below 0.3/|v|: that costs 0.9, which the
// remaining 3 of the 20 pay.
inline void fill_window(const Lattice& at, const Window& w, double* __restrict values, double* __restrict errors) {
    const double anchor = at.anchor, step = at.step, first = at.first + 0.5, scale = 1.0 / w.width;
    const double gap = (w.high - w.low) * scale;
    const std::size_t n = whole_lanes(at.n);
    for (std::size_t j = 0; j < n; ++j) {
        const double x = anchor + (first + static_cast<double>(static_cast<int>(j))) * step;
        const double left = (w.low - x) * scale, right = (x - w.high) * scale;
        const double nearer = left > right ? left : right;
        const double v = nearer > -60.0 ? nearer : -60.0;
        values[j] = q(v);
        const double outside = v > 0.0 ? v : 0.0, size = x < 0.0 ? -x : x;
        errors[j] = 20.0 + (outside + 1.0) * 3.0 * (size * scale + outside);
    }
    // Where v >= 0, Q(v + gap) is below Q(gap)/Q(0) Q(v), which for a gap of 9 is less than u/400 of A.
    const double beyond = gap < 9.0 ? infinity : 0.0;
    for (std::size_t j = 0; gap < 120.0 && j < n; j += lanes) {
        const double x = anchor + (first + static_cast<double>(j)) * step;
        if (x + static_cast<double>(lanes) * step < w.low - beyond || x > w.high + beyond) continue;
        for (std::size_t k = 0; k < lanes; ++k) {
            const double at_k = anchor + (first + static_cast<double>(static_cast<int>(j + k))) * step;
            const double left = (w.low - at_k) * scale, right = (at_k - w.high) * scale;
            values[j + k] -= q((left > right ? left : right) + gap);
        }
    }
}

// log x[j] where x[j] > 0, and -1e4 where x[j] is 0.
inline void fill_logarithms(const double* __restrict x, double* __restrict logs, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) logs[j] = x[j] > 0.0 ? log_positive(x[j]) : -1e4;
}

// sum_j e^{exponents[j] - rate mix[j]}, exponents <= 0: a bound of a transform on a path above the
// real axis, where it decays.
inline double sum_damped_above(const double* __restrict exponents, const double* __restrict mix, std::size_t n,
                               double rate) {
    double sums[lanes] = {};
    for (std::size_t j = 0; j < n; j += lanes)
        for (std::size_t k = 0; k < lanes; ++k) sums[k] += exp_nonpositive(exponents[j + k] - rate * mix[j + k]);
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// sum_j e^{exponents[j] + omega turn_j}, exponents <= 0: a bound of a transform on a path below the
// real axis, where it grows. Infinite above e^600.
//
// turn_j is at least the angle by which 1 + z turns between x and x + i theta sigma^2 in cell j,
// where mix[j] is at least the mixture weight w: tan(angle) = w sin theta/(1 - w + w cos theta).
// The loop takes that or w theta, whichever is larger, but no more than theta. At a height t theta
// with t <= 1 the angle is at most t turn_j: as a function of theta, it grows by at most w if
// w <= 1/2 (cumulant/sampled_gaussian.hpp), and faster and faster if w > 1/2.
inline double sum_grown_below(const double* __restrict exponents, const double* __restrict mix, std::size_t n,
                              double theta, double omega) {
    double sine, cosine;
    cos_sin(theta, cosine, sine);
    double sums[lanes] = {};
    for (std::size_t j = 0; j < n; j += lanes) {
        for (std::size_t k = 0; k < lanes; ++k) {
            const double w = mix[j + k], tangent = w * sine / (1.0 - w * (1.0 - cosine));
            const double turn = tangent > w * theta ? tangent : w * theta;
            const double power = exponents[j + k] + omega * (turn < theta ? turn : theta);
            sums[k] += power < 600.0 ? exp_sum(power, 0.0) : infinity;
        }
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

inline void fill_log_ratio_arrays(const double* __restrict slice_real, const double* __restrict slice_imag,
                                  const double* __restrict slice_error, const double* __restrict below_real,
                                  const double* __restrict below_imag, const double* __restrict below_error,
                                  std::size_t n, double* __restrict real, double* __restrict imag,
                                  double* __restrict error) {
    constexpr double u = unit_roundoff;
    for (std::size_t k = 0; k < n; ++k) {
        const double re = 1.0 + below_real[k], im = below_imag[k], square = re * re + im * im;
        const double inverse = 1.0 / square;
        const double v_re = (slice_real[k] * re + slice_imag[k] * im) * inverse;
        const double v_im = (slice_imag[k] * re - slice_real[k] * im) * inverse;
        const double v_square = v_re * v_re + v_im * v_im, v_size = std::sqrt(v_square);
        const double sum_square = (1.0 + v_re) * (1.0 + v_re) + v_im * v_im, kept = std::sqrt(sum_square);
        const double v_error = (slice_error[k] + v_size * below_error[k]) / std::sqrt(square) + 8.0 * u * v_size;
        const bool known = kept > 10.0 * v_error;  // if not, |1 + v| <= 11 v_error
        const double near = log1p_positive(v_size < 0.3 ? 2.0 * v_re + v_square : 0.0);
        const double far = log_positive(known ? sum_square : v_error * v_error);
        real[k] = 0.5 * (known && v_size < 0.3 ? near : far);
        imag[k] = angle_of(1.0 + v_re, v_im);
        error[k] = known ? 1.2 * v_error / kept + 16.0 * u * v_size : 3.0;
    }
}

// d = log(1 + v), v = slice/below. Where v is not known well enough, log |d| is that of the error
// of v, and d may be off by 3.
inline void fill_log_ratios(const SliceTransforms& s, const LogRatios& to) {
    fill_log_ratio_arrays(s.slice_real, s.slice_imag, s.slice_error, s.below_real, s.below_imag, s.below_error, s.n,
                          to.real, to.imag, to.error);
}

// At least e^x - 1, for x >= 0, and hardly more where x is small. At most 2^900.
inline double expm1_above(double x) {
    const double power = x < 600.0 ? x * inv_log2 + 0.5 : 900.0;
    return x < 0.25 ? x + x * x : power_of_two(power + round_magic);
}

// terms: the real parts of z = (e^{times d} - 1) phi^times e^{-i k h eps - scale} factor. slopes:
// those of s z. errors: bounds of the errors of the terms. `log_scale` is at least the logarithm of
// |e^{times d}| at node 0.
inline void fill_difference_terms(const SliceNodes& at, double times, double eps, double log_scale,
                                  double* __restrict terms, double* __restrict slopes, double* __restrict errors) {
    constexpr double u = unit_roundoff;
    const double summing = static_cast<double>(static_cast<int>(at.n / lanes)) + 40.0;
    const std::size_t n = whole_lanes(at.n);
    for (std::size_t k = 0; k < n; ++k) {
        const double omega = static_cast<double>(static_cast<int>(k)) * at.h;
        const double turn = omega * eps, spin = times * at.phase[k], fall = times * at.log_abs[k];
        const double a = times * at.ratio_real[k], b = times * at.ratio_imag[k];
        const bool up = a > 0.0;
        const double power = fall + (up ? a : 0.0) - log_scale;
        const double size = exp_nonpositive(power < 0.0 ? power : 0.0);
        const double lost = expm1_bounded(up ? -a : a);  // e^{-|a|} - 1
        double half_cosine, half_sine, cosine, sine;
        cos_sin(0.5 * b, half_cosine, half_sine);
        cos_sin(spin - turn, cosine, sine);
        const double versine = 2.0 * half_sine * half_sine, sine_b = 2.0 * half_sine * half_cosine;
        const double larger = up ? 1.0 : 1.0 + lost;  // |e^{times d}|, in units of e^{max(a, 0)}
        const double x = (up ? -lost : lost) - larger * versine, y = larger * sine_b;
        const double re = x * cosine - y * sine, im = x * sine + y * cosine;
        terms[k] = size * (re * at.real[k] - im * at.imag[k]);
        slopes[k] = at.c * terms[k] - omega * (size * (re * at.imag[k] + im * at.real[k]));
        const double sum = (x < 0.0 ? -x : x) + (y < 0.0 ? -y : y);
        const double size_a = a < 0.0 ? -a : a, size_b = b < 0.0 ? -b : b, size_turn = turn < 0.0 ? -turn : turn;
        const double relative = expm1_above(times * at.error[k]), apart = expm1_above(times * at.ratio_error[k]);
        const double rounding =
            summing + 3.0 * ((spin < 0.0 ? -spin : spin) + size_turn) + 4.0 * (size_a - fall + log_scale);
        errors[k] =
            size * at.size[k] *
            (sum * (relative + u * rounding) + (1.0 + relative) * larger * (apart + 4.0 * u * (size_a + size_b)));
    }
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd

// The upper tail Q(x) = P(N(0,1) > x), its logarithm, its inverse, and the Mills ratio m = Q/phi.
//
// Mills ratio. With u = 1/(x + 5) and t = 1 - 9.5 u, m(x) = u R(t) for x >= -1/4, where R is one
// polynomial of degree 23: x = -1/4 is t = -1, x = infinity is t = 1, and R(1) = 1 exactly. One
// formula without thresholds serves the half-line, and divided differences of R give differences of
// m without cancellation (divergence/hockey_stick.hpp). The fit is to R', with error 4e-15 where
// R >= 1, so that the difference of two values of m has a relative error of 1e-15.
//
// Q(x) = 1/2 - x S(x^2) for 0 <= x < 1, phi(x) m(x) from there on, and 1 - Q(-x) below 0. phi(x)
// needs exp(-x^2/2) to an ulp where x^2/2 is about 700: x is split so that the square of its
// leading 26 bits is exact.
//
// Q^{-1}(p). For y = 1/2 - p, |y| <= 0.425, it is y times a rational function of t = 0.425^2 - y^2;
// in the tails it is s = sqrt(-2 log p) less a rational function of t = s - s_0, s_0 that of
// p = 0.075. (The variables are those of Wichura 1988, algorithm AS 241.) Both are right to 1e-16
// before rounding, and all terms of the rational functions are positive, so that nothing cancels
// in them. log p is well conditioned where p is tiny.
//
// Error: at most 8 ulp in each (measured maxima in docs/guide/numbers.md).
#pragma once

#include <cmath>

#include <hockeystick/numeric/elementary.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

// x^2/2 = high + low, high exact.
struct HalfSquare {
    double high, low;
};

inline HalfSquare half_square(double x) {
    const double leading = from_bits(to_bits(x) & 0xfffffffff8000000u);  // 26 bits: its square is exact
    return {0.5 * leading * leading, 0.5 * (x - leading) * (x + leading)};
}

// m(x) for x >= -1/4.
inline double mills_ratio(double x) {
    const double u = 1.0 / (x + mills_shift);
    return u * polynomial(mills_coefficients, 1.0 - mills_scale * u);
}

// Q(x) for x >= 0.
inline double upper_tail(double x) {
    const double bounded = x > 40.0 ? 40.0 : x;  // Q(40) is 0 in double
    const HalfSquare h = half_square(bounded);
    const double far = inv_sqrt_2pi * exp_sum(-h.high, -h.low) * mills_ratio(bounded);
    const double near = 0.5 - x * polynomial(tail_centre_coefficients, x * x);
    return x < 1.0 ? near : far;
}

// log Q(x) for x >= 0.
inline double log_upper_tail(double x) {
    const double bounded = x > 1e300 ? 1e300 : x;
    const bool near = x < 1.0;
    const double value = log_positive(near ? upper_tail(x) : mills_ratio(bounded));
    return near ? value : value - half_log_2pi - 0.5 * x * x;
}

// Q^{-1}(p) where |p - 1/2| <= quantile_centre.
inline bool central(double p) { return (p >= 0.5 - quantile_centre) & (p <= 0.5 + quantile_centre); }
inline double central_quantile(double p) {
    const double y = 0.5 - p;  // exact for p >= 1/4
    const double inside = (quantile_centre - y) * (quantile_centre + y);
    return y * (polynomial(quantile_centre_numerator, inside) / polynomial(quantile_centre_denominator, inside));
}

// Q^{-1}(p) elsewhere in [0, 1], given the logarithm of the smaller of p and 1 - p.
inline double tail_quantile(double p, double log_smaller) {
    const double s = std::sqrt(-2.0 * log_smaller), beyond = s - quantile_tail_start;
    const double finite =
        s - polynomial(quantile_tail_numerator, beyond) / polynomial(quantile_tail_denominator, beyond);
    const double tail = log_smaller == -infinity ? infinity : finite;
    return p > 0.5 ? -tail : tail;
}

// Q^{-1}(p) for 0 <= p <= 1, given the same logarithm.
inline double quantile(double p, double log_smaller) {
    const double tail = tail_quantile(p, log_smaller), centre = central_quantile(p);
    return central(p) ? centre : tail;
}

// Q(x) for real x.
inline double q(double x) {
    const double tail = upper_tail(x < 0.0 ? -x : x);
    return x < 0.0 ? 1.0 - tail : tail;
}

// log Q(x) for real x; below 0 as log1p, so that it stays accurate as Q tends to 1. upper_tail,
// log_upper_tail and log1m in one, so that a loop over it takes one logarithm and one Mills ratio.
inline double log_q(double x) {
    const double magnitude = x < 0.0 ? -x : x;
    const double mills = mills_ratio(magnitude > 1e300 ? 1e300 : magnitude);
    const HalfSquare h = half_square(magnitude > 40.0 ? 40.0 : magnitude);
    const bool near = magnitude < 1.0;
    const double tail = near ? 0.5 - magnitude * polynomial(tail_centre_coefficients, magnitude * magnitude)
                             : inv_sqrt_2pi * exp_sum(-h.high, -h.low) * mills;
    const bool below = x < 0.0;
    const double u = below ? 1.0 - tail : near ? tail : mills;
    const double value = log_positive(u);
    const double lost = ((1.0 - u) - tail) / u;
    const double above = near ? value : value - half_log_2pi - 0.5 * x * x;
    return below ? value + lost : above;
}

// tail_quantile for any p: NaN outside [0, 1].
inline double outer_quantile(double p) {
    const double x = tail_quantile(p, log_positive(p > 0.5 ? 1.0 - p : p));
    return ((p >= 0.0) & (p <= 1.0)) ? x : nan;
}

// Q^{-1}(p) for p in [0, 1]; NaN outside. simd/gaussian_quantiles.hpp computes it over arrays.
inline double q_inv(double p) { return central(p) ? central_quantile(p) : outer_quantile(p); }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric

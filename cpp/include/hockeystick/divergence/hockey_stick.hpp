// The hockey-stick divergence of two unit Gaussians at distance r, and of two unit Laplaces:
//
//   theta(eps, r) = E_{e^eps}(N(r,1) || N(0,1)) = Q(a) - e^eps Q(b),   a = eps/r - r/2,  b = a + r.
//
// (Balle and Wang 2018, Theorem 8; Asoodeh, Diaz and Calmon 2020, Lemma 2.) Since e^eps
// phi(b) = phi(a), with the Mills ratio m, for eps >= 0 (then b >= |a|),
//
//   a >= -1/4:  theta = phi(a) (m(a) - m(b)),
//   a <  -1/4:  1 - theta = phi(a) (m(-a) + m(b)) = phi(a) (2 m(-a) - (m(-a) - m(b))).
//
// Both need one difference m(x) - m(b), x = a or -a, and b - x = r or 2 eps/r is known without
// subtraction. With m(x) = u R(t), u_x - u_b = u_x u_b (b - x), t = 1 - s u and s = 9.5
// (numeric/gaussian_tail.hpp),
//
//   m(x) - m(b) = (b - x) u_x u_b (R(t_x) - s u_b R[t_x, t_b]),
//
// where R[,] is the divided difference, negative, from a second Horner recurrence: nothing cancels.
// For eps < 0: theta(eps, r) = -expm1(eps) + e^eps theta(-eps, r), both terms non-negative.
//
// Laplace (Asoodeh, Diaz and Calmon 2020, Lemma 1): max(0, 1 - e^{(eps - r)/2}, 1 - e^eps).
//
// Limits: r = inf gives 1, also at eps = inf; r = 0 gives max(0, 1 - e^eps); eps = inf gives 0; eps
// = -inf gives 1; NaN in, NaN out; r < 0 gives NaN. Error: theta 2e-14 (1 + |log theta|) relative,
// log_theta 4e-15 relative or 1e-14 absolute, whichever is larger (measured maxima in
// docs/guide/numbers.md). Rounding is to nearest, not directed.
#pragma once

#include <hockeystick/numeric/gaussian_tail.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>

namespace hockeystick::divergence {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// R(x) and the divided difference R[x, y], by two Horner recurrences side by side.
struct MillsDifference {
    double value, slope;
};

template <std::size_t Power> inline MillsDifference mills_horner(double x, double y, MillsDifference sum) {
    if constexpr (Power == 0) return sum;
    else
        return mills_horner<Power - 1>(x, y,
                                       {sum.value * x + mills_coefficients[Power - 1], sum.slope * y + sum.value});
}

inline MillsDifference mills_difference(double x, double y) {
    constexpr std::size_t degree = sizeof mills_coefficients / sizeof mills_coefficients[0] - 1;
    return mills_horner<degree>(x, y, {mills_coefficients[degree], 0.0});
}

// The quantities that theta, its logarithm and its complement share, for eps >= 0 and r > 0.
struct GaussianPair {
    double a;        // eps/r - r/2
    bool upper;      // a < -1/4: theta > 1 - 2 Q(1/4) = 0.197, and the complement is computed
    double core;     // theta/phi(a), or (1 - theta)/phi(a) where upper
    double b_mills;  // m(b): e^eps Q(b) = phi(a) m(b) is -d theta/d eps; d theta/d r = phi(a)
};

// `Moderate` leaves out the clamps that huge and infinite arguments need.
template <bool Moderate = false> inline GaussianPair gaussian_pair(double eps, double r) {
    const double inverse = 1.0 / (!Moderate && r < 1e-300 ? 1e-300 : r);  // keeps 0 * inf away; can only raise theta
    const double together = (eps - 0.5 * r * r) * inverse;
    const double a = !Moderate && r > 1e150 ? eps * inverse - 0.5 * r : together;  // r^2 must not overflow
    const bool upper = a < -mills_reach;
    const double x = upper ? -a : a;
    const double b = a + r;
    // Beyond 1e100 only -a^2/2 matters; the clamp keeps inf * 0 away.
    const double near_shifted = (!Moderate && x > 1e100 ? 1e100 : x) + mills_shift;
    const double far_shifted = (!Moderate && b > 1e100 ? 1e100 : b) + mills_shift;
    const double gap = upper ? 2.0 * (eps * inverse) : r;
    const double product = 1.0 / (near_shifted * far_shifted);
    const double near_u = product * far_shifted;
    const double far_u = product * near_shifted;
    const MillsDifference d = mills_difference(1.0 - mills_scale * near_u, 1.0 - mills_scale * far_u);
    const double difference = gap * product * (d.value - mills_scale * far_u * d.slope);
    const double near_mills = near_u * d.value;
    return {a, upper, upper ? 2.0 * near_mills - difference : difference, near_mills - difference};
}

// phi(x) as a square, whose root needs no two-step scaling before it underflows.
inline double gaussian_density(double x) {
    const double root = exp_normal(-0.25 * x * x);
    return inv_sqrt_2pi * root * root;
}

// A value that holds for finite eps and 0 < r < inf, replaced by the limits of theta elsewhere; or
// by those of a monotone function of theta with the values `none` at theta = 0 and `all` at
// theta = 1.
inline double with_limits(double value, double eps, double r, double at_zero_r, double none, double all) {
    double result = eps == -infinity ? all : value;
    result = eps == infinity ? none : result;
    result = r == 0.0 ? at_zero_r : result;
    result = r == infinity ? all : result;
    return (r >= 0.0 && eps == eps) ? result : nan;
}

template <bool Moderate = false> inline double theta_nonnegative(double eps, double r) {
    const GaussianPair g = gaussian_pair<Moderate>(eps, r);
    const double scaled = gaussian_density(g.a) * g.core;
    return g.upper ? 1.0 - scaled : scaled;
}

// Whether theta needs neither limits nor reflection, as for nearly all arguments that anybody asks
// for.
inline bool moderate(double eps, double r) { return (eps >= 0.0) & (eps <= 1e100) & (r >= 1e-100) & (r <= 1e100); }

// theta(eps, r) where `moderate` holds.
inline double theta_moderate(double eps, double r) { return theta_nonnegative<true>(eps, r); }

// theta(eps, r) for real eps and r >= 0.
inline double theta(double eps, double r) {
    const double magnitude = eps < 0.0 ? -eps : eps;
    const double base = theta_nonnegative(magnitude, r);
    const double total_variation = -expm1_bounded(-magnitude);
    const double reflected = min(total_variation + (1.0 - total_variation) * base, 1.0);
    const double negative = eps < 0.0 ? reflected : base;
    return with_limits(negative, eps, r, eps < 0.0 ? total_variation : 0.0, 0.0, 1.0);
}

// The same for the logarithm, in which a may matter from 1e100 on.
inline bool log_moderate(double eps, double r) { return (eps >= 0.0) & (eps <= 1e49) & (r >= 1e-50) & (r <= 1e49); }

// log theta(eps, r) where `log_moderate` holds, with the bits of log_theta below: log(core) - a^2/2
// - log(2 pi)/2, or log1p(-(1 - theta)) where the complement is known.
inline double log_theta_moderate(double eps, double r) {
    const GaussianPair g = gaussian_pair<true>(eps, r);
    const double scaled = gaussian_density(g.a) * g.core;
    const double y = scaled < 2.0 ? scaled : 0.0;  // always the first; a bare product would be fused with 1 - y
    const double u = g.upper ? 1.0 - y : g.core;
    const double lost = g.upper ? ((1.0 - u) - y) / (u > 0.0 ? u : 1.0) : 0.0;
    const double shift = g.upper ? 0.0 : -0.5 * g.a * g.a - half_log_2pi;
    return log_positive(u) + (lost + shift);
}

// log theta(eps, r), without underflow.
inline double log_theta(double eps, double r) {
    const double magnitude = eps < 0.0 ? -eps : eps;
    const GaussianPair g = gaussian_pair(magnitude, r);
    const double scaled = gaussian_density(g.a) * g.core;
    const double base = g.upper ? 1.0 - scaled : scaled;
    const double complement = g.upper ? scaled : 1.0 - scaled;
    const double total_variation = -expm1_bounded(-magnitude);
    const double reflected = total_variation + (1.0 - total_variation) * base;
    // Exactly one of three forms is right: log(core) - a^2/2 - log(2 pi)/2, log(theta),
    // log1p(-(1 - theta)).
    const bool exponent_apart = eps >= 0.0 && !g.upper;
    const bool small = eps < 0.0 && reflected < 0.5;
    const double y = eps < 0.0 ? exp_nonpositive(-magnitude) * complement : complement;
    const double u = exponent_apart ? g.core : small ? reflected : 1.0 - y;
    const double lost = exponent_apart || small ? 0.0 : ((1.0 - u) - y) / (u > 0.0 ? u : 1.0);
    const double shift = exponent_apart ? -0.5 * g.a * g.a - half_log_2pi : 0.0;
    const double value = log_positive(u) + (lost + shift);
    const double at_zero_r = eps < 0.0 ? log_positive(total_variation) : -infinity;
    return with_limits(value, eps, r, at_zero_r, -infinity, 0.0);
}

// E_{e^eps} of two unit-scale Laplace distributions at distance r >= 0.
inline double laplace_theta(double eps, double r) {
    const double difference = eps - r;
    const double half = difference < 0.0 ? 0.5 * difference : 0.0;
    const double negative = eps < 0.0 ? eps : 0.0;
    const double value = max(0.0 - expm1_bounded(half), 0.0 - expm1_bounded(negative));
    const double result = r == infinity ? 1.0 : value;  // also at eps = inf, as theta
    return (r >= 0.0 && eps == eps) ? result : nan;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::divergence

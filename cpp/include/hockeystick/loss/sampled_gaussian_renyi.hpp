// Upper bounds of the Renyi divergences of Gaussian noise on a Poisson sample, at any order a > 1.
//
// With shift r and rate q, the likelihood ratio at x is u(x) = 1 - q + q e^{rx - r^2/2}, and the
// divergence of order a is g/(a - 1), where e^g = I = integral of f, f = phi u^a, phi the standard
// normal density.
//
// Trapezoidal rule. u has no zero where |Im x| < pi/r, as e^z is not negative for |Im z| < pi, so
// that f is analytic there. With c < pi/r, |phi(x + ic)| = e^{c^2/2} phi(x) and
// |u(x + ic)| <= u(x), so that |f| has at most the integral e^{c^2/2} I on these lines, and the sum
// S = h sum_j f(jh) over all integers j is off by at most 2 e^{c^2/2} I/(e^{2 pi c/h} - 1)
// (Trefethen and Weideman 2014, Theorem 5.1). With h = 2 pi c/(40 + c^2/2) this is 1e-17 I.
//
// Outside [-y - h, ar + y + h], f(x) <= phi(x) max(1, e^{a(rx - r^2/2)}) <= phi(x) + e^{g0}
// phi(x - ar), g0 = a(a-1) r^2/2, so that what is left out of S is at most 2 Q(y) (1 + e^{g0}), and
// 2 Q(y) <= e^{-y^2/2}.
//
// The other direction is smaller. X = dP/dQ without sampling has under Q the law that 1/X has under
// P. So, with w = 1 - q + qX and v = 1 - q + q/X, the difference of the two integrals is
//
//   E_Q(w^a - w^{1-a}) = E_Q[w^a - w^{1-a} + X (v^a - v^{1-a}); X > 1],
//
// which has the sign of w^{1/2} sinh(b log w) - X v^{1/2} sinh(-b log v), b = a - 1/2. At b = 1/2
// this is q(X - 1) - q(X - 1) = 0; the ratio of the first to the second does not fall as b grows,
// because log w >= -log v: wv = (1-q)^2 + q^2 + q(1-q)(X + 1/X) >= 1.
//
// The error is absolute, some 1e-13 for g up to 1: the chord of mechanism/renyi.hpp is closer for
// tiny g.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/loss/poisson_sampled.hpp>
#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

inline constexpr double most_renyi_nodes = 20000.0;
inline constexpr double least_renyi_rate = 1e-300;  // whose inverse is a double
inline constexpr double widest_strip = 6.0;         // beyond, e^{c^2/2} costs what a wider one gains

// g at an order above 1; infinity where it would take too many nodes.
inline double sampled_gaussian_log_moment(double shift, double rate, double order) {
    const double width = min(pi / shift, widest_strip), strip = 40.0 + 0.5 * width * width;
    const double step = 2.0 * pi * width / strip;
    const double tail = std::sqrt(2.0 * (40.0 - order * std::log(rate)));  // y: e^{-y^2/2} = e^{-40} rate^order
    const double first = std::floor((-tail - step) / step);
    const double last = std::ceil((order * shift + tail + step) / step);
    if (!(last - first < most_renyi_nodes && rate > least_renyi_rate)) return infinity;
    std::vector<double> terms;
    double largest = -infinity;
    for (double j = first; j <= last; ++j) {
        const double x = j * step;
        terms.push_back(order * sampled_loss(shift * (x - 0.5 * shift), rate) - 0.5 * x * x);
        largest = max(largest, terms.back());
    }
    double sum = 0.0;
    for (const double term : terms) sum += std::exp(term - largest);
    const double whole = 0.5 * order * (order - 1.0) * shift * shift;  // g0
    const double integral = largest + std::log(sum * step / std::sqrt(2.0 * pi));
    const double outside = log_sum(0.0, whole) - 0.5 * tail * tail;
    const double farthest = last * step;
    const double exponents = farthest * farthest + order * (shift * (farthest + shift) - std::log1p(-rate));
    const double error = sixteen_roundings * (exponents + 64.0) + unit_roundoff * static_cast<double>(terms.size());
    return (max(log_sum(integral, outside), 0.0) + error) * (1.0 + sixteen_roundings);
}

// The divergence. Those of larger orders bound it, and have smaller errors if the order is near 1.
inline double sampled_gaussian_renyi(double shift, double rate, double order) {
    double least = infinity;
    for (const double larger : {max(order, 1.001), 1.01, 1.1, 1.5}) {
        if (larger >= order) least = min(least, sampled_gaussian_log_moment(shift, rate, larger) / (larger - 1.0));
    }
    return least * (1.0 + sixteen_roundings);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss

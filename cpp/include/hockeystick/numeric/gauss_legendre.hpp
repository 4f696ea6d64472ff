// Gauss-Legendre quadrature in long double.
//
// Error. Let the integrand be analytic and bounded by M in the Bernstein ellipse of parameter rho,
// whose semi-axes around [-1, 1] are (rho +- 1/rho)/2. Its Chebyshev coefficients are at most
// 2 M rho^{-k}. The rule with N points is exact below degree 2N and for odd k, and misses an even
// T_k by at most 2 + 2/(k^2 - 1) <= 32/15, so that for N >= 2
//
//   |error| <= sum_{k = 2N, 2N+2, ...} (64/15) M rho^{-k} = (64/15) M rho^{-2N}/(1 - rho^{-2}).
//
// (Trefethen, Approximation Theory and Approximation Practice, Theorem 19.3.)
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/numeric/elementary.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

struct QuadratureRule {
    std::vector<long double> nodes, weights;  // on [-1, 1], in increasing order
};

inline QuadratureRule gauss_legendre(std::size_t points) {
    const auto n = static_cast<long double>(points);
    QuadratureRule rule{std::vector<long double>(points), std::vector<long double>(points)};
    for (std::size_t i = 0; i < points; ++i) {
        long double x = -std::cos(3.14159265358979323846L * (static_cast<long double>(i) + 0.75L) / (n + 0.5L));
        long double derivative = 1.0L;
        for (int step = 0; step < 8; ++step) {  // Newton's iteration, which converges from this start
            long double value = 1.0L, before = 0.0L;
            for (std::size_t k = 0; k < points; ++k) {
                const auto degree = static_cast<long double>(k);
                const long double next = ((2.0L * degree + 1.0L) * x * value - degree * before) / (degree + 1.0L);
                before = value;
                value = next;
            }
            derivative = n * (before - x * value) / (1.0L - x * x);
            x -= value / derivative;
        }
        rule.nodes[i] = x;
        rule.weights[i] = 2.0L / ((1.0L - x * x) * derivative * derivative);
    }
    return rule;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric

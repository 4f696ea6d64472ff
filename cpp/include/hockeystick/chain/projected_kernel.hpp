// How much one step of a projected scalar chain preserves: its contraction coefficient, exactly.
//
//   eta_gamma = sup_{x, x'} E_gamma(K(x)||K(x')),
//   K(x) = Pi_[-R,R](N(m, s^2)),  m = psi(x) in [low, high]
//
// (two-point characterisation: Asoodeh, Diaz and Calmon 2020, Theorem 1). For two means m > m' the
// likelihood ratio increases, so the best set is {y > t} or {y >= t} with t in [-R, R]. Its value
// Q((t - m)/s) - gamma Q((t - m')/s) increases in m and decreases in m': the supremum is at the
// ends of [low, high]. The best t is the unprojected (m + m')/2 + eps s^2/(m - m') brought into
// [-R, R].
//
// Laplace noise of scale b has t = (m + m' + eps b)/2, for the same reason. The case m < m' is the
// mirror image.
#pragma once

#include <algorithm>
#include <cmath>

#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/numeric/domain.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace divergence;

// tail(a) - gamma tail(b), for the thresholds a and b = (t - m)/s of the two means; not below 0.
inline double tail_difference(double eps, double a, double b, bool laplace) {
    if (!laplace) {
        const double log_gamma_q = eps + log_q(b);
        return std::max(0.0, q(a) - (log_gamma_q > 0.0 ? 1.0 : std::exp(log_gamma_q)));
    }
    constexpr double log_2 = 0.69314718055994531;
    const double log_tail = b > 0.0 ? -b - log_2 : std::log1p(-0.5 * std::exp(b));
    const double p = a > 0.0 ? 0.5 * std::exp(-a) : 1.0 - 0.5 * std::exp(a);
    return std::max(0.0, p - std::exp(std::min(0.0, eps + log_tail)));
}

// eta_gamma where the means fill [low, high]; NaN outside the domain. In long double, whose range
// holds every sum, square and quotient of doubles.
inline double projected_contraction(double eps, double low, double high, double diameter, double noise, bool laplace) {
    if (!(eps >= 0.0 && low <= high && std::fabs(low) < infinity && std::fabs(high) < infinity && positive(diameter) &&
          positive(noise))) {
        return nan;
    }
    const long double width = static_cast<long double>(high) - low, s = noise, radius = 0.5L * diameter;
    const long double middle = 0.5L * (static_cast<long double>(high) + low);
    if (width == 0.0L || eps == infinity) return 0.0;
    const auto apart = static_cast<double>(width / s);
    const long double offset = laplace ? 0.5L * eps * s : eps * s * (s / width);
    // m > m' for the means around `centre`; around -middle it is the mirror image of m < m'.
    const auto ordered = [&](long double centre) {
        const long double best = centre + offset;
        if (laplace && !(eps < apart)) return 0.0;
        if (best >= -radius && best <= radius) return laplace ? laplace_theta(eps, apart) : theta(eps, apart);
        const long double t = std::min(std::max(best, -radius), radius) - centre;
        return tail_difference(eps, static_cast<double>((t - 0.5L * width) / s),
                               static_cast<double>((t + 0.5L * width) / s), laplace);
    };
    return std::max(ordered(middle), ordered(-middle));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain

// The two inverses of theta(eps, r) = delta: theta_inverse solves for r, gaussian_epsilon for eps.
//
// Each iterates on log theta where delta <= 1/2 and on log(1 - theta) above, so that tails on both
// sides keep their relative accuracy. With GaussianPair's a, core and m(b), for eps >= 0,
//
//   d theta/d r = phi(a),   d theta/d eps = -e^eps Q(b) = -phi(a) m(b).
//
// eps: -d theta/d eps = e^eps Q(eps/r + r/2) is log-concave in eps, hence so are theta (its
// integral above) and 1 - theta (its integral below): Newton converges monotonically once it is on
// the concave side. theta <= Q(a) makes r q_inv(delta) + r^2/2 a start within log 2 of the root in
// either scale.
//
// r: solved in log r. theta <= Q(a) and theta <= r/sqrt(2 pi) bound the root from below.
// eps < 0 is carried to |eps| by 1 - theta(eps, r) = e^eps (1 - theta(|eps|, r)).
#pragma once

#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/numeric/root.hpp>

namespace hockeystick::divergence {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// theta, 1 - theta (one of them relatively accurate in its tail), and phi(a) for eps >= 0,
// 0 < r < inf.
struct PairValues {
    GaussianPair pair;
    double density, theta, complement;
};

inline PairValues pair_values(double eps, double r) {
    const GaussianPair g = gaussian_pair(eps, r);
    const double density = gaussian_density(g.a);
    const double scaled = density * g.core;
    return {g, density, g.upper ? 1.0 - scaled : scaled, g.upper ? scaled : 1.0 - scaled};
}

inline double log_scaled(const GaussianPair& g) { return log_positive(g.core) - half_log_2pi - 0.5 * g.a * g.a; }

// log(1 - theta(eps, r)) for eps >= 0.
inline double log_complement(const PairValues& v) {
    return v.pair.upper ? log_scaled(v.pair) : log1m(v.density * v.pair.core);
}

// d log(1 - theta)/d eps for eps >= 0.
inline double log_complement_slope(const PairValues& v) {
    return v.pair.upper ? v.pair.b_mills / v.pair.core : v.density * v.pair.b_mills / v.complement;
}

// log theta - log delta and its slope in eps, eps real.
inline ValueSlope log_theta_excess(double eps, double r, double log_delta) {
    const PairValues v = pair_values(std::fabs(eps), r);
    const double value = log_theta(eps, r) - log_delta;
    if (eps >= 0.0) {
        return {value, v.pair.upper ? -v.density * v.pair.b_mills / v.theta : -v.pair.b_mills / v.pair.core};
    }
    const double weight = exp_nonpositive(eps);
    const double reflected = -expm1_bounded(eps) + weight * v.theta;
    return {value, -weight * (v.complement - v.density * v.pair.b_mills) / reflected};
}

// log(1 - theta) - log(1 - delta) and its slope in eps, eps real.
inline ValueSlope log_complement_excess(double eps, double r, double log_target) {
    const PairValues v = pair_values(std::fabs(eps), r);
    const double value = log_complement(v);
    const double slope = log_complement_slope(v);
    return eps >= 0.0 ? ValueSlope{value - log_target, slope} : ValueSlope{eps + value - log_target, 1.0 - slope};
}

// Beyond this eps, or the square of this r, theta is Q(a) up to a relative 2^-43, which a root in r
// or eps does not show, and the neighbours of a double have no theta in common: Newton's iteration
// would not settle.
inline constexpr double far_away = 0x1p100;

// r with theta(eps, r) = delta where `log_delta` = log(delta), or, where `by_complement`, with
// log(1 - theta) = log_delta; eps >= 0.
inline double distance_root(double eps, double log_delta, double quantile, bool by_complement) {
    const auto excess = [=](double log_r) {
        const double r = std::exp(log_r);
        const PairValues v = pair_values(eps, r);
        if (by_complement) {
            const double slope = v.pair.upper ? -r / v.pair.core : -r * v.density / v.complement;
            return ValueSlope{log_complement(v) - log_delta, slope};
        }
        const double slope = v.pair.upper ? r * v.density / v.theta : r / v.pair.core;
        return ValueSlope{log_theta(eps, r) - log_delta, slope};
    };
    // The root of r^2/2 + quantile r - eps; 2 eps may overflow.
    const double half = 0.5 * quantile, root = std::sqrt(half * half + 0.5 * eps);
    const double from_tail = quantile > 0.0 ? eps / (half + root) : 2.0 * (root - half);
    if (eps > far_away) return from_tail;
    const double log_from_variation = (by_complement ? -1.0 : log_delta) + half_log_2pi;  // theta >= 1/2 > 1/e there
    const double start = max(std::log(from_tail), log_from_variation);
    // The step after one of 1e-9 in log r is below an ulp.
    return std::exp(newton_root(excess, start, -infinity, infinity, !by_complement, 1e-9));
}

// x 2^-600, rounded up where it is subnormal.
inline double scaled_back(double x) {
    const double value = x * 0x1p-600;
    return value * 0x1p600 < x ? value + smallest_positive : value;
}

// r >= 0 with theta(eps, r) = delta. infinity only at delta = 1; NaN where there is none
// (eps < 0 and delta < 1 - e^eps, or an argument out of its domain).
inline double theta_inverse(double eps, double delta) {
    if (!(delta >= 0.0 && delta <= 1.0) || eps != eps) return nan;
    const double magnitude = std::fabs(eps);
    const double floor = eps < 0.0 ? -expm1_bounded(eps) : 0.0;
    if (delta == 1.0 && eps > -infinity) return infinity;  // before floor, which rounds to 1 from eps = -37 on
    if (delta < floor) return nan;
    if (delta == floor) return 0.0;
    if (magnitude == infinity) return nan;
    const double complement = (1.0 - delta) * (eps < 0.0 ? std::exp(magnitude) : 1.0);
    if (complement <= 0.5) {
        const double log_complement = log1m(delta) + (eps < 0.0 ? magnitude : 0.0);
        return distance_root(magnitude, log_complement, -q_inv(complement), true);
    }
    if (delta > 0.5 && complement >= 1.0) return 0.0;
    // 1 - delta is exact above 1/2, where delta - floor would lose what floor's rounding took.
    const double base = eps >= 0.0 ? delta : delta > 0.5 ? 1.0 - complement : (delta - floor) * std::exp(magnitude);
    if (magnitude < 0x1p-700 && base < 0x1p-700)  // scaled together, as for gaussian_epsilon below
        return scaled_back(theta_inverse(magnitude * 0x1p600, base * 0x1p600));
    return distance_root(magnitude, log_positive(base), q_inv(base), false);
}

// The smallest real eps with theta(eps, r) <= delta; negative where delta > theta(0, r).
//
// Where delta > 40 r it is log(1 - delta) =: -e: then e/r - r/2 > 39, and theta(-e, r) exceeds
// delta by e^-e theta(e, r) < r Q(39) < 1e-330 delta. For tiny r and delta <= 40 r, theta is
// r (phi(x) - x Q(x)) at x = eps/r up to a relative r (1 + |x|): r, delta and eps are scaled
// together.
inline double gaussian_epsilon(double r, double delta) {
    if (!(r >= 0.0) || !(delta >= 0.0 && delta <= 1.0)) return nan;
    if (delta == 1.0) return -infinity;
    if (r == 0.0 || delta > 40.0 * r) return log1m(delta);
    if (r == infinity || delta == 0.0) return infinity;
    if (r < 0x1p-700) return scaled_back(gaussian_epsilon(r * 0x1p600, delta * 0x1p600));
    const double quantile = delta <= 0.5 ? q_inv(delta) : -q_inv(1.0 - delta);
    const double upper = r * (quantile + 0.5 * r);  // theta <= Q(a)
    if (r * r > far_away) return upper;
    // log theta bends over a length of about r/(1 + |a|): the step after one of 1e-8 of it is below
    // 1e-16 r.
    const double step_tolerance = 1e-8 * r / (1.0 + std::fabs(quantile));
    if (delta <= 0.5) {
        const double log_delta = log_positive(delta);
        const auto excess = [=](double eps) { return log_theta_excess(eps, r, log_delta); };
        return newton_root(excess, upper, -infinity, infinity, false, step_tolerance);
    }
    const double log_target = log_positive(1.0 - delta);
    const auto excess = [=](double eps) { return log_complement_excess(eps, r, log_target); };
    // 1 - theta <= e^eps puts the root above log_target; twice that leaves room for its rounding.
    return newton_root(excess, upper, 2.0 * log_target, infinity, true, step_tolerance);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::divergence

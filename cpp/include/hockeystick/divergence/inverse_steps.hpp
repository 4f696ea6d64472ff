// One step towards a root of theta(eps, r) = delta, in eps or in r, without branches or library
// calls: simd/gaussian_inverses.hpp repeats it over arrays. divergence/hockey_stick_inverse.hpp
// solves one equation at a time, everywhere; a lane that does not arrive here is left to it.
//
// The equation. With GaussianPair's a and core,
//
//   F = log core - a^2/2 - log(2 pi)/2 = log theta, or log(1 - theta) where a < -1/4,
//
// is compared with log delta or log(1 - delta): whichever of the two is the smaller tail keeps its
// digits, and where both are of ordinary size each has enough. Let sign = -1 where a < -1/4, else
// 1.
//
// Derivatives. m' = x m - 1 and b - a = r give, with m = m(b),
//
//   in eps    s = m/core,  d = (b m - 1)/(r core):   F' = -sign s,
//             s' = d - s (a/r - sign s),
//             s'' = d (1 + sign s) - s' (a/r - 2 sign s);
//   in log r  p = sign r/core,  w = 1 + a b:         F' = p,
//             p' = p (w - p),   p'' = p ((w - p)(w - 2 p) - a^2 - b^2),
//
// since d a/d eps = d b/d eps = 1/r, core' = a core/r - sign m, and (a b)' = -a^2 - b^2 in log r.
//
// The step. For n = -F/F', k = F''/F', t = F'''/F' it solves n = h + k h^2/2 + t h^3/6: the root
// of the quadratic, 2 n/(1 + sqrt(1 + 2 k n)), which is exact for a Gaussian tail, then Newton's
// correction for the cubic term. The error of the next iterate is of the order of h^4: a step no
// longer than `short_step` of the length over which F bends leaves 1e-18 of that length. F is
// concave (hockey_stick_inverse.hpp), so that a short step means a root near by: that is the
// certificate.
#pragma once

#include <cmath>

#include <hockeystick/divergence/hockey_stick.hpp>

namespace hockeystick::divergence {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

inline constexpr double short_step = 3e-5;

struct LogTargets {
    double log_delta, log_rest;  // log(delta), log(1 - delta)
};

inline LogTargets log_targets(double delta) {
    const double smaller = delta > 0.5 ? 1.0 - delta : delta;
    const double low = log_positive(smaller), high = log1m(smaller);
    return {delta > 0.5 ? high : low, delta > 0.5 ? low : high};
}

inline double quantile(double delta, const LogTargets& logs) {
    return numeric::quantile(delta, delta > 0.5 ? logs.log_rest : logs.log_delta);
}

// A step, Newton's step, and the length over which F bends.
struct RootStep {
    double step, newton, length;

    // NaN has not settled.
    bool settled() const { return (newton < 0.0 ? -newton : newton) <= short_step * length; }
};

inline double quartic_step(double newton, double bend, double twist) {
    const double turn = 1.0 + 2.0 * newton * bend;
    const double h = 2.0 * newton / (1.0 + std::sqrt(turn > 0.0 ? turn : 0.0));
    const double correction = twist * h * h * h / (6.0 + h * (6.0 * bend + 3.0 * twist * h));
    const double size = correction < 0.0 ? -correction : correction;
    const double whole = h < 0.0 ? -h : h;
    return h - (size <= 0.25 * whole ? correction : 0.0);  // far away the cubic may mislead
}

inline double log_excess(const GaussianPair& g, const LogTargets& logs) {
    return log_positive(g.core) - half_log_2pi - 0.5 * g.a * g.a - (g.upper ? logs.log_rest : logs.log_delta);
}

// theta <= Q(a): the root, where it is positive, lies below.
inline double epsilon_start(double r, double delta, const LogTargets& logs) {
    const double start = r * (quantile(delta, logs) + 0.5 * r);
    return start > 0.0 ? start : 0.0;
}

// In eps, for eps >= 0 and 0 < r < inf.
inline RootStep epsilon_step(double eps, double r, const LogTargets& logs) {
    const GaussianPair g = gaussian_pair(eps, r);
    const double sign = g.upper ? -1.0 : 1.0;
    const double both = 1.0 / (r * g.core);
    const double inverse_r = g.core * both;
    const double s = g.b_mills * (r * both);
    const double inverse_s = g.core / g.b_mills;
    const double drop = ((g.a + r) * g.b_mills - 1.0) * both * inverse_s;  // d/s
    const double slant = g.a * inverse_r;
    const double bend = drop - (slant - sign * s);
    const double twist = drop * (1.0 + sign * s) - bend * (slant - 2.0 * sign * s);
    const double magnitude = g.a < 0.0 ? -g.a : g.a;
    const double newton = sign * log_excess(g, logs) * inverse_s;
    return {quartic_step(newton, bend, twist), newton, r / (1.0 + magnitude)};
}

// theta <= Q(a) and theta <= r/sqrt(2 pi): the root in r lies above both.
inline double distance_start(double eps, double delta, const LogTargets& logs) {
    const double z = quantile(delta, logs);
    const double root = std::sqrt(z * z + 2.0 * eps);
    const double from_tail = z > 0.0 ? 2.0 * eps / (z + root) : root - z;
    return max(from_tail, delta / inv_sqrt_2pi);
}

// In log r, for eps >= 0 and 0 < r < inf.
inline RootStep distance_step(double eps, double r, const LogTargets& logs) {
    const GaussianPair g = gaussian_pair(eps, r);
    const double sign = g.upper ? -1.0 : 1.0;
    const double b = g.a + r;
    const double p = sign * (r / g.core);
    const double w = 1.0 + g.a * b;
    const double bend = w - p;
    const double twist = bend * (w - 2.0 * p) - (g.a * g.a + b * b);
    const double newton = -sign * log_excess(g, logs) * (g.core / r);
    const double h = quartic_step(newton, bend, twist);
    return {h < -1.0 ? -1.0 : h > 2.0 ? 2.0 : h, newton, 1.0 / (1.0 + b)};
}

// r e^step up to step^4/24, which the order of the steps leaves out anyway; positive from -1 on.
inline double moved_distance(double r, double step) {
    return r + r * (step * (1.0 + step * (0.5 + step * (1.0 / 6.0))));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::divergence

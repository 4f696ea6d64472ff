// How much projection onto a ball hides, in any dimension: a bound of the contraction coefficient
// of Pi(psi(x) + N(0, s^2 I)) on the ball of radius R in R^d, for psi with values of norm at most
// a. Lengths are in noise deviations, s = 1.
//
// The largest privacy loss between two rows of this kernel is at most
//
//   l = max(log I(a)/I(-a), (R + a)^2/2 - max(0, R - a)^2/2),
//   I(m) = int_R^inf rho^{d-1} e^{-(rho - m)^2/2} d rho,
//
// and E_gamma of two laws whose loss stays within [-l, l] is at most (e^l - gamma)_+/(e^l + 1).
// Proof: docs/core/hidden_state.md. Something smaller may hold: which pair of means is worst is not
// known.
//
// I has a log-concave integrand. Chords of its logarithm bound it from below, tangents from above.
// Cost: some tens of microseconds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/numeric/domain.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace divergence;

// The logarithm of the integrand of I(mean), and its slope.
struct RadialDensity {
    double mean, dimension;
    double log_value(double rho) const { return (dimension - 1.0) * std::log(rho) - 0.5 * (rho - mean) * (rho - mean); }
    double slope(double rho) const { return (dimension - 1.0) / rho - (rho - mean); }
    double mode() const { return 0.5 * (mean + std::sqrt(mean * mean + 4.0 * (dimension - 1.0))); }
};

// log of int e^{line} over a cell of length h, for the line with these values at the cell's ends.
inline double log_cell(double left, double right, double h) {
    const double higher = std::max(left, right), fall = std::fabs(left - right);
    return higher + std::log(h) + (fall < 1e-8 ? -0.5 * fall : std::log(-std::expm1(-fall) / fall));
}

// An upper or a lower bound of log I(mean), from cells within 8 of the integrand's mode. The second
// derivative of its logarithm is at most -1, so that it has fallen by e^{-32} there.
inline double log_radial_mass(double radius, double mean, double dimension, bool upper) {
    constexpr int cells = 256;
    const RadialDensity f{mean, dimension};
    const double centre = std::max(radius, f.mode());
    const double begin = std::max(radius, centre - 8.0), end = centre + 8.0;
    const double h = (end - begin) / cells;
    double sum = -infinity;
    for (int k = 0; k < cells; ++k) {
        const double left = begin + h * k, right = left + h, middle = 0.5 * (left + right);
        const double value = f.log_value(middle), rise = 0.5 * h * f.slope(middle);
        const double tangent = log_cell(value - rise, value + rise, h);
        const double chord = log_cell(f.log_value(left), f.log_value(right), h);
        sum = log_sum(sum, upper ? tangent : chord);
    }
    if (!upper) return sum;
    // Beyond both ends, the tangents there.
    sum = log_sum(sum, f.log_value(end) - std::log(-f.slope(end)));
    return begin > radius ? log_sum(sum, f.log_value(begin) - std::log(f.slope(begin))) : sum;
}

// l, rounded up; infinite where doubles do not hold it.
inline double ball_loss(double image_radius, double radius, double dimension) {
    const double sum = image_radius + radius, gap = std::max(0.0, radius - image_radius);
    if (!(sum < 1e6 && radius > 1e-6 && dimension <= 1e12)) return infinity;
    const double inside = 0.5 * (sum * sum - gap * gap);
    const double above = log_radial_mass(radius, image_radius, dimension, true);
    const double below = log_radial_mass(radius, -image_radius, dimension, false);
    const double scale = std::fabs(above) + std::fabs(below) + dimension * (1.0 + std::log(dimension)) + sum * sum;
    return std::max(inside, above - below) + 1e-12 * (1.0 + scale);
}

// log of (e^l - e^eps)/(e^l + 1), the largest divergence of two laws whose loss stays within [-l,
// l]; -inf for eps >= l.
inline double log_pure_theta(double eps, double loss) {
    if (!(loss < infinity)) return 0.0;
    if (!(eps < loss)) return -infinity;
    return std::log(-std::expm1(eps - loss)) - std::log1p(std::exp(-loss)) + 1e-14;
}

// The bound of the coefficient, which is also at most theta of the image's diameter. NaN outside
// the domain.
inline double ball_contraction(double eps, double image_radius, double radius, double dimension, double noise) {
    if (!(eps >= 0.0 && non_negative(image_radius) && positive(radius) && count(dimension) && positive(noise)))
        return nan;
    if (image_radius == 0.0 || eps == infinity) return 0.0;
    const double a = image_radius / noise * up, r = radius / noise * up;
    return std::min(theta(eps, 2.0 * a) * (1.0 + 1e-12), std::exp(log_pure_theta(eps, ball_loss(a, r, dimension))));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

// Projected noisy SGD that releases its last iterate only: the published bounds of Asoodeh, Diaz
// and Calmon (2020) for the record used in step i = `index` of n = `num_records`. A step is
// y -> Pi(y - eta (grad l(y, x) + Z)).
//
//   Theorem 3      Laplace noise of scale v, one dimension:
//                  delta = l(2L/v) l(M D/(eta v))^{n-i},  l = laplace_theta
//   Theorem 4      Gaussian noise of deviation sigma:
//                  delta = theta(2L/sigma) theta(M D/(eta sigma))^{n-i}
//   Theorem 5      a stop at a uniform step, at the worst index (the proof's finite sum):
//                  delta = theta(2L/sigma)/n sum_{k<n} theta(M D/(eta sigma))^k
//   Proposition 1  the Rényi route (Balle et al. 2019):
//                  delta = exp(-(eps - kappa)^2/(4 kappa)), 1 for eps <= kappa,
//                  kappa = 2 L^2 M^{n-i+1}/((n-i) sigma^2), 2 L^2/sigma^2 for i = n
//
// L is the Lipschitz constant of the loss, beta its smoothness, rho its strong convexity, D the
// diameter of the domain, and M = sqrt(1 - 2 eta beta rho/(beta + rho)) (Eq. 14), valid for eta <=
// 2/(beta + rho) only. hidden_state/projected_sgd_bounds.hpp has sharper bounds, for every eta.
//
// Error: 1e-12 relative in log delta, to nearest. Cost: O(1). NaN outside the domain.
#pragma once

#include <cmath>

#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/hidden_state/contraction_sum.hpp>
#include <hockeystick/numeric/domain.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace divergence;

// Whether M bounds the Lipschitz constant of a gradient step.
inline bool contractive_step(double learning_rate, double smoothness, double strong_convexity) {
    return positive(learning_rate) & (smoothness >= 0.0) & (strong_convexity >= 0.0) &
           (strong_convexity <= smoothness) & (learning_rate * (smoothness + strong_convexity) <= 2.0);
}

// M of Eq. 14, rounded up where the square cancels: in exact arithmetic it is at least |1 - eta
// beta| and |1 - eta rho|.
inline double step_lipschitz(double learning_rate, double smoothness, double strong_convexity) {
    const double lost = 2.0 * learning_rate * smoothness * (strong_convexity / (smoothness + strong_convexity));
    const double square = 1.0 - lost + eight_roundings;
    const double contraction =
        max(std::fabs(1.0 - learning_rate * smoothness), std::fabs(1.0 - learning_rate * strong_convexity));
    const double bound = min(1.0, max(std::sqrt(max(square, 0.0)), contraction));
    return strong_convexity == 0.0 ? 1.0 : bound;
}

inline bool legal_index(double index, double num_records) {
    return count(index) & count(num_records) & (index <= num_records);
}

// log laplace_theta for eps >= 0.
inline double log_laplace_theta(double eps, double r) {
    const double value = laplace_theta(eps, r);
    const double far = log1m(exp_nonpositive(min(0.5 * (eps - r), 0.0)));
    const double log_value = value < 0.5 ? log_positive(value) : far;
    const double result = r == infinity ? 0.0 : log_value;
    return r == r ? result : nan;
}

// log of the contraction coefficient of a kernel with Laplace noise: 0, exactly, from eps = r on.
inline double log_laplace_eta(double eps, double r) { return eps >= r ? -infinity : log_laplace_theta(eps, r); }

// exp(x) for x <= 0, at once 0 below -746, where it rounds to 0: products that underflow take a
// hundred cycles on some processors.
inline double exp_or_zero(double x) {
    const bool vanishes = x < -746.0;
    const double value = exp_nonpositive(vanishes ? 0.0 : x);
    return vanishes ? 0.0 : value;
}

// x^n from log x <= 0, with 0^0 = 1.
inline double power(double log_x, double n) {
    const double value = exp_or_zero(n * log_x);
    return n == 0.0 ? 1.0 : value;
}

// Steps and distances, without branches: a grid evaluates each over its own axes. NaN outside the
// domain.
//
// 2L/noise: how far apart the records put the step that uses them, in deviations of its noise.
inline double use_distance(double noise, double lipschitz) {
    const double value = 2.0 * (lipschitz / noise);
    return (positive(noise) & positive(lipschitz)) ? value : nan;
}

// M D/(eta noise): the diameter of a step's image, in deviations of its noise.
inline double step_image_diameter(double learning_rate, double noise, double smoothness, double strong_convexity,
                                  double diameter) {
    const double value =
        step_lipschitz(learning_rate, smoothness, strong_convexity) * deviations(diameter, learning_rate, noise);
    const bool legal =
        contractive_step(learning_rate, smoothness, strong_convexity) & positive(noise) & positive(diameter);
    return legal ? value : nan;
}

// log M of each step.
inline double log_step_lipschitz(double learning_rate, double smoothness, double strong_convexity) {
    const double value = log_positive(step_lipschitz(learning_rate, smoothness, strong_convexity));
    return contractive_step(learning_rate, smoothness, strong_convexity) ? value : nan;
}

// n - i.
inline double later_steps(double index, double num_records) {
    return legal_index(index, num_records) ? num_records - index : nan;
}

// What the theorems make of a divergence `use` at use_distance, and of the logarithm `log_later`
// of that at step_image_diameter, `after` steps later; NaN where one of the three is. What varies
// over few axes comes first, so that a cell costs one exponential.
//
// Theorem 4: not 0 at any finite eps.
inline double gaussian_use(double use, double log_later, double eps) {
    return ((eps >= 0.0) & (log_later == log_later)) ? positive_delta(use, eps) : nan;
}
inline double gaussian_descent(double use, double log_later, double after) {
    const double delta = use * power(log_later, after);
    return use > 0.0 ? positive_quantity(delta) : delta;
}

// Theorem 3. Laplace noise hides exactly what no loss exceeds.
inline double laplace_use(double use, double log_later, double eps) {
    return ((eps >= 0.0) & (log_later == log_later)) ? use : nan;
}
inline double laplace_descent(double use, double log_later, double after) {
    const double delta = use * power(log_later, after);
    return ((use > 0.0) & ((log_later > -infinity) | (after == 0.0))) ? positive_quantity(delta) : delta;
}

// Theorem 5.
inline double gaussian_random_stop(double use, double log_later, double eps, double num_records) {
    const double delta = positive_delta(use * straight_geometric_sum(log_later, num_records) / num_records, eps);
    return ((eps >= 0.0) & count(num_records) & (log_later == log_later)) ? delta : nan;
}

// Proposition 1, from the root of kappa, which does not underflow as kappa does:
// (eps - kappa)/(2 sqrt(kappa)) = eps/(2 sqrt(kappa)) - sqrt(kappa)/2, of which the negative part
// gives 1.
inline double renyi_root(double distance, double log_lipschitz, double after) {
    const bool last = after == 0.0;
    const double log_damping = last ? 0.0 : 0.5 * log_lipschitz * (after + 1.0);
    const double damping = exp_nonpositive(log_damping) / std::sqrt(last ? 1.0 : after);
    const double root = 0.70710678118654752 * distance * damping;  // sqrt(2)/2: distance is 2L/sigma
    return log_lipschitz == log_lipschitz ? root : nan;
}

// 1/(2 sqrt(kappa)), finite.
inline double renyi_slope(double root) { return min(0.5 / root, 0x1p1023); }

inline double renyi_descent(double eps, double root, double slope) {
    const double excess = eps * slope - 0.5 * root;
    const double tail = exp_or_zero(-excess * excess);
    const double delta = positive_delta(excess > 0.0 ? tail : 1.0, eps);
    return ((eps >= 0.0) & (root == root)) ? delta : nan;
}

inline double pnsgd_gaussian(double eps, double index, double num_records, double learning_rate, double noise_std,
                             double lipschitz, double smoothness, double strong_convexity, double diameter) {
    const double image = step_image_diameter(learning_rate, noise_std, smoothness, strong_convexity, diameter);
    const double use = theta(eps, use_distance(noise_std, lipschitz)), log_later = log_theta(eps, image);
    return gaussian_descent(gaussian_use(use, log_later, eps), log_later, later_steps(index, num_records));
}

inline double pnsgd_laplace(double eps, double index, double num_records, double learning_rate, double noise_scale,
                            double lipschitz, double smoothness, double strong_convexity, double diameter) {
    const double image = step_image_diameter(learning_rate, noise_scale, smoothness, strong_convexity, diameter);
    const double use = laplace_theta(eps, use_distance(noise_scale, lipschitz));
    const double log_later = log_laplace_eta(eps, image);
    return laplace_descent(laplace_use(use, log_later, eps), log_later, later_steps(index, num_records));
}

inline double pnsgd_gaussian_random_stop(double eps, double num_records, double learning_rate, double noise_std,
                                         double lipschitz, double smoothness, double strong_convexity,
                                         double diameter) {
    const double image = step_image_diameter(learning_rate, noise_std, smoothness, strong_convexity, diameter);
    const double use = theta(eps, use_distance(noise_std, lipschitz));
    return gaussian_random_stop(use, log_theta(eps, image), eps, num_records);
}

inline double pnsgd_rdp(double eps, double index, double num_records, double learning_rate, double noise_std,
                        double lipschitz, double smoothness, double strong_convexity) {
    const double log_lipschitz = log_step_lipschitz(learning_rate, smoothness, strong_convexity);
    const double root = renyi_root(use_distance(noise_std, lipschitz), log_lipschitz, later_steps(index, num_records));
    return renyi_descent(eps, root, renyi_slope(root));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

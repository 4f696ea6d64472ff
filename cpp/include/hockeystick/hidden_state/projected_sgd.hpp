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

#include <algorithm>
#include <cmath>

#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/hidden_state/contraction_sum.hpp>
#include <hockeystick/numeric/domain.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace divergence;

// Whether M bounds the Lipschitz constant of a gradient step.
inline bool contractive_step(double learning_rate, double smoothness, double strong_convexity) {
    return positive(learning_rate) && smoothness >= 0.0 && strong_convexity >= 0.0 && strong_convexity <= smoothness &&
           learning_rate * (smoothness + strong_convexity) <= 2.0;
}

// M of Eq. 14, rounded up where the square cancels: in exact arithmetic it is at least |1 - eta
// beta| and |1 - eta rho|.
inline double step_lipschitz(double learning_rate, double smoothness, double strong_convexity) {
    if (strong_convexity == 0.0) return 1.0;
    const double lost = 2.0 * learning_rate * smoothness * (strong_convexity / (smoothness + strong_convexity));
    const double square = 1.0 - lost + eight_roundings;
    const double contraction =
        std::max(std::fabs(1.0 - learning_rate * smoothness), std::fabs(1.0 - learning_rate * strong_convexity));
    return std::min(1.0, std::max(std::sqrt(std::max(square, 0.0)), contraction));
}

// The domain that all four share.
inline bool legal_descent(double eps, double index, double num_records, double learning_rate, double noise,
                          double lipschitz, double smoothness, double strong_convexity) {
    return eps >= 0.0 && count(index) && count(num_records) && index <= num_records && positive(noise) &&
           positive(lipschitz) && contractive_step(learning_rate, smoothness, strong_convexity);
}

// M D/(eta noise): the diameter of a step's image, in deviations of its noise.
inline double step_image_diameter(double learning_rate, double noise, double smoothness, double strong_convexity,
                                  double diameter) {
    return step_lipschitz(learning_rate, smoothness, strong_convexity) * deviations(diameter, learning_rate, noise);
}

// log laplace_theta for eps >= 0.
inline double log_laplace_theta(double eps, double r) {
    if (r == infinity) return 0.0;
    const double value = laplace_theta(eps, r);
    return value < 0.5 ? std::log(value) : std::log1p(-std::exp(0.5 * (eps - r)));
}

// log of the contraction coefficient of a kernel with Laplace noise: 0, exactly, from eps = r on.
inline double log_laplace_eta(double eps, double r) { return eps >= r ? -infinity : log_laplace_theta(eps, r); }

// x^n from log x, with 0^0 = 1.
inline double power(double log_x, double n) { return n == 0.0 ? 1.0 : std::exp(n * log_x); }

inline double pnsgd_gaussian(double eps, double index, double num_records, double learning_rate, double noise_std,
                             double lipschitz, double smoothness, double strong_convexity, double diameter) {
    if (!(legal_descent(eps, index, num_records, learning_rate, noise_std, lipschitz, smoothness, strong_convexity) &&
          positive(diameter))) {
        return nan;
    }
    const double image_diameter = step_image_diameter(learning_rate, noise_std, smoothness, strong_convexity, diameter);
    const double later = power(log_theta(eps, image_diameter), num_records - index);
    return positive_delta(theta(eps, 2.0 * (lipschitz / noise_std)) * later, eps);
}

inline double pnsgd_laplace(double eps, double index, double num_records, double learning_rate, double noise_scale,
                            double lipschitz, double smoothness, double strong_convexity, double diameter) {
    if (!(legal_descent(eps, index, num_records, learning_rate, noise_scale, lipschitz, smoothness, strong_convexity) &&
          positive(diameter))) {
        return nan;
    }
    const double image_diameter =
        step_image_diameter(learning_rate, noise_scale, smoothness, strong_convexity, diameter);
    const double first = laplace_theta(eps, 2.0 * (lipschitz / noise_scale));
    const double log_later = log_laplace_theta(eps, image_diameter);
    const double after = num_records - index;
    if (first == 0.0 || (after > 0.0 && log_later == -infinity)) return 0.0;  // exactly
    return positive_delta(first * power(log_later, after), eps);
}

inline double pnsgd_gaussian_random_stop(double eps, double num_records, double learning_rate, double noise_std,
                                         double lipschitz, double smoothness, double strong_convexity,
                                         double diameter) {
    if (!(legal_descent(eps, 1.0, num_records, learning_rate, noise_std, lipschitz, smoothness, strong_convexity) &&
          positive(diameter))) {
        return nan;
    }
    const double image_diameter = step_image_diameter(learning_rate, noise_std, smoothness, strong_convexity, diameter);
    const double log_eta = log_theta(eps, image_diameter);
    const double first = theta(eps, 2.0 * (lipschitz / noise_std));
    return positive_delta(first * geometric_sum(log_eta, num_records) / num_records, eps);
}

inline double pnsgd_rdp(double eps, double index, double num_records, double learning_rate, double noise_std,
                        double lipschitz, double smoothness, double strong_convexity) {
    if (!legal_descent(eps, index, num_records, learning_rate, noise_std, lipschitz, smoothness, strong_convexity))
        return nan;
    const double after = num_records - index;
    // The root of kappa does not underflow as kappa does.
    // (eps - kappa)/(2 sqrt(kappa)) = eps/(2 sqrt(kappa)) - sqrt(kappa)/2.
    const double log_lipschitz = std::log(step_lipschitz(learning_rate, smoothness, strong_convexity));
    const double damping = after == 0.0 ? 1.0 : power(0.5 * log_lipschitz, after + 1.0) / std::sqrt(after);
    const double root = std::sqrt(2.0) * (lipschitz / noise_std) * damping;
    if (!(eps > root * root)) return 1.0;
    const double excess = 0.5 * (eps / root - root);
    return positive_delta(std::exp(-excess * excess), eps);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

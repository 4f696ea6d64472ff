// Gaussian differential privacy (Dong, Roth and Su 2022): mu-GDP means that telling two adjacent
// data sets apart is no easier than telling N(0,1) from N(mu,1). All conversions are exact.
//
//   delta(eps) = theta(eps, mu)                         (Corollary 2.13)
//   advantage = theta(0, mu) = 1 - 2 Q(mu/2)
//   trade-off G_mu(fpr) = Phi(Phi^{-1}(1 - fpr) - mu)   (Equation 6)
//   Renyi divergence of order a: a mu^2/2               (Mironov 2017, Corollary 3)
//
// Error: that of theta and its inverse. Cost: O(1). Outside their domains these functions return
// NaN.
#pragma once

#include <hockeystick/divergence/hockey_stick_inverse.hpp>
#include <hockeystick/numeric/domain.hpp>

namespace hockeystick::divergence {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// No delta of mu > 0 is 0.
inline double reported_delta(double value, double mu, double eps) {
    return mu > 0.0 ? positive_delta(value, eps) : value;
}

inline double gdp_delta(double mu, double eps) { return reported_delta(theta(eps, mu), mu, eps); }

// delta of (eps, delta)-differential privacy, which asks for eps >= 0.
inline double gdp_dp_delta(double mu, double eps) { return eps >= 0.0 ? gdp_delta(mu, eps) : nan; }

// The smallest eps >= 0 with delta(eps) <= delta.
inline double gdp_epsilon(double mu, double delta) {
    const double root = gaussian_epsilon(mu, delta);
    return root < 0.0 ? 0.0 : root;
}

// G_mu where Q(threshold) is the false positive rate; NaN passes.
inline double gdp_missed(double mu, double threshold) {
    const double value = mu == infinity ? 0.0 : q(mu - threshold);
    return ((mu >= 0.0) & (threshold == threshold)) ? value : nan;
}

inline double gdp_trade_off(double mu, double fpr) { return gdp_missed(mu, q_inv(fpr)); }

inline double gdp_rdp(double mu, double order) {
    const double value = order * mu * (0.5 * mu);
    return ((mu >= 0.0) & positive(order)) ? (mu > 0.0 ? positive_quantity(value) : value) : nan;
}

// theta(0, mu) = 1 - 2 Q(mu/2): the centre of numeric/gaussian_tail.hpp, or one less a tail whose
// relative error is divided by five at least. From mu = 20 on it rounds to 1.
inline double gdp_advantage(double mu) {
    const double x = 0.5 * (mu > 20.0 ? 20.0 : mu);
    const double near = mu * polynomial(tail_centre_coefficients, x * x);
    const double far = 1.0 - 2.0 * (inv_sqrt_2pi * exp_normal(-0.5 * x * x) * mills_ratio(x));
    const double value = x < 1.0 ? near : far;
    return mu >= 0.0 ? value : nan;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::divergence

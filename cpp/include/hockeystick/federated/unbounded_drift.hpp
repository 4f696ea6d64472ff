// The Gaussian-DP parameter of Noisy-FedAvg and Noisy-FedProx where all rounds are alike and the
// domain is unbounded, without branches.
//
// Such rounds have rho >= 1, so that a shift costs least in the round in which its gap arises:
// hidden_state/shifted_interpolation.hpp's optimum is H = T gamma^2 (its constant_cost), and
//
//   mu = sqrt(m)/sigma sqrt(T) gamma,
//
// with gamma = (2V lr/m) K for constant steps, (2V lr/m) sum_{k <= K} 1/k for cyclic ones, and
// (2V lr/m) (1 - (1 - lr prox)^K)/(lr prox) for FedProx. federated/fedavg.hpp has the model and the
// general case.
//
// Error: 1e-12 relative. NaN outside the domain.
#pragma once

#include <cmath>

#include <hockeystick/numeric/domain.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/numeric/scaled.hpp>

namespace hockeystick::federated {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

inline bool legal_federation(double rounds, double local_steps, double num_clients, double clip_norm, double noise_std,
                             double smoothness, double learning_rate, double diameter) {
    return count(rounds) & count(local_steps) & count(num_clients) & positive(clip_norm) & positive(noise_std) &
           non_negative(smoothness) & positive(learning_rate) & (diameter > 0.0);
}

inline bool legal_prox(double prox, double smoothness, double learning_rate) {
    return (prox > smoothness) & (prox < infinity) & (learning_rate * prox <= 1.0);
}

// What drift_parameter divides by again: sqrt(H) is below 2^80, so that a scale that would be
// subnormal loses no digits and the parameter is infinite from 2^896 on.
inline constexpr double scale_unit = 128.0;  // log2

// gamma is given in units of 2V lr/m.
struct DriftUnits {
    double clip_norm, noise_std, num_clients, learning_rate;

    // mu = sqrt(m)/sigma sqrt(H) for H in these units is sqrt(H) times so much, over 2^scale_unit.
    // A ratio of two factors may be subnormal where the third one is large.
    double scale() const {
        const Scaled v = split(clip_norm), sigma = split(noise_std), lr = split(learning_rate);
        return joined(2.0 * (v.mantissa / sigma.mantissa) / std::sqrt(num_clients) * lr.mantissa,
                      v.exponent - sigma.exponent + lr.exponent + scale_unit);
    }
    double scaled(double diameter) const {
        const Scaled d = split(diameter), v = split(clip_norm), lr = split(learning_rate);
        const double value =
            joined(d.mantissa / v.mantissa * (0.5 * num_clients) / lr.mantissa, d.exponent - v.exponent - lr.exponent);
        return diameter == infinity ? infinity : value;
    }
};

// Never the 0 of perfect privacy: a subnormal value is rounded up. NaN passes.
inline double drift_parameter(double scale, double root_cost) {
    return positive_quantity(scale * root_cost * 0x1p-128);
}

// 1 - (1 - x)^n for 0 <= x <= 1: what FedProx forgets. The select keeps the
// compiler from fusing a product x with the subtraction 1 - x, which may then be negative.
inline double complement_of_power(double x, double n) { return 0.0 - expm1_bounded(n * log1m(x > 1.0 ? 1.0 : x)); }

// FedProx's gamma in its units: (1 - (1 - x)^n)/x for x = lr prox. Below 1e-290, where x may have
// lost its digits, it is n up to a relative n x.
inline double pulled_steps(double x, double n) { return x > 1e-290 ? complement_of_power(x, n) / x : n; }

// sqrt(H) and its scale, without branches: a grid evaluates each over its own axes. `rise` is
// gamma.
inline double fedavg_root_cost(double rise, double rounds, double local_steps) {
    const double value = std::sqrt(rounds * rise * rise);
    return (count(rounds) & count(local_steps)) ? value : nan;
}

inline double fedprox_root_cost(double rounds, double local_steps, double learning_rate, double prox) {
    return fedavg_root_cost(pulled_steps(learning_rate * prox, local_steps), rounds, local_steps);
}

inline double fedavg_scale(double num_clients, double clip_norm, double noise_std, double smoothness,
                           double learning_rate) {
    const double value = DriftUnits{clip_norm, noise_std, num_clients, learning_rate}.scale();
    const bool legal =
        legal_federation(1.0, 1.0, num_clients, clip_norm, noise_std, smoothness, learning_rate, infinity);
    return legal ? value : nan;
}

inline double fedprox_scale(double num_clients, double clip_norm, double noise_std, double smoothness,
                            double learning_rate, double prox) {
    const double value = fedavg_scale(num_clients, clip_norm, noise_std, smoothness, learning_rate);
    return legal_prox(prox, smoothness, learning_rate) ? value : nan;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::federated

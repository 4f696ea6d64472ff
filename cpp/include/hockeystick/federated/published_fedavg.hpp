// Formulas exactly as printed in Sun, Shen and Tao (2024), to be compared with what can be
// certified. Nothing outside hockeystick.published calls them. docs/core/federated.md says which
// are false, and why.
//
// The factor (rho+1)/(rho-1) (rho^T-1)/(rho^T+1) is computed as tanh(T x/2)/tanh(x/2), x = log rho,
// which does not overflow. Error: 1e-14 relative. Cost: O(1). NaN outside the domain.
#pragma once

#include <hockeystick/federated/fedavg.hpp>

namespace hockeystick::federated {
inline namespace HOCKEYSTICK_ISA {
namespace published {

inline double cauchy_schwarz_rounds(double log_rho, double rounds) {
    return log_rho == 0.0 ? rounds : std::tanh(0.5 * rounds * log_rho) / std::tanh(0.5 * log_rho);
}

// Theorem 12. `constant` is c for cyclic and z for continuous step sizes, and not used otherwise.
inline double fedavg_gdp(StepSchedule schedule, double rounds, double local_steps, double num_clients, double clip_norm,
                         double noise_std, double smoothness, double learning_rate, double constant) {
    if (!legal_federation(rounds, local_steps, num_clients, clip_norm, noise_std, smoothness, learning_rate, infinity))
        return nan;
    if (!(constant > 0.0 && constant < infinity)) return nan;
    const double unit = 2.0 * clip_norm / (std::sqrt(num_clients) * noise_std);
    const double growth = learning_rate * smoothness;
    switch (schedule) {
    case StepSchedule::constant:
        return unit * learning_rate * local_steps *
               std::sqrt(cauchy_schwarz_rounds(local_steps * std::log1p(growth), rounds));
    case StepSchedule::cyclic: {
        const double log_steps = std::log1p(local_steps);
        return unit * constant * log_steps * std::sqrt(cauchy_schwarz_rounds(constant * growth * log_steps, rounds));
    }
    case StepSchedule::stagewise:
        return unit * learning_rate * local_steps * std::sqrt(2.0 - 1.0 / rounds);
    case StepSchedule::continuous:
        return unit * constant * std::sqrt(2.0 - 1.0 / rounds);
    }
    return nan;
}

// Theorem 15, for prox > L and the printed condition lr < 1/(prox - L).
inline double fedprox_gdp(double rounds, double local_steps, double num_clients, double clip_norm, double noise_std,
                          double smoothness, double learning_rate, double prox) {
    if (!legal_federation(rounds, local_steps, num_clients, clip_norm, noise_std, smoothness, learning_rate, infinity))
        return nan;
    if (!(prox > smoothness && prox < infinity && learning_rate * (prox - smoothness) < 1.0)) return nan;
    const double log_rho = -std::log1p(-smoothness / prox);
    return 2.0 * clip_norm / (std::sqrt(num_clients) * prox * noise_std) *
           std::sqrt(cauchy_schwarz_rounds(log_rho, rounds));
}

}  // namespace published
}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::federated

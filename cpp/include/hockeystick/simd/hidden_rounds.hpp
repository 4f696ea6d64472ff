// The later rounds of many hidden-state cells at once: a loop that runs one round of up to
// max_lanes cells at a time. hidden_state/nonlinear_contraction.hpp says what is bounded and runs a
// single cell.
//
// Deltas are held as logarithms and rounded up. The formulas of a round have no branches, so that
// the loops vectorise.
#pragma once

#include <cmath>
#include <cstddef>

#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/numeric/rounding.hpp>
#include <hockeystick/simd/lanes.hpp>

namespace hockeystick::simd {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace divergence;

inline constexpr double log_underflow = -750.0;  // e^-750 is 0 in doubles

// An upper bound of a logarithm that was computed to 4e-15 relative or 1e-14 absolute, as log_theta
// is.
inline double upper_log(double value) { return min(0.0, value * (1.0 - 1e-14) + 1e-14); }

// At most eps' = log(1 + (gamma - 1)/E), from log(gamma - 1) and log E: a softplus of their
// difference.
inline double conditional_eps(double log_gamma_minus_1, double log_e) {
    const double x = log_gamma_minus_1 - max(log_e, -1e5);
    const double y = exp_nonpositive(x < 0.0 ? x : -x);
    const double u = 1.0 + y;
    return (max(x, 0.0) + (log_positive(u) + (y - (u - 1.0)) / u)) * down;
}

// At least log(E eta), from log E and a computed log eta.
inline double upper_log_product(double log_e, double log_eta) {
    return min(log_e, log_e * (1.0 - 1e-15) + upper_log(log_eta));
}

// The Gaussian-DP parameter g/sqrt(S) that shifted interpolation leaves, rounded up: 2^-35 is more
// than a sum S of 8192 terms, or a closed form for more, may have lost. Where S has overflowed, the
// parameter is that of the largest S that doubles hold.
inline double shifted_parameter(double sensitivity, double shift_sum) {
    return sensitivity / std::sqrt(min(0x1p1000, shift_sum)) * (1.0 + 0x1p-35);
}

// Cells side by side, one array for each quantity. Lengths are in deviations of the noise.
struct HiddenRoundLanes {
    const double *eps, *log_gamma_minus_1, *sensitivity, *image_diameter;
    const double* inverse_square_lipschitz;
    const double* rounds;                        // that are still to be run
    double *shift_term, *shift_sum;              // the last term of S, and S
    double *nonlinear, *shift_then_contraction;  // bounds of log delta
};

inline constexpr std::size_t max_lanes = 64;

// The one place into which log_theta is inlined. With three copies in one loop the compiler inlines
// none, and then nothing vectorises.
HOCKEYSTICK_APART HOCKEYSTICK_FLATTEN inline void log_thetas(const double* __restrict eps, const double* __restrict r,
                                                             double* __restrict out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = log_theta(eps[i], r[i]);
}

HOCKEYSTICK_APART HOCKEYSTICK_FLATTEN inline void conditional_epsilons(const double* __restrict log_gamma_minus_1,
                                                                       const double* __restrict log_e,
                                                                       double* __restrict out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = conditional_eps(log_gamma_minus_1[i], log_e[i]);
}

// Runs `rounds[i]` rounds of cell i, at most `longest`; ends early where every delta has
// underflowed.
inline void run_hidden_rounds(const HiddenRoundLanes& l, std::size_t lanes, double longest) {
    double eps[max_lanes], mu[max_lanes] = {}, log_shifted[max_lanes], log_eta[max_lanes],
                           log_eta_after_shift[max_lanes];
    double largest = 0.0;
    for (double done = 0.0; done < longest && largest >= log_underflow; done += 1.0) {
        for (std::size_t i = 0; i < lanes; ++i) {
            const bool running = done < l.rounds[i];
            const double term = l.shift_term[i] * l.inverse_square_lipschitz[i];
            l.shift_term[i] = running ? term : l.shift_term[i];
            l.shift_sum[i] = running ? l.shift_sum[i] + term : l.shift_sum[i];
            mu[i] = shifted_parameter(l.sensitivity[i], l.shift_sum[i]);
        }
        log_thetas(l.eps, mu, log_shifted, lanes);
        conditional_epsilons(l.log_gamma_minus_1, l.nonlinear, eps, lanes);
        log_thetas(eps, l.image_diameter, log_eta, lanes);
        conditional_epsilons(l.log_gamma_minus_1, l.shift_then_contraction, eps, lanes);
        log_thetas(eps, l.image_diameter, log_eta_after_shift, lanes);
        largest = -infinity;
        for (std::size_t i = 0; i < lanes; ++i) {
            const bool running = done < l.rounds[i];
            const double nonlinear = upper_log_product(l.nonlinear[i], log_eta[i]);
            const double both =
                min(upper_log_product(l.shift_then_contraction[i], log_eta_after_shift[i]), upper_log(log_shifted[i]));
            l.nonlinear[i] = running ? nonlinear : l.nonlinear[i];
            l.shift_then_contraction[i] = running ? both : l.shift_then_contraction[i];
            largest = max(largest, running ? nonlinear : -infinity);
        }
    }
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd

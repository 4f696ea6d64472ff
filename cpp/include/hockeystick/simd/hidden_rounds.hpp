// What later rounds hide of one participation, for many participations side by side
// (hidden_state/nonlinear_contraction.hpp has the theorems). Everything is kept as a logarithm and
// rounded up.
#pragma once

#include <cmath>
#include <cstddef>

#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>

namespace hockeystick::simd {

// Participations side by side, an array for each quantity. `rounds[i]` rounds are still to be run.
struct HiddenLanes {
    const double *eps, *log_gap, *g, *reach, *shrink;  // log_gap = log(e^eps - 1), shrink = c^{-2}
    const double* rounds;
    double *growth, *spread;     // the last term of s_k, and their sum
    double *nonlinear, *hybrid;  // bounds of log delta
};

inline constexpr std::size_t max_hidden_lanes = 64;

inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace divergence;

inline constexpr double log_underflow = -750.0;  // e^-750 is 0 in doubles

// An upper bound of a logarithm that was computed to 4e-15 relative or 1e-14 absolute.
inline double log_raised(double value) { return min(0.0, value * (1.0 - 1e-14) + 1e-14); }

// eps' = log(1 + (e^eps - 1)/E) or a little less, from the logarithms of e^eps - 1 and of E. It is
// the softplus of their difference, written without branches, so that the loops below vectorise.
inline double sharpened(double log_gap, double log_e) {
    const double x = log_gap - max(log_e, -1e5);
    const double y = exp_nonpositive(x < 0.0 ? x : -x);
    const double sum = 1.0 + y;
    return (max(x, 0.0) + (log_positive(sum) + (y - (sum - 1.0)) / sum)) * down;
}

// log(E eta), rounded up.
inline double contracted_by(double log_e, double log_eta) {
    return min(log_e, log_e * (1.0 - 1e-15) + log_raised(log_eta));
}

// g/sqrt(spread), raised by more than the sum that made `spread` may have lost. Where that has
// overflowed, the most that is known of it keeps the parameter above 0, which would claim perfect
// privacy.
inline double shifted_parameter(double g, double spread) {
    return g / std::sqrt(min(max_known_spread, spread)) * (1.0 + long_sum_of_rounds);
}

// There is one place into which log_theta is inlined: three copies in one loop would not be
// inlined, and nothing would vectorise.
inline void fill_log_thetas(const double* __restrict eps, const double* __restrict r, double* __restrict out,
                            std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = log_theta(eps[i], r[i]);
}

inline void fill_sharpened(const double* __restrict log_gap, const double* __restrict log_e, double* __restrict out,
                           std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = sharpened(log_gap[i], log_e[i]);
}

// Runs n participations, n <= max_hidden_lanes, for up to `longest` rounds, or until all bounds are
// 0 in doubles.
inline void run_hidden_rounds(const HiddenLanes& l, std::size_t n, double longest) {
    double eps[max_hidden_lanes], mu[max_hidden_lanes];
    double shifted[max_hidden_lanes], nonlinear_eta[max_hidden_lanes], hybrid_eta[max_hidden_lanes];
    double largest_bound = 0.0;
    for (double done = 0.0; done < longest && largest_bound >= log_underflow; done += 1.0) {
        for (std::size_t i = 0; i < n; ++i) {
            const bool running = done < l.rounds[i];
            const double next = l.growth[i] * l.shrink[i];
            l.growth[i] = running ? next : l.growth[i];
            l.spread[i] = running ? l.spread[i] + next : l.spread[i];
            mu[i] = shifted_parameter(l.g[i], l.spread[i]);
        }
        fill_log_thetas(l.eps, mu, shifted, n);
        fill_sharpened(l.log_gap, l.nonlinear, eps, n);
        fill_log_thetas(eps, l.reach, nonlinear_eta, n);
        fill_sharpened(l.log_gap, l.hybrid, eps, n);
        fill_log_thetas(eps, l.reach, hybrid_eta, n);
        largest_bound = -infinity;
        for (std::size_t i = 0; i < n; ++i) {
            const bool running = done < l.rounds[i];
            const double nonlinear = contracted_by(l.nonlinear[i], nonlinear_eta[i]);
            const double hybrid = min(contracted_by(l.hybrid[i], hybrid_eta[i]), log_raised(shifted[i]));
            l.nonlinear[i] = running ? nonlinear : l.nonlinear[i];
            l.hybrid[i] = running ? hybrid : l.hybrid[i];
            largest_bound = max(largest_bound, running ? nonlinear : -infinity);
        }
    }
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd

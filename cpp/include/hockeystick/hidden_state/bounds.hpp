// The list of bounds of a hidden-state release: their names, and what all of them share.
//
// docs/hidden_state/hidden_states.md says when each bound is the smallest.
// docs/core/hidden_state.md proves them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include <hockeystick/hidden_state/nonlinear_contraction.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

enum class Bound : std::size_t {
    no_amplification,
    contraction,
    nonlinear,
    shifted,
    shift_then_contraction,
    projected,
    renyi,
    split_noise,
    participation_patterns,
    sampled_mechanisms,
    joint,
};

struct BoundName {
    Bound bound;
    const char* published;  // the name under which Python reports it
};

// In the order of the enumeration. Of bounds that agree, Python names the first.
inline constexpr BoundName bound_names[] = {
    {Bound::no_amplification, "plain"},          // the uses of the record, as if nothing were hidden
    {Bound::contraction, "contraction"},         // a product of contraction coefficients
    {Bound::nonlinear, "nonlinear"},             // F in every later round
    {Bound::shifted, "shifted"},                 // shifted interpolation
    {Bound::shift_then_contraction, "hybrid"},   // shifted interpolation first, then F
    {Bound::projected, "projected"},             // hybrid, with the projected kernel's coefficient
    {Bound::renyi, "renyi"},                     // shifted, by way of a Rényi divergence
    {Bound::split_noise, "divided"},             // part of the noise hides the record, part contracts
    {Bound::participation_patterns, "pattern"},  // the mean over the rounds that used the record
    {Bound::sampled_mechanisms, "sampled"},      // the last rounds composed as sampled mechanisms
    {Bound::joint, "joint"},                     // the loss curve through rounds with and without shifts
};
inline constexpr std::size_t bound_count = sizeof bound_names / sizeof bound_names[0];

constexpr bool in_order() {
    for (std::size_t k = 0; k < bound_count; ++k) {
        if (static_cast<std::size_t>(bound_names[k].bound) != k) return false;
    }
    return true;
}
static_assert(in_order(), "bound_names must list every Bound, in the order of the enumeration");
static_assert(bound_count == static_cast<std::size_t>(Bound::joint) + 1);

// One delta for each bound; NaN where a bound does not apply.
struct Deltas {
    std::array<double, bound_count> values{};

    double& operator[](Bound bound) { return values[static_cast<std::size_t>(bound)]; }
    double operator[](Bound bound) const { return values[static_cast<std::size_t>(bound)]; }

    static Deltas none() {
        Deltas deltas;
        deltas.values.fill(nan);
        return deltas;
    }
};

// The bounds that are sums over rounds where a training may stop at any of them.
inline constexpr Bound summed_bounds[] = {Bound::contraction, Bound::nonlinear, Bound::shifted,
                                          Bound::shift_then_contraction};

// Those four, as logarithms, after some later rounds.
inline Deltas summed_logs(double log_contraction, const LaterBounds& later) {
    Deltas logs{};
    logs[Bound::contraction] = log_contraction;
    logs[Bound::nonlinear] = later.nonlinear;
    logs[Bound::shifted] = later.shifted;
    logs[Bound::shift_then_contraction] = later.shift_then_contraction;
    return logs;
}

// delta from its logarithm, rounded up: at most 1, and not 0 unless eps is infinite.
inline double upper_delta(double log_delta, double eps) {
    return std::min(1.0, positive_delta(std::exp(log_delta) * up, eps));
}

// The Rényi route's delta, exp(-(eps - kappa)^2/(4 kappa)), and 1 for eps <= kappa (Balle et al.
// 2019). Takes the root of kappa, which does not underflow as kappa does.
inline double renyi_delta(double root_kappa, double eps) {
    if (!(eps > root_kappa * root_kappa)) return 1.0;
    const double excess = 0.5 * (eps / root_kappa - root_kappa);
    return upper_delta(upper_log(-excess * excess), eps);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

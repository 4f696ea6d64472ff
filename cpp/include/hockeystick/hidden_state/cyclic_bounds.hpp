// All certified bounds of projected noisy SGD with Gaussian noise whose record is used every `period` rounds, side by side, for
// `best_cyclic`; period 1 is participation in every round. J participations, the last one k rounds before the end:
//
//   plain        theta(eps, g sqrt(J)): what is hidden is not counted
//   contraction  the product plain theta(eps, r)^k (Asoodeh, Diaz and Calmon 2020, Theorem 4, from the last participation on)
//   shifted      shifted interpolation over all rounds (hidden_state/cyclic_shift.hpp)
//   nonlinear    F iterated k times on plain
//   hybrid       shifted interpolation up to the last participation or some later round, F for the rest
//   renyi        the Renyi route from the same parameter: for comparison
//   divided      the curve of all losses through every one of the last rounds, the noise of the record's own divided between hiding
//                its gradient and F (hidden_state/loss_curve.hpp); two participations or more
//
// Lengths are in noise deviations. Where F would have to be iterated more than 2 max_passes times, the bound is held in between.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/hidden_state/cyclic_shift.hpp>
#include <hockeystick/hidden_state/loss_curve.hpp>
#include <hockeystick/hidden_state/projected_sgd_bounds.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

struct CyclicCell {
    DescentCell descent;  // num_records: the rounds; index: the round of the first participation
    double period;

    bool legal() const { return descent.legal() && count(period); }
    double participations() const { return std::floor(descent.after() / period) + 1.0; }
    double after() const { return descent.after() - (participations() - 1.0) * period; }
};

inline constexpr std::size_t profile_points = 256;
inline constexpr double least_length = 0x1p-1000;  // in noise deviations: what underflows is at most this
inline constexpr double profile_reach = 10.0;      // beyond, F leaves a round's curve as it is
inline constexpr double profile_rounds = 128.0;    // rounds with the record that are followed at the most
inline constexpr double divisions[] = {0.15, 0.3, 0.45, 0.6, 0.75};  // shares of the variance that F gets

// A grid of losses on which eps lies, up to where a Gaussian mechanism of parameter mu is past noticing; no points if that is
// too far.
struct ProfileGrid {
    double step = 0.0;
    std::size_t at = 0;  // the point eps
    ProfileGrid(double eps, double mu) {
        const double far = std::max(1.25 * eps, mu * (0.5 * mu + 8.0));
        if (!(far < 600.0)) return;
        const double rough = far / static_cast<double>(profile_points);
        if (!(rough > 1e-150)) return;
        at = static_cast<std::size_t>(std::ceil(eps / rough));
        step = at > 0 ? eps / static_cast<double>(at) : rough;
    }
    bool exists() const { return step > 0.0; }
};

inline std::vector<double> gaussian_curve(const PrivacyProfile& profile, double mu) {
    std::vector<double> curve(profile_points + 1);
    for (std::size_t k = 0; k <= profile_points; ++k)
        curve[k] = std::max(1e-300, std::exp(log_raised(log_theta(profile.loss(k), mu))) * (1.0 + 0x1p-50));
    return curve;
}

// The curve at eps after rounds with the record, each followed by `between` rounds without it but the last by `after`; the record
// is used in its rounds with probability `rate`. `mu` bounds the Gaussian-DP parameter at every time, `most` is how many
// rounds with the record may be followed.
inline double divided_bound(double eps, double mu, double g, double reach, double rate, double most, double between,
                            double after) {
    const ProfileGrid grid(eps, mu);
    double best = 1.0;
    if (!grid.exists() || reach > profile_reach) return best;
    for (const double share : divisions) {
        PrivacyProfile profile(grid.step, profile_points);
        const std::vector<double> known = gaussian_curve(profile, mu);
        const std::vector<double> seen = profile.table(
            [&](double e) { return sampled_theta(e, g / std::sqrt(1.0 - share) * (1.0 + 0x1p-50), rate); });
        profile.restrict_to(known);
        const double wide = reach / std::sqrt(share) * (1.0 + 0x1p-50);
        double before = 2.0;
        for (double j = 0.0; j < std::min(most, profile_rounds); j += 1.0) {
            for (double i = 0.0; j > 0.0 && i < std::min(between, profile_rounds); i += 1.0) profile.contract(reach);
            profile.contract(wide);
            profile.follow(seen);
            profile.restrict_to(known);
            if (profile[grid.at] > before * (1.0 - 1e-4)) break;  // what is left falls no further
            before = profile[grid.at];
        }
        for (double i = 0.0; i < std::min(after, max_passes); i += 1.0) profile.contract(reach);
        best = std::min(best, profile[grid.at]);
    }
    return best;
}

// nonlinear and hybrid: F from the last participation, shifted interpolation where it is looked at.
inline void iterate_cyclic(const CyclicCell& cell, const CyclicShift& shift, double composed, HiddenDeltas& deltas) {
    const double eps = cell.descent.eps, reach = cell.descent.reach(), gap = log_gap(eps);
    const double participations = cell.participations(), after = cell.after();
    const auto shifted_after = [&](double k) { return log_raised(log_theta(eps, shift.parameter(participations, k))); };
    const auto contracted = [&](double log_e) {
        return log_e < log_underflow ? log_e : log_contracted(gap, log_e, [reach](double e) { return log_theta(e, reach); });
    };
    // as many looks as keep a cell below a tenth of a second
    const double looks = std::max(1.0, 0x1p17 / std::min(participations, most_pooled));
    const double stride = std::max(1.0, std::floor(std::min(after, 2.0 * max_passes) / looks));
    double alone = composed, both = std::min(composed, shifted_after(0.0));
    for (double pass = 1.0; pass <= std::min(after, 2.0 * max_passes) && alone >= log_underflow; pass += 1.0) {
        const double k = pass <= max_passes ? pass : std::max(pass, after - 2.0 * max_passes + pass);
        alone = contracted(alone);
        both = contracted(both);
        if (std::fmod(pass, stride) == 0.0) both = std::min(both, shifted_after(k));
    }
    const double last = shifted_after(after);
    deltas[shifted] = raised_delta(last, eps);
    deltas[nonlinear] = raised_delta(alone, eps);
    deltas[hybrid] = raised_delta(std::min({both, last, alone}), eps);
}

inline HiddenDeltas cyclic_bounds(const CyclicCell& cell) {
    HiddenDeltas deltas;
    deltas.fill(nan);
    if (!cell.legal()) return deltas;
    const DescentCell& d = cell.descent;
    const double eps = d.eps, participations = cell.participations(), after = cell.after();
    const double g = std::max(d.sensitivity(), least_length), reach = d.reach();
    const CyclicShift shift(d.contraction(), g, std::max(d.width(), least_length), cell.period);
    const double composed = log_raised(log_theta(eps, g * std::sqrt(participations) * (1.0 + 0x1p-50)));
    deltas[plain] = raised_delta(composed, eps);
    deltas[contraction] =
        raised_delta(after == 0.0 ? composed : composed + after * log_raised(log_theta(eps, reach)), eps);
    iterate_cyclic(cell, shift, composed, deltas);
    deltas[hybrid] = std::min(deltas[hybrid], deltas[contraction]);
    deltas[renyi] = renyi_delta(shift.parameter(participations, after) * std::sqrt(0.5), eps);
    if (participations > 1.0) {
        const double mu = shift.parameter(participations, 0.0);  // at no time is more known
        deltas[divided] = std::min(
            divided_bound(eps, mu, g, reach, 1.0, participations - 1.0, cell.period - 1.0, after), deltas[hybrid]);
    }
    return deltas;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

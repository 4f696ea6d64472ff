// The bound split_noise: the whole loss curve through the last rounds in which the record is used.
//
// In each of these rounds a share of the noise's variance hides the record's gradient and the rest
// contracts (hidden_state/loss_curve.hpp; proof in docs/core/hidden_state.md). Any share is sound;
// the smallest result of a few is returned.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/hidden_state/loss_curve.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

inline constexpr std::size_t curve_points = 256;
inline constexpr double max_curve_loss = 600.0;     // the curve's widths are right to 2^-43 up to here
inline constexpr double max_curve_diameter = 10.0;  // beyond, F leaves a curve as it is
inline constexpr double max_curve_rounds = 128.0;   // rounds with the record that are followed
inline constexpr double contracting_shares[] = {0.15, 0.3, 0.45, 0.6, 0.75};  // of the variance

// A grid of losses on which eps lies, up to where a Gaussian mechanism of parameter mu has next to
// no mass. It does not exist where that is beyond max_curve_loss.
struct LossGrid {
    double end;
    EpsPlace at;

    LossGrid(double eps, double mu) : end(std::max(1.25 * eps, mu * (0.5 * mu + 8.0))) {
        if (end < max_curve_loss && end > 1e-150 * static_cast<double>(curve_points))
            at = EpsPlace(eps, end, curve_points);
    }
    bool exists() const { return at.points > 0; }
};

inline std::vector<double> gaussian_curve(const LossCurve& curve, double mu) {
    std::vector<double> values(curve.points() + 1);
    for (std::size_t k = 0; k <= curve.points(); ++k)
        values[k] = std::max(1e-300, std::exp(upper_log(log_theta(curve.loss(k), mu))) * up);
    return values;
}

// Rounds with the record, `between` rounds without it after each but the last, `after` rounds after
// the last. In its rounds the record is used with probability `rate`. Lengths are in noise
// deviations.
struct UseSchedule {
    double sensitivity, image_diameter, rate;
    double max_uses;  // rounds with the record that may be followed
    double between, after;
};

// The curve at eps after all these rounds, for one share; `mu` bounds the Gaussian-DP parameter at
// every time.
inline double split_noise_with(double share, double mu, const UseSchedule& s, const LossGrid& grid) {
    LossCurve curve(grid.at.step, grid.at.points);
    const std::vector<double> known = gaussian_curve(curve, mu);
    const double exposed = s.sensitivity / std::sqrt(1.0 - share) * up;
    const double contracting = s.image_diameter / std::sqrt(share) * up;
    const std::vector<double> use = curve.table([&](double at) { return sampled_theta(at, exposed, s.rate); });
    curve.restrict_to(known);
    double before = 2.0;
    for (double j = 0.0; j < std::min(s.max_uses, max_curve_rounds); j += 1.0) {
        for (double i = 0.0; j > 0.0 && i < std::min(s.between, max_curve_rounds); i += 1.0)
            curve.contract(s.image_diameter);
        curve.contract(contracting);
        curve.compose(use);
        curve.restrict_to(known);
        if (curve[grid.at.index] > before * (1.0 - 1e-4)) break;  // more rounds gain nothing
        before = curve[grid.at.index];
    }
    for (double i = 0.0; i < std::min(s.after, max_passes); i += 1.0) curve.contract(s.image_diameter);
    return curve.bound(grid.at);
}

inline double split_noise_bound(double eps, double mu, const UseSchedule& schedule) {
    const LossGrid grid(eps, mu);
    double best = 1.0;
    if (!grid.exists() || schedule.image_diameter > max_curve_diameter) return best;
    for (const double share : contracting_shares) best = std::min(best, split_noise_with(share, mu, schedule, grid));
    return best;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

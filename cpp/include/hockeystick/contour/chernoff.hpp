// Chernoff's bounds of a truncated ledger: upper ends that say much, lower ends that say nothing.
//
// They answer where every line has too many nodes (docs/core/contour.md, "Chernoff's bound").
#pragma once

#include <cmath>
#include <limits>

#include <hockeystick/contour/result.hpp>
#include <hockeystick/contour/truncated_ledger.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

// Covers the roundings of a few logarithms and their sums, while these are below 1e6 in size.
inline constexpr double log_slack = 1e-9;

// The same for the bound at one tilt, whose exponent T K(c) - c eps may be a small difference of
// larger numbers.
inline double chernoff_slack(const TiltedMoment& m, double times, double eps) {
    return max(log_slack, 8.0 * unit_roundoff * (std::fabs(times * m.value) + std::fabs(m.c * eps)));
}

// log of the mass that the cutoff left out of `times` repetitions, an upper end: delta rises by at
// most that mass.
inline double log_missing(TruncatedLedger& ledger, double times) {
    return std::log(times) + ledger.log_missing() + log_slack;
}

inline ContourResult chernoff_delta(TruncatedLedger& ledger, double times, double eps) {
    const TiltedMoment& best = ledger.at(ledger.best_tilt(times, eps));
    ContourResult r = ContourResult::of_zero();
    r.tilt = best.c;
    const double slack = chernoff_slack(best, times, eps);
    r.log_upper = min(log_sum(log_chernoff(best, {times}, eps), log_missing(ledger, times)) + slack, 0.0);
    r.upper = std::exp(r.log_upper) * (1.0 + 4.0 * unit_roundoff) + std::numeric_limits<double>::denorm_min();
    r.usable = r.upper < 1.0;
    return r;
}

// What the cutoff left out is taken from the delta that is asked for.
inline ContourResult chernoff_epsilon(TruncatedLedger& ledger, double times, double delta) {
    const double rest = 1.0 - times * std::exp(ledger.log_missing() - std::log(delta));
    ContourResult r;
    if (!(rest > 0.0)) return r;
    const double log_delta = std::log(delta) + std::log(rest) - log_slack;
    const int best = ledger.best_tilt_for_delta(times, log_delta);
    r.tilt = ledger.at(best).c;
    r.upper = max(ledger.chernoff_epsilon(best, {times}, log_delta), 0.0) * (1.0 + log_slack);
    r.usable = r.upper < infinity;
    return r;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour

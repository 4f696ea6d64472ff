// Certified brackets from the sum over one line: every error of the sum moves one end of the
// bracket outwards.
//
// For c > 0 the sum is at least delta, but for truncation, rounding and the mass that the cutoff
// left out; it is at most delta plus alias and smoothing. For c < 0 the same holds for 1 - delta.
// docs/core/contour.md has the table.
#pragma once

#include <hockeystick/contour/chernoff.hpp>
#include <hockeystick/contour/line_sum.hpp>
#include <hockeystick/contour/smoothing.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

// What a sum has too much, at most, in its units.
struct Excess {
    double alias, smoothing;
};
inline Excess excess_of(LineSummer& summer, const Line& line, const LineSum& s, double eps) {
    return {alias_error(line, eps, s.log_unit), smoothing_error(summer, line, eps)};
}

inline double log_missing(const Line& line) { return log_missing(*line.ledger, line.repeated.times); }

// A result without its ends.
inline ContourResult with_shares(const Line& line, const LineSum& s, const Excess& excess) {
    const double value = max(std::fabs(s.value), std::numeric_limits<double>::min());
    ContourResult r;
    r.alias = excess.alias / value;
    r.truncation = s.truncation / value;
    r.rounding = s.rounding / value;
    r.smoothing = excess.smoothing / value;
    r.missing = std::exp(log_missing(line) - s.log_unit) / value;
    r.nodes = line.nodes->n;
    r.tilt = line.nodes->c;
    const double errors = excess.alias + excess.smoothing + s.error();
    r.usable = std::isfinite(s.value) && std::isfinite(errors) && s.possible();
    return r;
}

// Of delta(eps), from the sum at a positive tilt.
inline ContourResult delta_bracket(LineSummer& summer, const Line& line, const LineSum& s, double eps) {
    const Excess excess = excess_of(summer, line, s, eps);
    ContourResult r = with_shares(line, s, excess);
    const double low = max(s.value - excess.alias - excess.smoothing - s.error(), 0.0);
    const double high = max(s.value + s.error(), 0.0);
    const double log_high = log_sum(s.log_unit + std::log(high), log_missing(line));
    r.set_delta(s.log_unit + std::log(low), log_high, s.log_unit);
    return r;
}

// Of delta(eps), from the sum at a negative tilt, which is 1 - delta(eps). Smoothing raises delta
// and so lowers the sum.
inline ContourResult complement_bracket(LineSummer& summer, const Line& line, double eps) {
    const LineSum s = summer(line, eps);
    Excess excess = excess_of(summer, line, s, eps);
    excess.alias = min(excess.alias, std::numeric_limits<double>::max());  // it moves the end 1 only
    ContourResult r = with_shares(line, s, excess);
    const double unit = std::exp(s.log_unit), error = unit * s.error();
    const double low = max(unit * (s.value - excess.alias) - error, 0.0);
    const double high = unit * (s.value + excess.smoothing) + error + 1.01 * std::exp(log_missing(line));
    r.lower = max(1.0 - high - 2.0 * unit_roundoff, 0.0);
    r.upper = min(1.0 - low + 2.0 * unit_roundoff, 1.0);
    r.log_lower = std::log1p(-min(high, 1.0));
    r.log_upper = std::log1p(-low);
    return r;
}

// Whether delta(eps) is certainly at most delta (`above`: eps lies above epsilon), or at least
// delta.
inline bool certainly_on_side(LineSummer& summer, const Line& line, double delta, double eps, bool above) {
    const LineSum s = summer(line, eps);
    const double target = std::exp(std::log(delta) - s.log_unit);
    const double error = s.error() + 4.0 * unit_roundoff * (2.0 + std::fabs(s.log_unit)) * s.value;
    if (!s.possible()) return false;
    if (above) return s.value + error + std::exp(log_missing(line) - s.log_unit) <= target;
    const Excess excess = excess_of(summer, line, s, eps);
    return s.value - (excess.alias + excess.smoothing) - error >= target;
}

// Whether Chernoff's bound, or one sum over few nodes, says that delta(eps) <= e^{log_delta}.
inline bool certainly_below(TruncatedLedger& ledger, LineSummer& summer, double times, double eps, double log_delta) {
    constexpr double rough_tolerance = -7.0;
    const double missing = std::log(times) + ledger.log_missing();
    if (missing > log_delta - 1e-3) return false;
    const double allowed = log_delta + std::log1p(-std::exp(missing - log_delta)) - log_slack;
    const int best = ledger.best_tilt(times, eps, [&](double value) { return value <= allowed; });
    const TiltedMoment& m = ledger.at(best);
    if (log_chernoff(m, {times}, eps) + (chernoff_slack(m, times, eps) - log_slack) <= allowed) return true;
    if (log_delta > -0.2) return false;  // near 1 only 1 - delta tells
    Line line = choose_line(ledger, best, {times}, eps, allowed + rough_tolerance);
    if (line.node_count > few_nodes || !line.prepare()) return false;
    const LineSum s = summer(line, eps);  // the alias only makes it larger
    const double log_upper = s.log_unit + std::log(s.value + s.truncation + s.rounding);
    return s.possible() && log_upper + 4.0 * unit_roundoff * (1.0 + std::fabs(s.log_unit)) <= allowed;
}

// Of epsilon(delta), near the root of the sum: each end moves away from the root until the
// certificate holds.
inline ContourResult epsilon_bracket(LineSummer& summer, const Line& line, double delta, double root) {
    const LineSum s = summer(line, root);
    const Excess excess = excess_of(summer, line, s, root);
    ContourResult r = with_shares(line, s, excess);
    if (!(r.usable && s.value > 0.0)) return {};
    const double relative = (excess.alias + s.truncation + s.rounding) / s.value + r.missing +
                            8.0 * unit_roundoff * (2.0 + std::fabs(s.log_unit));
    root -= (s.log_unit + std::log(s.value) - std::log(delta)) * s.value / s.slope;
    const double step = max(relative * s.value / std::fabs(s.slope), 2.0 * unit_roundoff * root);
    r.usable = false;
    double reach = step;
    for (int k = 0; k < 24 && !r.usable; ++k, reach *= 2.0)
        r.usable = certainly_on_side(summer, line, delta, r.upper = root + reach, true);
    bool found = false;
    reach = step + excess.smoothing / std::fabs(s.slope);
    for (int k = 0; k < 24 && !found && root > reach; ++k, reach *= 1.0 + (k % 2 == 0 ? 0.1 : 1.0))
        found = certainly_on_side(summer, line, delta, r.lower = root - reach, false);
    if (!found) r.lower = 0.0;
    return r;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour

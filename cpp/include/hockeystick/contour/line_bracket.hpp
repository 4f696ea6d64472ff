// Certified brackets from the sum over one line: every error of the sum moves one end of the
// bracket outwards. `LineBrackets` chooses the line for a question, within limits. Where no line is
// short enough, Chernoff's bound answers.
//
// For c > 0 the sum is at least delta, but for truncation, rounding and the mass that the cutoff
// left out; it is at most delta plus alias and smoothing. For c < 0 the same holds for 1 - delta.
// docs/core/contour.md has the table.
#pragma once

#include <cmath>
#include <limits>

#include <hockeystick/contour/line.hpp>
#include <hockeystick/contour/result.hpp>
#include <hockeystick/contour/truncated_ledger.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

// Chernoff's bounds of a truncated ledger: upper ends that say much, lower ends that say nothing.
//
// They answer where every line has too many nodes (docs/core/contour.md, "Chernoff's bound").

namespace tune {
inline constexpr double log_below_chernoff = 3.0;               // delta is that much below Chernoff's bound, roughly
inline constexpr double log_large = -0.7, log_near_one = -0.2;  // above the first the line may be one of 1 - delta
inline constexpr double log_least_complement = -40.0;
inline constexpr double narrowest = 1e-10, narrowest_of_many_nodes = 1e-7;  // no sharper line is chosen
inline constexpr int max_lines = 4;

// What alias and truncation may be, each, relatively, as logarithms: less where nodes are few.
inline constexpr double sharp_tolerance = -28.0, tolerance_of_many_nodes = -21.0;
inline constexpr double smoothed_tolerance = -14.0, rough_tolerance = -7.0;
}  // namespace tune

// The roundings of the bound at one tilt, whose exponent T K(c) - c eps may be a small difference of
// larger numbers.
inline double chernoff_slack(const TiltedMoment& m, double times, double eps) {
    return max(sound::log_slack, eight_roundings * (std::fabs(times * m.value) + std::fabs(m.c * eps)));
}

// log of the mass that the cutoff left out of `times` repetitions, an upper end: delta rises by at
// most that mass.
inline double log_missing(TruncatedLedger& ledger, double times) {
    return std::log(times) + ledger.log_missing() + sound::log_slack;
}

inline ContourResult chernoff_delta(TruncatedLedger& ledger, double times, double eps) {
    const TiltedMoment& best = ledger.at(ledger.best_tilt(times, eps));
    ContourResult r = ContourResult::of_zero();
    r.tilt = best.c;
    const double slack = chernoff_slack(best, times, eps);
    r.log_upper = min(log_sum(log_chernoff(best, {times}, eps), log_missing(ledger, times)) + slack, 0.0);
    r.upper = std::exp(r.log_upper) * (1.0 + four_roundings) + smallest_positive;
    r.usable = r.upper < 1.0;
    return r;
}

// What the cutoff left out is taken from the delta that is asked for.
inline ContourResult chernoff_epsilon(TruncatedLedger& ledger, double times, double delta) {
    const double rest = 1.0 - times * std::exp(ledger.log_missing() - std::log(delta));
    ContourResult r;
    if (!(rest > 0.0)) return r;
    const double log_delta = std::log(delta) + std::log(rest) - sound::log_slack;
    const int best = ledger.best_tilt_for_delta(times, log_delta);
    r.tilt = ledger.at(best).c;
    r.upper = max(ledger.chernoff_epsilon(best, {times}, log_delta), 0.0) * (1.0 + sound::log_slack);
    r.usable = r.upper < infinity;
    return r;
}

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
    const double high = unit * (s.value + excess.smoothing) + error + sound::padding * std::exp(log_missing(line));
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
    const double error = s.error() + four_roundings * (2.0 + std::fabs(s.log_unit)) * s.value;
    if (!s.possible()) return false;
    if (above) return s.value + error + std::exp(log_missing(line) - s.log_unit) <= target;
    const Excess excess = excess_of(summer, line, s, eps);
    return s.value - (excess.alias + excess.smoothing) - error >= target;
}

// Of epsilon(delta), near the root of the sum: each end moves away from the root until the
// certificate holds.
inline ContourResult epsilon_bracket(LineSummer& summer, const Line& line, double delta, double root) {
    const LineSum s = summer(line, root);
    const Excess excess = excess_of(summer, line, s, root);
    ContourResult r = with_shares(line, s, excess);
    if (!(r.usable && s.value > 0.0)) return {};
    const double relative = (excess.alias + s.truncation + s.rounding) / s.value + r.missing +
                            eight_roundings * (2.0 + std::fabs(s.log_unit));
    root -= (s.log_unit + std::log(s.value) - std::log(delta)) * s.value / s.slope;
    const double step = max(relative * s.value / std::fabs(s.slope), 2.0 * unit_roundoff * root);
    r.usable = false;
    double reach = step;
    for (int k = 0; k < tune::max_moves && !r.usable; ++k, reach *= 2.0)
        r.usable = certainly_on_side(summer, line, delta, r.upper = root + reach, true);
    bool found = false;
    reach = step + excess.smoothing / std::fabs(s.slope);
    for (int k = 0; k < tune::max_moves && !found && root > reach; ++k, reach *= 1.0 + (k % 2 == 0 ? 0.1 : 1.0))
        found = certainly_on_side(summer, line, delta, r.lower = root - reach, false);
    if (!found) r.lower = 0.0;
    return r;
}

// What a line may cost, and what it is smoothed by.
struct LineLimits {
    double max_nodes = infinity;
    SmoothingWidth smoothing{};
    int tilt_offset = 0;  // by how many indices the tilt is below the best one
};

// What a line says, and whether the same line at a lower tilt may say more.
struct LineAttempt {
    ContourResult result;
    bool lower_tilt_may_help = false;
};

// Brackets from lines. Not for several threads at once.
class LineBrackets {
  public:
    explicit LineBrackets(const simd::Kernels& kernels) : summer_(kernels) {}

    LineAttempt delta(TruncatedLedger& ledger, double times, double eps, const LineLimits& limits) {
        const int best = ledger.best_tilt(times, eps);
        const double bound = log_chernoff(ledger.at(best), {times}, eps);
        if (bound > tune::log_large) {  // delta is large, or all of it: then the line may be one for 1 - delta
            const int negative = ledger.best_negative_tilt(times, eps);
            const double other = log_chernoff(ledger.at(negative), {times}, eps);
            if (other < bound) return {complement_by_line(ledger, negative, times, eps, other, limits)};
        }
        const int tilt_index = best - limits.tilt_offset;
        if (tilt_index < TiltGrid::first_positive) return {};
        return attempt_of(delta_at_tilt(ledger, tilt_index, times, eps, bound - tune::log_below_chernoff, limits));
    }

    LineAttempt epsilon(TruncatedLedger& ledger, double times, double delta, const LineLimits& limits) {
        const double log_delta = std::log(delta);
        const int best = ledger.best_tilt_for_delta(times, log_delta);
        const double upper = ledger.chernoff_epsilon(best, {times}, log_delta);
        if (!(upper > 0.0)) return at_zero(ledger, times, delta, limits);
        const int tilt_index = best - limits.tilt_offset;
        if (tilt_index < TiltGrid::first_positive) return {};
        return epsilon_at_tilt(ledger, tilt_index, times, delta, upper, limits);
    }

    // Errors are allowed in proportion to delta. The first guess of delta, e^{log_value}, comes
    // from Chernoff's bound; where the sum says that delta is much smaller, a sharper line is
    // chosen.
    ContourResult delta_at_tilt(TruncatedLedger& ledger, int tilt_index, double times, double eps, double log_value,
                                const LineLimits& limits) {
        const double width = limits.smoothing.value;
        const auto make_line = [&](int index) {
            const Repeated repeated{times, smoothing_at(ledger, index, limits.smoothing, width)};
            return choose_line(ledger, index, repeated, eps, log_value + tolerance(limits));
        };
        ContourResult best;
        for (int attempt = 0; attempt < tune::max_lines; ++attempt) {
            Line line = line_with_fewest_nodes(tilt_index, eps, tune::log_below_chernoff, limits.max_nodes, make_line);
            if (line.node_count > limits.max_nodes || !line.prepare()) return best;
            const LineSum s = summer_(line, eps);
            best = narrower(best, delta_bracket(summer_, line, s, eps));
            if (best.relative_width() < max(tune::narrowest, 2.0 * width) || !best.improvable_by_more_nodes()) break;
            if (!(s.value > 0.0)) break;
            const double next = s.log_unit + std::log(s.value) - 1.0;
            if (!(next < log_value - 0.5)) break;
            log_value = next;
        }
        return best;
    }

    // Whether Chernoff's bound, or one sum over few nodes, says that delta(eps) <= e^{log_delta}.
    bool certainly_below(TruncatedLedger& ledger, double times, double eps, double log_delta) {
        const double missing = std::log(times) + ledger.log_missing();
        if (missing > log_delta - 1e-3) return false;
        const double allowed = log_delta + std::log1p(-std::exp(missing - log_delta)) - sound::log_slack;
        const int best = ledger.best_tilt(times, eps, [&](double value) { return value <= allowed; });
        const TiltedMoment& m = ledger.at(best);
        if (log_chernoff(m, {times}, eps) + (chernoff_slack(m, times, eps) - sound::log_slack) <= allowed) return true;
        if (log_delta > tune::log_near_one) return false;  // near 1 only 1 - delta tells
        Line line = choose_line(ledger, best, {times}, eps, allowed + tune::rough_tolerance);
        if (line.node_count > tune::few_nodes || !line.prepare()) return false;
        const LineSum s = summer_(line, eps);  // the alias only makes it larger
        const double log_upper = s.log_unit + std::log(s.value + s.truncation + s.rounding);
        return s.possible() && log_upper + four_roundings * (1.0 + std::fabs(s.log_unit)) <= allowed;
    }
    double work() const { return summer_.work(); }
    std::size_t bytes() const { return summer_.bytes(); }

  private:
    static double tolerance(const LineLimits& limits) {
        return limits.smoothing.value > 0.0 ? tune::smoothed_tolerance : tune::sharp_tolerance;
    }
    static LineAttempt attempt_of(const ContourResult& found) {
        return {found, found.usable && found.dominated_by_rounding() && !found.narrower_than(narrow_width)};
    }

    ContourResult complement_by_line(TruncatedLedger& ledger, int tilt_index, double times, double eps,
                                     double log_value, const LineLimits& limits) {
        const double log_allowed =
            max(log_value, tune::log_least_complement) - tune::log_below_chernoff + tolerance(limits);
        const double smoothing = smoothing_at(ledger, tilt_index, limits.smoothing, limits.smoothing.value);
        Line line = choose_line(ledger, tilt_index, {times, smoothing}, eps, log_allowed);
        if (!line.prepare()) return {};
        return complement_bracket(summer_, line, eps);
    }

    // The first line is chosen for Chernoff's epsilon, which is too large to judge its errors by;
    // the second for the root of the first.
    LineAttempt epsilon_at_tilt(TruncatedLedger& ledger, int tilt_index, double times, double delta, double eps,
                                const LineLimits& limits) {
        const double log_delta = std::log(delta), width = limits.smoothing.value;
        // Rounding is about T e^growth 1e-13.
        const double max_growth = max(9.0 - std::log(times * ledger.count()), 4.0);
        ContourResult best;
        double log_tolerance = tolerance(limits);
        for (int attempt = 0; attempt < 2; ++attempt) {
            const auto make_line = [&](int index) {
                const double c = ledger.at(index).c, allowed = width > 0.0 ? max(width * eps, tune::narrowest) : 0.0;
                const Repeated repeated{times, smoothing_at(ledger, index, limits.smoothing, c * allowed)};
                return choose_line(ledger, index, repeated, eps, log_delta + log_tolerance);
            };
            Line line = make_line(tilt_index);
            if (line.node_count > tune::hopeless * tune::hopeless * limits.max_nodes)
                break;  // however large the tolerance
            if (line.node_count > tune::few_nodes) {
                log_tolerance = max(log_tolerance, tune::tolerance_of_many_nodes);
                line = line_with_fewest_nodes(tilt_index, eps, max_growth, limits.max_nodes, make_line);
            }
            if (line.node_count > limits.max_nodes || !line.prepare()) break;
            const double root = summer_.root(line, log_delta, eps);
            if (root <= 0.0) return at_zero(ledger, times, delta, limits);
            if (!(root < infinity)) break;
            best = narrower(best, epsilon_bracket(summer_, line, delta, root));
            const double wanted = max(
                log_tolerance == tune::sharp_tolerance ? tune::narrowest : tune::narrowest_of_many_nodes, 2.0 * width);
            if (best.narrower_than(wanted) || !best.improvable_by_more_nodes()) break;
            eps = root;
        }
        return attempt_of(best);
    }

    // Says only whether epsilon is 0: whether delta(0) is at most delta.
    LineAttempt at_zero(TruncatedLedger& ledger, double times, double delta, const LineLimits& limits) {
        LineAttempt attempt = this->delta(ledger, times, 0.0, limits);
        ContourResult& r = attempt.result;
        r.usable = r.usable && r.upper <= delta;
        r.lower = r.upper = 0.0;
        attempt.lower_tilt_may_help = attempt.lower_tilt_may_help && !r.usable;
        return attempt;
    }

    LineSummer summer_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour

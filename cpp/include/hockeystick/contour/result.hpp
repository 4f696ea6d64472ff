// What the contour engine (contour/contour.hpp) answers, and a log of what it tried.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// Constants of two kinds: a proof depends on one of `sound`, whose page is docs/core/contour.md
// ("Rounding"); `tune`, in each file, says where to look and what is worth it, and no answer is
// false for it.
namespace sound {
inline constexpr double log_slack = 1e-9;            // the roundings of a few logarithms, below 1e6 in size, and sums
inline constexpr double padding = 1.01;              // of an error, for the roundings of computing it
inline constexpr double summed = 1.0 + 1e-9;         // a sum of errors, for the roundings of summing them
inline constexpr double of_a_cumulant = 2e-16;       // each of n roundings of n products and their sum
inline constexpr double decay_slack = 1e-12;         // a bound of log |phi| and its sum over the entries
inline constexpr double smoothing = 1.0 + 1e-12;     // the bound of what smoothing adds
inline constexpr double known_period = 1.0 + 1e-12;  // eps less the least loss
inline constexpr double beyond_highest = 1.0 + 1e-14;
inline constexpr double jump_slack = 1e-11;       // each term of a logarithm of JumpBounds, relatively
inline constexpr double jump_tail = 1.0 + 1e-6;   // the mass of jumps outside the half-space of the lower end
inline constexpr double before_threshold = 1e-9;  // where an integral from a threshold on begins, in sigma
inline constexpr double error_of_a_power = 1.1;   // e^x - 1 <= 1.1 x for x < 0.18, x the error of an exponent
}  // namespace sound

namespace tune {
inline constexpr int max_moves = 24;  // of an end away from the root: its distance doubles at each
}  // namespace tune

// How much must be known of a small delta: below deep_delta a hundredth of it, below
// very_deep_delta a hundredth of its logarithm, below smallest_delta, which is hardly a double,
// only an upper end.
inline constexpr double deep_delta = 1e-30, very_deep_delta = 1e-100, smallest_delta = 1e-300;
// The logarithms of the last two, rounded down.
inline constexpr double log_very_deep_delta = -231.0, log_smallest_delta = -691.0;
inline constexpr double enough_for_deep_delta = 1e-2;
// A bracket that narrow, relatively, ends the search.
inline constexpr double narrow_width = 1e-6;

// What each error of the sum may be, relative to delta, or to 1 - delta (docs/core/contour.md).
struct ErrorShares {
    double alias = 0.0, truncation = 0.0, rounding = 0.0, smoothing = 0.0, missing = 0.0;
};

struct ContourResult : ErrorShares {
    bool usable = false;                      // elsewhere there is no answer
    double lower = 0.0, upper = 0.0;          // of delta or epsilon
    double log_lower = 0.0, log_upper = 0.0;  // of delta
    std::size_t nodes = 0, slices = 0;        // how many; slices as in contour/slices.hpp
    double tilt = 0.0;

    static ContourResult of_zero() {
        ContourResult r;
        r.usable = true;
        r.log_lower = r.log_upper = -infinity;
        return r;
    }

    // Sets both ends of delta from their logarithms, rounded outwards. The logarithms err by a few
    // u of `log_unit`.
    void set_delta(double log_low, double log_high, double log_unit) {
        constexpr double least = smallest_positive;
        const double log_error = four_roundings * (1.0 + std::fabs(log_unit));
        log_lower = min(log_low, 0.0) - log_error;
        log_upper = min(log_high + log_error, 0.0);
        lower = max(std::exp(log_lower) * (1.0 - four_roundings) - least, 0.0);
        upper = min(std::exp(log_upper) * (1.0 + four_roundings) + least, 1.0);
    }

    double relative_width() const {
        if (upper == lower) return 0.0;
        return upper < 1e-290 ? log_upper - log_lower : (upper - lower) / upper;
    }
    bool narrower_than(double width) const { return usable && relative_width() < width; }

    // Whether log delta is known to a hundredth.
    bool knows_log() const { return log_upper - log_lower <= enough_for_deep_delta * std::fabs(log_upper); }

    bool improvable_by_more_nodes() const { return alias + truncation + smoothing > 0.1 * (rounding + missing); }
    // True where losses near the cutoff carry most of the weight.
    bool dominated_by_rounding() const { return rounding > narrow_width; }
};

inline const ContourResult& narrower(const ContourResult& x, const ContourResult& y) {
    return !x.usable || (y.usable && y.relative_width() < x.relative_width()) ? y : x;
}
inline const ContourResult& with_smaller_upper(const ContourResult& x, const ContourResult& y) {
    return !x.usable || (y.usable && y.upper < x.upper) ? y : x;
}

// Both ends of delta from the better of two results; the rest from the narrower one.
inline ContourResult intersection(const ContourResult& x, const ContourResult& y) {
    ContourResult r = narrower(x, y);
    for (const ContourResult* other : {&x, &y}) {
        if (!other->usable) continue;
        r.lower = max(r.lower, other->lower), r.log_lower = max(r.log_lower, other->log_lower);
        r.upper = min(r.upper, other->upper), r.log_upper = min(r.log_upper, other->log_upper);
    }
    r.lower = min(r.lower, r.upper), r.log_lower = min(r.log_lower, r.log_upper);  // ends may pass by their rounding
    return r;
}

// One entry of the log: a strategy of contour/contour.hpp, and what it answered.
struct Tried {
    const char* strategy;
    bool at_lower_tilt = false;  // than the one that minimises Chernoff's bound
    bool usable = false;         // elsewhere the strategy has no answer
    double lower = 0.0, upper = 0.0;
    std::size_t nodes = 0;

    std::string name() const { return std::string(strategy) + (at_lower_tilt ? ", lower tilt" : ""); }
};

using StrategyLog = std::vector<Tried>;

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour

// What an accountant is asked (`Question`, `Options`) and what it answers (`Answer`).
#pragma once

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include <hockeystick/contour/result.hpp>
#include <hockeystick/mechanism/pair.hpp>
#include <hockeystick/numeric/interval.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace mechanism;

// If a bracket is narrower than this, relative to its upper end, no second engine is asked.
inline constexpr double good_enough = 1e-3;
inline constexpr double good_enough_epsilon = 1e-9;  // absolute, for an epsilon near 0

using contour::deep_delta, contour::very_deep_delta, contour::smallest_delta, contour::enough_for_deep_delta;

// Asks for delta at an epsilon >= 0, or for the smallest epsilon >= 0 at a delta in [0, 1].
struct Question {
    bool for_epsilon;
    double value;  // the delta if `for_epsilon`, else the epsilon

    double largest_answer() const { return for_epsilon ? infinity : 1.0; }
};

enum class EngineChoice { best, contour, pld };

inline EngineChoice engine_named(const std::string& name) {
    if (name == "auto") return EngineChoice::best;
    if (name == "contour") return EngineChoice::contour;
    if (name == "pld") return EngineChoice::pld;
    throw std::invalid_argument("engine must be auto, contour or pld, not '" + name + "'");
}

struct Options {
    EngineChoice engine = EngineChoice::best;
    bool upper_only = false;  // computes no lower end; it is then 0
    // For a search, which looks for where the answer passes a threshold. A bracket that does not
    // hold the threshold is enough for it, and so is one whose relative width is a hundredth. If
    // one direction's upper end is above it, the other direction is not asked.
    double threshold = nan;
};

// Where an upper end comes from. `name_of` has the words that users see.
enum class Method {
    none,
    nothing_composed,
    one_step,
    one_step_between_pairs,
    gaussian,
    infinite_mass,
    largest_loss,
    total_variation,
    beyond_largest_loss,
    contour,
    pld,
    pld_of_blocks,
    gaussian_without_sampling,
    near_largest_loss,
    graded_grid,
    renyi,
    adaptive_range,
};

inline const char* name_of(Method method) {
    switch (method) {
    case Method::nothing_composed:
        return "nothing composed";
    case Method::one_step:
        return "exact formula of one step";
    case Method::one_step_between_pairs:
        return "formula of one step, by pairs above and below";
    case Method::gaussian:
        return "gaussian closed form";
    case Method::infinite_mass:
        return "mass of infinite loss";
    case Method::largest_loss:
        return "largest loss";
    case Method::total_variation:
        return "total variation";
    case Method::beyond_largest_loss:
        return "beyond the largest loss";
    case Method::contour:
        return "contour";
    case Method::pld:
        return "pld";
    case Method::pld_of_blocks:
        return "pld of blocks";
    case Method::gaussian_without_sampling:
        return "gaussian closed form, without the sampling";
    case Method::near_largest_loss:
        return "near the largest loss";
    case Method::graded_grid:
        return "graded grid of losses";
    case Method::renyi:
        return "renyi";
    case Method::adaptive_range:
        return "worst intervals of losses, step by step";
    case Method::none:
        break;
    }
    return "none";
}

// The bracket of one direction, and where it comes from.
struct Answer {
    double lower = 0.0, upper = 0.0;
    Method method = Method::none;
    Direction direction = Direction::remove;
    bool both_directions = false;    // both directions leak the same, so this answers for both
    contour::ContourResult contour;  // if method is contour: nodes, tilt, shares of the error, ends of log delta
    contour::StrategyLog tried;      // strategies of the contour engine, in order; empty if upper_only
    double interval = 0.0;           // if method is pld: the grid's step, 0 if there was no grid
    double order = 0.0;              // if method is renyi: the order of the divergence
    bool coarsened = false;          // if method is pld: limits of memory, work or rounding made the bracket wider
    // What the pairs that dominate leak at least, if an engine was asked, and what is attained
    // leaks at most. Where one list of pairs serves both ends, the second is infinite.
    double dominating_lower = 0.0, attained_upper = infinity;
    bool gap_is_numerical = false;  // the two lists are tables on either side of the same laws

    // The part of the width that lies between the two lists of pairs. No computing mends it; the
    // rest is numerical.
    double between_pairs() const {
        if (gap_is_numerical) return 0.0;
        const double top = min(dominating_lower, upper), bottom = max(attained_upper, lower);
        return top > bottom ? top - bottom : 0.0;
    }
    // The same, relative to the upper end.
    double pairs_share() const {
        const double part = between_pairs();
        if (part == 0.0) return 0.0;
        return part < infinity ? part / upper : 1.0;
    }
    // The part of the width, relative to the upper end, that an engine's errors make: what lies
    // within the bracket of the pairs that dominate, or all of it if the gap between the lists is
    // numerical, too.
    double numerical_share() const {
        const double part = upper - (gap_is_numerical ? lower : max(min(dominating_lower, upper), lower));
        return part > 0.0 && part < infinity ? part / upper : 0.0;
    }

    // Whether no second engine is needed: of a deep delta less is wanted.
    bool settled(const Question& question) const {
        if (narrow(question)) return true;
        if (question.for_epsilon) return false;
        if (upper < very_deep_delta && std::log(upper / lower) <= enough_for_deep_delta * -std::log(upper)) return true;
        return upper < smallest_delta || (upper < deep_delta && upper - lower <= enough_for_deep_delta * upper);
    }

    // Whether the bracket is enough for a search (Options::threshold).
    bool decided(double threshold) const {
        return upper <= threshold || lower > threshold ||
               (threshold >= lower && upper - lower <= enough_for_deep_delta * upper);
    }

    // Whether the bracket is as narrow as wanted.
    bool narrow(const Question& question) const {
        const double least = question.for_epsilon ? good_enough_epsilon : 0.0;
        return upper < infinity && upper - lower - between_pairs() <= max(good_enough * upper, least);
    }

    // Whether computing could not lower the upper end by much.
    bool sharp(const Question& question) const {
        const double least = question.for_epsilon ? good_enough_epsilon : 0.0;
        return upper < infinity && upper - dominating_lower <= max(good_enough * upper, least);
    }
};

// The intersection of two brackets, under the name of the one with the smaller upper end.
inline Answer better(Answer one, Answer other) {
    const double lower = max(one.lower, other.lower);
    const double dominating = max(one.dominating_lower, other.dominating_lower);
    const double attained = min(one.attained_upper, other.attained_upper);
    Answer winner = std::move(other.upper <= one.upper ? other : one);
    const bool numerical = one.gap_is_numerical || other.gap_is_numerical;
    winner.lower = lower, winner.dominating_lower = dominating, winner.attained_upper = attained;
    winner.gap_is_numerical = numerical;
    return winner;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting

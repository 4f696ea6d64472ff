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
    gaussian_without_sampling,
    near_largest_loss,
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
    case Method::gaussian_without_sampling:
        return "gaussian closed form, without the sampling";
    case Method::near_largest_loss:
        return "near the largest loss";
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
    bool coarsened = false;          // if method is pld: limits of memory, work or rounding made the bracket wider

    // If the ends come from two pairs: whether the bracket of each was narrow. Then the width is
    // that between the pairs, which no second engine mends.
    bool between_narrow = false;

    // Whether no second engine is needed.
    bool narrow(const Question& question) const {
        if (between_narrow) return true;
        const double least = question.for_epsilon ? good_enough_epsilon : 0.0;
        return upper < infinity && upper - lower <= max(good_enough * upper, least);
    }
};

// The intersection of two brackets, under the name of the one with the smaller upper end.
inline Answer better(Answer one, Answer other) {
    const double lower = max(one.lower, other.lower);
    Answer winner = std::move(other.upper <= one.upper ? other : one);
    winner.lower = lower;
    return winner;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting

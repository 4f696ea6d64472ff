// The last feasible point of a function: f(x) is a certified log delta, monotone in x up to the
// noise of certificates, and x is feasible where f(x) <= log_level. Every point that is returned as
// feasible was evaluated and found so.
//
// The search takes secant steps. Each candidate is moved by less than the tolerance towards the
// side that has no point close by yet, so that a good secant closes the bracket with its second
// evaluation. Every fifth step is a bisection, in case f bends or is noisy.
#pragma once

#include <cmath>

#include <hockeystick/numeric/elementary.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

struct Evaluation {
    double x, f;
};

// A feasible point and an infeasible one, in either order on the line.
struct FeasibleBracket {
    Evaluation good, bad;
};

inline double secant(const Evaluation& a, const Evaluation& b, double level) {
    const double slope = (b.f - a.f) / (b.x - a.x);
    return b.x + (level - b.f) / slope;
}

// Narrows a bracket to tolerance(good.x), or until the feasible f is within `slack` of the level.
// With `whole`, whose ends are integers, only integers are evaluated.
template <class Function, class Tolerance>
FeasibleBracket narrow_feasible(const Function& f, double log_level, FeasibleBracket s, const Tolerance& tolerance,
                                bool whole, double slack = 0.0) {
    Evaluation older = s.bad, last = s.good;
    for (int k = 0; k < 200; ++k) {
        const double enough = tolerance(s.good.x), gap = s.bad.x - s.good.x;
        if (std::fabs(gap) <= enough || log_level - s.good.f < slack) break;
        const double toward_good = gap > 0.0 ? -0.4 * enough : 0.4 * enough;
        double x = secant(older, last, log_level) + (last.f <= log_level ? -toward_good : toward_good);
        if (whole) x = std::floor(x + 0.5);
        const bool inside = (x - s.good.x) * (x - s.bad.x) < 0.0;  // false for a NaN
        if (!inside || k % 5 == 4) x = whole ? std::floor(s.good.x + 0.5 * gap) : s.good.x + 0.5 * gap;
        if (x == s.good.x || x == s.bad.x) {
            if (!whole) break;  // neighbouring doubles
            x += gap > 0.0 ? 1.0 : -1.0;
        }
        older = last;
        last = {x, f(x)};
        (last.f <= log_level ? s.good : s.bad) = last;
    }
    return s;
}

// Walks from `start` towards `end`, which is known to be feasible if `start` is not and the other
// way round, in strides that double, until the verdict changes.
template <class Function>
FeasibleBracket bracket_feasible(const Function& f, double log_level, const Evaluation& start, double stride,
                                 const Evaluation& end) {
    const bool feasible = start.f <= log_level;
    Evaluation previous = start, here = end;
    for (int k = 0; k < 1100; ++k, previous = here, stride *= 2.0) {
        const double x = end.x > start.x ? previous.x + stride : previous.x - stride;
        const bool beyond = end.x > start.x ? x >= end.x : x <= end.x;
        here = beyond || x == previous.x ? end : Evaluation{x, f(x)};
        if (here.x == end.x || (here.f <= log_level) != feasible) break;
    }
    return feasible ? FeasibleBracket{previous, here} : FeasibleBracket{here, previous};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric

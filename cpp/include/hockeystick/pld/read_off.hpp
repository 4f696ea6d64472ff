// Answers read off a tilted composition: delta at an epsilon, or the epsilon of a delta, from above
// or from below.
//
// The upper end of delta falls in eps, so its epsilon is found by bisection. The lower end falls
// only near the epsilon that the tilt was made for, because far below it the error is large in
// units of the tilt. So the lower end of epsilon is sought downwards from the upper one: any point
// at which the lower end of delta exceeds the given delta is a lower end of epsilon.
#pragma once

#include <hockeystick/numeric/root.hpp>
#include <hockeystick/pld/tilted_composition.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// `highest` is the largest loss of the composition.
inline double read_upper(const TiltedComposition& composition, const Question& question, const Plan& plan,
                         double highest) {
    if (!question.for_epsilon) return composition.delta(question.value).upper;
    const auto above = [&](double eps) { return composition.delta(eps).upper > question.value; };
    if (!above(0.0)) return 0.0;
    double high = max(plan.eps, 1e-9);
    for (int k = 0; k < 60 && above(high); ++k) high *= 1.5;
    const double bound = max(highest, 0.0) * (1.0 + exponent_error);
    return above(high) ? bound : min(bisect(above, 0.0, high).upper, bound);
}

inline double read_lower(const TiltedComposition& composition, const Question& question, double upper) {
    if (!question.for_epsilon) return composition.delta(question.value).lower;
    const auto above = [&](double eps) { return composition.delta(eps).lower > question.value; };
    if (!(upper > 0.0 && upper < infinity)) return 0.0;
    double gap = 1e-9 * upper;
    while (gap < upper && !above(upper - gap)) gap *= 1.4;
    if (gap < upper) return bisect(above, upper - gap, upper).lower;
    return above(0.0) ? bisect(above, 0.0, upper).lower : 0.0;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld

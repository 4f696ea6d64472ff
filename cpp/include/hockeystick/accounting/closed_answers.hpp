// The answers of closed forms about one direction: exact ones, and upper ends that cap what an
// engine says. accounting/closed_forms.hpp has the formulas.
#pragma once

#include <algorithm>

#include <hockeystick/accounting/renyi_cap.hpp>
#include <hockeystick/accounting/warm_steps.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

// The exact formula of a single step.
inline void answer_one_step(const WarmBetween& steps, Direction direction, const Question& question, Answer& answer) {
    const auto ask = [&](const CountedPair& step) {
        const OneStep one(step.pair->loss(direction));
        return question.for_epsilon ? one.epsilon(question.value) : one.delta(question.value);
    };
    const CountedPair& only = steps.above.steps()[0];
    const Interval above = ask(only);
    answer.lower = above.lower, answer.upper = above.upper;
    answer.method = only.pair->is_gaussian() ? Method::gaussian : Method::one_step;
    if (steps.one_law_for_both_ends()) return;
    answer.gap_is_numerical = steps.gap_is_numerical();
    answer.dominating_lower = above.lower;
    const Steps& below = steps.below ? steps.below->steps() : Steps{};
    answer.lower = below.empty() ? 0.0 : infinity, answer.attained_upper = below.size() > 1 ? infinity : 0.0;
    for (const CountedPair& step : below) {
        const Interval attained = ask(step);
        answer.lower = min(answer.lower, attained.lower);
        answer.attained_upper = max(answer.attained_upper, attained.upper);
    }
    if (answer.method == Method::one_step) answer.method = Method::one_step_between_pairs;
}

// Limits whose upper ends are those of the steps above, and whose lower ends hold for those below.
inline Limits limits(const WarmBetween& steps, Direction direction) {
    Limits limit = steps.above.limits(direction);
    if (steps.one_law_for_both_ends()) return limit;
    const Limits least = steps.below ? steps.below->limits(direction) : Limits{{0.0, 0.0}, {0.0, 0.0}};
    limit.largest_loss.lower = min(limit.largest_loss.lower, least.largest_loss.lower);
    limit.infinite_mass.lower = min(limit.infinite_mass.lower, least.infinite_mass.lower);
    return limit;
}

// Fills in the answer by a closed form. False if none is exact; the upper end may then be known.
inline bool answer_exactly(const WarmBetween& steps, Direction direction, const Question& question,
                           const Options& options, Answer& answer) {
    const Steps& above = steps.above.steps();
    if (options.engine == EngineChoice::best && above.size() == 1 && above[0].count == 1.0) {
        answer_one_step(steps, direction, question, answer);
        return true;
    }
    const auto set = [&](double lower, double upper, Method method) {
        answer.lower = lower, answer.upper = upper, answer.method = method;
        return true;
    };
    const Limits limit = limits(steps, direction);
    if (!question.for_epsilon) {
        if (question.value < limit.largest_loss.upper && question.value < infinity) return false;
        return set(limit.infinite_mass.lower, limit.infinite_mass.upper, Method::beyond_largest_loss);
    }
    if (question.value < limit.infinite_mass.lower) return set(infinity, infinity, Method::infinite_mass);
    if (question.value == 0.0)
        return set(max(limit.largest_loss.lower, 0.0),
                   limit.infinite_mass.upper > 0.0 ? infinity : max(limit.largest_loss.upper, 0.0),
                   Method::largest_loss);
    if (question.value >= steps.above.total_variation(direction)) return set(0.0, 0.0, Method::total_variation);
    const bool bounded = limit.largest_loss.upper < infinity && limit.infinite_mass.upper == 0.0;
    if (options.engine == EngineChoice::best && bounded)
        answer.upper = max(limit.largest_loss.upper, 0.0), answer.method = Method::largest_loss;
    return false;  // the upper end may be known now: epsilon is at most the largest loss
}

// The smaller upper bound of delta by total variation and by the noise without sampling. Bounds
// of epsilon are left to `capped`.
inline double smallest_cap(WarmSteps& steps, Direction direction, const Question& question, double shift) {
    if (question.for_epsilon) return infinity;
    const double by_variation = steps.total_variation(direction);
    if (!(shift < infinity && shift > 0.0)) return by_variation;
    return min(by_variation, gaussian_step(shift).delta(question.value).upper);
}

// `best`, whose ends may pass each other by their rounding.
inline Answer with_ends_in_order(Answer best) {
    best.lower = min(best.lower, best.upper);
    return best;
}

// Raises the lower end of epsilon by the bound near the largest loss, where it is not narrow.
inline void raise_near_largest_loss(Answer& best, const WarmBetween& steps, Direction direction,
                                    const Question& question) {
    WarmSteps* const attained = steps.one_for_both_ends ? &steps.above : steps.below;
    if (attained && !best.narrow(question))
        best.lower = max(best.lower, attained->epsilon_near_largest_loss(direction, question.value));
}

// Raises the lower end to what one step alone leaks, where the bracket is wide: who sees all
// releases may look at that step's only, and no processing raises the divergence.
inline void raise_to_one_step(Answer& best, const WarmBetween& steps, Direction direction, const Question& question) {
    const WarmSteps* const attained = steps.one_for_both_ends ? &steps.above : steps.below;
    if (!attained || best.settled(question)) return;
    for (const CountedPair& step : attained->steps()) {
        const OneStep one(step.pair->loss(direction));
        const Interval alone = question.for_epsilon ? one.epsilon(question.value) : one.delta(question.value);
        best.lower = max(best.lower, alone.lower);
    }
}

// `best` with ends moved to the closed forms' bounds; `cap` is that of delta.
inline Answer capped(Answer best, const WarmBetween& steps, Direction direction, const Question& question, double shift,
                     double cap) {
    const auto lower_to = [&best](double upper, Method method) {
        if (upper < best.upper) best.upper = upper, best.method = method;
    };
    if (!question.for_epsilon) {
        lower_to(cap, shift < infinity ? Method::gaussian_without_sampling : Method::total_variation);
        if (!best.narrow(question))
            lower_to(steps.above.near_largest_loss(direction, question.value), Method::near_largest_loss);
        return with_ends_in_order(std::move(best));
    }
    if (shift < infinity && shift > 0.0) {
        const OneStep whole = gaussian_step(shift);
        const bool no_help = best.upper < infinity && whole.delta(best.upper).lower > question.value;
        if (!no_help) lower_to(whole.epsilon(question.value).upper, Method::gaussian_without_sampling);
    }
    return with_ends_in_order(std::move(best));
}

// `best` with its upper end lowered to that of Renyi divergences, where the engines' end is not
// sharp or a pair leaks more in composition than the mechanism does. A contour's end is at most
// Chernoff's bound, which is sharper.
inline Answer capped_by_renyi(Answer best, const WarmBetween& steps, Direction direction, const Question& question) {
    const Steps& above = steps.above.steps();
    const auto is_loose = [](const CountedPair& step) { return step.pair->composes_loosely(); };
    const bool served = best.sharp(question) || best.method == Method::contour;
    if (served && std::none_of(above.begin(), above.end(), is_loose)) return best;
    const RenyiBound bound = renyi_bound(above, direction, question);
    if (bound.value < best.upper) best.upper = bound.value, best.order = bound.order, best.method = Method::renyi;
    if (const BoundedRangeSteps* worst = steps.above.range_steps()) {
        const double upper = question.for_epsilon ? worst->epsilon(question.value) : worst->delta(question.value);
        if (upper < best.upper) best.upper = upper, best.method = Method::adaptive_range;
    }
    return with_ends_in_order(std::move(best));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting

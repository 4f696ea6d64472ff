// Some steps reveal the whole data set with a small probability; (eps, delta)-DP steps are such.
// This file takes the probability out of a composition. The engines then see the rest.
//
// Let step j be repeated T_j times, reveal the data set with probability d_j, on both data sets
// alike, and otherwise be the pair (P_j, Q_j). Let D = 1 - prod_j (1 - d_j)^{T_j}. Then
//
//     delta(eps) = D + (1 - D) delta'(eps),
//
// where delta' is the divergence of the composition of the pairs (P_j, Q_j): it is seen whether any
// step reveals, and an outcome that reveals has the divergence 1 at every eps. So epsilon(delta) is
// infinite if delta < D, and otherwise epsilon'((delta - D)/(1 - D)).
//
// D is enclosed to about 100 bits (numeric/enclosed.hpp), of the doubles d_j taken as exact
// numbers. So delta = D is told from delta < D without a tolerance. Where even that does not
// decide, as for D below 1e-290, epsilon is bracketed up to infinity.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <hockeystick/accounting/question.hpp>
#include <hockeystick/accounting/steps.hpp>
#include <hockeystick/numeric/enclosed.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

// The probability that one of two independent events happens.
inline Enclosed either(const Enclosed& x, const Enclosed& y) { return (x + y) - x * y; }

inline Enclosed any_of(Enclosed once, double count) {
    Enclosed result;
    for (auto left = static_cast<std::uint64_t>(count); left > 0; left /= 2, once = either(once, once))
        if (left % 2 == 1) result = either(result, once);
    return result;
}

// The steps, given that none of them reveals the data set, and the probability that one does.
struct Concealed {
    Steps steps;
    Enclosed revealed;
};

// What is rare and leaks much is taken for steps that reveal, too, with a probability of at most
// `spared` in all.
inline Concealed concealed(const Steps& steps, double spared = 0.0) {
    Concealed result;
    const auto reveal = [&](double once, double count) {
        if (once > 0.0) result.revealed = either(result.revealed, any_of({once}, count));
    };
    for (const CountedPair& step : steps) {
        const double once = step.pair->revealing_probability();
        PairPointer rest = once > 0.0 ? step.pair->without_disclosure() : step.pair;
        reveal(once, step.count);
        if (const Pair::WithoutRare less = rest->without_rare(spared / step.count / static_cast<double>(steps.size()));
            less.pair) {
            rest = less.pair;
            reveal(less.probability, step.count);
        }
        if (rest->leaks()) result.steps.push_back({rest, step.count});
    }
    return result;
}

inline bool has_rare(const Steps& steps) {
    return std::any_of(steps.begin(), steps.end(), [](const CountedPair& step) { return step.pair->has_rare(); });
}

inline bool discloses(const Steps& steps) {
    return std::any_of(steps.begin(), steps.end(),
                       [](const CountedPair& step) { return step.pair->revealing_probability() > 0.0; });
}

// D + (1 - D) delta', rounded towards `end`.
inline double with_revealed(const Enclosed& revealed, double delta, End end) {
    const bool is_upper = end == End::upper;
    const double mass = min(max(is_upper ? upper_end(revealed) : lower_end(revealed), 0.0), 1.0);
    if (delta == 0.0 || mass == 1.0) return mass;
    return min(rounded_to(mass + rounded_to((1.0 - mass) * delta, end), end), 1.0);
}

// (delta - D)/(1 - D), at most 1, rounded towards `end`. Negative if delta is below D, and exactly
// 0 if delta is known to be D.
inline double without_revealed(const Enclosed& revealed, double delta, End end) {
    const Enclosed left = Enclosed{delta} - revealed, all = Enclosed{1.0} - revealed;
    const double part = end == End::upper ? upper_end(left) : lower_end(left);
    if (part <= 0.0) return part;
    const double whole = end == End::upper ? lower_end(all) : upper_end(all);
    return whole > 0.0 ? min(rounded_to(part / whole, end), 1.0) : 1.0;
}

// The answers about a composition from those about its concealed steps: `ask(steps, question)`.
template <class Ask>
std::vector<Answer> answers_for_delta(const Concealed& above, const Concealed& below, const BracketingSteps& inner,
                                      const Question& question, const Ask& ask) {
    std::vector<Answer> found = ask(inner, question);
    for (Answer& answer : found) {
        answer.upper = with_revealed(above.revealed, answer.upper, End::upper);
        answer.lower = with_revealed(below.revealed, answer.lower, End::lower);
        answer.dominating_lower = with_revealed(above.revealed, answer.dominating_lower, End::lower);
        answer.attained_upper = with_revealed(below.revealed, answer.attained_upper, End::upper);
        answer.contour.log_upper = min(std::log(answer.upper) * down, 0.0);
        answer.contour.log_lower = std::log(answer.lower) * up;
    }
    return found;
}

template <class Ask>
std::vector<Answer> answers_for_epsilon(const Concealed& above, const Concealed& below, const BracketingSteps& inner,
                                        const Question& question, bool upper_only, const Ask& ask) {
    constexpr double largest = 1.0 - unit_roundoff;  // below 1
    const double least = without_revealed(above.revealed, question.value, End::lower);
    const double most = without_revealed(below.revealed, question.value, End::upper);
    std::vector<Answer> found = ask(inner, {true, min(max(least, 0.0), largest)});
    std::vector<Answer> lowest = upper_only || least == most ? found : ask(inner, {true, min(max(most, 0.0), largest)});
    for (Answer& answer : found) {
        answer.lower = most < 0.0 ? infinity : 0.0;
        for (const Answer& other : lowest)
            if (most >= 0.0 && most < 1.0 && other.direction == answer.direction)
                answer.lower = other.lower, answer.attained_upper = other.attained_upper;
        if (least < 0.0) answer.upper = infinity, answer.method = Method::infinite_mass;
    }
    return found;
}

template <class Ask>
std::vector<Answer> answers_beside_revealed(const BracketingSteps& steps, const Question& question, bool upper_only,
                                            const Concealed& above, const Ask& ask) {
    const Concealed below = concealed(steps.below);
    const BracketingSteps inner{above.steps, below.steps, equal(above.steps, below.steps)};
    std::vector<Answer> found = question.for_epsilon
                                    ? answers_for_epsilon(above, below, inner, question, upper_only, ask)
                                    : answers_for_delta(above, below, inner, question, ask);
    for (Answer& answer : found)
        if (answer.method == Method::nothing_composed) answer.method = Method::infinite_mass;
    return found;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting

// Bounds of one direction of a composition, from each step alone. docs/core/accounting.md has the
// proofs. Step j is composed T_j times, and delta_j is the divergence of one such step.
//
//   Total variation.  delta(0) <= 1 - prod_j (1 - delta_j(0))^{T_j}, by coupling the steps one by
//                     one.
//   No sampling.      Sampled Gaussian steps leak no more than the same noise without sampling,
//                     because the divergence is jointly convex.
//   Largest loss.     The total loss is at most sum_j T_j l_j, with l_j the largest finite loss of
//                     step j. It comes close to that sum only if every step's loss is close to l_j.
//   Renyi.            Divergences of one order add up, and bound delta and epsilon (RenyiCap).
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <hockeystick/accounting/question.hpp>
#include <hockeystick/accounting/steps.hpp>
#include <hockeystick/loss/one_step.hpp>
#include <hockeystick/mechanism/gaussian.hpp>
#include <hockeystick/numeric/enclosed.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

// log prod_j (1 - mass_j)^{T_j}, of masses that are added one step at a time.
class LogComplement {
  public:
    void add(double mass, double count) {
        if (mass >= 1.0) vanishes_ = true;
        else if (!vanishes_) sum_.add(count * std::log1p(-mass));
    }
    double value() const { return vanishes_ ? -infinity : sum_.value(); }

  private:
    CompensatedSum sum_;
    bool vanishes_ = false;
};

// What the closed forms need of one step in one direction, however often it is repeated.
struct StepBounds {
    explicit StepBounds(Loss of_step) : loss(std::move(of_step)) {
        const OneStep one(loss);
        total_variation = one.delta(0.0).upper;
        largest_loss = one.highest(), infinite_mass = one.infinite_mass();
    }

    Loss loss;
    double total_variation;  // an upper bound of delta(0)
    Interval largest_loss;   // the largest finite loss
    Interval infinite_mass;  // probability under P of an infinite loss
};

// The bounds of each step. A composition repeats step j counts[j] times.
using AllStepBounds = std::vector<StepBounds>;

inline AllStepBounds step_bounds(const Steps& steps, Direction direction) {
    AllStepBounds bounds;
    for (const CountedPair& step : steps) bounds.emplace_back(step.pair->loss(direction));
    return bounds;
}

// An upper bound of delta(0), hence of delta at every epsilon.
inline double total_variation(const Steps& steps, const AllStepBounds& bounds) {
    LogComplement equal;
    for (std::size_t j = 0; j < steps.size(); ++j) equal.add(bounds[j].total_variation, steps[j].count);
    return min(-std::expm1(equal.value()) * up, 1.0);
}

struct Limits {
    Interval largest_loss;   // the largest finite loss of the composition
    Interval infinite_mass;  // probability under P of an infinite loss
};

inline Limits limits(const Steps& steps, const AllStepBounds& bounds) {
    Enclosed low, high;
    LogComplement finite_at_most, finite_at_least;
    Limits result{{infinity, infinity}, {0.0, 0.0}};
    bool bounded = true;
    for (std::size_t j = 0; j < steps.size(); ++j) {
        const double count = steps[j].count;
        const Interval largest = bounds[j].largest_loss, infinite = bounds[j].infinite_mass;
        bounded = bounded && largest.upper < infinity;
        if (bounded) low = low + exact_product(count, largest.lower);
        if (bounded) high = high + exact_product(count, largest.upper);
        finite_at_most.add(infinite.lower, count), finite_at_least.add(infinite.upper, count);
    }
    if (bounded) result.largest_loss = {lower_end(low), upper_end(high)};
    result.infinite_mass.lower = max(-std::expm1(finite_at_most.value()) * down, 0.0);
    result.infinite_mass.upper = min(0.0 - std::expm1(finite_at_least.value()) * up, 1.0);
    return result;
}

// The shift of one Gaussian step that dominates the composition, if every step is Gaussian noise,
// sampled or not. Infinity otherwise.
inline double dominating_shift(const Steps& steps) {
    return composed_shift(steps, [](const Pair& pair) { return pair.dominating_shift(); }) * up;
}

namespace sound {
inline constexpr double of_tails = 1.0 + 1e-9;  // more than the tails' formulas err by
}  // namespace sound

// An upper bound of delta(eps) for eps just below the largest loss, where grids of losses are too
// coarse; infinity elsewhere. With g = largest loss - eps, it is
// (1 - e^{-g}) prod_j P(L_j > l_j - g)^{T_j} plus the mass of infinite losses.
inline double near_largest_loss(const Steps& steps, const AllStepBounds& bounds, double eps) {
    const Limits all = limits(steps, bounds);
    if (!(eps <= all.largest_loss.upper && all.largest_loss.upper < infinity)) return infinity;
    const double gap = (all.largest_loss.upper - eps) * up;
    double near = 1.0;
    for (std::size_t j = 0; j < steps.size(); ++j) {
        const double highest = bounds[j].largest_loss.lower;
        const double from = highest - gap - eight_roundings * std::fabs(highest);
        near *= std::pow(min(bounds[j].loss->masses(from).p_above * sound::of_tails, 1.0), steps[j].count);
    }
    // The product may underflow, but it is not 0.
    return min(-std::expm1(-gap) * near * sound::of_tails + smallest_positive + all.infinite_mass.upper, 1.0);
}

// A loss, nearly the largest, that one step exceeds with a probability of at least `share`: for
// steps whose losses have no largest one. 0 if there is none above 0.
inline double exceeded_loss(const PrivacyLoss& loss, double share) {
    double low = 0.0, high = 1e-300;
    for (; high < 1e300 && loss.masses(high).p_above >= share; high *= 1e10) low = high;
    for (int k = 0; k < 100; ++k) {
        const double middle = low > 0.5 * high ? 0.5 * (low + high) : std::sqrt(max(low, 1e-310) * high);
        (loss.masses(middle).p_above >= share ? low : high) = middle;
    }
    return low;
}

// A lower bound of epsilon(delta). With l_j any losses, M = prod_j P(L_j > l_j)^{T_j} and
// l = sum_j T_j l_j, delta(eps) is at least M (1 - e^{eps - l}). So epsilon(delta) is at least
// l + log(1 - delta/M). It is useful where l_j may be just below the largest loss of step j, and
// delta is below the probability of that, or where a step's loss is nearly certain.
inline double epsilon_near_largest_loss(const Steps& steps, const AllStepBounds& bounds, double delta) {
    Enclosed sum;
    double mass = 1.0, count = 0.0;
    for (const CountedPair& step : steps) count += step.count;
    for (std::size_t j = 0; j < steps.size(); ++j) {
        const Interval largest = bounds[j].largest_loss;
        const bool bounded = largest.upper < infinity;
        const double share = std::exp((std::log(delta) + 1.0) / count);
        const double from = bounded ? std::nextafter(largest.lower, -infinity) : exceeded_loss(*bounds[j].loss, share);
        // Of any loss that counts as above `from`.
        const double error = bounded ? (largest.upper - largest.lower) * up : sixteen_roundings * (from + 1.0);
        const double least = error > 0.0 ? std::nextafter(from - error, -infinity) : from;
        sum = sum + exact_product(steps[j].count, least);
        mass *= std::pow(bounds[j].loss->masses(from).p_above / sound::of_tails, steps[j].count);
    }
    mass /= sound::of_tails;
    if (!(delta < mass)) return 0.0;
    return max((lower_end(sum) + std::log1p(-(delta / mass) * up) * up) * down, 0.0);
}

// Upper ends by Renyi divergences, which add up over the steps. With D of order a for the whole,
// every order bounds both questions (Canonne, Kamath and Steinke 2020, Proposition 12):
//
//   log delta <= (a-1) (D - eps + log(1 - 1/a)) - log a,
//   epsilon   <= D + log(1 - 1/a) - (log delta + log a)/(a-1).
//
struct RenyiBound {
    double value, order;
};

// The bound of epsilon, or of log delta, that a divergence of this order gives, rounded up.
inline double renyi_bound_at(double order, double divergence, const Question& question) {
    const double less = order - 1.0, log_share = std::log1p(-1.0 / order);
    double parts[] = {divergence, log_share, -question.value, -std::log(order) / less};
    if (question.for_epsilon) parts[2] = -std::log(question.value) / less;
    double sum = 0.0, size = 0.0;
    for (const double part : parts) sum += part, size += std::fabs(part);
    sum += sixteen_roundings * size;
    return question.for_epsilon ? sum : less * sum;
}

// Epsilon or delta of that.
inline double renyi_answer(double bound, const Question& question) {
    return question.for_epsilon ? max(bound, 0.0) : min(std::exp(bound) * up + smallest_positive, 1.0);
}

// The least upper end by divergences of several orders, of what is known by them alone.
inline RenyiBound least_renyi_bound(const std::vector<double>& orders, const std::vector<double>& divergences,
                                    const Question& question) {
    const auto above_zero = [](double divergence) { return divergence != 0.0; };
    if (std::none_of(divergences.begin(), divergences.end(), above_zero)) return {0.0, orders.front()};
    if (!question.for_epsilon && question.value == infinity) {  // infinite losses may have any probability
        const auto finite = [](double divergence) { return divergence < infinity; };
        return {std::any_of(divergences.begin(), divergences.end(), finite) ? 0.0 : 1.0, orders.back()};
    }
    if (question.for_epsilon && question.value == 0.0) return {infinity, orders.back()};
    RenyiBound best{infinity, orders.front()};
    for (std::size_t j = 0; j < orders.size(); ++j) {
        const double found = renyi_answer(renyi_bound_at(orders[j], divergences[j], question), question);
        if (found < best.value) best = {found, orders[j]};
    }
    return best;
}

// (a-1) D is convex in a, so the first bound is too, and the second has one valley. A
// golden-section search of log(a-1) finds a good order; whichever it finds, the bound holds. It
// tries integers last, where sampled steps have their sharpest closed forms.
//
// Cost: some twenty divergences of each step, from microseconds to ten milliseconds.

class RenyiCap {
  public:
    RenyiCap(const Steps& steps, Direction direction, const Question& question)
        : steps_(steps), direction_(direction), question_(question) {}

    RenyiBound least() {
        try_order(2.0);
        if (!(best_.value < infinity)) return best_;
        const auto is_concentrated = [](const CountedPair& step) { return step.pair->concentrated_shift() < infinity; };
        const bool at_all_orders = std::all_of(steps_.begin(), steps_.end(), is_concentrated);
        double low = least_log, high = std::log(at_all_orders ? largest_of_concentrated : largest_order);
        double left = high - golden * (high - low), right = low + golden * (high - low);
        double at_left = try_order(1.0 + std::exp(left)), at_right = try_order(1.0 + std::exp(right));
        while (high - low > resolution) {
            if (at_left <= at_right) {
                high = right, right = left, at_right = at_left;
                left = high - golden * (high - low), at_left = try_order(1.0 + std::exp(left));
            } else {
                low = left, left = right, at_left = at_right;
                right = low + golden * (high - low), at_right = try_order(1.0 + std::exp(right));
            }
        }
        const double near = std::floor(best_.order);
        if (near >= 2.0 && near <= most_integers) try_order(near), try_order(near + 1.0);
        best_.value = renyi_answer(best_.value, question_);
        return best_;
    }

  private:
    static constexpr double golden = 0.6180339887498949;  // (sqrt 5 - 1)/2
    static constexpr double least_log = -6.0, largest_order = 1e4, largest_of_concentrated = 1e12, resolution = 0.02,
                            most_integers = 256.0;

    double divergence(double order) const {
        double sum = 0.0;
        for (const CountedPair& step : steps_) sum += step.count * step.pair->renyi(order, 1.0, direction_);
        return sum * (1.0 + unit_roundoff * (2.0 * static_cast<double>(steps_.size()) + 8.0));
    }

    double try_order(double order) {
        const double bound = renyi_bound_at(order, divergence(order), question_);
        if (bound < best_.value) best_ = {bound, order};
        return bound;
    }

    const Steps& steps_;
    Direction direction_;
    Question question_;
    RenyiBound best_{infinity, 0.0};
};

// The least bound over the orders; infinity if there is none.
inline RenyiBound renyi_bound(const Steps& steps, Direction direction, const Question& question) {
    const bool asks_little = question.for_epsilon ? question.value > 0.0 : question.value < infinity;
    return asks_little ? RenyiCap(steps, direction, question).least() : RenyiBound{infinity, 0.0};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting

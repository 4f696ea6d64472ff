// DP-SGD: `steps` equal steps of Gaussian noise on a Poisson sample, under add-or-remove adjacency.
// Five numbers describe a training and its budget: sigma (the noise multiplier), rate (the sampling
// rate q), steps, eps and delta. Each function computes one of them from the other four.
//
// Delta and epsilon are upper ends, by the engine that serves accountants (accounting/engine.hpp).
// They rise with the rate and the steps, and fall with sigma.
//
// The other three functions solve for the largest or smallest number whose delta and epsilon meet
// the budget. The number that they return is feasible: its delta and its epsilon were evaluated and
// do not exceed the targets. The search starts from the Gaussian limit
// mu^2 = q^2 steps (e^{1/sigma^2} - 1) (Bu, Dong, Long and Su 2020), which only chooses where to
// look, and takes secants of log delta. If the epsilon of the result misses the target, `retreat`
// walks on to a number whose epsilon meets it. Functions return NaN outside their domains.
//
// Steps are exact integers. One step more than the number that is returned was evaluated, too, and
// found not to be certainly feasible. So the number is the largest wherever one step moves epsilon
// by more than the width of its bracket; elsewhere a few steps more are neither proven nor refuted.
#pragma once

#include <limits>

#include <hockeystick/accounting/engine.hpp>
#include <hockeystick/divergence/hockey_stick_inverse.hpp>
#include <hockeystick/mechanism/poisson_sampled.hpp>
#include <hockeystick/numeric/domain.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

using namespace divergence;

inline bool probability(double x) { return x >= 0.0 && x <= 1.0; }

// The engine's brackets make log delta vary by about this much from one point to the next. A search
// stops when log delta is that close to its target.
inline constexpr double noise_of_log_delta = 1e-9;

// The steps of a training. Those of the same noise and rate as the engine's last question share its
// pair: making a pair and comparing it takes a twentieth of a delta's instructions.
inline Steps dpsgd_ledger(const Engine& engine, double sigma, double rate, double steps) {
    if (const Steps* last = engine.last_steps(); last && rate < 1.0) {
        const Pair::GaussianNoise noise = last->front().pair->gaussian_noise();
        if (noise.noise_multiplier == sigma && noise.rate == rate) return {{last->front().pair, steps}};
    }
    const Steps each{{poisson_sampled(gaussian(sigma), rate), steps}};
    return rate == 1.0 ? with_one_gaussian(each, End::upper) : each;
}

// log delta, rounded down.
inline double log_target(double delta) { return std::log(delta) * up; }

// delta, known well enough for a search for where it passes `threshold` (Options::threshold).
inline double searched_delta(Engine& engine, double sigma, double rate, double steps, double eps, double threshold) {
    if (!(sigma > 0.0 && probability(rate) && count_or_none(steps) && eps >= 0.0)) return nan;
    if (rate == 0.0 || steps == 0.0 || sigma == infinity || eps == infinity) return 0.0;
    return engine.upper_end(dpsgd_ledger(engine, sigma, rate, steps), {false, eps}, threshold);
}
inline double dpsgd_delta(Engine& engine, double sigma, double rate, double steps, double eps) {
    return searched_delta(engine, sigma, rate, steps, eps, nan);
}

inline double dpsgd_epsilon(Engine& engine, double sigma, double rate, double steps, double delta) {
    if (!(sigma > 0.0 && probability(rate) && count_or_none(steps) && probability(delta))) return nan;
    if (rate == 0.0 || steps == 0.0 || sigma == infinity || delta == 1.0) return 0.0;
    if (delta == 0.0) return infinity;
    return engine.upper_end(dpsgd_ledger(engine, sigma, rate, steps), {true, delta});
}

// Finds the last x between low.x and high.x with log_delta(x) <= log delta. One of `low` and `high`
// must be feasible, that is satisfy the inequality, and the other one not. model(delta) is the
// expected x at a delta. If `whole`, only integers x are evaluated. `slack` is as in
// numeric/feasible_search.hpp.
template <class Function, class Model, class Tolerance>
double last_feasible(const Function& log_delta, const Model& model, double delta, const Evaluation& low,
                     const Evaluation& high, const Tolerance& tolerance, bool whole, double slack) {
    const double level = log_target(delta);
    const auto inside = [&](double x) { return x > low.x && x < high.x; };
    const double guess = model(delta);
    const double x = inside(guess) ? guess : 0.5 * (low.x + high.x);
    const Evaluation start{whole ? std::floor(x) : x, log_delta(whole ? std::floor(x) : x)};
    // The model is off by a factor in delta that changes slowly with x. Divide by that factor, and
    // step 30 percent further, so that the first stride usually passes the solution.
    const double corrected = model(min(std::exp(2.0 * level - start.f), 0.5 * (1.0 + delta)));
    double stride = inside(corrected) ? 1.3 * std::fabs(corrected - start.x) : 0.0;
    stride = max(stride, 2.0 * tolerance(start.x));
    const bool feasible = start.f <= level;
    const Evaluation& end = ((low.f <= level) == feasible) ? high : low;
    const FeasibleBracket s = bracket_feasible(log_delta, level, start, whole ? std::ceil(stride) : stride, end);
    return narrow_feasible(log_delta, level, s, tolerance, whole, slack).good.x;
}

// The feasible x nearest to `start`, which meets the target of delta, but may miss that of epsilon
// by the width of the engine's brackets. Strides towards `safe` grow until fits(x); then the last
// one is halved until it is 5e-7 of x, or 1 with `whole`. `safe` if nothing before it fits.
template <class Fits> double retreat(const Fits& fits, double start, double safe, bool whole) {
    if (start == safe || fits(start)) return start;
    const auto moved = [&](double stride) {
        const double x = safe > start ? start * (1.0 + stride) : start / (1.0 + stride);
        return whole ? min(std::floor(x), start - 1.0) : x;
    };
    double bad = start, good = safe;
    for (double stride = 1e-9; stride < 1e9 && good == safe; stride *= 20.0) {
        const double x = moved(stride);
        if (safe > start ? x >= safe : x <= safe) break;
        if (x != bad) (fits(x) ? good : bad) = x;
    }
    if (!(good < infinity)) return good;
    for (int k = 0; k < 60 && std::fabs(good - bad) > (whole ? 1.0 : 5e-7 * good); ++k) {
        const double middle = good + 0.5 * (bad - good), x = whole ? std::floor(middle) : middle;
        (fits(x) ? good : bad) = x;
    }
    return good;
}

// Whether delta allows training without noise. That reveals a record only if one of the samples
// holds it, which has probability 1 - (1 - rate)^steps.
inline bool any_noise_will_do(double rate, double steps, double delta) {
    return min(-std::expm1(steps * std::log1p(-rate)) * up, 1.0) <= delta;
}

// e^{1/sigma^2} - 1, the factor of q^2 steps in the Gaussian limit, capped before it overflows.
inline double limit_variance(double sigma) { return std::expm1(min(1.0 / (sigma * sigma), 700.0)); }

// The smallest noise multiplier. 0 if every one meets the budget, infinity if none does.
inline double dpsgd_noise_multiplier(Engine& engine, double rate, double steps, double eps, double delta) {
    if (!(probability(rate) && count_or_none(steps) && eps >= 0.0 && probability(delta))) return nan;
    if (rate == 0.0 || steps == 0.0 || eps == infinity || any_noise_will_do(rate, steps, delta)) return 0.0;
    if (delta == 0.0) return infinity;
    const auto delta_at = [&](double sigma) { return searched_delta(engine, sigma, rate, steps, eps, delta); };
    const auto model = [&](double d) {
        const double mu = theta_inverse(eps, d), scaled = mu * mu / steps;
        return rate == 1.0 ? -0.5 * std::log(scaled) : -0.5 * std::log(std::log1p(scaled / (rate * rate)));
    };
    const double x =
        last_feasible([&](double log_x) { return std::log(delta_at(std::exp(log_x))); }, model, delta, {-700.0, 0.0},
                      {709.0, -infinity}, [](double) { return 1e-9; }, false, rate == 1.0 ? 0.0 : noise_of_log_delta);
    const auto fits = [&](double sigma) {
        return dpsgd_epsilon(engine, sigma, rate, steps, delta) <= eps && delta_at(sigma) <= delta;
    };
    return x < 709.0 ? retreat(fits, std::exp(x), infinity, false) : infinity;
}

// A rate that is feasible at every eps: the total variation of that many steps is at most delta; 1e-10
// pays for rounding.
inline double always_feasible_rate(double sigma, double steps, double delta) {
    const double each = -std::expm1(std::log1p(-delta) / steps);
    return min(each / theta(0.0, 1.0 / sigma), 1.0) * (1.0 - 1e-10);
}

inline constexpr double max_steps = 0x1p53 - 1.0;

// The largest number of steps. 0 if not even one step meets the budget, infinity if every number
// does, and otherwise at most 2^53 - 1.
inline double dpsgd_steps(Engine& engine, double sigma, double rate, double eps, double delta) {
    if (!(sigma > 0.0 && probability(rate) && eps >= 0.0 && probability(delta))) return nan;
    if (rate == 0.0 || sigma == infinity || eps == infinity || delta == 1.0) return infinity;
    if (delta == 0.0) return 0.0;
    if (rate <= always_feasible_rate(sigma, max_steps, delta) &&
        dpsgd_epsilon(engine, sigma, rate, max_steps, delta) <= eps)
        return max_steps;
    const auto delta_at = [&](double steps) { return searched_delta(engine, sigma, rate, steps, eps, delta); };
    const auto model = [&](double d) {
        const double mu = theta_inverse(eps, d);
        return max(mu * mu / (rate * rate * (rate == 1.0 ? 1.0 / (sigma * sigma) : limit_variance(sigma))), 2.0);
    };
    const double x =
        last_feasible([&](double steps) { return std::log(delta_at(steps)); }, model, delta, {0.0, -infinity},
                      {max_steps + 1.0, infinity}, [](double) { return 1.0; }, true, 0.0);
    const auto fits = [&](double steps) {
        return dpsgd_epsilon(engine, sigma, rate, steps, delta) <= eps && delta_at(steps) <= delta;
    };
    double most = retreat(fits, x, 0.0, true);
    // The search's target is rounded down.
    for (int k = 0; k < 3 && most < max_steps && fits(most + 1.0); ++k) most += 1.0;
    return most;
}

// The largest sampling rate. 1 if every rate meets the budget, 0 if none does.
inline double dpsgd_sampling_rate(Engine& engine, double sigma, double steps, double eps, double delta) {
    if (!(sigma > 0.0 && count_or_none(steps) && eps >= 0.0 && probability(delta))) return nan;
    if (dpsgd_epsilon(engine, sigma, 1.0, steps, delta) <= eps) return 1.0;
    if (delta == 0.0) return 0.0;
    const double always = always_feasible_rate(sigma, steps, delta);
    const auto epsilon = [&](double rate) { return dpsgd_epsilon(engine, sigma, rate, steps, delta); };
    if (eps == 0.0 && always < 1.0 && epsilon(always) <= 0.0 && epsilon(always * (1.0 + 1e-6)) > 0.0) return always;
    const auto delta_at = [&](double rate) { return searched_delta(engine, sigma, rate, steps, eps, delta); };
    const auto model = [&](double d) {
        return std::log(theta_inverse(eps, d)) - 0.5 * std::log(steps * limit_variance(sigma));
    };
    const double x = last_feasible([&](double log_x) { return std::log(delta_at(std::exp(log_x))); }, model, delta,
                                   {std::log(always), -infinity}, {0.0, infinity}, [](double) { return 1e-9; }, false,
                                   noise_of_log_delta);
    const auto fits = [&](double rate) { return epsilon(rate) <= eps && delta_at(rate) <= delta; };
    return x > std::log(always) ? retreat(fits, std::exp(x), always, false) : always;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting

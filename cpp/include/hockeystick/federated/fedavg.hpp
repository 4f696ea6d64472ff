// Gaussian DP of the last model of Noisy-FedAvg and Noisy-FedProx (Sun, Shen and Tao 2024).
//
// Setting: K local steps on clipped gradients of norm at most V; m clients that all take part in
// every round; each adds noise N(0, sigma^2 I) to the model that it uploads; one record is
// replaced. By their Theorem 10 two runs drift apart by at most z -> rho_t z + gamma_t a round,
// where
//
//   FedAvg    rho_t = prod_k (1 + lr_{t,k} L),   gamma_t = (2V/m) sum_k lr_{t,k},   t, k from 0,
//             lr_{t,k} = lr (constant), lr/(k+1) (cyclic), lr/(t+1) (stagewise),
//             lr/(tK+k+1) (continuous);
//   FedProx   rho_t   = 1 + L/(a-L) (1 - prod_k (1 - lr_{t,k} (a-L))),
//             gamma_t = (2V/(m a)) (1 - prod_k (1 - lr_{t,k} a)),   a = prox > L, lr_{t,k} <= 1/a.
//
// FedProx's are what its local recursion gives for any steps: from two starts at distance 1 the gap
// is at most x_k with x_0 = 1, x_{k+1} = (1 - lr_k a) x_k + lr_k L x_k + lr_k a, because
// 1 - lr_k a >= 0; x* = a/(a-L) is its fixed point, so x* - x_{k+1} = (1 - lr_k (a-L)) (x* - x_k).
// From one start on two data sets it is at most g_k with g_0 = 0, g_{k+1} = (1 - lr_k a) g_k +
// 2V lr_k, whose fixed point is 2V/a. No order of the steps is assumed; none of these schedules
// grows, so that the first step lr is the largest.
//
// The Gaussian-DP parameter is mu = sqrt(m)/sigma sqrt(H) (their Eq. 12), with H the optimum of
// hidden_state/shifted_interpolation.hpp. docs/core/federated.md says where this differs from the
// paper.
//
// gamma is kept in units of 2V lr/m, where that of equal steps lies between 1 and K, and mu is put
// together from ratios, so that squares neither overflow nor underflow.
//
// Error: 1e-12 relative in mu. Cost: O(1) in T and K for constant and cyclic steps; otherwise
// O(T), or O(T log T) with a diameter, whatever K. NaN outside the domain.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/federated/unbounded_drift.hpp>
#include <hockeystick/hidden_state/shifted_interpolation.hpp>

namespace hockeystick::federated {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace hidden_state;

enum class StepSchedule { constant, cyclic, stagewise, continuous };

// Whether all rounds have the same rho and gamma. Then a cell's cost does not grow with the rounds.
inline bool constant_over_rounds(StepSchedule schedule) {
    return schedule == StepSchedule::constant || schedule == StepSchedule::cyclic;
}

// rho and gamma of one round; gamma in units of 2V lr/m.
struct RoundDrift {
    double log_rho, gamma;
};

// x^-1, x^-3, x^-5, x^-7.
struct OddPowers {
    double terms[4];
    explicit OddPowers(double x) : terms{1.0 / x} {
        for (int k = 1; k < 4; ++k) terms[k] = terms[k - 1] / (x * x);
    }
};

// Euler-Maclaurin for sum_{j=first}^{last} f(j), from the integral, f(first) + f(last), and the odd
// derivatives: odd[k] = (f^(2k+1)(last) - f^(2k+1)(first))/(2k)!. For both functions below the next
// term is less than 1e-17 of the sum from first = 32 on.
inline double euler_maclaurin(double integral, double ends, const double (&odd)[4]) {
    // (2k)! B_{2k+2}/(2k+2)!
    constexpr double weights[] = {1.0 / 12, -2.0 / 720, 24.0 / 30240, -720.0 / 1209600};
    double sum = integral + 0.5 * ends;
    for (int k = 0; k < 4; ++k) sum += weights[k] * odd[k];
    return sum;
}

inline constexpr double direct_terms = 32.0;

// sum_{j=first}^{last} 1/j; the derivatives are -(2k+1)! x^{-2k-2}.
inline double reciprocal_sum(double first, double last) {
    double sum = 0.0;
    for (; first <= last && first < direct_terms; first += 1.0) sum += 1.0 / first;
    if (first > last) return sum;
    const OddPowers a(first), b(last);
    double odd[4];
    for (int k = 0; k < 4; ++k) odd[k] = (2 * k + 1) * (a.terms[k] / first - b.terms[k] / last);
    return sum + euler_maclaurin(std::log1p((last - first) / first), 1.0 / first + 1.0 / last, odd);
}

// log(1 + u) - u for |u| <= 1/32: the first term left out is below 2e-18 of the first.
inline double log1p_less_argument(double u) {
    double series = 0.0;
    for (int n = 14; n >= 2; --n) series = (n % 2 ? 1.0 : -1.0) / n + u * series;
    return u * u * series;
}

// sum_{j=first}^{last} log(1 + c/j), c >= -1, first >= 1; the derivatives are
// (2k)! ((x+c)^{-2k-1} - x^{-2k-1}). The integral and the derivatives are written so that terms
// which cancel are never formed: the relative error stays a few units where the sum is small,
// which FedProx's gamma needs (FedAvg's rho needs the absolute error only).
inline double log_growth_sum(double c, double first, double last) {
    double sum = 0.0;
    // short sums, and growth that the series above does not cover, term by term
    for (; first <= last && (first < direct_terms || first < 32.0 * std::abs(c)) && first < 1024.0; first += 1.0)
        sum += std::log1p(c / first);
    if (first > last) return sum;
    const bool small = std::abs(c) <= first / 32.0;
    // x log(1 + c/x), less c at both ends where that is the larger part
    const auto primitive = [&](double x) { return x * (small ? log1p_less_argument(c / x) : std::log1p(c / x)); };
    const double integral = primitive(last) - primitive(first) + c * std::log1p((last - first) / (first + c));
    double odd[4];
    const auto derivatives = [&](double x, double sign) {  // (x+c)^{-n} - x^{-n}, n = 1, 3, 5, 7
        const double shifted = 1.0 / (x + c), plain = 1.0 / x;
        double gap = -c * shifted * plain, power = plain;
        const double squares = gap * (shifted + plain);
        for (int k = 0; k < 4; ++k) {
            odd[k] += sign * gap;
            gap = shifted * shifted * gap + power * squares;
            power *= plain * plain;
        }
    };
    for (double& term : odd) term = 0.0;
    derivatives(last, 1.0);
    derivatives(first, -1.0);
    return sum + euler_maclaurin(integral, std::log1p(c / first) + std::log1p(c / last), odd);
}

// Where the cost grows with the rounds, more than this are refused: they would take 100 MB of
// blocks per thread and seconds per cell.
inline constexpr double max_scheduled_rounds = 1e6;

inline RoundDrift fedavg_drift(StepSchedule schedule, double t, double local_steps, double learning_rate,
                               double smoothness) {
    const double growth = learning_rate * smoothness;
    switch (schedule) {
    case StepSchedule::constant:
        return {local_steps * std::log1p(growth), local_steps};
    case StepSchedule::cyclic:
        return {log_growth_sum(growth, 1.0, local_steps), reciprocal_sum(1.0, local_steps)};
    case StepSchedule::stagewise:
        return {local_steps * std::log1p(growth / (t + 1.0)), local_steps / (t + 1.0)};
    case StepSchedule::continuous:
        break;
    }
    const double done = t * local_steps;
    return {log_growth_sum(growth, done + 1.0, done + local_steps), reciprocal_sum(done + 1.0, done + local_steps)};
}

// -log prod_k (1 - x s_k) over a round's steps s_k = lr_{t,k}/lr, 0 <= x <= 1; infinite where a
// factor is 0.
inline double shrinkage(StepSchedule schedule, double t, double local_steps, double x) {
    const double rate = x > 1.0 ? 1.0 : x;
    switch (schedule) {
    case StepSchedule::constant:
        return -local_steps * log1m(rate);
    case StepSchedule::cyclic:
        return -log_growth_sum(-rate, 1.0, local_steps);
    case StepSchedule::stagewise:
        return -local_steps * log1m(rate / (t + 1.0));
    case StepSchedule::continuous:
        break;
    }
    const double done = t * local_steps;
    return -log_growth_sum(-rate, done + 1.0, done + local_steps);
}

inline RoundDrift fedprox_drift(StepSchedule schedule, double t, double local_steps, double learning_rate,
                                double smoothness, double prox) {
    const double pull = prox - smoothness;
    const double x = learning_rate * prox;
    const auto forgotten = [&](double rate) { return 0.0 - expm1_bounded(-shrinkage(schedule, t, local_steps, rate)); };
    // Below 1e-290, where x may have lost its digits, gamma is FedAvg's up to a relative K x.
    const double gamma =
        x > 1e-290 ? forgotten(x) / x : fedavg_drift(schedule, t, local_steps, learning_rate, smoothness).gamma;
    return {std::log1p(smoothness / pull * forgotten(learning_rate * pull)), gamma};
}

// The Gaussian-DP parameter of rounds whose drifts are `drift(t)`.
template <class Drift>
double scheduled_gdp(const Drift& drift, bool alike, double rounds, const DriftUnits& units, double diameter,
                     std::vector<ShiftBlock>& blocks) {
    const double bound = units.scaled(diameter);
    if (alike) {
        const RoundDrift d = drift(0);
        return drift_parameter(units.scale(),
                               std::sqrt(constant_best_start(d.log_rho, d.gamma, rounds, 0.0, bound).cost));
    }
    if (rounds > max_scheduled_rounds) return nan;
    const auto count = static_cast<std::size_t>(rounds);
    return drift_parameter(units.scale(),
                           std::sqrt(shifted_interpolation_optimum(drift, count, 0.0, bound, blocks).cost));
}

// The Gaussian-DP parameter of Noisy-FedAvg; diameter = inf for an unbounded domain. `blocks` is
// scratch space; `interrupted()` may throw to end a long computation.
template <class Interrupted>
double fedavg_gdp(StepSchedule schedule, double rounds, double local_steps, double num_clients, double clip_norm,
                  double noise_std, double smoothness, double learning_rate, double diameter,
                  std::vector<ShiftBlock>& blocks, const Interrupted& interrupted) {
    const FloatingEnvironment environment;
    if (!legal_federation(rounds, local_steps, num_clients, clip_norm, noise_std, smoothness, learning_rate, diameter))
        return nan;
    const auto drift = [&](std::size_t t) {
        if ((t & 0xffff) == 0) interrupted();
        return fedavg_drift(schedule, static_cast<double>(t), local_steps, learning_rate, smoothness);
    };
    const DriftUnits units{clip_norm, noise_std, num_clients, learning_rate};
    return scheduled_gdp(drift, constant_over_rounds(schedule), rounds, units, diameter, blocks);
}

template <class Interrupted>
double fedprox_gdp(StepSchedule schedule, double rounds, double local_steps, double num_clients, double clip_norm,
                   double noise_std, double smoothness, double learning_rate, double prox, double diameter,
                   std::vector<ShiftBlock>& blocks, const Interrupted& interrupted) {
    const FloatingEnvironment environment;
    if (!legal_federation(rounds, local_steps, num_clients, clip_norm, noise_std, smoothness, learning_rate, diameter))
        return nan;
    if (!legal_prox(prox, smoothness, learning_rate)) return nan;
    const auto drift = [&](std::size_t t) {
        if ((t & 0xffff) == 0) interrupted();
        return fedprox_drift(schedule, static_cast<double>(t), local_steps, learning_rate, smoothness, prox);
    };
    const DriftUnits units{clip_norm, noise_std, num_clients, learning_rate};
    return scheduled_gdp(drift, constant_over_rounds(schedule), rounds, units, diameter, blocks);
}

// The limit of fedavg_gdp for many rounds, in units of gamma (docs/core/federated.md, "Many rounds").
//
// With P_t = rho_0 ... rho_t, one block of rounds costs A^2/B, A = sum gamma_t/P_t, B = sum P_t^{-2}.
// Both are summed over `summed_rounds`; what follows is the limit of (p - 1 + r) u/((1 - r)(p - 1)),
// which for terms u of order t^{-p} and ratio r of the next one to u differs from the sum from u on
// by a relative O(1/t^2) (Raabe).
inline constexpr double summed_rounds = 20000.0;

// The sum from u on, of terms of order t^{-p}, where the next one is exp(log_ratio) u.
inline double power_tail(double u, double log_ratio, double p) {
    const double ratio = std::exp(log_ratio);
    return u * (p - 1.0 + ratio) / (-std::expm1(log_ratio) * (p - 1.0));
}

// H after all rounds of a schedule that falls over the rounds: t^{-power} is the order of 1/P_t, and
// power > 1/2.
template <class Drift> double falling_cost_limit(const Drift& drift, double power, std::vector<ShiftBlock>& blocks) {
    pool_blocks(drift, 0, static_cast<std::size_t>(summed_rounds), 0.0, blocks);
    const RoundDrift next = drift(static_cast<std::size_t>(summed_rounds));
    const RoundDrift after = drift(static_cast<std::size_t>(summed_rounds) + 1);
    const double log_fall = std::log(after.gamma / next.gamma);
    const double squares = power_tail(next.gamma * next.gamma, 2.0 * log_fall, 2.0);
    if (blocks.size() > 1) return total_cost(blocks) + squares;  // gaps are closed where they arise
    // In a block's units w_t = P_{T-1}/P_t: the next round's own w is 1/rho.
    const ShiftBlock& all = blocks.front();
    const double unit = std::exp(-all.scale);
    const double w = unit * std::exp(-next.log_rho);
    const double rises = power_tail(w * next.gamma, log_fall - after.log_rho, 1.0 + power);
    const double widths = power_tail(w * w, -2.0 * after.log_rho, 2.0 * power);
    const double rise = all.rise + rises, width = all.width + widths;
    if (power <= 1.0) return rise * rise / width;
    // The block ends, x times later, where its shift is the gap that arises: g x^{power - 1}.
    const double x = std::pow(rise / width * w / next.gamma, 1.0 / (power - 1.0));
    const double closed = rise - rises * std::pow(x, -power);
    return closed * closed / (width - widths * std::pow(x, 1.0 - 2.0 * power)) + squares / x;
}

inline double fedavg_gdp_limit(StepSchedule schedule, double local_steps, double num_clients, double clip_norm,
                               double noise_std, double smoothness, double learning_rate, double diameter,
                               std::vector<ShiftBlock>& blocks) {
    const FloatingEnvironment environment;
    if (!legal_federation(1.0, local_steps, num_clients, clip_norm, noise_std, smoothness, learning_rate, diameter))
        return nan;
    const auto drift = [&](std::size_t t) {
        return fedavg_drift(schedule, static_cast<double>(t), local_steps, learning_rate, smoothness);
    };
    const DriftUnits units{clip_norm, noise_std, num_clients, learning_rate};
    if (constant_over_rounds(schedule)) {
        if (diameter == infinity) return infinity;
        constexpr double many = 1e15;  // the best start is some rounds before the end
        return scheduled_gdp(drift, true, many, units, diameter, blocks);
    }
    const double growth = learning_rate * smoothness;
    const double power = schedule == StepSchedule::stagewise ? local_steps * growth : growth;
    if (diameter < infinity || power <= 0.5) return 0.0;
    return drift_parameter(units.scale(), std::sqrt(falling_cost_limit(drift, power, blocks)));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::federated

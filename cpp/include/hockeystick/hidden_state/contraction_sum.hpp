// Sums over the rounds of a hidden-state algorithm, each term damped by the contractions after it:
//
//   sum_t w_t first_t prod_{j > t} eta_j,     first_t, w_t >= 0,  0 <= eta_j <= 1.
//
// Asoodeh, Diaz and Calmon (2020), Lemma 3 with Theorem 2; Asoodeh, Chen, Calmon and Ozgur (2021),
// Theorem 2.
//
// Schedules take one pass from the last round backwards. All rounds before round t together add at
// most t max(w) max(first) times the product of the contractions passed. Once that is below 2^-60
// of the sum, the pass adds it and stops, so the result is too small by rounding only: a relative
// 1e-16 for each round that counts. Cost: O(T) to check the domain, then O(min(T, log tol/log
// eta)).
//
// Constants are geometric sums, by expm1 or a short series; their cost does not grow with T.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <hockeystick/numeric/domain.hpp>
#include <hockeystick/numeric/floating_environment.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// A value per round: an array, or one constant where the stride is 0.
struct Rounds {
    const double* data;
    std::ptrdiff_t stride;  // in doubles

    double operator[](std::size_t t) const { return data[static_cast<std::ptrdiff_t>(t) * stride]; }
    bool constant() const { return stride == 0; }
};

// The sum above for t = 0..rounds-1; NaN if any round is outside the domain.
inline double contraction_sum(Rounds first, Rounds eta, Rounds weights, std::size_t rounds) {
    const FloatingEnvironment environment;
    constexpr double negligible = 0x1p-60;
    double largest_first = 0.0;
    double largest_weight = 0.0;
    bool legal = true;
    for (std::size_t t = 0; t < rounds; ++t) {
        legal = legal && non_negative(first[t]) && non_negative(weights[t]) && eta[t] >= 0.0 && eta[t] <= 1.0;
        largest_first = std::max(largest_first, first[t]);
        largest_weight = std::max(largest_weight, weights[t]);
    }
    if (!legal) return nan;
    double sum = 0.0;
    double product = 1.0;
    for (std::size_t t = rounds; t-- > 0;) {
        sum += weights[t] * first[t] * product;
        // A product that underflows becomes the smallest double: too large, not too small.
        product = eta[t] == 0.0 ? 0.0 : std::max(product * eta[t], smallest_positive);
        const double rest = product * static_cast<double>(t) * largest_first * largest_weight;
        if (rest <= negligible * sum) return sum + rest;
    }
    return sum;
}

// sum_{k < n} eta^k for eta = e^{log_eta} <= 1; n is an integer in floating point.
inline double geometric_sum(double log_eta, double n) {
    if (log_eta == 0.0 || n == 0.0) return n;
    return std::expm1(n * log_eta) / std::expm1(log_eta);
}

// The same without branches or library calls, within 5 ulp: not for what must be rounded upwards.
inline double straight_geometric_sum(double log_eta, double n) {
    const double sum = expm1_bounded(n * log_eta) / expm1_bounded(log_eta);
    return ((log_eta == 0.0) | (n == 0.0)) ? n : sum;
}

// The sum above where all three are constants; NaN outside the domain.
inline double constant_contraction_sum(double first, double eta, double weight, double rounds) {
    if (!(non_negative(first) && eta >= 0.0 && eta <= 1.0 && non_negative(weight) && count(rounds))) return nan;
    return weight * first * geometric_sum(std::log(eta), rounds);
}

// U_n = sum_{tau = 1..n} u_tau of u_tau = sum_{k < tau} eta^k, for D = 1 - eta. Exchanging the sums
// gives the first form, and expanding (1 - D)^k in it the second:
//
//   U_n = (n - eta u_n)/D = sum_{j < n} (n + 1 choose j + 2) (-D)^j.
//
// With x = -n log eta, the difference in the first is at least (x - 1 + e^-x)/x of n, which is 0.37
// from x = 1 on. Below, consecutive terms of the second have ratios of at most x/(j + 3), so that
// 17 of them leave out less than 2/19! = 2e-17; they alternate, and their sum is at least 2/3 of
// the first. Error: 16 ulp.
inline constexpr double binomial_ratios[] = {1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8,
                                             1.0 / 9,  1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14,
                                             1.0 / 15, 1.0 / 16, 1.0 / 17, 1.0 / 18};

// 1 - (n - 1 - j) D/(j + 3) (1 - ...) from j on; at j = n - 1 it ends by itself. Unrolled, as
// horner in numeric/elementary.hpp.
template <std::size_t J> inline double binomial_series(double lost, double n) {
    if constexpr (J == sizeof binomial_ratios / sizeof binomial_ratios[0]) return 1.0;
    else {
        const double ratio = lost * (n - (1.0 + J)) * binomial_ratios[J];
        return 1.0 - ratio * binomial_series<J + 1>(lost, n);
    }
}

// U_n from D and 1 - eta^n; n is an integer in floating point.
inline double double_geometric_sum(double lost, double lost_after, double n) {
    const double far = (n - (1.0 - lost) * (lost_after / lost)) / lost;
    const double near = 0.5 * n * (n + 1.0) * binomial_series<0>(lost, n);
    return lost_after < 0.63 ? near : far;  // 1 - 1/e; NaN passes
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

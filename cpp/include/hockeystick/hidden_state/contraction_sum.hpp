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
// Constants are geometric sums, by expm1 or by doubling; their cost does not grow with T.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <hockeystick/numeric/domain.hpp>
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
    return (log_eta == 0.0) | (n == 0.0) ? n : sum;
}

// The sum above where all three are constants; NaN outside the domain.
inline double constant_contraction_sum(double first, double eta, double weight, double rounds) {
    if (!(non_negative(first) && eta >= 0.0 && eta <= 1.0 && non_negative(weight) && count(rounds))) return nan;
    return weight * first * geometric_sum(std::log(eta), rounds);
}

// sum_{tau = 1..n} sum_{k < tau} eta^k, by doubling n. With u_n for the single and U_n for the
// double sum,
//
//   u_{2n} = u_n (1 + eta^n),   U_{2n} = U_n (1 + eta^n) + n u_n,
//   u_{n+1} = 1 + eta u_n,      U_{n+1} = U_n + u_{n+1}.
//
// All terms are positive, so that nothing cancels as eta tends to 1, where the closed form does.
inline double double_geometric_sum(double log_eta, std::uint64_t n) {
    const double eta = std::exp(log_eta);
    double single = 0.0;
    double twofold = 0.0;
    double count = 0.0;
    for (int bit = 63; bit >= 0; --bit) {
        if (count > 0.0) {
            const double power = std::exp(count * log_eta);
            twofold = twofold * (1.0 + power) + count * single;
            single *= 1.0 + power;
            count *= 2.0;
        }
        if ((n >> bit) & 1u) {
            single = 1.0 + eta * single;
            twofold += single;
            count += 1.0;
        }
    }
    return twofold;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

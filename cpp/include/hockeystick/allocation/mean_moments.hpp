// The moments of a mean of independent log-normals, W = (X_1 + ... + X_t)/t with
// X_i = e^{r x_i - r^2/2}, E X^n = e^{n (n-1) r^2/2}: at integers, for Renyi divergences of random
// allocation.
//
// The mean of i + j variables is a mixture of the means of i and of j. With p = i/(i + j),
// expanding the n-th power of p W_i + (1-p) W_j gives
//
//   E W_{i+j}^n - 1 = sum_k C(n,k) p^k (1-p)^{n-k} (E W_i^k E W_j^{n-k} - 1),
//
// as the binomial weights sum to 1. No term is negative (Jensen), so nothing cancels. Doubling
// reaches t. (Altogether E W^n = n! t^-n [z^n] (sum_k E X^k z^k/k!)^t.)
//
// Errors: each logarithm is raised by what its terms may err.
// Cost: most_moment^2 exponentials for each of at most 2 log2 t sums, some milliseconds.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

inline constexpr int most_moment = 64;

// log E W^n for n = 0, ..., most_moment, of the mean of `count` variables.
struct MeanMoments {
    double count;
    std::vector<double> logs;
};

inline MeanMoments mean_of_both(const MeanMoments& x, const MeanMoments& y) {
    const double log_p = std::log(x.count / (x.count + y.count)), log_rest = std::log(y.count / (x.count + y.count));
    MeanMoments result{x.count + y.count, {0.0, 0.0}};
    std::vector<double> terms;
    for (std::size_t n = 2; n <= most_moment; ++n) {
        const auto order = static_cast<double>(n);
        double largest = -infinity, size = 0.0;
        terms.clear();
        for (std::size_t k = 0; k <= n; ++k) {
            const auto part = static_cast<double>(k);
            const double both = x.logs[k] + y.logs[n - k];
            const double gain = both > 1.0 ? both + std::log1p(-std::exp(-both)) : std::log(std::expm1(both));
            const double weight = part * log_p + (order - part) * log_rest;
            const double binomial = log_gamma(order + 1.0) - log_gamma(part + 1.0) - log_gamma(order - part + 1.0);
            terms.push_back(binomial + weight + gain);
            largest = max(largest, terms.back());
            size = max(size, std::fabs(weight) + std::fabs(both) + std::fabs(std::log(max(both, smallest_positive))));
        }
        double sum = 0.0;
        for (const double term : terms) sum += std::exp(term - largest);
        const double error = sixteen_roundings * (4.0 * log_gamma(order + 2.0) + size + order + 64.0);
        result.logs.push_back(log_sum(0.0, largest + std::log(sum) + error) * up);
    }
    return result;
}

inline MeanMoments mean_moments(double r, std::int64_t t) {
    MeanMoments square{1.0, {}};
    for (double n = 0.0; n <= most_moment; ++n) square.logs.push_back(0.5 * n * max(n - 1.0, 0.0) * r * r * up);
    MeanMoments result = square;
    for (std::int64_t rest = t - 1; rest > 0; rest /= 2) {
        if (rest % 2 == 1) result = mean_of_both(result, square);
        if (rest > 1) square = mean_of_both(square, square);
    }
    return result;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation

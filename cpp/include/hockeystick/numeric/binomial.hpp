// The binomial law of j successes among n trials: masses by their logarithms, a far quantile, a
// tail, and the masses that are not in the far tails.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <hockeystick/numeric/compensated_sum.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/numeric/require.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

// log of the probability of j successes among n trials, 0 < rate < 1. Absolute error: about 1e-10
// for n <= 2^16, where the three lgamma are up to 7e5 and cancel.
inline double log_binomial(double n, double j, double rate) {
    return log_gamma(n + 1.0) - log_gamma(j + 1.0) - log_gamma(n - j + 1.0) + j * std::log(rate) +
           (n - j) * std::log1p(-rate);
}

// A number of successes that is exceeded with a probability below binomial_tail.
//
// Bernstein's inequality: the mean is exceeded by t with probability at most
// exp(-t^2/(2 mean + 2t/3)), and t = sqrt(140 mean) + 70 makes the exponent less than -69.
inline constexpr double binomial_tail = 1.1e-30;  // > e^-69

inline double rarely_exceeded(double n, double rate) {
    const double mean = n * rate;
    return std::min(n, std::ceil(mean + std::sqrt(140.0 * mean) + 70.0));
}

// Smaller probabilities are raised to this one, so that none is lost to underflow.
inline constexpr double least_probability = 1e-300;

inline constexpr double most_tail_terms = 1e4;  // a geometric series bounds the others

// An upper bound of the logarithm of the probability of j successes. It errs by a few ulps of the
// lgamma values. Below the probability 1e-300 the bound may be too low: callers raise it to that.
inline double log_binomial_upper(double n, double j, double rate) {
    const double parts[] = {log_gamma(n + 1.0), -log_gamma(j + 1.0), -log_gamma(n - j + 1.0), j * std::log(rate),
                            (n - j) * std::log1p(-rate)};
    CompensatedSum sum, size;
    for (const double part : parts) sum.add(part), size.add(std::fabs(part));
    return sum.value() + sixteen_roundings * size.value();
}

// An upper bound of the logarithm of: the probability of more than `least` successes, over that of
// `least`. It is infinite where the probabilities do not fall after 1e4 terms.
//
// The ratios of 1e4 neighbours together err by far less than the 1e-9 that is added.
inline double log_binomial_excess(double n, double rate, double least) {
    const double odds = std::log(rate) - std::log1p(-rate);
    double log_ratio = -infinity;                   // of the last term, over the one before
    double log_term = 0.0, log_series = -infinity;  // of the last term and of the sum, over the term of `least`
    for (double j = least; j < std::min(n, least + most_tail_terms); ++j) {
        log_ratio = std::log((n - j) / (j + 1.0)) + odds;
        log_term += log_ratio;
        log_series = log_sum(log_series, log_term);
    }
    const double last = std::exp(log_ratio);
    if (last > 1.0 - 1e-5) return infinity;  // the mean lies far beyond
    if (last > 0.0) log_series = log_sum(log_series, log_term + std::log(last) - std::log1p(-last));
    return log_series + 1e-9;
}

// An upper bound of the probability of at least `least` >= 1 successes; close, unless near 1.
inline double binomial_upper_tail(double n, double rate, double least) {
    require(n >= 0.0 && n <= 0x1p53, "trials", "lie in [0, 2^53]", n);
    require_probability("rate", rate);
    require(least >= 0.0, "least", "be non-negative", least);
    if (least > n || rate == 0.0) return 0.0;
    if (rate == 1.0) return 1.0;
    const double log_tail = log_binomial_upper(n, least, rate) + log_sum(0.0, log_binomial_excess(n, rate, least));
    return max(std::exp(min(log_tail, 0.0)), least_probability);
}

// Consecutive numbers of successes and their probabilities, given that it is one of them. The
// others have less than 2 e^-depth together, by Bernstein's inequality. For a rate of 1/2 they are
// symmetric about the middle.
struct BinomialBulk {
    double first;
    std::vector<double> masses;
};

inline BinomialBulk binomial_bulk(double n, double rate, double depth) {
    const double mean = n * rate, reach = std::sqrt(2.0 * depth * mean * (1.0 - rate)) + depth;
    const double first = max(std::ceil(mean - reach), 0.0), last = min(std::floor(mean + reach), n);
    const double mode = min(max(std::floor((n + 1.0) * rate), first), last);
    std::vector<double> masses(static_cast<std::size_t>(last - first) + 1);
    const auto middle = static_cast<std::size_t>(mode - first);
    const auto ratio = [&](std::size_t i) {  // of mass i + 1 over mass i
        const double k = first + static_cast<double>(i);
        return rate < 1.0 ? (n - k) / (k + 1.0) * (rate / (1.0 - rate)) : infinity;
    };
    masses[middle] = 1.0;
    for (std::size_t i = middle; i-- > 0;) masses[i] = masses[i + 1] / ratio(i);
    for (std::size_t i = middle + 1; i < masses.size(); ++i) masses[i] = masses[i - 1] * ratio(i - 1);
    CompensatedSum sum;
    for (const double mass : masses) sum.add(mass);
    for (double& mass : masses) mass /= sum.value();
    return {first, std::move(masses)};
}

inline constexpr double mean_depth = 80.0;      // a mean leaves out a probability below 2 e^-80
inline constexpr double most_mean_terms = 1e6;  // on either side of the mean; wider laws get a bound by their width

// A lower bound of the mean of the smaller of `most` and the number of successes, close to it.
inline double binomial_mean_below(double n, double rate, double most) {
    const double mean = n * rate, certain = 1.0 - 2.0 * std::exp(-mean_depth);
    if (rate == 0.0 || rate == 1.0) return min(mean, most);
    const double reach = std::sqrt(2.0 * mean_depth * mean * (1.0 - rate)) + mean_depth;
    if (reach > most_mean_terms) return certain * min(max(mean * down - reach, 0.0), most);
    const BinomialBulk bulk = binomial_bulk(n, rate, mean_depth);
    CompensatedSum sum;
    for (std::size_t i = 0; i < bulk.masses.size(); ++i)
        sum.add(min(bulk.first + static_cast<double>(i), most) * bulk.masses[i]);
    return certain * sum.value() * (1.0 - eight_roundings * (static_cast<double>(bulk.masses.size()) + 64.0));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric

// Upper bounds of the Renyi divergences of Poisson-sampled pairs, from those of the pair itself.
//
// Let g(a) = log E_Q (dP/dQ)^a, so that the divergence of order a is g(a)/(a - 1). Let g0 be the
// same function of the pair without sampling. At an integer order n, a Poisson sample of rate q has
// (Mironov, Talwar and Zhang 2019)
//
//   e^{g(n)} = 1 + sum_{k=2}^n C(n,k) q^k (1-q)^{n-k} (e^{g0(k)} - 1).
//
// All terms are positive, so nothing cancels. The same paper shows that the other direction is
// smaller, for pairs whose P and Q a reflection exchanges. Between integers, the chord of g is an
// upper bound, because g is convex; below 2 the chord starts from g(1) = 0. Gaussian noise has a
// smaller one (loss/sampled_gaussian_renyi.hpp).
//
// Cost: n terms at order n.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <hockeystick/loss/poisson_sampled.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

inline constexpr double renyi_up = 1.0 + sixteen_roundings;

// g(n) of the sampled pair at an integer n >= 2. `log_moment(k)` must return g0(k).
template <class LogMoment> double sampled_log_moment(const LogMoment& log_moment, double rate, double n) {
    double largest = -infinity, spread = 0.0;
    std::vector<double> terms;
    for (double k = 2.0; k <= n; ++k) {
        const double base = log_moment(k);
        const double gain = base > 1.0 ? base + std::log1p(-std::exp(-base)) : std::log(std::expm1(base));
        const double weight = k * std::log(rate) + (n - k) * std::log1p(-rate);
        terms.push_back(log_gamma(n + 1.0) - log_gamma(k + 1.0) - log_gamma(n - k + 1.0) + weight + gain);
        largest = max(largest, terms.back());
        spread = max(spread, std::fabs(weight) + std::fabs(base));
    }
    if (largest == -infinity) return 0.0;  // every e^{g0(k)} - 1 underflows
    double sum = 0.0;
    for (const double term : terms) sum += std::exp(term - largest);
    const double error = sixteen_roundings * (4.0 * log_gamma(n + 2.0) + spread + 64.0 + 0.125 * n);
    return log_sum(0.0, largest + std::log(sum) + error) * renyi_up;
}

// The divergence g(order)/(order - 1) of the sampled pair, at any order >= 1.
template <class LogMoment> double sampled_renyi(const LogMoment& log_moment, double rate, double order) {
    if (order <= 2.0) return sampled_log_moment(log_moment, rate, 2.0);  // the slope of the first chord
    const double low = std::floor(order), part = order - low;
    const double left = sampled_log_moment(log_moment, rate, low);
    const double right = part > 0.0 ? sampled_log_moment(log_moment, rate, low + 1.0) : left;
    return ((1.0 - part) * left + part * right) / (order - 1.0) * renyi_up;
}

inline constexpr double most_terms = 400.0;  // of a sum that only bounds a tail

// An upper bound of the divergence of Gaussian noise of this shift on a Poisson sample: by the sum
// above at the next integer, as divergences grow with the order, and by Minkowski's inequality:
// with X = dP/dQ without sampling, the norm of 1 - rate + rate X is at most 1 - rate + rate |X|.
inline double coarse_gaussian_renyi(double shift, double order, double rate) {
    const double half = 0.5 * shift * shift, whole = order * half * renyi_up, next = max(std::ceil(order), 2.0);
    if (rate == 1.0) return whole;
    if (!(4.0 * next * whole < infinity)) return infinity;  // the sums below would overflow
    const double norm = order * loss::sampled_loss((order - 1.0) * half * up, rate) / (order - 1.0) * (renyi_up * up);
    if (next > most_terms) return min(whole, norm);
    const double sampled = sampled_log_moment([half](double k) { return k * (k - 1.0) * half; }, rate, next);
    return min(min(whole, norm), sampled / (next - 1.0) * renyi_up);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism

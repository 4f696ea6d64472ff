// Noise on the integers, on every coordinate of a vector: its curvature, from which Renyi
// divergences follow, its masses between two ends, and the pairs of the noise and the noise moved.
//
// Curvature. The curvature of a law P on the integers is the largest second difference of -log P,
//
//   kappa = sup_k log(P(k)^2 / (P(k - 1) P(k + 1))).
//
// Theorem 1. Let independent coordinates have laws of curvature at most kappa, and let the noise be
// moved by an integer vector s. At every integer order a >= 2 the Renyi divergence, in either
// direction, is at most a kappa |s|^2/2.
//
// Proof. Divergences of independent coordinates add up, so let s > 0 be one integer and V = -log P.
// Put k = y + a s in sum_k P(k - s)^a P(k)^(1-a): each term is e^(-E) P(y) with
// E = a V(y + (a-1)s) - (a-1) V(y + a s) - V(y). -E/(a(a-1)) is the divided difference of V at 0,
// (a-1)s, a s, times s^2, which is a mean of half the second differences of V; so
// -E <= a(a-1) kappa s^2/2, and sum_y P(y) = 1. The other direction is the reflected law. QED.
// Between integers the chord of (order - 1) times the divergence bounds it, since that is convex.
// If P is a function on the reals with a Fourier transform that is not negative, and kappa bounds
// -(log P)'', the proof holds for every real a > 1: now y runs through the integers less a s, over
// which P sums to no more than over the integers, by Poisson's summation formula. That kappa is
// called smooth.
//
// Theorem 2. Discrete Gaussian noise of scale sigma has curvature 1/sigma^2. If P has curvature
// kappa, its sum with such noise has at most
//
//   kappa r + max_c log(T(c)^2 / (T(c + r) T(c - r))),
//   r = 1/(1 + kappa sigma^2),  v = r sigma^2,  T(c) = sum_j e^(-(j-c)^2/2v).
//
// Proof. With q the noise and j ~ P(j) q(k - j)/S(k), S the sum's law,
// S(k +- 1)/S(k) = e^(-1/2sigma^2) E e^(+-(j-k)/sigma^2). So the second difference at k is
// 1/sigma^2 - log(E e^(t(j-m)) E e^(-t(j-m))), t = 1/sigma^2, m = E j. Minus the logarithm of the
// law of j has second differences of at most kappa + 1/sigma^2 = 1/v. The discrete Gaussian law N of
// parameter v whose centre c gives it the same mean m is therefore log-concave relative to it: the
// difference of the two laws changes sign as +, -, +, and the law of j is larger in convex order.
// Both means of exponentials are at least those under N, whose product is
// e^(t^2 v) T(c + t v) T(c - t v)/T(c)^2, and t v = r. QED. The sum's law is the restriction of
// sum_j P(j) q(x - j), whose transform is not negative if that of P is not. There
// -(log)'' = 1/sigma^2 - Var(j)/sigma^4, where Var(j) is at least v + v^2 min_c (log T)''(c): this
// curvature is at most kappa r - r^2 min (log T)''.
//
// By Jacobi's product, log T(c) = const + 2 sum_l (-1)^(l+1) b_l cos(2 pi l c)/l with
// b_l = q^l/(1 - q^(2l)), q = e^(-2 pi^2 v); so the maximum is at most
// 4 sum_l b_l (1 - cos(2 pi l r))/l, and -(log T)'' at most 8 pi^2 sum_l l b_l.
//
// Theorem 3. The Skellam law of variance x, P(k) = e^-x I_k(x), has the curvature
// 2 log(I_0(x)/I_1(x)), attained at k = 0.
//
// Proof. With b_k = 1 - I_(k-1) I_(k+1)/I_k^2 the second difference at k is -log(1 - b_k). From
// I_(k+1)/I_k = sum_j 2x/(x^2 + j^2), over the positive zeros j of J_k:
// b_k = 4 sum_j j^2/(x^2 + j^2)^2 falls in x, and is at most 1/(k + 1), its value at 0 (Rayleigh's
// sum). V = x^2 b_k solves x V' = 2x^2 - 2V sqrt(x^2 + k^2 - V). For k >= 1,
// W = x^2/sqrt(x^2 + k^2 - 1/4) begins above V and has x W' > 2x^2 - 2W sqrt(x^2 + k^2 - W), so
// V < W (Baricz 2015 has this bound too). For k = 0, W = x^2/sqrt(x^2 + 3/4) satisfies the opposite
// inequality, and is below V at x = 1. So b_k <= b_0 for x >= 1; and for x < 1,
// b_k <= 1/2 < 0.8 < b_0(1) <= b_0. The same equation gives b_0 <= 1/sqrt(x^2 - 1) for x >= 3. QED.
//
// Masses. A law is symmetric and log-concave. Moved by s > 0, the losses L(k) = log(P(k - s)/P(k))
// rise with k, so that delta(eps) is the difference A - e^eps B of the masses of {k, k + 1, ...} for
// the first k with L(k) > eps, and is the same in both directions (reflect k to s - k). For fewer
// pieces of computing than outcomes, chords in e^eps bound it from above (privacy_profile.hpp), and
// merged outcomes from below.
//
// Vectors. Moved by a vector s of integers, the losses of discrete Gaussian noise X of scale sigma
// on every coordinate are (2 T - |s|^2)/(2 sigma^2), where T = s.X under the noise and T + |s|^2
// under the noise moved: a vector is as good as the one integer T, moved by |s|^2. Noise that is
// log-concave leaks no less where a coordinate moves by more, so that the vectors that cannot be
// made larger are all that count. None of them is the worst: at sigma = 1 and |s|^2 = 4, delta is
// larger for (2) at epsilon 1 and for (1, 1, 1, 1) at epsilon 2. Their largest delta at each epsilon
// is convex in e^epsilon, and so the curve of a pair, which dominates all of them.
//
// Wide noise is Gaussian noise that is rounded, up to a tiny probability.
//
// Theorem 4. Let every coordinate of the noise have a law on the integers whose ratio to the
// discrete Gaussian of scale sigma is known up to a factor e^h. Moved by any vector of integers of
// norm D, d coordinates of it at most, it is dominated by the composition of Gaussian noise of
// deviation sqrt(sigma^2 - r^2) moved by D, 0 < r < sigma, with a release that tells all with
// probability 1 - e^(-d (h + log T(0)/T(1/2))), T(y) = sum_k e^(-(k-y)^2/2r^2).
//
// Proof. Round y ~ N(s, sigma^2 - r^2) to k with probability e^(-(k-y)^2/2r^2)/T(y). As T has the
// period 1, the law of k - s is one law W for every integer s; as
// (k-y)^2/r^2 + y^2/(sigma^2-r^2) = k^2/sigma^2 + (y-c k)^2/c', the ratio of W to the discrete
// Gaussian is known up to T(0)/T(1/2). Two laws whose ratio is known up to a factor e^g satisfy
// P >= e^-g W, so that P = e^-g W + (1 - e^-g) W', and d coordinates of it are e^(-d g) those of W,
// else anything. Which of both is no more than told, and W is computed from Gaussian noise. QED.
// (Completing the square is the convolution lemma of discrete Gaussians: Regev 2009, Peikert 2010.)
//
// Theorem 5. Let every coordinate of the noise have one symmetric, log-concave law on the integers,
// A(k) its mass from k on, Q the normal tail, z(k) = Q^-1(A(k)), and c >= z(k + 1) - z(k) for
// 0 <= k < m. Moved by any vector of integers of norm D <= m, d coordinates of it at most, it is
// dominated by the composition of Gaussian noise of deviation 1 moved by c D with a release that
// tells all with probability 1 - (1 - t)^d, t = A(m + 1 - D).
//
// Proof. Let one coordinate move by s > 0. The best tests are thresholds, of the masses A(k) and
// A(k - s), and draws between two of them. By symmetry z(1 - k) = -z(k). So where -m < k - s and
// k <= m, z(k - s) >= z(k) - c s: the Gaussian's test of mass A(k) has at least the power A(k - s).
// Where k > m, A(k - s) <= t. Where k - s <= -m, 1 - A(k) = A(1 - k) <= t. In both cases
// A(k - s) - e^eps A(k) <= t + (1 - t) max(1 - e^eps, 0), as the second release alone has. So
// the curve of the coordinate is at most that of the composition, and the squares of the shifts
// c s of independent coordinates add up. QED. The largest difference is 2 z(1), for variances from
// 1 up little more than one over the deviation: no curvature bound is as small.
//
// Errors: every bound is moved by its margin; masses are sums of positive terms, each of which errs
// by `weight_error` or a few roundings. Cost: at most 4096 series of a few terms for a curvature; a
// few exponentials an outcome for a law; up to 10^8 products for the law of a sum, and for that of each
// of up to 220 vectors: seconds, where sigma is near 16.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <hockeystick/mechanism/registry.hpp>
#include <hockeystick/numeric/work_budget.hpp>
#include <hockeystick/release/privacy_profile.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double short_sum_up = 1.0 + thirty_two_roundings;  // a sum of a few logarithms or exponentials
inline constexpr double most_summed = 4096.0;  // of the recursion over clients; what follows has a closed form

// At least sum over l >= 1 of weight(l) q^l/(l (1 - q^(2l))), where weight(l) <= (pi l)^2 and
// q = e^(-2 pi^2 v).
template <class Weight> double theta_series(double v, const Weight& weight) {
    const double log_q = -2.0 * pi * pi * v, q = std::exp(log_q);
    double total = 0.0, l = 1.0;
    for (;; l += 1.0) {
        const double term = std::exp(l * log_q) / (l * -std::expm1(2.0 * l * log_q));
        total += weight(l) * term;
        if (l == 40.0 || term * (pi * l) * (pi * l) <= thirty_two_roundings * total) break;
    }
    // What is left out: the sum over k > l of pi^2 k q^k/(1 - q^2).
    const double rest =
        pi * pi * std::pow(q, l + 1.0) * ((l + 1.0) / (1.0 - q) + q / ((1.0 - q) * (1.0 - q))) / (1.0 - q * q);
    return (total + rest) * (1.0 + sixteen_roundings * (64.0 - log_q));
}

// At least max_c log(T(c)^2/(T(c + r) T(c - r))), r = 1 - less: 1 - cos(2 pi l r) is
// 2 sin^2(pi l less).
inline double largest_bend(double v, double less) {
    return 8.0 * theta_series(v, [less](double l) {
               const double angle = pi * l * less, sine = std::fabs(std::sin(angle)) + sixteen_roundings * angle;
               return sine * sine;
           });
}

// At least 8 pi^2 sum_l l b_l, which falls in v: the maximum of Theorem 2 is at most (1 - r)^2 times
// it.
inline double second_order_bend(double v) {
    return 8.0 * theta_series(v, [](double l) { return (pi * l) * (pi * l); });
}

// At least log T(0)/T(1/2) = 4 sum over odd l of b_l/l.
inline double log_range(double v) {
    return 4.0 * theta_series(v, [](double l) { return std::fmod(l, 2.0); });
}

// At least the curvature of a sum of so many independent discrete Gaussians (Theorem 2).
//
// Beyond `most_summed` of them, 1 - r = y/(1 + y) with y = kappa sigma^2, which falls, and the
// maximum is at most E (1 - r)^2: each more adds at least sigma^2 (1 - E sigma^2) to 1/kappa.
inline double curvature_of_sum(double sigma, double number) {
    const double variance = sigma * sigma;
    double kappa = 1.0 / variance * up;
    for (double n = 1.0; n < min(number, most_summed); n += 1.0) {
        const double y = kappa * variance;
        const double moved = kappa / (1.0 + y) + largest_bend(variance / (1.0 + y), y / (1.0 + y));
        kappa = min(kappa, moved * up);  // a sum is no more curved than a part, by Cauchy and Schwarz
    }
    if (number > most_summed) {
        const double y = kappa * variance * up;
        const double gain =
            variance * (1.0 - second_order_bend(variance / (1.0 + y)) * variance) * (1.0 - thirty_two_roundings);
        if (gain > 0.0) kappa = min(kappa, 1.0 / (1.0 / kappa + (number - most_summed) * gain) * short_sum_up);
    }
    return kappa;
}

// The same between the integers too.
inline double smooth_curvature_of_sum(double sigma, double number) {
    if (number == 1.0) return curvature_of_sum(sigma, 1.0);
    const double variance = sigma * sigma, before = curvature_of_sum(sigma, number - 1.0);
    const double r = 1.0 / (1.0 + before * variance);
    return min(before * r + r * r * second_order_bend(r * variance), 1.0 / variance) * short_sum_up;
}

// At least an S such that the ratio of the law of the sum of n to the discrete Gaussian is within
// 1 +- S, up to a factor.
//
// The ratio at k is the sum of e^(-|y|^2/2 sigma^2) over y in Z^n - (k/n, ..., k/n) that sum to 0.
// By Poisson's formula it is proportional to 1 + sum e^(-c |w|^2) cos, c = 2 pi^2 sigma^2, over the
// non-zero projections w of integer vectors m along (1, ..., 1). Each has an m whose median is 0. If
// k of its coordinates are not 0, at most min(k, n/2) = x n have one sign, so that
// |w|^2 >= (1 - x) |m|^2. There are at most (2n)^k/k! choices of coordinates and signs, and all k
// together have at most a(x)^k, a(x) = sum_j e^(-c (1 - x) j^2). As k! >= (k/e)^k, the terms from k
// on are at most powers of f = 2e a(x)/x, whose logarithm is convex in x up to 1/2.
inline double dual_sum(double sigma, double n) {
    const double c = 2.0 * pi * pi * sigma * sigma, twice_e = 2.0 * 2.718281828459045, first = min(4.0, n);
    const auto part = [c](double x) {
        return std::exp(-c * (1.0 - x)) / -std::expm1(-3.0 * c * (1.0 - x)) * (1.0 + sixteen_roundings * (1.0 + c));
    };
    double total = 0.0, factorial = 1.0;
    for (double k = 1.0; k < first; k += 1.0) {
        factorial *= k;
        total += std::pow(2.0 * n * part(min(k / n, 0.5)), k) / factorial;
    }
    const double from = min(first / n, 0.5);
    const double ends = max(twice_e * part(from) / from, twice_e * part(0.5) / 0.5) / -std::expm1(-1.5 * c);
    return ends < 0.5 ? (total + std::pow(ends, first) / (1.0 - ends)) * short_sum_up : infinity;
}

// By how much the logarithms of two ratios, of the law of a sum to the discrete Gaussian of its
// scale, differ at most.
//
// One bound is the sum over m of log T(0)/T(1/2) with v = sigma^2 m/(m + 1) (Kairouz, Liu and
// Steinke 2021, where it is at most 10 e^(-2 pi^2 v)): completing the square in the sum of m and one
// more leaves a factor T. The other is that of `dual_sum`.
inline double log_range_of_sum(double sigma, double number) {
    const double variance = sigma * sigma;
    CompensatedSum sum;
    for (double m = 1.0; m < min(number, most_summed); m += 1.0) sum.add(log_range(variance * m / (m + 1.0)));
    double total = sum.value();
    if (number > most_summed) total += (number - most_summed) * log_range(variance * (most_summed - 1.0) / most_summed);
    const double dual = number > 1.0 ? dual_sum(sigma, number) : 0.0;
    return min(total, dual < 1.0 ? std::log1p(2.0 * dual / (1.0 - dual)) : infinity) * short_sum_up;
}

// Ends of I_(k+1)(x)/I_k(x) for k = 0, ..., last.
//
// Backwards by 1/r_(k-1) = 2k/x + r_k, which contracts, from
// x/(k+1/2 + sqrt(x^2 + (k+3/2)^2)) <= r_k <= x/(k+1/2 + sqrt(x^2 + (k+1/2)^2)) (Amos 1974).
inline std::vector<Interval> bessel_ratios(double x, double last) {
    const double start = last + std::ceil(7.0 * std::sqrt(x)) + 20.0;
    double low = x / (start + 0.5 + distance(x, start + 1.5)) / short_sum_up;
    double high = x / (start + 0.5 + distance(x, start + 0.5)) * short_sum_up;
    std::vector<Interval> ratios;
    for (double k = start; k >= 0.0; k -= 1.0) {
        if (k <= last) ratios.push_back({low, high});
        const double step = 2.0 * k / x, lower = (1.0 - sixteen_roundings) / (step + high);
        high = (1.0 + sixteen_roundings) / (step + low), low = lower;
    }
    std::reverse(ratios.begin(), ratios.end());
    return ratios;
}

// At least the curvature of a Skellam law, 2 log(I_0/I_1) (Theorem 3).
inline double curvature_of_skellam(double variance) {
    if (variance < 1e4)
        return -2.0 * std::log(bessel_ratios(variance, 0.0)[0].lower) * short_sum_up + thirty_two_roundings;
    const double b = 1.0 / std::sqrt((variance - 1.0) * (variance + 1.0)) * up;
    return -std::log1p(-b) * short_sum_up;
}

inline constexpr double mass_depth = 668.0;            // minus the logarithm of the least mass
inline constexpr double least_integer_mass = 1e-290;   // smaller ones are cut off and counted as missing
inline constexpr double least_shared = 0.9995;         // of the noise, among the outcomes that both laws have
inline constexpr double most_profile_points = 4000.0;  // and outcomes of a pair for lower ends

// Ends of the masses of -reach, ..., reach, and at least the mass beyond.
struct IntegerLaw {
    std::vector<double> low, high;
    double missing;

    std::size_t size() const { return low.size(); }
    std::size_t reach() const { return size() / 2; }
};

// A law of mass proportional to these at 0, 1, ..., and at their negatives.
inline IntegerLaw symmetric_law(const std::vector<double>& low, const std::vector<double>& high) {
    IntegerLaw law{{low.rbegin(), low.rend() - 1}, {high.rbegin(), high.rend() - 1}, 0.0};
    law.low.insert(law.low.end(), low.begin(), low.end());
    law.high.insert(law.high.end(), high.begin(), high.end());
    return law;
}

inline void scale(std::vector<double>& masses, double factor) {
    for (double& mass : masses) mass *= factor;
}

// Twice the sum of the masses beyond 0.
inline double both_sides(const std::vector<double>& from_zero) {
    CompensatedSum sum;
    for (std::size_t k = from_zero.size(); k-- > 1;) sum.add(from_zero[k]);
    return 2.0 * sum.value();
}

// Mass proportional to e^(-k^2/(2 sigma^2)); beyond its reach weights fall at least as a geometric
// series.
inline IntegerLaw discrete_gaussian_law(double sigma) {
    const double reach = std::floor(std::sqrt(2.0 * mass_depth) * sigma);
    const auto weight = [sigma](double k) { return std::exp(-0.5 * (k / sigma) * (k / sigma)); };
    std::vector<double> right;
    for (double k = 0.0; k <= reach; k += 1.0) right.push_back(weight(k));
    const double ratio = std::exp(-(reach + 1.5) / (sigma * sigma));
    IntegerLaw law = symmetric_law(right, right);
    law.missing = 2.0 * weight(reach + 1.0) / (1.0 - ratio) * (1.0 + weight_error);
    const double total = 1.0 + both_sides(right);
    scale(law.low, (1.0 - weight_error) / (total + law.missing));
    scale(law.high, (1.0 + weight_error) / total);
    return law;
}

// A law whose ratio to the discrete Gaussian is known up to e^range, and sigma up to a few
// roundings, which count as that of a weight, twice.
inline IntegerLaw nearly_discrete_gaussian_law(double sigma, double range) {
    IntegerLaw law = discrete_gaussian_law(sigma);
    const double factor = std::exp(range) * (1.0 + weight_error);
    scale(law.low, 1.0 / factor), scale(law.high, factor);
    law.missing *= factor;
    return law;
}

// The mass e^-variance I_k(variance), by the ratios of its neighbours, up to about the least mass:
// -log P(k) is about k asinh(k/x) + x - sqrt(x^2 + k^2).
inline IntegerLaw skellam_law(double variance) {
    double depth = 1.0;
    while (depth * std::asinh(depth / variance) + variance - distance(variance, depth) < mass_depth) depth *= 1.01;
    const double reach = std::ceil(depth);
    const std::vector<Interval> ratios = bessel_ratios(variance, reach);
    std::vector<double> low{1.0}, high{1.0};
    Interval product{1.0, 1.0};
    for (double k = 1.0; k <= reach; k += 1.0) {
        product.lower *= ratios[low.size() - 1].lower, product.upper *= ratios[high.size() - 1].upper;
        low.push_back(product.lower / (1.0 + k * one_ulp));
        high.push_back(product.upper * (1.0 + k * one_ulp));
    }
    const double beyond = ratios.back().upper, tail = high.back() * beyond / (1.0 - beyond) * up;  // ratios fall
    const double most = (1.0 + both_sides(high) + 2.0 * tail) * up, least = (1.0 + both_sides(low)) * down;
    IntegerLaw law = symmetric_law(low, high);
    scale(law.low, down / most), scale(law.high, up / least);
    law.missing = 2.0 * tail / least * up;
    return law;
}

// The sums of products of two laws' masses, the first of a multiple of the integers.
inline std::vector<double> convolved(const std::vector<double>& a, std::size_t factor, const std::vector<double>& b) {
    std::vector<double> sums(factor * (a.size() - 1) + b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t j = 0; j < b.size(); ++j) sums[factor * i + j] += a[i] * b[j];
    return sums;
}

// The law of factor X + Y. All terms are positive, so that a sum errs by one rounding a term; a
// product with 1 does not.
inline IntegerLaw convolved(const IntegerLaw& x, std::size_t factor, const IntegerLaw& y) {
    const double error = y.size() == 1 ? 0.0 : static_cast<double>(std::min(x.size(), y.size()) + 4) * one_ulp;
    IntegerLaw law{convolved(x.low, factor, y.low), convolved(x.high, factor, y.high), x.missing + y.missing};
    scale(law.low, 1.0 - error), scale(law.high, 1.0 + error);
    std::size_t cut = 0;  // as many on both sides, which are equal up to rounding
    CompensatedSum dropped;
    for (; max(law.low[cut], law.low[law.size() - 1 - cut]) <= least_integer_mass; ++cut)
        dropped.add(law.high[cut]), dropped.add(law.high[law.size() - 1 - cut]);
    for (std::vector<double>* masses : {&law.low, &law.high}) {
        masses->erase(masses->end() - static_cast<std::ptrdiff_t>(cut), masses->end());
        masses->erase(masses->begin(), masses->begin() + static_cast<std::ptrdiff_t>(cut));
    }
    law.missing = (law.missing + dropped.value()) * up;
    return law;
}

// The law of a sum of so many discrete Gaussians, by squaring.
inline IntegerLaw sum_of_discrete_gaussians(double sigma, std::int64_t number) {
    IntegerLaw power = discrete_gaussian_law(sigma), result{{1.0}, {1.0}, 0.0};
    for (bool first = true;; power = convolved(power, 1, power)) {
        if (number & 1) result = first ? power : convolved(result, 1, power), first = false;
        number >>= 1;
        if (number == 0) return result;
    }
}

// Some of the integers from `first` to `last`, both among them, evenly apart.
inline std::vector<std::size_t> spread(std::size_t first, std::size_t last) {
    const double step = static_cast<double>(last - first) / (most_profile_points - 1.0);
    std::vector<std::size_t> found;
    for (double i = 0.0; i + 1.0 < most_profile_points; i += 1.0) {
        const std::size_t at = first + static_cast<std::size_t>(i * step);
        if (found.empty() || at > found.back()) found.push_back(at);
    }
    if (found.back() < last) found.push_back(last);
    return found;
}

// An epsilon at which delta is bounded, the last position whose loss is not above it, and by how
// much losses beyond may be smaller than that.
struct LossCut {
    double eps;
    std::size_t at;
    double known;
};

// The sums over each position and all beyond it, up to the last position and none.
inline std::vector<double> sums_from(const std::vector<double>& masses) {
    std::vector<double> sums(masses.size() + 1);
    for (std::size_t k = masses.size(); k-- > 0;) sums[k] = sums[k + 1] + masses[k];
    return sums;
}

// At least delta at each of these, which increase. An upper bound at one epsilon is one at every
// larger.
inline std::vector<double> deltas_beyond(const IntegerLaw& law, std::size_t shift, const std::vector<LossCut>& cuts) {
    const double error = 2.0 * static_cast<double>(law.size()) * one_ulp;
    const std::vector<double> high = sums_from(law.high), low = sums_from(law.low);
    std::vector<double> deltas;
    for (const LossCut& cut : cuts) {
        const std::size_t beyond = cut.at + 1 > shift ? cut.at + 1 - shift : 0;  // of the moved law
        const double a = high[beyond] * (1.0 + error) * std::exp(cut.known) + law.missing;
        const double b = low[cut.at + 1] * (1.0 - error);
        const double least = std::exp(cut.eps) * (1.0 - sixteen_roundings * (1.0 + cut.eps)) * b;
        const double delta = min(max(a - least, 0.0) + 2.0 * one_ulp * a, 1.0);
        deltas.push_back(deltas.empty() ? delta : min(delta, deltas.back()));
    }
    return deltas;
}

inline PairPointer pair_of_deltas(std::vector<double> epsilons, const std::vector<double>& deltas) {
    return privacy_profile({std::move(epsilons), deltas, deltas}, End::upper).front().pair;
}

inline constexpr double largest_integer_loss = 600.0;

// A pair that dominates the law moved by `shift` and the law, in both directions.
//
// At an epsilon that is not below the loss of k, {k + 1, ...} has all outcomes of larger losses.
// Those of smaller ones in it are off by no more than the loss of k is known.
inline PairPointer pair_above(const IntegerLaw& law, std::size_t shift) {
    if (law.reach() + shift / 2 >= 2 * law.reach()) return pair_of_deltas({0.0}, {1.0});
    std::vector<LossCut> cuts;
    for (const std::size_t at : spread(law.reach() + shift / 2, 2 * law.reach())) {  // from the last loss up to 0
        const double moved_high = std::log(law.high[at - shift]), moved_low = std::log(law.low[at - shift]);
        const double high = std::log(law.high[at]), low = std::log(law.low[at]);
        const double rounding = sixteen_roundings * (1.0 + std::fabs(moved_high) + std::fabs(low));
        const double eps = cuts.empty() ? 0.0 : moved_high - low + rounding;
        if (!cuts.empty() && !(eps > cuts.back().eps && eps <= largest_integer_loss)) continue;
        cuts.push_back({eps, at, moved_high - moved_low + high - low + 2.0 * rounding});
    }
    std::vector<double> epsilons;
    for (const LossCut& cut : cuts) epsilons.push_back(cut.eps);
    return pair_of_deltas(std::move(epsilons), deltas_beyond(law, shift, cuts));
}

// A pair for lower ends, of which what is seen is merged and what is cut off is left out.
inline PairPointer pair_below(const IntegerLaw& law, std::size_t shift) {
    if (shift >= law.size()) return nothing();
    CompensatedSum shared;
    for (std::size_t k = shift; k < law.size(); ++k) shared.add(law.low[k]);
    if (shared.value() < least_shared) return nothing();  // measures that miss more of a law are not taken
    const std::vector<std::size_t> starts = spread(0, law.size() - shift - 1);
    const double error = static_cast<double>(law.size()) * one_ulp;
    const auto merged = [&](const std::vector<double>& masses, std::size_t from, double factor) {
        std::vector<double> sums;
        for (std::size_t i = 0; i < starts.size(); ++i) {
            const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : law.size() - shift;
            double sum = 0.0;
            for (std::size_t k = starts[i]; k < end; ++k) sum += masses[from + k];
            sums.push_back(sum * factor);
        }
        return sums;
    };
    return std::make_shared<DiscretePairs>(
        Masses{merged(law.low, 0, 1.0 - error), merged(law.high, shift, 1.0 + error)},
        Masses{merged(law.low, shift, 1.0 - error), merged(law.high, 0, 1.0 + error)});
}

// The largest integer whose square is at most x.
inline std::int64_t integer_root(std::int64_t x) {
    auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(x)));
    while (root * root > x) --root;
    while ((root + 1) * (root + 1) <= x) ++root;
    return root;
}

// By how much a query may move: a vector of integers of at most this Euclidean norm and dimension.
// Where a record is replaced, `times` is 2.
struct IntegerMove {
    double sensitivity, times = 1.0, dimension = infinity;

    // The largest squared norm. A sensitivity that is a rounded square root counts as the root.
    std::int64_t squared() const {
        const double norm = times * sensitivity;
        return static_cast<std::int64_t>(std::floor(norm * norm * short_sum_up));
    }
    double norm() const { return std::sqrt(static_cast<double>(squared())) * up; }
    double coordinates() const { return min(dimension, static_cast<double>(squared())); }
    IntegerMove replaced() const { return {sensitivity, 2.0, dimension}; }
};

using IntegerVector = std::vector<std::int64_t>;

// A vector by which the query may move, each coordinate as large as it can be, at most eight of
// them: where a record is replaced, one vector and its opposite.
inline IntegerVector attained_vector(const IntegerMove& move) {
    const auto times = static_cast<std::int64_t>(move.times);
    IntegerVector parts;
    for (std::int64_t left = IntegerMove{move.sensitivity}.squared();
         left > 0 && static_cast<double>(parts.size()) < min(move.dimension, 8.0);) {
        const std::int64_t part = integer_root(left);
        parts.push_back(times * part);
        left -= part * part;
    }
    return parts;
}

// Adds all vectors that continue one, not falling and without zeros, of which no coordinate can be
// larger; `left` is what is left of the squared norm.
inline void add_largest(IntegerVector& begun, std::int64_t left, double dimension, std::vector<IntegerVector>& found) {
    const bool full = static_cast<double>(begun.size()) == dimension;
    for (std::int64_t part = begun.empty() ? 1 : begun.back(); !full && part * part <= left; ++part) {
        begun.push_back(part);
        add_largest(begun, left - part * part, dimension, found);
        begun.pop_back();
    }
    if (!begun.empty() && (left == 0 || full) && left < 2 * begun.front() + 1) found.push_back(begun);
}

inline std::vector<IntegerVector> largest_vectors(const IntegerMove& move) {
    std::vector<IntegerVector> found;
    IntegerVector begun;
    add_largest(begun, move.squared(), move.dimension, found);
    return found;
}

inline std::int64_t squared_norm(const IntegerVector& vector) {
    std::int64_t sum = 0;
    for (const std::int64_t part : vector) sum += part * part;
    return sum;
}

// The laws of T = s.X for vectors s, X discrete Gaussian noise.
class ProductLaws {
  public:
    explicit ProductLaws(double sigma) : sigma_(sigma) {}
    IntegerLaw of(const IntegerVector& vector) {
        IntegerLaw law{{1.0}, {1.0}, 0.0};
        for (auto part = vector.begin(); part != vector.end();) {
            const auto next = std::upper_bound(part, vector.end(), *part);
            law = convolved(sum_of(next - part), static_cast<std::size_t>(*part), law);
            part = next;
        }
        return law;
    }

  private:
    const IntegerLaw& sum_of(std::int64_t number) {
        auto known = sums_.find(number);
        if (known == sums_.end()) known = sums_.emplace(number, sum_of_discrete_gaussians(sigma_, number)).first;
        return known->second;
    }

    double sigma_;
    std::map<std::int64_t, IntegerLaw> sums_;
};

// Epsilons just above the losses of all outcomes from 0 on, or as many of them, where the curves
// have kinks: at a loss that is rounded down its outcome still counts, and that much more than all
// beyond where the noise is narrow.
inline std::vector<double> kinks(double sigma, const std::vector<IntegerVector>& vectors) {
    const double variance = sigma * sigma;
    std::set<double> norms, losses{0.0};
    for (const IntegerVector& vector : vectors) norms.insert(static_cast<double>(squared_norm(vector)));
    for (const double norm : norms) {
        const double last = std::ceil(std::sqrt(2.0 * mass_depth * norm) * sigma) + norm;
        for (double t = std::floor(norm / 2.0) + 1.0; t <= last; t += 1.0) {
            const double kink = (2.0 * t - norm) / (2.0 * variance);
            const double above = kink + sixteen_roundings * (1.0 + kink + norm / variance);
            if (above <= largest_integer_loss) losses.insert(above);
        }
    }
    const std::vector<double> all(losses.begin(), losses.end());
    std::vector<double> chosen;
    for (const std::size_t at : spread(0, all.size() - 1)) chosen.push_back(all[at]);
    return chosen;
}

// The pair whose delta is the largest of all vectors', on chords between some of their kinks.
// Compositions of it leak more than as many steps of the mechanism, each of which moves by one
// vector: no vector's Renyi divergence is above that of Gaussian noise of this shift.
class WorstVector final : public Discrete {
  public:
    WorstVector(Masses masses, double shift) : Discrete(std::move(masses)), shift_(shift) {}
    double renyi(double order, double rate, Direction direction) const override {
        const double curve = Discrete::renyi(order, rate, direction);
        return rate == 1.0 ? min(curve, coarse_gaussian_renyi(shift_, order, 1.0)) : curve;
    }
    bool composes_loosely() const override { return true; }
    std::vector<double> parameters() const override {
        std::vector<double> all = Discrete::parameters();
        all.push_back(shift_);
        return all;
    }

  private:
    double shift_;  // of Gaussian noise that has this divergence at every order
};

inline PairPointer pair_of_vectors(double sigma, const std::vector<IntegerVector>& vectors, WorkBudget& budget) {
    const double variance = sigma * sigma;
    const std::vector<double> epsilons = kinks(sigma, vectors);
    std::vector<double> largest(epsilons.size(), 0.0);
    ProductLaws laws(sigma);
    for (const IntegerVector& vector : vectors) {
        const IntegerLaw law = laws.of(vector);
        budget.spend(static_cast<double>(law.size()) * static_cast<double>(law.size()));
        const double squared = static_cast<double>(squared_norm(vector)), reach = static_cast<double>(law.reach());
        std::vector<LossCut> cuts;
        for (const double eps : epsilons) {
            const double last = std::floor(eps * variance + 0.5 * squared);  // of T, up to rounding
            cuts.push_back({eps, static_cast<std::size_t>(min(last, reach)) + law.reach(),
                            8.0 * sixteen_roundings * (1.0 + eps + squared / variance)});
        }
        const std::vector<double> deltas = deltas_beyond(law, static_cast<std::size_t>(squared), cuts);
        for (std::size_t i = 0; i < deltas.size(); ++i) largest[i] = max(largest[i], deltas[i]);
    }
    double squared = 0.0;
    for (const IntegerVector& vector : vectors) squared = max(squared, static_cast<double>(squared_norm(vector)));
    return std::make_shared<WorstVector>(masses_above({epsilons, largest, largest}), std::sqrt(squared) / sigma * up);
}

inline constexpr double least_rounded_sigma = 8.0;  // from which the Gaussian has 98 % of the noise

// r^2 for which d log T(0)/T(1/2), about 4 d e^(-2 pi^2 r^2), is about 1e-20.
inline double rounding_variance(double coordinates) { return std::log(4.0 * coordinates / 1e-20) / (2.0 * pi * pi); }

// The probability to tell all (Theorem 4).
inline double telling(double coordinates, double log_range_of_law) {
    const double share = coordinates * (log_range_of_law + log_range(rounding_variance(coordinates)));
    return -std::expm1(-share * up) * up;
}

// The two pairs of Theorem 4.
inline Steps rounded_gaussian(double sigma, const IntegerMove& move, double log_range_of_law) {
    const double rest = sigma * sigma * down - rounding_variance(move.coordinates());
    const double shift = move.norm() / std::sqrt(rest * down) * up;
    return {{Gaussian::of_shift(shift), 1.0},
            {approximate_dp(0.0, telling(move.coordinates(), log_range_of_law)), 1.0}};
}

inline constexpr double least_gaussian_sigma = 2.0;  // below, Renyi divergences are sharper than Theorem 5
inline constexpr double most_gaussian_norm = 24.0;   // in deviations, where t is far below all deltas
inline constexpr double most_tabled_sigma = 1e3;     // a law of more outcomes takes more than 10 ms
inline constexpr double least_gaussian_tail = 1e-280;

inline bool is_nearly_gaussian(double sigma, const IntegerMove& move) {
    return sigma <= most_tabled_sigma && move.replaced().norm() <= most_gaussian_norm * sigma;
}

// The two pairs of Theorem 5.
inline Steps nearly_gaussian(const IntegerLaw& law, const IntegerMove& move) {
    const double rounding = 2.0 * static_cast<double>(law.size()) * one_ulp;
    std::vector<double> tails;  // at most, from the last one down to A(1)
    double high = law.missing, low = 0.0, next = nan, c = 0.0, last = 0.0;
    for (std::size_t k = law.size() - 1; k > law.reach(); --k) {
        high += law.high[k], low += law.low[k];
        tails.push_back(high * (1.0 + rounding));
        if (low < least_gaussian_tail) continue;
        const double error = 64.0 * one_ulp;
        const double most = q_inv(low * (1.0 - rounding)) * (1.0 + error) + error;
        const double least = q_inv(min(tails.back(), 0.5)) * (1.0 - error) - error;
        if (last == 0.0) last = static_cast<double>(k - law.reach());
        else c = max(c, next - least);
        next = most;
    }
    c = max(c, 2.0 * next) * up;
    const double from = last + 1.0 - std::floor(move.norm());  // of t
    const double t = from >= 1.0 ? tails[tails.size() - static_cast<std::size_t>(from)] : 1.0;
    const double told = min(move.coordinates() * t * up, 1.0);
    return {{Gaussian::of_shift(c * move.norm() * up), 1.0}, {approximate_dp(0.0, told), 1.0}};
}

// Noise on each coordinate of a vector of integers, independently, all of one law.
class IntegerNoise {
  public:
    virtual ~IntegerNoise() = default;

    // At least the Renyi divergence of an order >= 1 (Theorem 1).
    double renyi(double order, const IntegerMove& move) const {
        const FloatingEnvironment environment;
        const double rho = 0.5 * curvature_ * static_cast<double>(move.squared()) * up, whole = std::floor(order);
        const double chord = order <= 2.0 ? 2.0 * rho : rho * whole * ((order - 1.0) + (order - whole)) / (order - 1.0);
        return min(chord * short_sum_up, concentration(move) * order * up);
    }

    // A rho for which the divergence is at most rho times the order, at every order; infinity if
    // none is known.
    double concentration(const IntegerMove& move) const {
        const FloatingEnvironment environment;
        return 0.5 * smooth_curvature_ * static_cast<double>(move.squared()) * up;
    }

    // Whether a pair is known, whether a record is added or replaced.
    virtual bool has_pair(const IntegerMove& move) const = 0;

    // The pairs of one release; a set flag ends the call by the exception Stopped.
    Steps pairs(const IntegerMove& move, End end, const std::atomic<bool>* stop = nullptr) const {
        const FloatingEnvironment environment;
        if (!has_pair(move)) throw std::invalid_argument("no dominating pair is known of this noise");
        WorkBudget budget(stop);
        return end == End::upper ? dominating(move, budget) : dominated(move);
    }

    // By how much the logarithm of the ratio of a coordinate's law to a discrete Gaussian varies at
    // most; infinity if that is not known.
    virtual double log_range_of_law() const { return infinity; }

  protected:
    IntegerNoise(double curvature, double smooth_curvature)
        : curvature_(curvature), smooth_curvature_(smooth_curvature) {}

  private:
    virtual Steps dominating(const IntegerMove& move, WorkBudget& budget) const = 0;
    virtual Steps dominated(const IntegerMove& move) const = 0;

    double curvature_, smooth_curvature_;
};

class DiscreteGaussianNoise final : public IntegerNoise {
  public:
    explicit DiscreteGaussianNoise(double sigma)
        : IntegerNoise(curvature_of_sum(sigma, 1.0), curvature_of_sum(sigma, 1.0)), sigma_(sigma) {}

    bool has_pair(const IntegerMove& move) const override {
        return enumerates(move) || sigma_ >= least_rounded_sigma || has_tail_pair(move);
    }
    double log_range_of_law() const override { return 0.0; }

  private:
    // Whether the largest vectors are few: at most 220 of a squared norm of at most 64.
    bool enumerates(const IntegerMove& move) const {
        return move.dimension == 1.0 || (move.replaced().squared() <= 64 && sigma_ <= 16.0);
    }
    bool has_tail_pair(const IntegerMove& move) const {
        return sigma_ >= least_gaussian_sigma && is_nearly_gaussian(sigma_, move);
    }
    Steps composed(const IntegerVector& vector) const {
        Steps steps;
        for (const std::int64_t part : std::set<std::int64_t>(vector.begin(), vector.end()))
            steps.push_back({discrete_gaussian(sigma_, static_cast<double>(part)),
                             static_cast<double>(std::count(vector.begin(), vector.end(), part))});
        return steps;
    }
    Steps dominating(const IntegerMove& move, WorkBudget& budget) const override {
        if (!enumerates(move))
            return has_tail_pair(move) ? nearly_gaussian(discrete_gaussian_law(sigma_), move)
                                       : rounded_gaussian(sigma_, move, 0.0);
        if (move.dimension == 1.0) return composed({integer_root(move.squared())});
        const std::vector<IntegerVector> vectors = largest_vectors(move);
        return vectors.size() == 1 ? composed(vectors[0]) : Steps{{pair_of_vectors(sigma_, vectors, budget), 1.0}};
    }
    Steps dominated(const IntegerMove& move) const override {
        IntegerVector vector = attained_vector(move);
        if (sigma_ > 1e3)  // where the table of a coordinate takes a second
            vector.erase(std::find_if(vector.begin(), vector.end(), [&](std::int64_t x) { return x != vector[0]; }),
                         vector.end());
        return composed(vector);
    }

    double sigma_;
};

// The sum of the noise of several clients.
class SumOfDiscreteGaussians final : public IntegerNoise {
  public:
    SumOfDiscreteGaussians(double sigma, double clients)
        : IntegerNoise(curvature_of_sum(sigma, clients), smooth_curvature_of_sum(sigma, clients)), sigma_(sigma),
          clients_(clients), total_(std::sqrt(clients) * sigma), log_range_(log_range_of_sum(sigma, clients)) {}

    bool has_pair(const IntegerMove& move) const override {
        if (is_convolved() && (move.dimension == 1.0 || has_tail_pair(move))) return true;
        return total_ >= least_rounded_sigma && telling(move.replaced().coordinates(), log_range_) <= 1e-15;
    }
    double log_range_of_law() const override { return log_range_; }

  private:
    // Whether the sum has so few outcomes that its law is computed.
    bool is_convolved() const {
        return clients_ <= 1e5 && 2.0 * std::sqrt(2.0 * mass_depth * clients_) * sigma_ + 3.0 <= 0x1p14;
    }
    bool has_tail_pair(const IntegerMove& move) const {
        return total_ >= least_gaussian_sigma && is_nearly_gaussian(total_, move);
    }
    IntegerLaw law() const { return sum_of_discrete_gaussians(sigma_, static_cast<std::int64_t>(clients_)); }
    Steps dominating(const IntegerMove& move, WorkBudget&) const override {
        if (move.dimension == 1.0 && is_convolved())
            return {{pair_above(law(), static_cast<std::size_t>(integer_root(move.squared()))), 1.0}};
        if (is_convolved() && has_tail_pair(move)) return nearly_gaussian(law(), move);
        return rounded_gaussian(total_ / up, move, log_range_);
    }
    Steps dominated(const IntegerMove& move) const override {
        const auto shift = static_cast<std::size_t>(attained_vector(move)[0]);
        if (is_convolved()) return {{pair_below(law(), shift), 1.0}};
        if (total_ > 2e4) return {{nothing(), 1.0}};  // a law of too many outcomes
        return {{pair_below(nearly_discrete_gaussian_law(total_, log_range_), shift), 1.0}};
    }

    double sigma_, clients_, total_, log_range_;
};

class SkellamNoise final : public IntegerNoise {
  public:
    explicit SkellamNoise(double variance)
        : IntegerNoise(curvature_of_skellam(variance), infinity), variance_(variance) {}

    bool has_pair(const IntegerMove& move) const override {
        return variance_ <= 1e6 &&
               (move.dimension == 1.0 || (variance_ >= 1.0 && is_nearly_gaussian(std::sqrt(variance_), move)));
    }

  private:
    Steps dominating(const IntegerMove& move, WorkBudget&) const override {
        if (move.dimension != 1.0) return nearly_gaussian(skellam_law(variance_), move);
        return {{pair_above(skellam_law(variance_), static_cast<std::size_t>(integer_root(move.squared()))), 1.0}};
    }
    Steps dominated(const IntegerMove& move) const override {
        const std::int64_t squared = IntegerMove{move.sensitivity}.squared();
        const double most = min(move.dimension, most_moved);
        auto part = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(squared) / most)));
        double count = min(static_cast<double>(squared / (part * part)), most);
        if (count * static_cast<double>(part * part) < 0.98 * static_cast<double>(squared))
            part = integer_root(squared), count = 1.0;
        const auto shift = static_cast<std::size_t>(move.times * static_cast<double>(part));
        return {{pair_below(skellam_law(variance_), shift), count}};
    }

    // Coordinates that a vector for lower ends moves alike: many small moves leak more than a large one.
    static constexpr double most_moved = 64.0;
    double variance_;
};

using IntegerNoisePointer = std::shared_ptr<const IntegerNoise>;

inline IntegerNoisePointer discrete_gaussian_noise(double sigma) {
    const FloatingEnvironment environment;
    require(sigma >= 1e-3 && sigma <= 1e5, "noise_std", "lie in [0.001, 100000]", sigma);
    return std::make_shared<DiscreteGaussianNoise>(sigma);
}

// What secure aggregation shows of the noise of several clients.
inline IntegerNoisePointer sum_of_discrete_gaussian_noise(double sigma, double clients) {
    const FloatingEnvironment environment;
    require(sigma >= 1e-3 && sigma <= 1e5, "noise_std", "lie in [0.001, 100000]", sigma);
    require(count(clients), "num_clients", "be an integer in [1, 2^53]", clients);
    return std::make_shared<SumOfDiscreteGaussians>(sigma, clients);
}

inline IntegerNoisePointer skellam_noise(double variance) {
    const FloatingEnvironment environment;
    require(variance >= 1e-6 && variance <= 1e12, "noise_variance", "lie in [1e-6, 1e12]", variance);
    return std::make_shared<SkellamNoise>(variance);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release

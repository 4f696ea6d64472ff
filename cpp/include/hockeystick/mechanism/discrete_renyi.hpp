// Renyi divergences of discrete pairs, and the integrals of their curves, which are sums over the
// outcomes.
//
// An outcome of masses p and q and loss l = log p/q > 0 has the share max(p - e^eps q, 0) in delta.
// With psi(b) = (1 - e^{-b l})/b, its share of the integrals of loss/curve_integral.hpp is
//
//   growing   p e^{(a-1) l} (psi(a-1) - psi(a)),
//   falling   p (psi(a) - e^{-l} psi(a-1)),
//
// both at most p l^2/2 but for e^{(a-1) l}, as 1 - e^{-x} <= x: for where psi cancels.
// Both grow with l, which is rounded up.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/loss/curve_integral.hpp>
#include <hockeystick/loss/discrete.hpp>
#include <hockeystick/mechanism/renyi.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

using loss::CoarseRenyi;
using loss::Half;
using loss::Masses;

// The Renyi divergence of p from q, rounded up: log(sum_i p_i (p_i/q_i)^{a-1})/(a - 1) at order a.
//
// With l_i = log(p_i/q_i), the sum is 1 + sum_i p_i expm1((a-1) l_i), which keeps the digits of a
// small divergence. A measure p that bounds a law may exceed mass 1, by `excess`, which is
// added. Where e^{(a-1) l_i} could overflow, every exponent is lowered by the largest one, `top`.
// At order 1 the divergence is sum_i p_i l_i.
inline double discrete_renyi(const std::vector<double>& p, const std::vector<double>& q, double order,
                             double excess = 0.0) {
    std::vector<double> masses, losses;
    double largest = -infinity, logs = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        if (p[i] == 0.0) continue;
        if (q[i] == 0.0) return infinity;
        masses.push_back(p[i]);
        losses.push_back(std::log(p[i]) - std::log(q[i]));
        largest = max(largest, losses.back());
        logs = max(logs, std::fabs(std::log(p[i])) + std::fabs(std::log(q[i])));
    }
    const double error = sixteen_roundings * static_cast<double>(masses.size()) * (1.0 + logs);
    const double less = order - 1.0, top = less * largest;
    double sum = 0.0;
    for (std::size_t i = 0; i < masses.size(); ++i) {
        if (order == 1.0) sum += masses[i] * losses[i];
        else sum += masses[i] * (top > 500.0 ? std::exp(less * losses[i] - top) : std::expm1(less * losses[i]));
    }
    if (order == 1.0) return sum + error;
    const double g = top > 500.0 ? top + std::log(sum) : std::log1p(sum + excess);
    return g / less * renyi_up + error;
}

// The integral of a mass of infinite loss, of the whole curve where it falls, or up to the loss
// `end` and with the tail beyond it (loss/curve_integral.hpp) where it grows.
inline double log_infinite_integral(const Masses& pair, double infinite, double order, Half half, double end,
                                    const CoarseRenyi& coarse) {
    if (half == Half::falling) return std::log(infinite / order) + sixteen_roundings;
    const double from = end - min(1.0, 0.5 * end);
    double beyond = infinite;
    for (std::size_t i = 0; i < pair.p.size(); ++i)
        if (pair.q[i] > 0.0) beyond += max(pair.p[i] - std::exp(from) * pair.q[i], 0.0);
    const double errors = sixteen_roundings * (static_cast<double>(pair.p.size()) + order * end + 1e4);
    const double known = std::log(infinite * loss::decayed(order - 1.0, end)) + (order - 1.0) * end + errors;
    const double mass = beyond / -std::expm1(from - end) * (1.0 + errors);
    return log_sum(known, loss::log_growing_tail(order, end, mass, known + loss::log_negligible, coarse));
}

// The logarithm of an integral of the curve of a discrete pair, rounded up. Masses may err by eight
// roundings.
inline double log_discrete_integral(const Masses& pair, double order, Half half, const CoarseRenyi& coarse) {
    const double a = order, less = a - 1.0;
    std::vector<double> logs, weights;
    double top = -infinity, end = 0.0, infinite = 0.0;
    for (std::size_t i = 0; i < pair.p.size(); ++i) {
        const double p = pair.p[i], q = pair.q[i];
        if (q == 0.0) infinite += p;
        if (!(p > q && q > 0.0)) continue;
        const double log_p = std::log(p), log_q = std::log(q);
        const double l = log_p - log_q + sixteen_roundings * (1.0 + std::fabs(log_p) + std::fabs(log_q));
        const double longer = loss::decayed(less, l), shorter = loss::decayed(a, l);
        const double part = half == Half::growing ? longer - shorter : shorter - std::exp(-l) * longer;
        weights.push_back(min(part + sixteen_roundings * longer, 0.5 * l * l));
        logs.push_back(half == Half::growing ? log_p + less * l : log_p);
        top = max(top, logs.back()), end = max(end, l);
    }
    double sum = 0.0;
    for (std::size_t i = 0; i < logs.size(); ++i) sum += std::exp(logs[i] - top) * weights[i];
    const double terms = static_cast<double>(logs.size());
    const double finite =
        sum > 0.0 ? top + std::log(sum) + sixteen_roundings * (terms + std::fabs(top) + 1e3) : -infinity;
    if (infinite == 0.0) return finite;
    return log_sum(finite, log_infinite_integral(pair, infinite * (1.0 + sixteen_roundings * terms), order, half,
                                                 end > 0.0 ? end : 1.0, coarse));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism

// Random allocation: Gaussian noise on t steps, of which a record takes part in one, drawn
// uniformly and kept secret. (Feldman and Shenfeld 2025; Chua et al. 2025, balls and bins.)
//
// Without the record the outputs are Q = N(0, I), with it P = (1/t) sum_i N(r e_i, I), r = 1/noise.
// Under Q
//
//   W = dP/dQ = (X_1 + ... + X_t)/t,  X_i = e^{r x_i - r^2/2} independent log-normals of mean 1,
//
// so that delta(eps) = E (W - e^eps)_+ when the record is removed, and E (1 - e^eps W)_+ when it is
// added.
//
// The pair dominates steps that are chosen adaptively. Let step i move by g_i, |g_i| <= r, where
// g_i depends on the outputs y before it. Then W is the mean of X_i = e^{g_i.y_i - |g_i|^2/2}. With
// s_i^2 = r^2 - |g_i|^2 and xi fresh standard normals let X*_i = X_i e^{s_i xi_i - s_i^2/2}. Given
// all before it, X*_i is log-normal with parameter r, so the X* are as above, and E[X*_i |
// y] = X_i. Hence W = E[W* | y]: by Jensen's inequality every convex function has the smaller mean
// for W, and both deltas are means of convex functions of W. The other records are the same in P
// and Q: condition on their choices.
//
// Of k steps. A uniform partition of the t steps into k blocks of given sizes, and a uniform step
// of each block, are together a uniform k-subset, by symmetry. Showing the partition, which has one
// law under P and Q, only raises delta (joint convexity). Given it, W is the product of the blocks'
// means, and W = E[W* | y] as before: the product of k pairs, one for each block.
//
// All of these are means of convex functions of W: a mean-preserving spread of its law is a
// dominating pair, also in compositions (allocation/ratio_law.hpp). X is put on a grid and sums are
// formed by doubling, each on a grid of its own (allocation/ratio_grid.hpp). Merging in place of
// spreading gives pairs that are dominated. The grid's step is such that log delta differs by about
// 1e-3 of itself between both, 5e-3 at worst. Rounding is charged to the pairs: masses are scaled
// and values moved, to what leaks more, or less.
//
// Cost: 2 log2 t sums of 4 million pairs of atoms for large t (half of them for powers of two): a
// fifth of a second for t = 1000.
#pragma once

#include <atomic>
#include <utility>

#include <hockeystick/allocation/ratio_grid.hpp>
#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/loss/discrete.hpp>
#include <hockeystick/numeric/gauss_legendre.hpp>
#include <hockeystick/numeric/require.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace divergence;
using loss::Masses;

// The law of one log-normal. Eight quadrature points a cell are enough: the integrands are entire,
// and a cell is at most 0.04 r wide in its logarithm.
inline RatioLaw log_normal_law(double r, bool spread, double step) {
    std::vector<double> nodes, points;
    for (double z = -max_quantile; z < max_quantile + r;) {
        nodes.push_back(z);
        points.push_back(std::exp(r * z - 0.5 * r * r));
        z = next_quantile(z, max(-z, z - r), step);
    }
    RatioCells cells(points);
    const std::size_t n = points.size();
    cells.mass[0] = q(-nodes[0]);
    cells.excess[0] = q(r - nodes[0]);
    cells.mass[n] = q(nodes[n - 1]);
    cells.excess[n] = theta(r * nodes[n - 1] - 0.5 * r * r, r);
    const QuadratureRule rule = gauss_legendre(8);
    for (std::size_t k = 1; k < n; ++k) {
        const double half = 0.5 * (nodes[k] - nodes[k - 1]);
        for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
            const double above = half * (1.0 + static_cast<double>(rule.nodes[i])), z = nodes[k - 1] + above;
            const HalfSquare h = half_square(z);
            const double weight = half * static_cast<double>(rule.weights[i]) * inv_sqrt_2pi * exp_sum(-h.high, -h.low);
            cells.mass[k] += weight;
            cells.excess[k] += weight * points[k - 1] * std::expm1(r * above);
        }
    }
    RatioLaw law = law_of(cells, spread);
    law.mass_error = 1024.0 * unit_roundoff;  // a node errs by |z| u, its density by z^2 u
    law.value_error = 64.0 * (1.0 + r) * (1.0 + r) * unit_roundoff;
    return law;
}

// The laws of the means of t log-normals and, where asked for, of t + 1.
inline std::pair<RatioLaw, RatioLaw> mean_laws(double r, std::int64_t t, bool both, bool spread, double step,
                                               WorkBudget& budget) {
    if (t == 1) {
        RatioLaw one = log_normal_law(r, spread, step);
        RatioLaw two =
            both ? weighted_sum(one, one, 0.5, grid_points(one, one, 0.5, step), spread, budget) : RatioLaw{};
        return {std::move(one), std::move(two)};
    }
    const bool odd = t % 2 == 1;
    const auto [half, more] = mean_laws(r, t / 2, both || odd, spread, step, budget);
    const double share = static_cast<double>(t / 2) / static_cast<double>(2 * (t / 2) + 1);
    const std::vector<double> points = odd ? grid_points(half, more, share, step) : grid_points(half, half, 0.5, step);
    if (odd)
        return {weighted_sum(half, more, share, points, spread, budget),
                both ? weighted_sum(more, more, 0.5, points, spread, budget) : RatioLaw{}};
    return {weighted_sum(half, half, 0.5, points, spread, budget),
            both ? weighted_sum(half, more, share, points, spread, budget) : RatioLaw{}};
}

// One pair for each direction: of a record that is removed, and of one that is added.
struct AllocationPairs {
    Masses removed, added;
};

// The pairs of one of `num_steps` steps: dominating, or dominated. A query whose `stop` is set
// throws Stopped.
inline AllocationPairs random_allocation_pairs(double shift, std::int64_t num_steps, bool upper,
                                               const std::atomic<bool>* stop = nullptr) {
    require(shift >= 1e-3 && shift <= 4.0, "shift", "lie in [0.001, 4]", shift);
    require(num_steps >= 2 && num_steps <= 1000000, "num_steps", "lie in [2, 10^6]", static_cast<double>(num_steps));
    WorkBudget budget(stop);
    const double step = min(0.02, 0.045 / std::sqrt(std::log2(static_cast<double>(num_steps))));
    const RatioLaw law = mean_laws(shift, num_steps, false, upper, step, budget).first;
    const double sign = upper ? 1.0 : -1.0;
    const double scale = 1.0 + sign * law.mass_error, moved = 1.0 + sign * law.value_error;
    std::vector<double> with, without, added;  // P when removed, Q, P when added
    for (std::size_t i = 0; i < law.values.size(); ++i) {
        if (!(law.masses[i] > 0.0)) continue;
        without.push_back(scale * law.masses[i]);
        with.push_back(moved * law.values[i] * without.back());
        added.push_back(law.values[i] / moved * without.back());
    }
    if (law.mean_at_infinity > 0.0) {
        without.push_back(0.0);
        with.push_back(scale * law.mean_at_infinity * (1.0 + 1e-6));
        added.push_back(with.back());
    }
    return {{std::move(with), without}, {without, std::move(added)}};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation

// Random allocation: Gaussian noise on t steps, of which a record takes part in one, drawn uniformly and kept secret.
//
// Without the record the outputs are Q = N(0, I), with it P = (1/t) sum_i N(r e_i, I), r = 1/noise. Under Q
//
//   W = dP/dQ = (X_1 + ... + X_t)/t,  X_i = e^{r x_i - r^2/2} independent log-normals of mean 1,
//
// remove: delta(eps) = E (W - e^eps)_+, add: E (1 - e^eps W)_+. (Feldman and Shenfeld 2025; Chua et al. 2025, balls and bins.)
//
// The pair dominates steps that are chosen adaptively. Let step i move by g_i, |g_i| <= r, where g_i depends on the outputs y
// before it. Then W = mean of X_i = e^{g_i.y_i - |g_i|^2/2}. With s_i^2 = r^2 - |g_i|^2 and xi fresh standard normals let
// X*_i = X_i e^{s_i xi_i - s_i^2/2}: given all before it, it is log-normal with parameter r, so the X* are as above, and
// E[X*_i | y] = X_i. Hence W = E[W* | y]: by Jensen's inequality every convex function has the smaller mean for W, and both deltas
// are means of convex functions of W. The records beside this one are the same in P and Q: condition on their choices.
//
// Of k steps: a uniform partition of the t steps into k blocks of given sizes and a uniform step of each block are together a
// uniform k-subset, by symmetry. Showing the partition, which has one law under P and Q, only raises delta (joint convexity).
// Given it, W is the product of the blocks' means, and W = E[W* | y] as before: the product of k pairs, one for each block.
//
// Convex order is kept by sums of independents and turns mean-preserving spreads into upper bounds, also of compositions:
// the spread W~ and its law are a pair themselves. So X is put on a grid, each cell split between its ends such that mass
// and mean are kept; sums are formed by doubling, and put on a new grid each time. Below the grid, cells are split between 0 and its
// first point; above it, mass stays at the last point and the rest of the mean goes to infinity: a limit of spreads.
// Merging each cell into its mean is the opposite, and gives lower bounds.
//
// Grid: equal steps of the normal quantile of (P + Q)/2, growing beyond six deviations, out to masses near 1e-148. A step
// c spreads the variance by a share c^2/6 each time, so log delta errs by about c^2/6 |log delta| a doubling.
//
// Rounding. All terms are positive. Masses carry a relative error, which adds up over the t summands: base, and for each
// sum what the cell with the most terms may have; values carry one, which adds up over the doublings. Both
// are charged to the pair: masses are scaled, values moved, to what leaks more for the upper pair, less for the lower one.
//
// Cost: 2 log2 t sums of up to 14 million pairs of atoms (half of them for powers of two).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <hockeystick/budget.hpp>
#include <hockeystick/gauss_legendre.hpp>
#include <hockeystick/hockey_stick.hpp>

namespace hockeystick {
inline namespace HOCKEYSTICK_ISA {
namespace detail {

// Of W under Q, and what of its mean is at infinity.
struct RatioLaw {
    std::vector<double> values, masses;  // values increase
    double lost = 0.0;
    double mass_error = 0.0, value_error = 0.0;  // relative
};

// Outcomes between the edges 0 = e_0 < e_1 < ... < e_n < e_{n+1} = infinity: their mass, and its mean above the lower edge.
struct RatioCells {
    std::vector<double> edges, mass, excess;
    std::vector<std::uint32_t> terms;  // how many were added up

    explicit RatioCells(const std::vector<double>& points) : edges{0.0} {
        edges.insert(edges.end(), points.begin(), points.end());
        edges.push_back(infinity);
        mass.assign(edges.size() - 1, 0.0);
        excess = mass;
        terms.assign(mass.size(), 0);
    }
};

inline constexpr double allocation_reach = 26.0, allocation_step = 0.008;  // in normal quantiles; reach is mass 1e-148
inline constexpr double allocation_underflow = 1e-250;  // above what underflows in products of masses

// Next quantile of the grid, beyond `depth` deviations from the middle.
inline double allocation_next(double z, double depth) { return z + allocation_step * max(1.0, depth / 6.0); }

// Splits every cell between its ends, or merges it into its mean.
inline RatioLaw law_of(const RatioCells& cells, bool spread) {
    RatioLaw law;
    const std::size_t last = cells.mass.size() - 1;
    if (spread) {
        law.values.assign(cells.edges.begin(), cells.edges.end() - 1);
        law.masses = cells.mass;
        for (std::size_t k = 0; k < last; ++k) {
            const double up = min(cells.excess[k] / (cells.edges[k + 1] - cells.edges[k]), cells.mass[k]);
            law.masses[k] -= up;
            law.masses[k + 1] += up;
        }
        law.masses[0] += allocation_underflow;
        law.lost = cells.excess[last] + allocation_underflow;
    } else {
        for (std::size_t k = 0; k <= last; ++k) {
            if (!(cells.mass[k] > 0.0)) continue;
            law.values.push_back(cells.edges[k] + cells.excess[k] / cells.mass[k]);
            law.masses.push_back(cells.mass[k]);
        }
    }
    return law;
}

// One log-normal. Eight points a cell: the integrands are entire, and a cell is at most 0.04 r wide in its logarithm.
inline RatioLaw log_normal_law(double r, bool spread) {
    std::vector<double> nodes, points;
    for (double z = -allocation_reach; z < allocation_reach + r;) {
        nodes.push_back(z);
        points.push_back(std::exp(r * z - 0.5 * r * r));
        z = allocation_next(z, max(-z, z - r));
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

// Mass of a share of one law and the rest of another under (P + Q)/2 below each edge, roughly: the smaller summand in some hundred
// groups. `ties` counts equal summands.
inline void add_sketch(const RatioLaw& large, const RatioLaw& small, double share, bool ties,
                       const std::vector<double>& edges, std::vector<double>& masses) {
    const std::size_t step = small.values.size() / 100 + 1;
    std::vector<double> value, mass;
    for (std::size_t j = 0; j < small.values.size(); j += step) {
        double sum = 0.0, mean = 0.0;
        for (std::size_t k = j; k < std::min(j + step, small.values.size()); ++k)
            sum += small.masses[k], mean += small.masses[k] * small.values[k];
        value.push_back(sum > 0.0 ? mean / sum : 0.0);
        mass.push_back(sum);
    }
    for (std::size_t i = 0; i < large.values.size(); ++i) {
        std::size_t k = 0;
        for (std::size_t j = 0; j < value.size(); ++j) {
            if (ties ? value[j] > large.values[i] : value[j] >= large.values[i]) break;
            const double sum = share * large.values[i] + (1.0 - share) * value[j];
            while (sum >= edges[k]) ++k;
            masses[k] += (0.5 + 0.5 * sum) * large.masses[i] * mass[j];
        }
    }
}

// Edges around 1 that grow with the distance from it, infinity being the last: uniform in asinh(log(value)/scale).
inline std::vector<double> neutral_edges(const RatioLaw& law) {
    double variance = 0.0, lowest = infinity;
    for (std::size_t i = 0; i < law.values.size(); ++i) {
        if (!(law.values[i] > 0.0)) continue;
        const double log_value = std::log(law.values[i]);
        variance += law.masses[i] * log_value * log_value;
        lowest = min(lowest, log_value);
    }
    const double scale = std::sqrt(variance), low = std::asinh(lowest / scale);
    const double high = std::asinh(std::log(law.values.back()) / scale);
    std::vector<double> edges;
    constexpr int count = 2000;
    for (int k = 0; k <= count; ++k) edges.push_back(std::exp(scale * std::sinh(low + (high - low) * k / count)));
    edges.push_back(infinity);
    return edges;
}

// Grid for the sum of a share of one law and the rest of another, by the quantiles of a sketch of it.
inline std::vector<double> allocation_points(const RatioLaw& one, const RatioLaw& other, double share) {
    const std::vector<double> edges = neutral_edges(one);
    std::vector<double> masses(edges.size() + 1, 0.0);
    add_sketch(one, other, share, true, edges, masses);
    add_sketch(other, one, 1.0 - share, false, edges, masses);
    std::vector<double> above(edges.size() + 1, 0.0);
    for (std::size_t k = edges.size(); k-- > 0;) above[k] = above[k + 1] + masses[k + 1];
    std::vector<double> points;
    double below = 0.0, target = -allocation_reach, last_z = -infinity, last_log = 0.0;
    for (std::size_t k = 0; k + 1 < edges.size() && target < allocation_reach; ++k) {
        below += masses[k];
        const double z = below < above[k] ? -q_inv(min(below, 0.5)) : q_inv(min(above[k], 0.5));
        const double at = std::log(edges[k]);
        if (!(z > last_z) || !std::isfinite(z)) continue;
        if (last_z == -infinity) target = max(target, z);
        while (target <= z && target < allocation_reach) {
            const double part = last_z > -infinity ? (target - last_z) / (z - last_z) : 1.0;
            const double point = std::exp(last_log + part * (at - last_log));
            if (points.empty() || point > points.back() * (1.0 + 0x1p-40)) points.push_back(point);
            target = allocation_next(target, std::fabs(target));
        }
        last_z = z, last_log = at;
    }
    return points;
}

// The law of a share of one and the rest of another, independent; `points` is the grid.
inline RatioLaw weighted_sum(const RatioLaw& one, const RatioLaw& other, double share,
                             const std::vector<double>& points, bool spread, Budget& budget) {
    RatioCells cells(points);
    const double* edges = cells.edges.data();
    const bool same = &one == &other;  // then only j <= i, those below twice
    std::vector<double> added;
    for (const double value : other.values) added.push_back((1.0 - share) * value);
    std::vector<std::uint32_t> cell(added.size(), 0);  // of each sum in the row before: no chain along the row
    for (std::size_t i = 0; i < one.values.size(); ++i) {
        const double base = share * one.values[i], weight = same ? 2.0 * one.masses[i] : one.masses[i];
        const std::size_t end = same ? i + 1 : added.size();
        if (same && i > 0) cell[i] = cell[i - 1];
        budget.spend(static_cast<double>(end));
        for (std::size_t j = 0; j < end; ++j) {
            const double value = base + added[j];
            std::uint32_t k = cell[j];
            k += value >= edges[k + 1] ? 1 : 0;
            while (value >= edges[k + 1]) ++k;
            cell[j] = k;
            const double mass = (same && j == i ? one.masses[i] : weight) * other.masses[j];
            cells.mass[k] += mass;
            cells.excess[k] += mass * (value - edges[k]);
            ++cells.terms[k];
        }
    }
    RatioLaw law = law_of(cells, spread);
    law.lost += share * one.lost + (1.0 - share) * other.lost;
    double most = 0.0, moved = 0.0;
    for (std::size_t k = 0; k < cells.terms.size(); ++k) {
        const double terms = cells.terms[k] + 8.0;
        const double width = k + 1 < cells.terms.size() ? 1.0 - edges[k] / edges[k + 1] : 1.0;
        most = max(most, terms);
        moved = max(moved, 2.0 * terms * width);
    }
    law.mass_error = one.mass_error + other.mass_error + most * unit_roundoff;
    law.value_error = max(one.value_error, other.value_error) + (8.0 + moved) * unit_roundoff;
    return law;
}

// The laws of the means of t and, where asked for, of t + 1 log-normals.
inline std::pair<RatioLaw, RatioLaw> mean_laws(double r, std::int64_t t, bool both, bool spread, Budget& budget) {
    if (t == 1) {
        RatioLaw one = log_normal_law(r, spread);
        RatioLaw two =
            both ? weighted_sum(one, one, 0.5, allocation_points(one, one, 0.5), spread, budget) : RatioLaw{};
        return {std::move(one), std::move(two)};
    }
    const bool odd = t % 2 == 1;
    const auto [half, more] = mean_laws(r, t / 2, both || odd, spread, budget);
    const double share = static_cast<double>(t / 2) / static_cast<double>(2 * (t / 2) + 1);
    const std::vector<double> points = odd ? allocation_points(half, more, share) : allocation_points(half, half, 0.5);
    if (odd)
        return {weighted_sum(half, more, share, points, spread, budget),
                both ? weighted_sum(more, more, 0.5, points, spread, budget) : RatioLaw{}};
    return {weighted_sum(half, half, 0.5, points, spread, budget),
            both ? weighted_sum(half, more, share, points, spread, budget) : RatioLaw{}};
}

}  // namespace detail

// The pairs of the two directions, as "discrete_pairs" of mechanism.hpp: dominating, or dominated.
// noise in [0.25, 1000], num_steps in [2, 10^6]; checked by the caller.
// A query whose `stop` is set throws detail::Stopped.
inline std::vector<double> random_allocation_pairs(double shift, std::int64_t num_steps, bool upper,
                                                   const std::atomic<bool>* stop = nullptr) {
    detail::Budget budget(stop);
    const detail::RatioLaw law = detail::mean_laws(shift, num_steps, false, upper, budget).first;
    const double sign = upper ? 1.0 : -1.0;
    const double scale = 1.0 + sign * law.mass_error, moved = 1.0 + sign * law.value_error;
    std::vector<double> with, without, added;  // P when removed, Q, P when added
    for (std::size_t i = 0; i < law.values.size(); ++i) {
        if (!(law.masses[i] > 0.0)) continue;
        without.push_back(scale * law.masses[i]);
        with.push_back(moved * law.values[i] * without.back());
        added.push_back(law.values[i] / moved * without.back());
    }
    if (law.lost > 0.0) {
        without.push_back(0.0);
        with.push_back(scale * law.lost * (1.0 + 1e-6));
        added.push_back(with.back());
    }
    std::vector<double> pairs{static_cast<double>(with.size())};
    for (const std::vector<double>* part : {&with, &without, &without, &added})
        pairs.insert(pairs.end(), part->begin(), part->end());
    return pairs;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick

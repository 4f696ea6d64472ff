// The law of a likelihood ratio W = dP/dQ under Q as atoms, and sums of independent ones, in convex
// order.
//
// E (W - a)_+ for all a determines all divergences of the pair. A law with the same mean for which
// all of these are larger dominates, in both directions and in composition. Outcomes are gathered
// in cells, each with its mass and its mean, and become atoms in one of two ways:
//
//   spread   A cell is split between its ends such that mass and mean are kept: larger in convex
//            order. Beyond the last edge the mass stays at that edge and the rest of the mean goes
//            to infinity, a limit of spreads. The first edge is 0.
//   merged   A cell becomes its mean: smaller in convex order.
//
// Both orders survive sums of independent ratios. So sums of spread laws, spread anew, are upper
// bounds, and sums of merged laws lower bounds.
//
// Rounding. All terms are positive. Masses carry a relative error, which adds up over the summands,
// with as many units as the cell with the most terms has. Values carry a relative error, which adds
// up over the depth of the sums: 8 u for each sum, and the error of a cell's excess over its lower
// edge, which is a share of the cell's width.
//
// Cost: some 3 ns a pair of atoms.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/numeric/work_budget.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// The law of W under Q, and the part of its mean that is at infinity.
struct RatioLaw {
    std::vector<double> values, masses;  // values increase
    double mean_at_infinity = 0.0;
    double mass_error = 0.0, value_error = 0.0;  // relative
};

// Outcomes between the edges 0 = e_0 < e_1 < ... < e_n < e_{n+1} = infinity: their mass, and its
// mean above the lower edge.
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

inline constexpr double ratio_underflow = 1e-250;  // above what underflows in products of masses

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
        law.masses[0] += ratio_underflow;
        law.mean_at_infinity = cells.excess[last] + ratio_underflow;
    } else {
        for (std::size_t k = 0; k <= last; ++k) {
            if (!(cells.mass[k] > 0.0)) continue;
            law.values.push_back(cells.edges[k] + cells.excess[k] / cells.mass[k]);
            law.masses.push_back(cells.mass[k]);
        }
    }
    return law;
}

// The law of share W1 + (1 - share) W2 for independent W1 and W2, on the grid `points`.
inline RatioLaw weighted_sum(const RatioLaw& one, const RatioLaw& other, double share,
                             const std::vector<double>& points, bool spread, WorkBudget& budget) {
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
    law.mean_at_infinity += share * one.mean_at_infinity + (1.0 - share) * other.mean_at_infinity;
    double max_terms = 0.0, moved = 0.0;
    for (std::size_t k = 0; k < cells.terms.size(); ++k) {
        const double terms = cells.terms[k] + 8.0;
        const double width = k + 1 < cells.terms.size() ? 1.0 - edges[k] / edges[k + 1] : 1.0;
        max_terms = max(max_terms, terms);
        moved = max(moved, 2.0 * terms * width);
    }
    law.mass_error = one.mass_error + other.mass_error + max_terms * unit_roundoff;
    law.value_error = max(one.value_error, other.value_error) + (8.0 + moved) * unit_roundoff;
    return law;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation

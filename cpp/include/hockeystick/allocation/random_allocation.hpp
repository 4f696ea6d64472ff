// Random allocation: Gaussian noise on t steps, of which a record takes part in one, drawn
// uniformly and kept secret. (Feldman and Shenfeld 2025; Chua et al. 2025, balls and bins.)
//
// Without the record the outputs are Q = N(0, I), with it P = (1/t) sum_i N(r e_i, I), r = 1/noise.
// Under Q
//
//   W = dP/dQ = (X_1 + ... + X_t)/t,  X_i = e^{r x_i - r^2/2} independent log-normals of mean 1,
//
// so that delta(eps) = E (W - e^eps)_+ when the record is removed, and E (1 - e^eps W)_+ when it is
// added. docs/core/allocation.md proves that the pair dominates adaptive steps and k-subsets, and
// that laws which are larger (smaller) than that of W in convex order give dominating (dominated)
// pairs, in compositions too. Such laws of sums are formed by doubling, allocation/lattice_sum.hpp.
// Rounding is charged to the pairs: masses are scaled and values moved, to what leaks more, or
// less.
//
// Width: below 1e-3 of epsilon, as a rule. Cost: log2 t sums, twice that unless t is a power of
// two; 5 ms for a pair at t = 450, 40 at worst.
#pragma once

#include <atomic>
#include <utility>

#include <hockeystick/allocation/lattice_sum.hpp>
#include <hockeystick/allocation/log_normal_law.hpp>
#include <hockeystick/loss/discrete.hpp>
#include <hockeystick/numeric/require.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace divergence;
using loss::Masses;

// The law of a sum of some ratios. Its mean is their number, in the unit of the values.
struct SumLaw {
    LatticeLaw law;
    double mean, count;
};

inline Bulk bulk_of_sum(const SumLaw& one, const SumLaw& other) {
    const Bulk a = bulk_of(one.law), b = bulk_of(other.law);
    return {a.lowest + b.lowest, a.median + b.median, std::hypot(a.scale, b.scale)};
}

inline SumLaw sum_on(const LatticeGrid& grid, const SumLaw& one, const SumLaw& other, WorkBudget& budget) {
    return {sum_of(one.law, other.law, one.mean, other.mean, grid, budget), one.mean + other.mean,
            one.count + other.count};
}

inline SumLaw sum_of(const SumLaw& one, const SumLaw& other, WorkBudget& budget) {
    return sum_on(grid_for(bulk_of_sum(one, other), one.count + other.count), one, other, budget);
}

// The same on the grid of `like`, around this sum's own median: the sum of both can be formed.
inline SumLaw sum_like(const SumLaw& like, const SumLaw& one, const SumLaw& other, WorkBudget& budget) {
    const LatticeGrid& grid = like.law.grid();
    if (grid.centre == 0.0) return sum_on(grid, one, other, budget);
    return sum_on(narrow_grid(grid.spacing, grid.half, bulk_of_sum(one, other)), one, other, budget);
}

// The laws of the sums of t ratios that have the law of `one` and, where asked for, of t + 1.
inline std::pair<SumLaw, SumLaw> sum_laws(const SumLaw& one, std::int64_t t, bool both, WorkBudget& budget) {
    const SumLaw none{LatticeLaw({0.0, 1.0, 1}, one.law.form()), 0.0, 0.0};
    if (t == 1) return {one, both ? sum_like(one, one, one, budget) : none};
    const bool odd = t % 2 == 1;
    const auto [half, more] = sum_laws(one, t / 2, both || odd, budget);
    SumLaw first = odd ? sum_of(half, more, budget) : sum_of(half, half, budget);
    if (!both) return {std::move(first), none};
    SumLaw second = odd ? sum_like(first, more, more, budget) : sum_like(first, half, more, budget);
    return {std::move(first), std::move(second)};
}

// The law of a sum of ratios: its atoms, what lies at 0, and the part of the mean at infinity.
struct RatioSums {
    std::vector<Atom> atoms;
    double zero, infinite;
    LatticeErrors errors;
    Form form;
    double mean;  // the true one
};

inline RatioSums sums_of_steps(const SumLaw& one, std::int64_t num_steps, WorkBudget& budget) {
    const LatticeLaw law = sum_laws(one, num_steps, false, budget).first.law;
    const double missed = law.form() == Form::spread ? 1.0 + 1e-6 : 1.0 - 1e-6;  // by faint masses
    return {law.atoms(), law.zero,   missed * law.infinite,
            law.errors,  law.form(), one.mean * static_cast<double>(num_steps)};
}

// P and Q of one of several steps whose ratios have these sums, where the record is removed; Q and
// P where it is added.
inline Masses pair_of_sums(const RatioSums& sums, bool removed) {
    const bool upper = sums.form == Form::spread;
    const double sign = upper ? 1.0 : -1.0;
    const double scale = 1.0 + sign * sums.errors.mass, moved = 1.0 + sign * sums.errors.value;
    std::vector<double> with, without;
    for (const Atom& atom : sums.atoms) {
        const double ratio = atom.value / sums.mean;
        without.push_back(scale * atom.mass);
        with.push_back((removed ? moved * ratio : ratio / moved) * without.back());
    }
    if (upper) without.push_back(scale * sums.zero), with.push_back(0.0);
    if (upper || sums.infinite > 0.0) {
        without.push_back(0.0);
        with.push_back(scale * sums.infinite / sums.mean);
    }
    return removed ? Masses{std::move(with), std::move(without)} : Masses{std::move(without), std::move(with)};
}

// One pair for each direction: of a record that is removed, and of one that is added.
struct AllocationPairs {
    Masses removed, added;
};

inline void require_steps(std::int64_t num_steps) {
    require(num_steps >= 2 && num_steps <= 1000000, "num_steps", "lie in [2, 10^6]", static_cast<double>(num_steps));
}

// The pairs of one of `num_steps` steps: dominating, or dominated. A query whose `stop` is set
// throws Stopped.
inline AllocationPairs random_allocation_pairs(double shift, std::int64_t num_steps, bool upper,
                                               const std::atomic<bool>* stop = nullptr) {
    require(shift >= 1e-3 && shift <= 4.0, "shift", "lie in [0.001, 4]", shift);
    require_steps(num_steps);
    WorkBudget budget(stop);
    const RatioSums sums =
        sums_of_steps({log_normal_law(shift, upper ? Form::spread : Form::merged), 1.0, 1.0}, num_steps, budget);
    return {pair_of_sums(sums, true), pair_of_sums(sums, false)};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation

// The law of the likelihood ratio of one step that has a discrete pair, on a grid
// (allocation/lattice_law.hpp).
//
// `reference` is Q where the record is removed, and what leads, the law without it, where it is
// added; `other` is the law with the record. The ratio of an outcome is X = other/reference, which
// it has with its mass under `reference`. Two kinds of functions of one ratio are needed, the other
// steps' ratios being held: (s + X - a)_+ where the record is removed, (a - s - X)_+ where it is
// added. Means of both are divergences of the two vectors, in the one or the other order, and those
// were computed for this direction: nothing else need be true of the vectors.
//
// Rounding. The divergence at eps below all losses is the difference of two sums, which may miss 1.
// So the sum of the law that leads is settled on the side of the other one that leaks more (spread)
// or less (merged), at one outcome that has much of both laws, and the share by which the sum of
// `reference` misses 1 is an error of all masses. Ratios err by two roundings, and so do the
// probabilities that a user gives.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <hockeystick/allocation/lattice_sum.hpp>
#include <hockeystick/loss/discrete.hpp>
#include <hockeystick/numeric/compensated_sum.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using loss::Masses;

// The ratios of one step in increasing order; equal ones are one atom.
struct StepRatios {
    std::vector<Atom> atoms;
    double zero = 0.0, infinite = 0.0;  // masses too faint for a grid, and the part of the mean at infinity
    LatticeErrors errors;
    Form form;
    bool removed;  // else the record is added
};

inline double sum_of_masses(const std::vector<double>& masses) {
    CompensatedSum sum;
    for (const double mass : masses) sum.add(mass);
    return sum.value();
}

inline void settle_sums(const std::vector<double>& reference, std::vector<double>& other, StepRatios& step) {
    const bool upper = step.form == Form::spread, raised = upper == step.removed;
    const double sum = sum_of_masses(reference), excess = sum_of_masses(other) - sum;
    std::size_t common = 0;
    for (std::size_t i = 1; i < reference.size(); ++i)
        if (min(reference[i], other[i]) > min(reference[common], other[common])) common = i;
    const double moved = max(raised ? -excess : excess, 0.0) + sixteen_roundings;
    other[common] = max(other[common] + (raised ? moved : -moved), 0.0);
    step.errors.mass = max(upper ? 1.0 - sum : sum - 1.0, 0.0) + sixteen_roundings;
    step.errors.value = sixteen_roundings;
}

// Adds outcomes too faint for an atom to that of the largest ratio, by their masses with the record
// and under the reference: showing one outcome in place of several leaks less. To leave them out
// would take from the law with the record what it has there, which may be much.
inline void merge_into_largest(std::vector<Atom>& atoms, double with, double reference) {
    const auto largest =
        std::max_element(atoms.begin(), atoms.end(), [](const Atom& x, const Atom& y) { return x.value < y.value; });
    if (largest == atoms.end()) return;
    const double mass = largest->mass + reference;
    *largest = {(largest->value * largest->mass + with) / mass, mass};
}

// Of a pair for removing the record, or of one for adding it.
inline StepRatios step_ratios(const Masses& pair, bool removed, Form form) {
    const std::vector<double>& reference = removed ? pair.q : pair.p;
    std::vector<double> other = removed ? pair.p : pair.q;
    StepRatios step;
    step.form = form, step.removed = removed;
    settle_sums(reference, other, step);
    std::vector<Atom> found;
    Atom faint{0.0, 0.0};  // for merged laws: the sums of `other` and of `reference` there
    for (std::size_t i = 0; i < reference.size(); ++i) {
        if (reference[i] >= faint_mass) found.push_back({other[i] / reference[i], reference[i]});
        else if (form == Form::spread) step.zero += reference[i], step.infinite += other[i];
        else if (reference[i] == 0.0) step.infinite += other[i];
        else faint.value += other[i], faint.mass += reference[i];
    }
    if (faint.value > 0.0) {
        merge_into_largest(found, faint.value, faint.mass);
        step.errors.value += static_cast<double>(reference.size()) * unit_roundoff;
    }
    std::sort(found.begin(), found.end(), [](const Atom& x, const Atom& y) { return x.value < y.value; });
    for (const Atom& atom : found) {
        if (!step.atoms.empty() && step.atoms.back().value == atom.value) step.atoms.back().mass += atom.mass;
        else step.atoms.push_back(atom);
    }
    step.errors.mass += static_cast<double>(found.size()) * unit_roundoff;
    return step;
}

// Values below this share of the median need no points of their own on a grid.
inline constexpr double least_resolved = 1e-12;

inline constexpr double least_weight = 1e-7;  // less may be spread beyond the extreme ratio

// A unit for the values, in which the extreme ratio is a power of two: the largest that is not rare
// under P where the record is removed, the smallest that is not rare under Q where it is added. It,
// and sums of few of it, are then points of a grid whose centre is 0: where losses are bounded,
// nothing of weight is spread beyond the largest of them.
inline double unit_of(const StepRatios& step) {
    const std::size_t size = step.atoms.size();
    for (std::size_t i = 0; i < size; ++i) {
        const Atom& atom = step.atoms[step.removed ? size - 1 - i : i];
        if (atom.value > 0.0 && atom.mass * (step.removed ? atom.value : 1.0) >= least_weight)
            return std::ldexp(atom.value, -std::ilogb(atom.value));
    }
    return 1.0;
}

inline LatticeLaw ratio_law(const StepRatios& step, double unit) {
    std::vector<Atom> atoms = step.atoms;
    for (Atom& atom : atoms) atom.value /= unit;
    Bulk bulk = bulk_of(atoms, step.zero);
    bulk.lowest = max(bulk.lowest, least_resolved * bulk.median);
    LatticeLaw law(grid_for(bulk, 1.0), step.form);
    for (const Atom& atom : atoms) law.add(atom.value, atom.mass, atom.value * atom.mass);
    law.zero += step.zero;
    law.infinite += step.infinite / unit;
    law.errors = step.errors;
    const double roundings = (law.max_terms() + 8.0) * unit_roundoff;
    law.errors.mass += roundings;
    if (step.form == Form::merged) law.errors.value += 2.0 * roundings;
    return law;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation

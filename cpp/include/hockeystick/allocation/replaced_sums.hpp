// Random allocation where a record is replaced: delta(eps) of one of t steps.
//
// Let X_i and X'_i be the ratios of step i with the one record and with the other, both to the step
// without either. Each record draws its own step, so that delta(eps) is, c = e^eps, the mean of
// (X_1 + ... + X_t - c (X'_1 + ... + X'_t))_+ / t where all steps are without either record.
// It is largest if each X_i is as large as can be where X'_i is as small as can be: with the ratios
// Y of the pair for removing a record, in falling order, and Y' of the pair for adding one, in
// rising order, at the same place of [0, 1] (docs/core/allocation.md).
//
// For each eps that is the mean of (V_1 + ... + V_t - 2 t c B)_+ / t, V = Y + c (2B - min(Y', B)),
// a sum of independent variables as in lattice_sum.hpp; any cap B only adds to it. V stays away
// from 0, where grids send what lies between 0 and their first point to infinity.
//
// Rounding. Places of [0, 1] err relatively: as the mean is one of a positive function, which
// shrinks towards 1, a share of all masses pays. What rounding leaves at 1 is left out.
// Cost: one law of a sum for each eps, 2 to 20 ms.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <hockeystick/allocation/random_allocation.hpp>
#include <hockeystick/allocation/ratio_law.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

// Outcomes of one step in the order of [0, 1]: `more` falls and `less` rises.
struct OppositeRatios {
    struct Outcome {
        double more, less, mass;
    };
    std::vector<Outcome> outcomes;
    double infinite;  // the part of the mean of `more` at infinity
    LatticeErrors errors;
};

// From the ratios of a removed record and those of an added one, both spread.
inline OppositeRatios opposite_ratios(const StepRatios& removed, const StepRatios& added) {
    std::vector<Atom> low{{0.0, added.zero}};
    low.insert(low.end(), added.atoms.begin(), added.atoms.end());
    OppositeRatios result;
    double left = 0.0, sum = 0.0;
    std::size_t j = 0;
    for (std::size_t i = removed.atoms.size(); i-- > 0;) {
        for (double rest = removed.atoms[i].mass; rest > 0.0 && j < low.size();) {
            if (!(left > 0.0)) left = low[j].mass;
            const double mass = min(rest, left);
            if (mass > 0.0) result.outcomes.push_back({removed.atoms[i].value, low[j].value, mass});
            rest -= mass, left -= mass, sum += mass;
            if (!(left > 0.0)) ++j;
        }
    }
    const double terms = static_cast<double>(result.outcomes.size());
    result.infinite = removed.infinite;
    result.errors.mass = removed.errors.mass + added.errors.mass + max(1.0 - sum, 0.0) + (terms + 64.0) * unit_roundoff;
    result.errors.value = removed.errors.value + added.errors.value;
    return result;
}

// An upper bound of delta.
inline double replaced_delta(const OppositeRatios& step, std::int64_t num_steps, double eps, WorkBudget& budget) {
    const auto t = static_cast<double>(num_steps);
    const double c = std::exp(eps) * down, cap = min(step.outcomes.back().less, 30.0 * (1.0 + std::sqrt(t)));
    std::vector<Atom> atoms;
    for (std::size_t i = step.outcomes.size(); i-- > 0;) {
        const OppositeRatios::Outcome& x = step.outcomes[i];
        atoms.push_back({x.more + c * (2.0 * cap - min(x.less, cap)), x.mass});
    }
    LatticeLaw law(grid_for(bulk_of(atoms, 0.0), 1.0), Form::spread);
    for (const Atom& atom : atoms) law.add(atom.value, atom.mass, 0.0);
    law.infinite += step.infinite;
    law.errors = step.errors;
    law.errors.mass += (law.max_terms() + 8.0) * unit_roundoff;
    const RatioSums sums = sums_of_steps({std::move(law), 1.0 + 2.0 * c * cap, 1.0}, num_steps, budget);
    const double level = 2.0 * t * c * cap * (1.0 - 2.0 * step.errors.value - sixteen_roundings);
    double delta = sums.infinite;
    for (const Atom& atom : sums.atoms) delta += atom.mass * max(atom.value * (1.0 + sums.errors.value) - level, 0.0);
    const double roundings = (static_cast<double>(sums.atoms.size()) + 16.0) * unit_roundoff;
    return min(delta * (1.0 + sums.errors.mass + roundings) / t, 1.0);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation

// Random allocation where a record is replaced: delta(eps) of one of t steps, above or below.
//
// Let X_i and X'_i be the ratios of step i with the one record and with the other, both to the step
// without either. Each record draws its own step, so that delta(eps) is, c = e^eps, the mean of
// (X_1 + ... + X_t - c (X'_1 + ... + X'_t))_+ / t where all steps are without either record.
// It is largest if each X_i is as large as can be where X'_i is as small as can be: with the ratios
// F of the pair for removing a record, in falling order, and G of the pair for adding one, in
// rising order, at the same place of [0, 1] (docs/core/allocation.md).
//
// For each eps that is the mean of (Z_1 + ... + Z_t)_+ / t, Z = F - c G, a sum of independent
// variables as in lattice_sum.hpp, but with signs. The function does not fall: for an upper end
// what is too faint for the grid may rise, and is left out for a lower one.
//
// Rounding. Values are moved by their own errors. Places of [0, 1] err relatively: as the mean is
// one of a positive function, which shrinks towards 1, a share of all masses pays. What rounding
// leaves at 1 is left out.
// Cost: one law of a sum for each eps, 0.3 to 3 ms.
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
    Form form;
    double deviation;  // of log F, roughly
};

// Points of a grid in a unit of the logarithm's deviation.
inline constexpr double points_of_deviation = 64.0;

// Half of a grid's row, for values whose logarithms have this deviation.
inline int half_row(double deviation) {
    return 1 << std::clamp(std::ilogb(1.5 * points_of_deviation / deviation), 4, 6);
}

// The deviation of log X, roughly.
inline double log_deviation(const std::vector<Atom>& atoms) {
    double mass = 0.0, mean = 0.0, square = 0.0;
    for (const Atom& atom : atoms) {
        if (!(atom.value > 0.0)) continue;
        const double log = std::log(atom.value);
        mass += atom.mass, mean += atom.mass * log, square += atom.mass * log * log;
    }
    return std::sqrt(max(square / mass - (mean / mass) * (mean / mass), 1e-12));
}

// The ratios of Gaussian noise, of either direction.
inline StepRatios gaussian_ratios(double r, Form form) {
    const int half = half_row(r);
    const LatticeGrid wide{0.0, std::ldexp(1.0, std::ilogb(2.0 * lowest_log_normal(r) / half)), half};
    const Bulk bulk{0.0, 1.0, r};
    const LatticeLaw law = LogNormalLaw(r, form, r > dispersed ? wide : grid_with_signs(bulk, half)).take();
    return {law.atoms(), law.zero, law.infinite, law.errors, form, true};
}

inline constexpr std::size_t most_ratios = 3000;

// Those of a discrete pair, on a grid if they are many.
inline StepRatios discrete_ratios(const Masses& pair, bool removed, Form form) {
    StepRatios step = step_ratios(pair, removed, form);
    if (step.atoms.size() <= most_ratios) return step;
    const double unit = unit_of(step);
    const LatticeLaw law = ratio_law(step, unit);
    StepRatios result{law.atoms(), law.zero, law.infinite * unit, law.errors, form, removed};
    for (Atom& atom : result.atoms) atom.value *= unit;
    result.errors.value += sixteen_roundings;
    return result;
}

// From the ratios of a removed record and those of an added one, in the same form.
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
    result.errors.value = removed.errors.value + added.errors.value + sixteen_roundings;
    result.form = removed.form;
    result.deviation = log_deviation(removed.atoms);
    return result;
}

// Sums of values with signs keep atoms down to this share of delta, over 1 + c: P may have c times as
// much there.
inline constexpr double faint_share = 1e-16;

// The law of F - c G, with room for the errors of both.
inline LatticeLaw difference_law(const OppositeRatios& step, double c, double faint) {
    const double sign = step.form == Form::spread ? 1.0 : -1.0;
    std::vector<Atom> atoms;
    for (std::size_t i = step.outcomes.size(); i-- > 0;) {
        const OppositeRatios::Outcome& x = step.outcomes[i];
        atoms.push_back({(x.more - c * x.less) + sign * step.errors.value * (x.more + c * x.less), x.mass});
    }
    LatticeLaw law(grid_with_signs(bulk_of(atoms, 0.0, true), half_row(step.deviation)), step.form,
                   {-infinity, max(faint, faint_mass)});
    for (const Atom& atom : atoms) law.add_or_drop(atom.value, atom.mass, atom.value * atom.mass);
    law.infinite += step.infinite;
    law.errors.mass = step.errors.mass + (law.max_terms() + 8.0) * unit_roundoff;
    return law;
}

// A bound of delta from the side of the form; `about` is roughly what it may be.
inline double replaced_delta(const OppositeRatios& step, std::int64_t num_steps, double eps, double about,
                             WorkBudget& budget) {
    const bool upper = step.form == Form::spread;
    const auto t = static_cast<double>(num_steps);
    const double c = std::exp(eps) * (upper ? down : up);
    // Where one value is too faint, the others' sum counts as much as its distance from 0 may be in the mean: that is
    // at most 1 + c a step, and a spread adds less than a tenth.
    const double faint = faint_share * about / (1.0 + c);
    const RatioSums sums = sums_of_steps({difference_law(step, c, faint), 64.0 * (1.0 + c), 1.0}, num_steps, budget);
    const double roundings = (static_cast<double>(sums.atoms.size()) + 64.0) * unit_roundoff;
    const double moved = upper ? 0.0 : sums.errors.value;  // of the last sum's merged values
    double delta = sums.infinite;
    for (const Atom& atom : sums.atoms)
        delta += atom.mass * max(atom.value - moved * (std::fabs(atom.value) + t * (1.0 + c)), 0.0);
    // Each step has lost a share z of its mass at most, all of them t z: (1 - z)^-t <= 1/(1 - t z).
    const double share = sums.errors.mass + roundings;
    if (!upper) return max(delta * (1.0 - share), 0.0) / t;
    return share < 1.0 ? min(delta / (1.0 - share) / t, 1.0) : 1.0;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation

// The law of a sum of ratios that take few values: exact, by how often each value occurs.
//
// With values x_j of mass m_j, t independent ratios take them n_1, ..., n_K times with probability
// t!/(n_1! ... n_K!) m_1^{n_1} ... m_K^{n_K}, and their sum is n_1 x_1 + ... + n_K x_K. There are
// C(t + K - 1, K - 1) counts.
//
// Error: the logarithm of a probability is a sum of at most 3K + 1 terms, each off by eight
// roundings of itself; that bounds the relative error of every mass. Cost: one exponential a count.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <hockeystick/allocation/random_allocation.hpp>
#include <hockeystick/allocation/ratio_law.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double most_counts = 4000.0;

// Whether the counts are few enough.
inline bool has_few_counts(const StepRatios& step, std::int64_t num_steps) {
    double counts = 1.0;
    for (std::size_t j = 1; j < step.atoms.size(); ++j) {
        counts *= (static_cast<double>(num_steps) + static_cast<double>(j)) / static_cast<double>(j);
        if (counts > most_counts) return false;
    }
    return !step.atoms.empty();
}

class OutcomeCounts {
  public:
    OutcomeCounts(const StepRatios& step, std::int64_t num_steps) : step_(step) {
        const auto t = static_cast<double>(num_steps);
        // Where one ratio is faint, the mean of the others goes to infinity, as in lattice_sum.hpp.
        sums_ = {{}, t * step.zero, t * (step.infinite + t * step.zero), step.errors, step.form, t};
        visit(0, t, {0.0, 0.0}, {log_gamma(t + 1.0), log_gamma(t + 1.0)});
        if (faint_.value > 0.0) {
            merge_into_largest(sums_.atoms, faint_.value, faint_.mass);
            sums_.errors.value += most_counts * unit_roundoff;
        }
        sums_.errors.mass = t * step.errors.mass + 8.0 * unit_roundoff * size_;
        sums_.errors.value += (2.0 * static_cast<double>(step.atoms.size()) + 2.0) * unit_roundoff;
    }
    RatioSums take() { return std::move(sums_); }

  private:
    struct Logarithm {
        double value, size;  // the sum of its terms, and of their magnitudes

        Logarithm plus(double term) const { return {value + term, size + std::fabs(term)}; }
    };

    // The counts of the values from j on, of the ratios that are left; `sum.value` is the sum so
    // far.
    void visit(std::size_t j, double left, Atom sum, Logarithm log_mass) {
        const Atom& atom = step_.atoms[j];
        const bool last = j + 1 == step_.atoms.size();
        for (double n = last ? left : 0.0; n <= left; ++n) {
            const Atom next{sum.value + n * atom.value, 0.0};
            const Logarithm log_next = log_mass.plus(-log_gamma(n + 1.0)).plus(n * std::log(atom.mass));
            if (last) put(next.value, log_next);
            else visit(j + 1, left - n, next, log_next);
        }
    }

    void put(double value, const Logarithm& log_mass) {
        size_ = max(size_, log_mass.size);
        const double mass = std::exp(log_mass.value);
        if (mass >= faint_mass) sums_.atoms.push_back({value, mass});
        else if (step_.form == Form::spread) sums_.zero += mass, sums_.infinite += mass * value;
        else faint_.value += mass * value, faint_.mass += mass;
    }

    const StepRatios& step_;
    RatioSums sums_;
    Atom faint_{0.0, 0.0};  // the sums of masses too faint for atoms of merged laws, times their values and alone
    double size_ = 0.0;
};

// The sums of `num_steps` ratios: exact where they take few values, else on grids.
inline RatioSums sums_of_ratios(const StepRatios& step, std::int64_t num_steps, WorkBudget& budget) {
    if (has_few_counts(step, num_steps)) return OutcomeCounts(step, num_steps).take();
    const double unit = unit_of(step);
    return sums_of_steps({ratio_law(step, unit), 1.0 / unit, 1.0}, num_steps, budget);
}

// P and Q of one of `num_steps` steps that have this pair, where the record is removed; Q and P
// where it is added.
inline Masses allocated_pair(const Masses& pair, std::int64_t num_steps, bool removed, Form form, WorkBudget& budget) {
    require_steps(num_steps);
    return pair_of_sums(sums_of_ratios(step_ratios(pair, removed, form), num_steps, budget), removed);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation

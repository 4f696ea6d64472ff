// All certified bounds of projected noisy SGD with Gaussian noise where the record is used every
// `period` rounds. A period of 1 is use in every round. `best_cyclic` takes the smallest of them.
// The record is used J times, the last time k rounds before the end:
//
//   no_amplification        theta(eps, g sqrt(J))
//   contraction             that times theta(eps, r)^k
//   nonlinear               F applied k times to no_amplification
//   shifted                 shifted interpolation over all rounds (hidden_state/cyclic_shift.hpp)
//   shift_then_contraction  shifted interpolation up to the last use or some later round, then F
//   renyi                   the Rényi route from the parameter of `shifted`, for comparison
//   split_noise             for J > 1, the loss curve through the last rounds
//                           (hidden_state/split_noise.hpp)
//   joint                   the loss curve, with shifts in every round (hidden_state/joint.hpp)
//
// Lengths are in noise deviations. F is applied at most 2 max_passes times. After more rounds than
// that, the rounds in the middle are skipped: F(E) <= E and F increases, so that a bound to which F
// is applied less often is larger, or equal. The shift counts all rounds, also the skipped ones.
// docs/core/hidden_state.md has the theorems, and F in "Nonlinear contraction".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <hockeystick/hidden_state/cyclic_shift.hpp>
#include <hockeystick/hidden_state/joint.hpp>
#include <hockeystick/hidden_state/projected_sgd_bounds.hpp>
#include <hockeystick/hidden_state/split_noise.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

struct CyclicCell {
    DescentCell descent;  // num_records is the number of rounds, index the round of the first use
    double period;

    bool legal() const { return descent.legal() && count(period); }
    double uses() const { return std::floor(descent.later_rounds() / period) + 1.0; }
    double rounds_after_last_use() const { return descent.later_rounds() - (uses() - 1.0) * period; }
};

// nonlinear, shifted and shift_then_contraction, from log delta right after the last use.
inline void contract_after_last_use(const CyclicCell& cell, const CyclicShift& shift, double log_delta,
                                    Deltas& deltas) {
    const double eps = cell.descent.eps, image_diameter = cell.descent.image_diameter();
    const double log_gamma_minus_1 = log_gamma_minus_one(eps);
    const double uses = cell.uses(), after = cell.rounds_after_last_use();
    const auto shifted_after = [&](double k) { return upper_log(log_theta(eps, shift.parameter(uses, k))); };
    const auto log_eta = [image_diameter](double e) { return log_theta(e, image_diameter); };
    const auto contracted = [&](double log_e) {
        return log_e < log_underflow ? log_e : log_contracted(log_gamma_minus_1, log_e, log_eta);
    };
    // The shift is evaluated as often as keeps a cell below a tenth of a second.
    const double passes = std::min(after, 2.0 * max_passes);
    const double evaluations = std::max(1.0, 0x1p17 / std::min(uses, max_pooled_uses));
    const double stride = std::max(1.0, std::floor(passes / evaluations));
    double nonlinear = log_delta, both = std::min(log_delta, shifted_after(0.0));
    for (double pass = 1.0; pass <= passes && nonlinear >= log_underflow; pass += 1.0) {
        const double k = pass <= max_passes ? pass : std::max(pass, after - 2.0 * max_passes + pass);
        nonlinear = contracted(nonlinear);
        both = contracted(both);
        if (std::fmod(pass, stride) == 0.0) both = std::min(both, shifted_after(k));
    }
    const double last = shifted_after(after);
    deltas[Bound::shifted] = upper_delta(last, eps);
    deltas[Bound::nonlinear] = upper_delta(nonlinear, eps);
    deltas[Bound::shift_then_contraction] = upper_delta(std::min({both, last, nonlinear}), eps);
}

// joint, beside the other bounds of a record that is used once.
inline void add_joint(const DescentCell& d, Deltas& deltas) {
    if (!d.legal()) return;
    const double g = std::max(d.sensitivity(), smallest_length), after = d.later_rounds();
    const CyclicShift shift(d.step_lipschitz(), g, std::max(d.width(), smallest_length), d.num_records);
    const JointUses use{g, d.step_lipschitz(), d.image_diameter(), 1.0, 0.0, after};
    const double known = std::min(deltas[Bound::shift_then_contraction], deltas[Bound::nonlinear]);
    deltas[Bound::joint] = std::min(known, positive_delta(joint_bound(d.eps, shift.parameter(1.0, 0.0), use), d.eps));
}

// A record that is used once has the bounds of projected_sgd_bounds.hpp, and joint.
template <class RunRounds> Deltas cyclic_bounds(const CyclicCell& cell, const RunRounds& run_rounds) {
    Deltas deltas = Deltas::none();
    if (!cell.legal()) return deltas;
    if (cell.uses() == 1.0) {
        last_iterate_bounds(&cell.descent, 1, run_rounds, &deltas);
        add_joint(cell.descent, deltas);
        return deltas;
    }
    const DescentCell& d = cell.descent;
    const double eps = d.eps, uses = cell.uses(), after = cell.rounds_after_last_use();
    const double g = std::max(d.sensitivity(), smallest_length), image_diameter = d.image_diameter();
    const CyclicShift shift(d.step_lipschitz(), g, std::max(d.width(), smallest_length), cell.period);
    const double composed = upper_log(log_theta(eps, g * std::sqrt(uses) * up));
    const double log_eta = upper_log(log_theta(eps, image_diameter));
    deltas[Bound::no_amplification] = upper_delta(composed, eps);
    deltas[Bound::contraction] = upper_delta(after == 0.0 ? composed : composed + after * log_eta, eps);
    contract_after_last_use(cell, shift, composed, deltas);
    deltas[Bound::shift_then_contraction] = std::min(deltas[Bound::shift_then_contraction], deltas[Bound::contraction]);
    deltas[Bound::renyi] = renyi_delta(shift.parameter(uses, after) * std::sqrt(0.5), eps);
    const double mu = shift.parameter(uses, 0.0);  // the largest of all rounds
    const UseSchedule schedule{g, image_diameter, 1.0, uses, cell.period - 1.0, after};
    deltas[Bound::split_noise] = std::min(split_noise_bound(eps, mu, schedule), deltas[Bound::shift_then_contraction]);
    const JointUses joint{g, d.step_lipschitz(), image_diameter, uses, cell.period - 1.0, after};
    deltas[Bound::joint] = std::min(deltas[Bound::split_noise], positive_delta(joint_bound(eps, mu, joint), eps));
    return deltas;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

// Certified bounds of projected noisy SGD where chance decides when the record is used: in each
// round with probability q, independently of all other rounds. Nobody sees which rounds these are.
// `best_sampled` asks for them, and so does a trusted aggregator that draws a batch every round.
//
//   shifted                 shifted interpolation for the worst pattern, use in every round
//   participation_patterns  the mean over all patterns (hidden_state/participation_patterns.hpp)
//   split_noise             the loss curve through the last rounds (hidden_state/split_noise.hpp)
//   joint                   the loss curve with one optimal step a round (hidden_state/joint.hpp)
//
// and, for the composition engines,
//
//   sampled_mechanisms      the last K rounds as K sampled Gaussian mechanisms, and a Gaussian one.
//
// docs/core/hidden_state.md has the proofs. The sensitivity is 2L, whether a record is added or
// takes the place of another one: two sums differ by at most two gradients of norm at most L.
#pragma once

#include <algorithm>
#include <cmath>

#include <hockeystick/hidden_state/bounds.hpp>
#include <hockeystick/hidden_state/joint.hpp>
#include <hockeystick/hidden_state/participation_patterns.hpp>
#include <hockeystick/hidden_state/split_noise.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double max_pattern_rounds = 0x1p16;  // log_binomial is good for so many trials

// The last `rounds` rounds as that many sampled Gaussian mechanisms under the replace adjacency,
// and one Gaussian mechanism of parameter mu; no rounds if nothing bounds how far two runs part.
struct SampledMechanisms {
    double rounds, noise_multiplier, mu;
};

// Chooses the number of rounds, and the share of their noise that hides the record, by the variance
// of the composed losses: a use of sensitivity a has at most min(a^2, q^2 (e^{a^2} - 1)). Any
// choice is sound.
inline SampledMechanisms sampled_mechanisms(const SampledCell& cell) {
    SampledMechanisms best{0.0, 0.0, 0.0};
    if (!cell.legal() || cell.rate == 0.0) return best;
    const CyclicShift shift(cell.lipschitz, cell.sensitivity, cell.width, 1.0);
    double least_variance = infinity;
    for (double rounds = 1.0; rounds < cell.rounds; rounds = std::ceil(rounds * 1.15)) {
        const double mu = shift.parameter_of_gap(rounds);
        for (double share = 0.05; share < 0.96; share += 0.05) {
            const double square = cell.sensitivity * cell.sensitivity / share;
            const double sampled = std::min(square, cell.rate * cell.rate * std::expm1(std::min(square, 700.0)));
            const double variance = rounds * sampled + mu * mu / (1.0 - share);
            if (!(variance < least_variance)) continue;
            least_variance = variance;
            best = {rounds, 2.0 / cell.sensitivity * std::sqrt(share) * down, mu / std::sqrt(1.0 - share) * up};
        }
    }
    return best;
}

inline Deltas sampled_bounds(const SampledCell& cell) {
    Deltas deltas = Deltas::none();
    if (!cell.legal()) return deltas;
    const bool counts_patterns = cell.rate < 1.0 && cell.rounds <= max_pattern_rounds;
    if (cell.rate == 0.0) {  // the record is never used
        deltas[Bound::shifted] = deltas[Bound::split_noise] = deltas[Bound::joint] = 0.0;
        if (counts_patterns) deltas[Bound::participation_patterns] = 0.0;
        return deltas;
    }
    const double eps = cell.eps;
    const double mu = CyclicShift(cell.lipschitz, cell.sensitivity, cell.width, 1.0).parameter(cell.rounds, 0.0);
    const double shifted = upper_delta(upper_log(log_theta(eps, mu)), eps);
    deltas[Bound::shifted] = shifted;
    if (counts_patterns) {
        deltas[Bound::participation_patterns] =
            std::min(shifted, positive_delta(ParticipationPatterns(cell).delta(), eps));
    }
    const UseSchedule schedule{cell.sensitivity, cell.image_diameter(), cell.rate, cell.rounds, 0.0, 0.0};
    deltas[Bound::split_noise] = std::min(shifted, positive_delta(split_noise_bound(eps, mu, schedule), eps));
    // Use in every round is cyclic use, and has its bound.
    const JointUses always{cell.sensitivity, cell.lipschitz, schedule.image_diameter, cell.rounds, 0.0, 0.0};
    const double joint = cell.rate == 1.0 ? joint_bound(eps, mu, always) : joint_sampled_bound(eps, mu, schedule);
    deltas[Bound::joint] = std::min(deltas[Bound::split_noise], positive_delta(joint, eps));
    return deltas;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

// Certified bounds of projected noisy SGD where chance decides when the record is used: in each
// round with probability q, independently of all other rounds. Nobody sees which rounds these are.
// `best_sampled` asks for them, and so does a trusted aggregator that draws a batch every round.
//
//   shifted                 shifted interpolation for the worst pattern, use in every round
//   participation_patterns  the mean over all patterns (ParticipationPatterns)
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
#include <cstddef>
#include <vector>

#include <hockeystick/hidden_state/bounds.hpp>
#include <hockeystick/hidden_state/cyclic_shift.hpp>
#include <hockeystick/hidden_state/joint.hpp>
#include <hockeystick/hidden_state/nonlinear_contraction.hpp>
#include <hockeystick/hidden_state/split_noise.hpp>
#include <hockeystick/numeric/binomial.hpp>
#include <hockeystick/numeric/domain.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

// The bound participation_patterns: the record is used in each round with probability q,
// independently, and the bound is a mean over the patterns of rounds in which it was.
//
// Given the pattern, the divergence right after the j-th use is at most v_j = theta(eps, mu_j), and
// F (hidden_state/nonlinear_contraction.hpp) applies to every round without a use. By joint
// convexity the patterns with j uses in t rounds may be put together. With w_t(j) their probability
// and S_t(j) the probability times the divergence,
//
//   w_{t+1}(j) = (1-q) w_t(j) + q w_t(j-1),
//   S_{t+1}(j) = (1-q) w_t(j) F(S_t(j)/w_t(j)) + q w_t(j-1) v_j,
//
// and delta <= sum_j S_T(j). Proof: docs/core/hidden_state.md.
//
// Patterns with more uses than rarely_exceeded() are charged in full. Of more than
// max_followed_rounds rounds, the first ones are composed. Cost: O(rounds J), J the largest number
// of uses.

// One cell of a record that is used at random; lengths in deviations of a round's noise on the
// model.
struct SampledCell {
    double eps, rate, rounds;
    double sensitivity;  // of a round that uses the record
    double width;        // the diameter of the domain
    double lipschitz;    // of a round's map

    bool legal() const {
        return eps >= 0.0 && rate >= 0.0 && rate <= 1.0 && count(rounds) && positive(sensitivity) && width > 0.0 &&
               positive(lipschitz);
    }
    double image_diameter() const { return width * lipschitz * up; }

    // Of a round alone, for the accountant; NaN outside the domain.
    double noise_multiplier() const { return legal() ? 2.0 / sensitivity * down : nan; }
};

inline constexpr double max_followed_rounds = 512.0;
inline constexpr double negligible_weight = 1e-40;  // of patterns for which F is not worth its time

class ParticipationPatterns {
  public:
    explicit ParticipationPatterns(const SampledCell& cell)
        : cell_(cell), log_gamma_minus_1_(log_gamma_minus_one(cell.eps)),
          size_(static_cast<std::size_t>(rarely_exceeded(cell.rounds, cell.rate)) + 1), weight_(size_, 0.0),
          sum_(size_, 0.0), after_use_(size_, 0.0) {
        // Rounds that do not use the record multiply the gap between the runs by c, so it cannot
        // grow if c <= 1 and grows by at most c^T if c > 1. In any case mu_j <= g sqrt(j), and mu_j
        // is at most the parameter when every round uses the record.
        const CyclicShift in_a_row(cell.lipschitz, cell.sensitivity, cell.width, 1.0);
        const double every_round = in_a_row.parameter(cell.rounds, 0.0);
        const double growth = std::max(1.0, std::exp(cell.rounds * std::log(cell.lipschitz)) * (1.0 + 1e-12));
        for (std::size_t j = 1; j < size_; ++j) {
            const auto uses = static_cast<double>(j);
            const double mu = std::min(
                {in_a_row.parameter(uses, 0.0) * growth, every_round, cell.sensitivity * std::sqrt(uses) * up});
            after_use_[j] = std::exp(upper_log(log_theta(cell.eps, mu))) * up;
        }
    }

    double delta() {
        const double followed = std::min(cell_.rounds, max_followed_rounds);
        compose(cell_.rounds - followed);
        for (double t = 0.0; t < followed; t += 1.0) advance();
        double total = charged_in_full_;
        for (const double s : sum_) total += s;
        return std::min(1.0, total * (1.0 + 1e-8));  // 512 rounds, and the errors of log_binomial
    }

  private:
    const SampledCell& cell_;
    double log_gamma_minus_1_;
    std::size_t size_;                              // one more than the largest number of uses
    std::vector<double> weight_, sum_, after_use_;  // w_t(j), S_t(j), v_j
    double charged_in_full_ = 0.0;                  // probability of the patterns with more uses

    // The first rounds, in which F contracts nothing.
    void compose(double rounds) {
        weight_[0] = 1.0;
        if (rounds == 0.0) return;
        for (std::size_t j = 0; j < size_ && static_cast<double>(j) <= rounds; ++j) {
            weight_[j] = std::exp(log_binomial(rounds, static_cast<double>(j), cell_.rate));
            sum_[j] = weight_[j] * after_use_[j];
        }
        if (static_cast<double>(size_) <= rounds) charged_in_full_ = binomial_tail;
    }

    // w F(S/w)
    double contracted(double weight, double sum) const {
        if (!(sum > 0.0) || weight < negligible_weight) return sum;
        const double log_e = std::log(sum / weight);
        if (log_e < log_underflow) return sum;
        const auto log_eta = [d = cell_.image_diameter()](double e) { return log_theta(e, d); };
        return weight * std::exp(std::min(log_e, log_contracted(log_gamma_minus_1_, std::min(log_e, 0.0), log_eta)));
    }

    void advance() {
        charged_in_full_ += cell_.rate * weight_.back();
        for (std::size_t j = size_; j-- > 0;) {
            const double arriving = j > 0 ? cell_.rate * weight_[j - 1] : 0.0;
            sum_[j] = (1.0 - cell_.rate) * contracted(weight_[j], sum_[j]) + arriving * after_use_[j];
            weight_[j] = (1.0 - cell_.rate) * weight_[j] + arriving;
        }
    }
};

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

// Without the curves, split_noise and joint are left out, which take most of the time.
inline Deltas sampled_bounds(const SampledCell& cell, bool curves) {
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
    if (!curves) return deltas;
    const UseSchedule schedule{cell.sensitivity, cell.image_diameter(), cell.rate, cell.rounds, 0.0, 0.0};
    deltas[Bound::split_noise] = std::min(shifted, positive_delta(split_noise_bound(eps, mu, schedule), eps));
    // Use in every round is cyclic use, and has its bound.
    const JointUses always{cell.sensitivity, cell.lipschitz, schedule.image_diameter, cell.rounds, 0.0, 0.0};
    const double joint = cell.rate == 1.0 ? joint_bound(eps, mu, always) : joint_sampled_bound(eps, mu, schedule);
    deltas[Bound::joint] = std::min(deltas[Bound::split_noise], positive_delta(joint, eps));
    return deltas;
}

// The bound joint as epsilons at `delta` after 1, 2, ... rounds; the last of them after any number.
inline std::vector<double> sampled_epsilons(const SampledCell& cell, double delta) {
    if (!cell.legal() || cell.rate == 0.0) return {};
    const double mu = CyclicShift(cell.lipschitz, cell.sensitivity, cell.width, 1.0).parameter(cell.rounds, 0.0);
    return joint_sampled_epsilons(delta, mu,
                                  {cell.sensitivity, cell.image_diameter(), cell.rate, cell.rounds, 0.0, 0.0});
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

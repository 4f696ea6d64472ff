// The trusted aggregator's sum (federated/trusted_aggregator.hpp) with each term bounded in every way of hidden_state/projected_sgd_bounds.hpp: the user's round
// alone, the published product, the nonlinear contraction, shifted interpolation and their hybrid.
//
// The sum over the user's round is the joint convexity of the divergence: it needs every user to take part at most once, in a
// round that does not depend on the data. Cost: O(T) for constants, O(T^2) for schedules.
#pragma once

#include <hockeystick/federated/trusted_aggregator.hpp>
#include <hockeystick/hidden_state/projected_sgd_bounds.hpp>

namespace hockeystick::federated {
inline namespace HOCKEYSTICK_ISA {

using namespace hidden_state;

// The trusted aggregator's rounds, with what a sharper bound needs to know.
struct HiddenAggregation {
    AggregatorRounds rounds;
    Rounds strong_convexity;

    // Lipschitz constant of round t's map; infinite where it is not known.
    double lipschitz(std::size_t t) const {
        const double rate = rounds.learning_rate[t], smoothness = rounds.smoothness[t];
        if (!rounds.convex) return smoothness > 0.0 ? (1.0 + rate * smoothness) * (1.0 + 0x1p-50) : infinity;
        return smoothness > 0.0 ? std::min(1.0, sharp_step_lipschitz(rate, smoothness, strong_convexity[t])) : 1.0;
    }
    // The diameter of its image, in deviations of its noise.
    double reach(std::size_t t) const {
        const double start =
            2.0 * std::sqrt(rounds.batch_size) *
            deviations(rounds.radius[t == 0 ? 0 : t - 1], rounds.learning_rate[t], rounds.noise_std[t]);
        return std::min(rounds.convex ? infinity : rounds.reach(t), start * lipschitz(t)) * (1.0 + 0x1p-49);
    }
    // Standard deviation of the noise on the model in the round before, over its own.
    double before_over(std::size_t t) const {
        return rounds.learning_rate[t - 1] / rounds.learning_rate[t] * (rounds.noise_std[t - 1] / rounds.noise_std[t]);
    }
    double first(std::size_t t) const {
        return 2.0 * (rounds.lipschitz[t] / rounds.noise_std[t]) / std::sqrt(rounds.batch_size) * (1.0 + 0x1p-50);
    }
    bool constant() const { return rounds.constant() && strong_convexity.constant(); }
    bool valid(std::size_t t) const {
        const bool convexity = strong_convexity[t] >= 0.0 && strong_convexity[t] <= rounds.smoothness[t];
        return rounds.valid(t) && (convexity || strong_convexity[t] == 0.0) &&
               (rounds.convex || strong_convexity[t] == 0.0);
    }
};

// Adds up the bounds for participation in round t and a stop after each of the rounds from `stop` on.
inline void add_participation(const HiddenAggregation& a, std::size_t t, std::size_t rounds, std::size_t stop,
                              HiddenDeltas& sums) {
    HiddenRounds hidden(a.rounds.eps, a.first(t));
    double product = hidden.bounds().hybrid;
    for (std::size_t j = t;; ++j) {
        if (j >= stop) {
            const HiddenBounds b = hidden.bounds();
            HiddenDeltas logs{};
            logs[contraction] = product;
            logs[nonlinear] = b.nonlinear;
            logs[shifted] = b.shifted;
            logs[hybrid] = b.hybrid;
            for (const HiddenMethod method : {contraction, nonlinear, shifted, hybrid})
                sums[method] += raised_delta(logs[method], a.rounds.eps);
        }
        if (j + 1 == rounds) return;
        const double reach = a.reach(j + 1);
        product += log_raised(log_theta(a.rounds.eps, reach));
        hidden.advance(reach, a.lipschitz(j + 1) * a.before_over(j + 1));
    }
}

// The trusted aggregator, stopped at a uniform round of the last ceil(suffix T); suffix = 0 for the last round alone.
inline HiddenDeltas trusted_aggregator_bounds(const HiddenAggregation& a, double num_users, double suffix) {
    HiddenDeltas deltas;
    deltas.fill(nan);
    const double eps = a.rounds.eps;
    if (!legal(a.rounds, num_users) || !(suffix >= 0.0 && suffix <= 1.0)) return deltas;
    const double rounds = std::floor(num_users / a.rounds.batch_size);
    const double stops = std::min(rounds, std::max(1.0, std::ceil(suffix * rounds * (1.0 - 0x1p-50))));
    const double share = a.rounds.batch_size / num_users * (1.0 + 0x1p-50);
    HiddenDeltas sums{};
    double exposed = 0.0;
    if (a.constant()) {
        if (!a.valid(0)) return deltas;
        const auto stops_after = [&](double k) {
            return std::min(stops, rounds - k);
        };  // stops with k rounds in between
        sums = hidden_sums(eps, a.first(0), a.reach(0), a.lipschitz(0), rounds, stops_after);
        exposed = raised_delta(log_raised(log_theta(eps, a.first(0))), eps) * (rounds - 0.5 * (stops - 1.0));
    } else {
        const auto length = static_cast<std::size_t>(rounds), stop = static_cast<std::size_t>(rounds - stops);
        for (std::size_t t = 0; t < length; ++t) {
            if (!a.valid(t)) return deltas;
        }
        for (std::size_t t = 0; t < length; ++t) {
            add_participation(a, t, length, stop, sums);
            const double seen =
                std::min(stops, rounds - static_cast<double>(t)) / stops;  // the share of stops that follow
            exposed += seen * raised_delta(log_raised(log_theta(eps, a.first(t))), eps);
        }
    }
    deltas[plain] = std::min(1.0, share * exposed * (1.0 + 1e-12));
    for (const HiddenMethod method : {contraction, nonlinear, shifted, hybrid}) {
        const double sum = share * sums[method] / stops * (1.0 + 0x1p-50 * (rounds < 1e6 ? rounds : 1e6));
        deltas[method] = std::min(deltas[plain], positive_delta(sum, eps));
    }
    return deltas;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::federated

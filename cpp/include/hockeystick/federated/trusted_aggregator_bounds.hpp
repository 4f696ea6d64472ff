// The trusted aggregator's sum (federated/trusted_aggregator.hpp) with each term bounded in every
// way of hidden_state/projected_sgd_bounds.hpp: no_amplification, contraction, nonlinear, shifted
// and shift_then_contraction.
//
// The sum over the user's round is the joint convexity of the divergence. It needs every user to
// take part at most once, in a round that does not depend on the data. Cost: O(T) for constants,
// O(T^2) for schedules.
#pragma once

#include <hockeystick/federated/trusted_aggregator.hpp>
#include <hockeystick/hidden_state/projected_sgd_bounds.hpp>

namespace hockeystick::federated {
inline namespace HOCKEYSTICK_ISA {

using namespace hidden_state;

// The trusted aggregator's rounds, and what sharper bounds need to know besides.
struct SmoothAggregation {
    AggregatorRounds rounds;
    Rounds strong_convexity;

    // Lipschitz constant of round t's map; infinite where it is not known.
    double lipschitz(std::size_t t) const {
        const double rate = rounds.learning_rate[t], smoothness = rounds.smoothness[t];
        if (!rounds.convex) return smoothness > 0.0 ? expanding_step_lipschitz(rate, smoothness) : infinity;
        return smoothness > 0.0 ? std::min(1.0, sharp_step_lipschitz(rate, smoothness, strong_convexity[t])) : 1.0;
    }
    // The diameter of the image of round t's map, in deviations of its noise.
    double image_diameter(std::size_t t) const {
        const double start =
            2.0 * std::sqrt(rounds.batch_size) *
            deviations(rounds.radius[t == 0 ? 0 : t - 1], rounds.learning_rate[t], rounds.noise_std[t]);
        return std::min(rounds.convex ? infinity : rounds.image_diameter(t), start * lipschitz(t)) *
               (1.0 + sixteen_roundings);
    }
    // Deviation of the noise on the model in the round before, over that of round t.
    double noise_ratio(std::size_t t) const {
        return rounds.learning_rate[t - 1] / rounds.learning_rate[t] * (rounds.noise_std[t - 1] / rounds.noise_std[t]);
    }
    // Of the round in which the user takes part, in deviations of its noise.
    double sensitivity(std::size_t t) const {
        return 2.0 * (rounds.lipschitz[t] / rounds.noise_std[t]) / std::sqrt(rounds.batch_size) * up;
    }
    bool constant() const { return rounds.constant() && strong_convexity.constant(); }
    bool valid(std::size_t t) const {
        const bool convexity = strong_convexity[t] >= 0.0 && strong_convexity[t] <= rounds.smoothness[t];
        return rounds.valid(t) && (convexity || strong_convexity[t] == 0.0) &&
               (rounds.convex || strong_convexity[t] == 0.0);
    }
};

// Adds up the bounds for participation in round t and a stop after each of the rounds from `stop`
// on.
inline void add_participation(const SmoothAggregation& a, std::size_t t, std::size_t rounds, std::size_t stop,
                              Deltas& sums) {
    LaterRounds later(a.rounds.eps, a.sensitivity(t));
    double log_product = later.bounds().shift_then_contraction;
    for (std::size_t j = t;; ++j) {
        if (j >= stop) {
            const Deltas logs = summed_logs(log_product, later.bounds());
            for (const Bound bound : summed_bounds) sums[bound] += upper_delta(logs[bound], a.rounds.eps);
        }
        if (j + 1 == rounds) return;
        const double image_diameter = a.image_diameter(j + 1);
        log_product += upper_log(log_theta(a.rounds.eps, image_diameter));
        later.advance(image_diameter, a.lipschitz(j + 1) * a.noise_ratio(j + 1));
    }
}

// The sums over the user's round, for a stop at each of the last `stops` rounds.
struct AggregatorSums {
    Deltas later;    // of summed_bounds, over rounds of use and of stopping
    double exposed;  // of the round of use alone, over `stops`
};

inline AggregatorSums constant_sums(const SmoothAggregation& a, double rounds, double stops) {
    const double eps = a.rounds.eps, sensitivity = a.sensitivity(0);
    // How many pairs of a use and a stop have k rounds in between.
    const auto pairs_apart = [&](double k) { return std::min(stops, rounds - k); };
    const double exposed = upper_delta(upper_log(log_theta(eps, sensitivity)), eps);
    return {sum_over_later_rounds(eps, sensitivity, a.image_diameter(0), a.lipschitz(0), rounds, pairs_apart),
            exposed * (rounds - 0.5 * (stops - 1.0))};
}

inline AggregatorSums scheduled_sums(const SmoothAggregation& a, double rounds, double stops) {
    const double eps = a.rounds.eps;
    const auto length = static_cast<std::size_t>(rounds), stop = static_cast<std::size_t>(rounds - stops);
    AggregatorSums sums{{}, 0.0};
    for (std::size_t t = 0; t < length; ++t) {
        add_participation(a, t, length, stop, sums.later);
        // The share of stops that come after the use.
        const double seen = std::min(stops, rounds - static_cast<double>(t)) / stops;
        sums.exposed += seen * upper_delta(upper_log(log_theta(eps, a.sensitivity(t))), eps);
    }
    return sums;
}

// The trusted aggregator, stopped at a uniform round of the last ceil(suffix T); suffix = 0 for the
// last round alone.
inline Deltas trusted_aggregator_bounds(const SmoothAggregation& a, double num_users, double suffix) {
    Deltas deltas = Deltas::none();
    if (!legal(a.rounds, num_users) || !(suffix >= 0.0 && suffix <= 1.0)) return deltas;
    const double rounds = std::floor(num_users / a.rounds.batch_size);
    const std::size_t distinct = a.constant() ? 1 : static_cast<std::size_t>(rounds);
    for (std::size_t t = 0; t < distinct; ++t) {
        if (!a.valid(t)) return deltas;
    }
    const double stops = stopping_rounds(suffix, rounds);
    const AggregatorSums sums = a.constant() ? constant_sums(a, rounds, stops) : scheduled_sums(a, rounds, stops);
    const double share = a.rounds.batch_size / num_users * up;
    const double exposed = std::min(1.0, share * sums.exposed * (1.0 + 1e-12));
    deltas[Bound::no_amplification] = exposed;
    for (const Bound bound : summed_bounds) {
        const double sum = share * sums.later[bound] / stops * (1.0 + eight_roundings * std::min(rounds, 1e6));
        deltas[bound] = std::min(exposed, positive_delta(sum, a.rounds.eps));
    }
    return deltas;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::federated

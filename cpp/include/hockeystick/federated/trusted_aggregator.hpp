// Federated learning with a trusted aggregator that releases the last model only (Asoodeh, Chen,
// Calmon and Ozgur 2021). n users are split into T = floor(n/m) batches of m; each takes part in
// exactly one round. After round t the model is projected onto a ball of radius rho_t.
//
//   Theorem 2    delta = (m/n) sum_t theta(2L/(sqrt(m) sigma_t)) prod_{j>t} eta_j,
//                eta_j = theta(d_j sqrt(m)/(lr_j sigma_j))
//   Corollary 3  stop after tau rounds, tau uniform on the last S of them: the mean over tau of
//                (m/n) sum_{t<=tau} theta(2L/(sqrt(m) sigma_t)) prod_{t<j<=tau} eta_j
//
// d_j is the diameter of the image of round j's map on the ball of the round before: 2 rho_{j-1}
// for convex losses with lr_j <= 2/beta, and 2 (rho_{j-1} + lr_j L) without convexity or smoothness
// (the remark after Theorem 2). docs/core/federated.md says where this differs from the paper.
//
// Every user must take part at most once; with repeated participation the sums are false.
//
// Error: 1e-12 relative in log delta, to nearest. Cost: O(1) for constants, O(log T) of them with
// random stopping, O(T) for schedules. NaN outside the domain.
#pragma once

#include <hockeystick/hidden_state/projected_sgd.hpp>

namespace hockeystick::federated {
inline namespace HOCKEYSTICK_ISA {

using namespace hidden_state;

struct AggregatorRounds {
    double eps;
    double batch_size;
    bool convex;
    Rounds learning_rate, noise_std, lipschitz, radius;  // noise_std on the gradient
    Rounds smoothness;                                   // 0 where it is unknown

    bool constant() const {
        return learning_rate.constant() && noise_std.constant() && lipschitz.constant() && radius.constant() &&
               smoothness.constant();
    }
    bool valid(std::size_t t) const {
        return positive(learning_rate[t]) && positive(noise_std[t]) && positive(lipschitz[t]) && positive(radius[t]) &&
               smoothness[t] >= 0.0 && (!convex || learning_rate[t] * smoothness[t] <= 2.0);
    }
    // theta(2L/(sqrt(m) sigma_t)): the round in which the user takes part.
    double delta_of_use(std::size_t t) const {
        return theta(eps, 2.0 * (lipschitz[t] / noise_std[t]) / std::sqrt(batch_size));
    }
    // d_t sqrt(m)/(lr_t sigma_t) for t >= 1, in an order that neither overflows nor underflows
    // needlessly. Round t starts from a model in the ball of the round before.
    double image_diameter(std::size_t t) const {
        const double start = radius[t == 0 ? 0 : t - 1] / learning_rate[t];
        return 2.0 * (convex ? start : start + lipschitz[t]) * (std::sqrt(batch_size) / noise_std[t]);
    }
};

inline bool legal(const AggregatorRounds& r, double num_users) {
    return r.eps >= 0.0 && count(num_users) && count(r.batch_size) && r.batch_size <= num_users;
}

// ceil(suffix T). A product that rounding may have raised above an integer counts as that integer:
// for constants, fewer rounds have the larger delta.
inline double stopping_rounds(double suffix, double rounds) {
    return std::min(rounds, std::max(1.0, std::ceil(suffix * rounds * down)));
}

inline double trusted_aggregator(const AggregatorRounds& r, double num_users) {
    if (!legal(r, num_users)) return nan;
    const double rounds = std::floor(num_users / r.batch_size);
    const double share = r.batch_size / num_users;
    if (r.constant()) {
        if (!r.valid(0)) return nan;
        return positive_delta(share * r.delta_of_use(0) * geometric_sum(log_theta(r.eps, r.image_diameter(0)), rounds),
                              r.eps);
    }
    double sum = 0.0;
    for (std::size_t t = 0; t < static_cast<std::size_t>(rounds); ++t) {
        if (!r.valid(t)) return nan;
        sum = theta(r.eps, r.image_diameter(t)) * sum + r.delta_of_use(t);
    }
    return positive_delta(share * sum, r.eps);
}

inline double trusted_aggregator_random_stop(const AggregatorRounds& r, double num_users, double suffix) {
    if (!legal(r, num_users) || !(suffix > 0.0 && suffix <= 1.0)) return nan;
    const double rounds = std::floor(num_users / r.batch_size);
    const double stops = stopping_rounds(suffix, rounds);
    const double share = r.batch_size / num_users;
    if (r.constant()) {
        if (!r.valid(0)) return nan;
        // sum over the last S of sum_{k < tau} eta^k = S u_{T-S} + eta^{T-S} U_S, u and U the
        // single and double sums.
        const double log_eta = log_theta(r.eps, r.image_diameter(0));
        const double total =
            stops * geometric_sum(log_eta, rounds - stops) +
            power(log_eta, rounds - stops) * double_geometric_sum(log_eta, static_cast<std::uint64_t>(stops));
        return positive_delta(share * r.delta_of_use(0) * total / stops, r.eps);
    }
    double inner = 0.0;
    double sum = 0.0;
    for (std::size_t t = 0; t < static_cast<std::size_t>(rounds); ++t) {
        if (!r.valid(t)) return nan;
        inner = theta(r.eps, r.image_diameter(t)) * inner + r.delta_of_use(t);
        if (static_cast<double>(t) >= rounds - stops) sum += inner;
    }
    return positive_delta(share * sum / stops, r.eps);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::federated

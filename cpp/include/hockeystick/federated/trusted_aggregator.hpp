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
// for convex losses with lr_j <= 2/beta, and 2 (rho_{j-1} + lr_j L) without convexity or
// smoothness (the remark after Theorem 2). docs/core/federated.md says where this differs from the
// paper.
//
// Every user must take part at most once; with repeated participation the sums are false.
//
// Error: 1e-12 relative in log delta, to nearest. Cost: O(1) for constants, O(T) for schedules. NaN
// outside the domain.
#pragma once

#include <cmath>

#include <hockeystick/hidden_state/projected_sgd.hpp>

namespace hockeystick::federated {
inline namespace HOCKEYSTICK_ISA {

using namespace hidden_state;

// Distances and sums for constants, without branches: a grid evaluates each over its own axes. NaN
// outside the domain.
//
// 2L/(sqrt(m) sigma): of the round in which the user takes part.
inline double aggregator_use_distance(double batch_size, double noise_std, double lipschitz) {
    const double value = 2.0 * (lipschitz / noise_std) / std::sqrt(batch_size);
    return (count(batch_size) & positive(noise_std) & positive(lipschitz)) ? value : nan;
}

// d sqrt(m)/(lr sigma), in an order that neither overflows nor underflows needlessly.
inline double round_image_diameter(double batch_size, double learning_rate, double noise_std, double lipschitz,
                                   double radius, bool convex) {
    const double start = radius / learning_rate;
    return 2.0 * (convex ? start : start + lipschitz) * (std::sqrt(batch_size) / noise_std);
}

inline bool legal_round(double learning_rate, double noise_std, double lipschitz, double radius, double smoothness,
                        bool convex) {
    return positive(learning_rate) & positive(noise_std) & positive(lipschitz) & positive(radius) &
           (smoothness >= 0.0) & (!convex | (learning_rate * smoothness <= 2.0));
}

template <bool Convex>
double aggregator_image_diameter(double batch_size, double learning_rate, double noise_std, double lipschitz,
                                 double radius, double smoothness) {
    const double value = round_image_diameter(batch_size, learning_rate, noise_std, lipschitz, radius, Convex);
    const bool legal = count(batch_size) & legal_round(learning_rate, noise_std, lipschitz, radius, smoothness, Convex);
    return legal ? value : nan;
}

inline bool legal_users(double num_users, double batch_size) {
    return count(num_users) & count(batch_size) & (batch_size <= num_users);
}

// Theorem 2 with constants.
inline double constant_aggregator(double use, double log_eta, double eps, double num_users, double batch_size) {
    const double rounds = floor_positive(num_users / batch_size);
    const double sum = use * straight_geometric_sum(log_eta, rounds);
    const double delta = positive_delta(batch_size / num_users * sum, eps);
    return ((eps >= 0.0) & legal_users(num_users, batch_size) & (log_eta == log_eta)) ? delta : nan;
}

// S = ceil(suffix T), the number of rounds after which the training may stop. A product that
// rounding may have raised above an integer counts as that integer: for constants, fewer rounds
// have the larger delta.
inline double stopping_rounds(double suffix, double rounds) {
    return min(rounds, max(1.0, ceil_positive(suffix * rounds * down)));
}

// S of a legal cell.
inline double aggregator_stops(double num_users, double batch_size, double suffix) {
    const double value = stopping_rounds(suffix, floor_positive(num_users / batch_size));
    return (legal_users(num_users, batch_size) & (suffix > 0.0) & (suffix <= 1.0)) ? value : nan;
}

// T - S.
inline double certain_rounds(double num_users, double batch_size, double stops) {
    return floor_positive(num_users / batch_size) - stops;
}

// m/n.
inline double aggregator_share(double num_users, double batch_size) { return batch_size / num_users; }

// Corollary 3 with constants: the sum over the last S of sum_{k < tau} eta^k is
// S u_{T-S} + eta^{T-S} U_S, u and U the single and double sums; both from D = 1 - eta.
inline double constant_random_stop(double use, double log_eta, double eps, double share, double stops, double certain) {
    const double lost = 0.0 - expm1_bounded(log_eta);
    const double forgotten = 0.0 - expm1_bounded(certain > 0.0 ? certain * log_eta : 0.0);  // no 0 * inf
    const double single = log_eta == 0.0 ? certain : forgotten / lost;
    const double twofold = double_geometric_sum(lost, 0.0 - expm1_bounded(stops * log_eta), stops);
    const double total = stops * single + (1.0 - forgotten) * twofold;
    const double delta = positive_delta(share * use * total / stops, eps);
    return ((eps >= 0.0) & (log_eta == log_eta) & (stops == stops)) ? delta : nan;
}

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
        return legal_round(learning_rate[t], noise_std[t], lipschitz[t], radius[t], smoothness[t], convex);
    }
    double delta_of_use(std::size_t t) const {
        return theta(eps, aggregator_use_distance(batch_size, noise_std[t], lipschitz[t]));
    }
    // For t >= 1. Round t starts from a model in the ball of the round before.
    double image_diameter(std::size_t t) const {
        return round_image_diameter(batch_size, learning_rate[t], noise_std[t], lipschitz[t],
                                    radius[t == 0 ? 0 : t - 1], convex);
    }
};

inline bool legal(const AggregatorRounds& r, double num_users) {
    return r.eps >= 0.0 && legal_users(num_users, r.batch_size);
}

inline double trusted_aggregator(const AggregatorRounds& r, double num_users) {
    if (!legal(r, num_users)) return nan;
    const double rounds = std::floor(num_users / r.batch_size);
    const double share = r.batch_size / num_users;
    if (r.constant()) {
        if (!r.valid(0)) return nan;
        return constant_aggregator(r.delta_of_use(0), log_theta(r.eps, r.image_diameter(0)), r.eps, num_users,
                                   r.batch_size);
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
        return constant_random_stop(r.delta_of_use(0), log_theta(r.eps, r.image_diameter(0)), r.eps, share, stops,
                                    rounds - stops);
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

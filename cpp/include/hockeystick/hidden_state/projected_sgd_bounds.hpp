// All certified bounds of one hidden use of a record in projected noisy SGD, side by side, for
// `best`.
//
// no_amplification, contraction, nonlinear, shifted, shift_then_contraction, projected and renyi of
// hidden_state/bounds.hpp; docs/core/hidden_state.md has their proofs. All are upper bounds,
// rounded up.
//
// A gradient step's Lipschitz constant is bounded by c = max(|1 - lr beta|, |1 - lr rho|), in place
// of the paper's M (Eq. 14): c holds for every learning rate, and is at most M where M is valid.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <hockeystick/hidden_state/ball_projection.hpp>
#include <hockeystick/hidden_state/bounds.hpp>
#include <hockeystick/hidden_state/projected_sgd.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

// Lipschitz constant of a gradient step of a convex loss, for every learning rate; rounded up.
inline double sharp_step_lipschitz(double learning_rate, double smoothness, double strong_convexity) {
    const double c =
        std::max(std::fabs(1.0 - learning_rate * smoothness), std::fabs(1.0 - learning_rate * strong_convexity));
    return c + four_roundings * (1.0 + learning_rate * smoothness);
}

// Without convexity.
inline double expanding_step_lipschitz(double learning_rate, double smoothness) {
    return (1.0 + learning_rate * smoothness) * up;
}

// Projected noisy SGD with Gaussian noise; the record is used in step `index` of `num_records`. The
// diameter may be infinite. Lengths that methods return are in deviations of the noise on the
// model.
struct DescentCell {
    double eps, index, num_records, learning_rate, noise, lipschitz, smoothness, strong_convexity, diameter;
    double ball_dimension;  // 0 where the domain need not be a ball

    bool legal() const {
        return eps >= 0.0 && count(index) && count(num_records) && index <= num_records && positive(learning_rate) &&
               positive(noise) && positive(lipschitz) && non_negative(smoothness) && strong_convexity >= 0.0 &&
               strong_convexity <= smoothness && diameter > 0.0 && ball_dimension >= 0.0;
    }
    double later_rounds() const { return num_records - index; }
    double sensitivity() const { return 2.0 * (lipschitz / noise) * up; }
    double step_lipschitz() const { return sharp_step_lipschitz(learning_rate, smoothness, strong_convexity); }
    // Of the domain.
    double width() const { return deviations(diameter, learning_rate, noise) * up; }
    double image_diameter() const { return step_lipschitz() * width() * up; }
};

inline constexpr std::size_t cells_per_block = simd::max_lanes;

// The later rounds of up to cells_per_block cells. A cell with more than 2 max_passes of them runs
// the first and the last max_passes, and skips those in between.
struct CellBlock {
    using Column = double[cells_per_block];
    Column eps, log_gamma_minus_1, sensitivity, image_diameter, inverse_square_lipschitz, rounds, shift_term, shift_sum,
        nonlinear, shift_then_contraction;

    // `run_rounds` is simd::run_hidden_rounds, or a copy of it for another instruction set.
    template <class RunRounds> void run(const DescentCell* cells, std::size_t n, const RunRounds& run_rounds) {
        const simd::HiddenRoundLanes lanes{
            eps,    log_gamma_minus_1, sensitivity, image_diameter, inverse_square_lipschitz,
            rounds, shift_term,        shift_sum,   nonlinear,      shift_then_contraction};
        double longest = 0.0, longest_rest = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            start(i, cells[i]);
            longest = max(longest, rounds[i]);
        }
        run_rounds(lanes, n, longest);
        for (std::size_t i = 0; i < n; ++i) {
            const double all = cells[i].legal() ? cells[i].later_rounds() : 0.0;
            const double skipped = max(0.0, all - 2.0 * max_passes);
            skip_rounds(skipped, cells[i].step_lipschitz(), shift_term[i], shift_sum[i]);
            rounds[i] = all - skipped - rounds[i];
            longest_rest = max(longest_rest, rounds[i]);
        }
        run_rounds(lanes, n, longest_rest);
    }

  private:
    void start(std::size_t i, const DescentCell& cell) {
        const bool legal = cell.legal();
        eps[i] = legal ? cell.eps : 1.0;
        log_gamma_minus_1[i] = log_gamma_minus_one(eps[i]);
        sensitivity[i] = legal ? cell.sensitivity() : 1.0;
        image_diameter[i] = legal ? cell.image_diameter() : 1.0;
        inverse_square_lipschitz[i] = legal ? 1.0 / (cell.step_lipschitz() * cell.step_lipschitz()) : 1.0;
        rounds[i] = legal ? min(cell.later_rounds(), max_passes) : 0.0;
        shift_term[i] = shift_sum[i] = 1.0;
        nonlinear[i] = shift_then_contraction[i] = upper_log(log_theta(eps[i], sensitivity[i]));
    }
};

// shift_then_contraction with the coefficient of the projected kernel: exact in one dimension, a
// bound on a ball in more (hidden_state/ball_projection.hpp).
inline double projected_bound(const DescentCell& cell) {
    const double c = cell.step_lipschitz(), width = cell.width(), image_diameter = cell.image_diameter();
    const double longest_step = cell.lipschitz / cell.noise * up;
    const bool ball = cell.ball_dimension > 1.0;
    // One dimension: steps must not expand.
    const bool inward = cell.learning_rate * cell.smoothness <= 2.0 && width < infinity;
    const double loss = ball ? ball_loss(0.5 * width + longest_step, 0.5 * width, cell.ball_dimension) : infinity;
    const auto log_eta = [&](double eps) {
        if (ball) return std::min(log_theta(eps, image_diameter), log_pure_theta(eps, loss));
        return inward ? log_projected_eta(eps, image_diameter, width, longest_step) : log_theta(eps, image_diameter);
    };
    LaterRounds rounds(cell.eps, cell.sensitivity());
    const double passes = std::min(cell.later_rounds(), 2.0 * max_passes);
    for (double k = 0.0; k < passes && rounds.bounds().shift_then_contraction >= log_underflow; k += 1.0)
        rounds.advance_by(c, log_eta);
    return upper_delta(rounds.bounds().shift_then_contraction, cell.eps);
}

// All bounds of a cell, from those that a CellBlock has run.
inline Deltas all_bounds(const DescentCell& cell, double log_nonlinear, double log_shift_then_contraction) {
    Deltas deltas = Deltas::none();
    if (!cell.legal()) return deltas;
    const double eps = cell.eps, later = cell.later_rounds();
    LaterRounds rounds(eps, cell.sensitivity());
    const double log_first = rounds.bounds().shift_then_contraction;
    const double log_eta = upper_log(log_theta(eps, cell.image_diameter()));
    rounds.skip(later, cell.step_lipschitz());
    deltas[Bound::no_amplification] = upper_delta(log_first, eps);
    deltas[Bound::renyi] = renyi_delta((later == 0.0 ? cell.sensitivity() : rounds.parameter()) * std::sqrt(0.5), eps);
    deltas[Bound::contraction] = upper_delta(later == 0.0 ? log_first : log_first + later * log_eta, eps);
    deltas[Bound::nonlinear] = upper_delta(log_nonlinear, eps);
    deltas[Bound::shifted] = upper_delta(later == 0.0 ? log_first : rounds.shifted(), eps);
    deltas[Bound::shift_then_contraction] =
        std::min({upper_delta(log_shift_then_contraction, eps), deltas[Bound::shifted], deltas[Bound::contraction]});
    if (cell.ball_dimension > 0.0)
        deltas[Bound::projected] = std::min(projected_bound(cell), deltas[Bound::shift_then_contraction]);
    return deltas;
}

// All bounds of up to cells_per_block cells.
template <class RunRounds>
void last_iterate_bounds(const DescentCell* cells, std::size_t n, const RunRounds& run_rounds, Deltas* out) {
    CellBlock block;
    block.run(cells, n, run_rounds);
    for (std::size_t i = 0; i < n; ++i)
        out[i] = all_bounds(cells[i], block.nonlinear[i], block.shift_then_contraction[i]);
}

// no_amplification, contraction and nonlinear with Laplace noise of scale `noise`, in one
// dimension. Exactly 0 is possible.
inline Deltas last_iterate_laplace_bounds(const DescentCell& cell) {
    Deltas deltas = Deltas::none();
    if (!cell.legal()) return deltas;
    const double eps = cell.eps, later = cell.later_rounds(), image_diameter = cell.image_diameter();
    const double log_gamma_minus_1 = log_gamma_minus_one(eps);
    const auto log_eta = [image_diameter](double at) { return log_laplace_eta(at, image_diameter); };
    const auto upper_or_zero = [](double log_eta_value) {
        return log_eta_value == -infinity ? log_eta_value : upper_log(log_eta_value);
    };
    const auto delta_of = [](double log_delta) {
        return log_delta == -infinity ? 0.0 : std::min(1.0, std::exp(log_delta) * up + smallest_positive);
    };
    const double log_first = upper_or_zero(log_laplace_eta(eps, cell.sensitivity()));
    double log_e = log_first;
    for (double k = 0.0; k < std::min(later, 2.0 * max_passes) && log_e >= log_underflow; k += 1.0)
        log_e = log_contracted(log_gamma_minus_1, log_e, log_eta);
    deltas[Bound::no_amplification] = delta_of(log_first);
    deltas[Bound::contraction] = delta_of(later == 0.0 ? log_first : log_first + later * upper_or_zero(log_eta(eps)));
    deltas[Bound::nonlinear] = std::min(delta_of(log_e), deltas[Bound::contraction]);
    return deltas;
}

// sum_{k < rounds} weight(k) v_k for each of summed_bounds, v_k the bound after k equal rounds; the
// weights must not increase.
template <class Weight>
Deltas sum_over_later_rounds(double eps, double sensitivity, double image_diameter, double lipschitz, double rounds,
                             const Weight& weight) {
    constexpr double max_terms = 65536.0, negligible = 0x1p-60;
    Deltas sums{};
    LaterRounds later(eps, sensitivity);
    const double log_first = later.bounds().shift_then_contraction;
    const double log_eta = upper_log(log_theta(eps, image_diameter));
    double k = 0.0;
    for (; k < rounds; k += 1.0) {
        const Deltas logs = summed_logs(log_first + (k == 0.0 ? 0.0 : k * log_eta), later.bounds());
        const bool last = k >= max_terms;  // counts for all later terms, which are no larger
        const double times = last ? (rounds - k) * weight(k) : weight(k);
        bool rest_negligible = true;
        for (const Bound bound : summed_bounds) {
            const double value = upper_delta(logs[bound], eps);
            sums[bound] += times * value;
            rest_negligible = rest_negligible && (rounds - k) * weight(k) * value <= negligible * sums[bound];
        }
        if (last) break;
        if (rest_negligible) {
            for (const Bound bound : summed_bounds) sums[bound] *= 1.0 + negligible;
            break;
        }
        later.advance(image_diameter, lipschitz);
    }
    for (double& sum : sums.values) sum *= 1.0 + eight_roundings * (k + 8.0);
    return sums;
}

// Projected noisy SGD stopped at a uniform step: Theorem 5's mean at the worst index, each term
// sharpened. `index` is not used.
inline Deltas last_iterate_random_stop_bounds(const DescentCell& cell) {
    Deltas deltas = Deltas::none();
    if (!cell.legal()) return deltas;
    const double eps = cell.eps, steps = cell.num_records;
    const Deltas sums = sum_over_later_rounds(eps, cell.sensitivity(), cell.image_diameter(), cell.step_lipschitz(),
                                              steps, [](double) { return 1.0; });
    const double exposed = upper_delta(upper_log(log_theta(eps, cell.sensitivity())), eps);
    deltas[Bound::no_amplification] = exposed;
    for (const Bound bound : summed_bounds)
        deltas[bound] = std::min(exposed, positive_delta(sums[bound] / steps * up, eps));
    return deltas;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

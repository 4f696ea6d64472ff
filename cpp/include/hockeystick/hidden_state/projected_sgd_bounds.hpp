// All certified bounds of one hidden participation in projected noisy SGD (hidden_state/projected_sgd.hpp), side by side, for `best`.
//
//   plain        the record's own round alone, theta(eps, g): what later rounds hide is not counted
//   renyi        the Renyi route: g/sqrt(s_k) turned into kappa = mu^2/2 and back (1 for eps <= kappa; Balle et al. 2019)
//   contraction  the product theta(eps, g) prod theta(eps, r_j) (Asoodeh, Diaz and Calmon 2020, Theorem 4)
//   nonlinear    F iterated, shifted, hybrid: hidden_state/nonlinear_contraction.hpp
//   projected    F with the coefficient of the kernel projected onto a ball, and shifted interpolation: exact in one dimension, a
//                bound of it in more (hidden_state/ball_projection.hpp)
//
// with c = max(|1 - lr beta|, |1 - lr rho|) in place of the paper's M: it bounds the Lipschitz constant of a gradient step for
// every learning rate, and never lies above M where M is valid. All are upper bounds, rounded up.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include <hockeystick/hidden_state/ball_projection.hpp>
#include <hockeystick/hidden_state/nonlinear_contraction.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

enum HiddenMethod : std::size_t {
    plain,
    contraction,
    nonlinear,
    shifted,
    hybrid,
    projected,
    renyi,
    divided,
    pattern,
    sampled
};
inline constexpr std::size_t hidden_methods = 10;         // the last three for repeated participation only
using HiddenDeltas = std::array<double, hidden_methods>;  // NaN where a method does not apply

inline double sharp_step_lipschitz(double learning_rate, double smoothness, double strong_convexity) {
    const double c =
        std::max(std::fabs(1.0 - learning_rate * smoothness), std::fabs(1.0 - learning_rate * strong_convexity));
    return c + 0x1p-51 * (1.0 + learning_rate * smoothness);
}

inline double raised_delta(double log_delta, double eps) {
    return std::min(1.0, positive_delta(std::exp(log_delta) * (1.0 + 0x1p-50), eps));
}

// From the root of kappa, which does not underflow as kappa does.
inline double renyi_delta(double root, double eps) {
    if (!(eps > root * root)) return 1.0;
    const double excess = 0.5 * (eps / root - root);
    return raised_delta(log_raised(-excess * excess), eps);
}

// Projected noisy SGD with Gaussian noise, the record used in step `index` of `num_records`; diameter = inf is legal.
struct DescentCell {
    double eps, index, num_records, learning_rate, noise, lipschitz, smoothness, strong_convexity, diameter;
    double ball_dimension;  // 0 where the domain need not be a ball

    bool legal() const {
        return eps >= 0.0 && count(index) && count(num_records) && index <= num_records && positive(learning_rate) &&
               positive(noise) && positive(lipschitz) && non_negative(smoothness) && strong_convexity >= 0.0 &&
               strong_convexity <= smoothness && diameter > 0.0 && ball_dimension >= 0.0;
    }
    double after() const { return num_records - index; }
    double sensitivity() const { return 2.0 * (lipschitz / noise) * (1.0 + 0x1p-50); }
    double contraction() const { return sharp_step_lipschitz(learning_rate, smoothness, strong_convexity); }
    double width() const { return deviations(diameter, learning_rate, noise) * (1.0 + 0x1p-50); }
    double reach() const { return contraction() * width() * (1.0 + 0x1p-50); }
};

inline constexpr std::size_t hidden_block = max_hidden_lanes;

// The later rounds of up to hidden_block cells: all of them up to twice max_passes, else the first and the last ones.
struct HiddenBlock {
    double eps[hidden_block], gap[hidden_block], g[hidden_block], reach[hidden_block], shrink[hidden_block],
        rounds[hidden_block], growth[hidden_block], spread[hidden_block], nonlinear[hidden_block], hybrid[hidden_block];

    template <class RunLanes> void run(const DescentCell* cells, std::size_t n, const RunLanes& run_lanes) {
        const HiddenLanes lanes{eps, gap, g, reach, shrink, rounds, growth, spread, nonlinear, hybrid};
        double longest = 0.0, later = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            start(i, cells[i]);
            longest = max(longest, rounds[i]);
        }
        run_lanes(lanes, n, longest);
        for (std::size_t i = 0; i < n; ++i) {
            const double after = cells[i].legal() ? cells[i].after() : 0.0;
            const double apart = max(0.0, after - 2.0 * max_passes);
            skip_rounds(apart, cells[i].contraction(), growth[i], spread[i]);
            rounds[i] = after - apart - rounds[i];
            later = max(later, rounds[i]);
        }
        run_lanes(lanes, n, later);
    }

  private:
    void start(std::size_t i, const DescentCell& cell) {
        const bool legal = cell.legal();
        eps[i] = legal ? cell.eps : 1.0;
        gap[i] = log_gap(eps[i]);
        g[i] = legal ? cell.sensitivity() : 1.0;
        reach[i] = legal ? cell.reach() : 1.0;
        shrink[i] = legal ? 1.0 / (cell.contraction() * cell.contraction()) : 1.0;
        rounds[i] = legal ? min(cell.after(), max_passes) : 0.0;
        growth[i] = spread[i] = 1.0;
        nonlinear[i] = hybrid[i] = log_raised(log_theta(eps[i], g[i]));
    }
};

inline double projected_bound(const DescentCell& cell) {
    const double c = cell.contraction(), width = cell.width(), reach = cell.reach();
    const double drift = cell.lipschitz / cell.noise * (1.0 + 0x1p-50);
    const bool inward = cell.learning_rate * cell.smoothness <= 2.0 && width < infinity;  // steps do not expand
    const double loss =
        cell.ball_dimension > 1.0 ? ball_loss(0.5 * width + drift, 0.5 * width, cell.ball_dimension) : infinity;
    const auto log_eta = [&](double eps) {
        if (cell.ball_dimension > 1.0) return std::min(log_theta(eps, reach), log_pure_theta(eps, loss));
        return inward ? log_projected_eta(eps, reach, width, drift) : log_theta(eps, reach);
    };
    HiddenRounds rounds(cell.eps, cell.sensitivity());
    for (double k = 0.0; k < std::min(cell.after(), 2.0 * max_passes) && rounds.bounds().hybrid >= log_underflow; k += 1.0)
        rounds.advance(c, log_eta);
    return raised_delta(rounds.bounds().hybrid, cell.eps);
}

inline HiddenDeltas gathered(const DescentCell& cell, double log_nonlinear, double log_hybrid) {
    HiddenDeltas deltas;
    deltas.fill(nan);
    if (!cell.legal()) return deltas;
    const double eps = cell.eps, after = cell.after();
    HiddenRounds shift(eps, cell.sensitivity());
    const double first = shift.bounds().hybrid, factor = log_raised(log_theta(eps, cell.reach()));
    shift.skip(after, cell.contraction());
    deltas[plain] = raised_delta(first, eps);
    deltas[renyi] =
        renyi_delta(after == 0.0 ? cell.sensitivity() * std::sqrt(0.5) : shift.parameter() * std::sqrt(0.5), eps);
    deltas[contraction] = raised_delta(after == 0.0 ? first : first + after * factor, eps);
    deltas[nonlinear] = raised_delta(log_nonlinear, eps);
    deltas[shifted] = raised_delta(after == 0.0 ? first : shift.shifted(), eps);
    deltas[hybrid] = std::min({raised_delta(log_hybrid, eps), deltas[shifted], deltas[contraction]});
    if (cell.ball_dimension > 0.0) deltas[projected] = std::min(projected_bound(cell), deltas[hybrid]);
    return deltas;
}

// All bounds of up to hidden_block cells; `run_lanes` is run_hidden_rounds, or a copy of it for another instruction set.
template <class RunLanes>
void last_iterate_bounds(const DescentCell* cells, std::size_t n, const RunLanes& run_lanes, HiddenDeltas* out) {
    HiddenBlock block;
    block.run(cells, n, run_lanes);
    for (std::size_t i = 0; i < n; ++i) out[i] = gathered(cells[i], block.nonlinear[i], block.hybrid[i]);
}

// The same with Laplace noise of scale `noise`, in one dimension: plain, contraction and nonlinear. Exactly 0 is possible.
inline HiddenDeltas last_iterate_laplace_bounds(const DescentCell& cell) {
    HiddenDeltas deltas;
    deltas.fill(nan);
    if (!cell.legal()) return deltas;
    const double eps = cell.eps, after = cell.after(), reach = cell.reach(), gap = log_gap(eps);
    const auto raised = [](double log_eta) { return log_eta == -infinity ? log_eta : log_raised(log_eta); };
    const auto value = [](double log_delta) {
        return log_delta == -infinity ? 0.0 : std::min(1.0, std::max(0x1p-1074, std::exp(log_delta) * (1.0 + 0x1p-50)));
    };
    const double first = raised(log_laplace_eta(eps, cell.sensitivity()));
    double log_e = first;
    for (double k = 0.0; k < std::min(after, 2.0 * max_passes) && log_e >= log_underflow; k += 1.0)
        log_e = log_contracted(gap, log_e, [reach](double at) { return log_laplace_eta(at, reach); });
    deltas[plain] = value(first);
    deltas[contraction] = value(after == 0.0 ? first : first + after * raised(log_laplace_eta(eps, reach)));
    deltas[nonlinear] = std::min(value(log_e), deltas[contraction]);
    return deltas;
}

// Sums over k < rounds of count(k) v_k for all methods at once, count decreasing, v_k after k equal rounds.
template <class Count>
HiddenDeltas hidden_sums(double eps, double g, double reach, double lipschitz, double rounds, const Count& count) {
    constexpr double most = 65536.0, negligible = 0x1p-60;
    HiddenDeltas sums{};
    HiddenRounds hidden(eps, g);
    const double first = hidden.bounds().hybrid, factor = log_raised(log_theta(eps, reach));
    double k = 0.0;
    for (; k < rounds; k += 1.0) {
        const HiddenBounds b = hidden.bounds();
        HiddenDeltas logs{};
        logs[contraction] = first + (k == 0.0 ? 0.0 : k * factor);
        logs[nonlinear] = b.nonlinear;
        logs[shifted] = b.shifted;
        logs[hybrid] = b.hybrid;
        const bool last = k >= most;
        const double weight = last ? (rounds - k) * count(k) : count(k);  // all later terms are at most this one
        bool done = true;
        for (const HiddenMethod method : {contraction, nonlinear, shifted, hybrid}) {
            const double value = raised_delta(logs[method], eps);
            sums[method] += weight * value;
            done = done && (rounds - k) * count(k) * value <= negligible * sums[method];
        }
        if (last) break;
        if (done) {
            for (const HiddenMethod method : {contraction, nonlinear, shifted, hybrid})
                sums[method] *= 1.0 + negligible;
            break;
        }
        hidden.advance(reach, lipschitz);
    }
    for (double& sum : sums) sum *= 1.0 + 0x1p-50 * (k + 8.0);
    return sums;
}

// Projected noisy SGD stopped at a uniform step (Theorem 5's mean at the worst index, each term sharpened); index is not used.
inline HiddenDeltas last_iterate_random_stop_bounds(const DescentCell& cell) {
    HiddenDeltas deltas;
    deltas.fill(nan);
    if (!cell.legal()) return deltas;
    const double eps = cell.eps, steps = cell.num_records;
    const HiddenDeltas sums =
        hidden_sums(eps, cell.sensitivity(), cell.reach(), cell.contraction(), steps, [](double) { return 1.0; });
    deltas[plain] = raised_delta(log_raised(log_theta(eps, cell.sensitivity())), eps);
    for (const HiddenMethod method : {contraction, nonlinear, shifted, hybrid})
        deltas[method] = std::min(deltas[plain], positive_delta(sums[method] / steps * (1.0 + 0x1p-50), eps));
    return deltas;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

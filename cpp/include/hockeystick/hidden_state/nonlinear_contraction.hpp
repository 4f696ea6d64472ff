// What later rounds hide, tighter than a product of contraction coefficients.
//
//   Nonlinear contraction. A kernel K maps E = E_gamma(mu||nu) to at most
//
//     F(E) = E sup_{x, x'} E_{gamma'}(K(x)||K(x')),    gamma' = 1 + (gamma - 1)/E.
//
//   Proof. mu - gamma nu = s+ - s- with masses |s+| = E and |s-| = E + gamma - 1, so that E_gamma(mu K||nu K) is at most
//   |s+| E_{gamma'}(s+K/|s+| || s-K/|s-|), gamma' = |s-|/|s+|, and the divergence of two mixtures is at most the largest of two
//   rows (joint convexity). F increases, F(E) <= E eta_gamma, and equality for two-point laws makes it the best function of E.
//   For a map with an image of diameter d before noise of deviation s the supremum is theta(eps', d/s), eps' = log gamma'.
//
//   Shifted interpolation. One participation of sensitivity g (in deviations), then k rounds with Lipschitz constants c_j:
//   a Gaussian-DP parameter of g/sqrt(s_k), s_k = sum_{i <= k} prod_{j <= i} c_j^{-2} (hidden_state/shifted_interpolation.hpp, one block).
//
//   Hybrid. Shifted interpolation for j rounds, then F for the rest; the best j in one pass, since F increases:
//   v_0 = theta(eps, g), v_k = min(F(v_{k-1}), theta(eps, g/sqrt(s_k))).
//
//   One dimension. Where |psi(w) - w| <= a and psi is 1-Lipschitz on [-R, R], the projected kernel's two rows are those of
//   means at most D = 2R apart; the best threshold eps s^2/D + (their centre, within a of 0) lies beyond R if
//   eps s^2/D > R + a, and then the supremum is Q(a/s) - gamma Q((D + a)/s), from the atoms at R.
//
// Everything is kept in logs and rounded up: log theta is right to 4e-15 relative or 1e-14 absolute (divergence/hockey_stick.hpp), and
// ulps in eps' move it by some ulps of itself. Cost: two or three log theta a round; rounds are not run one by one beyond
// `max_passes`: the bound is held (it can only fall) or taken from the closed form of the shifted interpolation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <hockeystick/hidden_state/contraction_sum.hpp>
#include <hockeystick/hidden_state/projected_sgd.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double gone = -750.0;        // exp of this is 0 in doubles
inline constexpr double max_passes = 4096.0;  // rounds that are run one by one, at either end

// An upper bound of a logarithm that was computed to 4e-15 relative or 1e-14 absolute.
inline double log_raised(double value) { return min(0.0, value * (1.0 - 1e-14) + 1e-14); }

// log(e^eps - 1), -inf for 0.
inline double log_gap(double eps) { return eps > 1.0 ? eps + std::log1p(-std::exp(-eps)) : std::log(std::expm1(eps)); }

// eps' = log(1 + (gamma - 1)/E), at most that, as a softplus of its logarithm; without branches, and so is all that is built
// on it.
inline double sharpened(double log_gamma_gap, double log_e) {
    const double x = log_gamma_gap - max(log_e, -1e5);
    const double y = exp_nonpositive(x < 0.0 ? x : -x);
    const double u = 1.0 + y;
    return (max(x, 0.0) + (log_positive(u) + (y - (u - 1.0)) / u)) * (1.0 - 0x1p-50);
}

// log(E eta), rounded up.
inline double contracted_by(double log_e, double log_eta) {
    return min(log_e, log_e * (1.0 - 1e-15) + log_raised(log_eta));
}

// log F(E) for a coefficient whose logarithm at eps' is log_eta(eps').
template <class LogEta> double log_contracted(double log_gamma_gap, double log_e, const LogEta& log_eta) {
    return contracted_by(log_e, log_eta(sharpened(log_gamma_gap, log_e)));
}

inline double log_laplace_eta(double eps, double r) { return eps >= r ? -infinity : log_laplace_theta(eps, r); }

// log of the coefficient of a projected kernel on an interval, all lengths in noise deviations; `width` is D/s, `drift` a/s.
inline double log_projected_eta(double eps, double reach, double width, double drift) {
    const double whole = log_theta(eps, reach);
    if (!(eps * (1.0 - 1e-12) > width * (0.5 * width + drift))) return whole;
    const double stay = log_q(drift), leave = eps + log_q(width + drift);
    const double error = 1e-13 * (1.0 + eps + std::fabs(stay));  // eps is what cancels in `leave`
    if (leave >= stay + error) return -infinity;
    return std::min(whole, stay + std::log(error - std::expm1(std::min(0.0, leave - stay))));
}

// g/sqrt(s), raised by more than the sum of 2 max_passes terms and `skip_rounds` may have lost. Where s has overflowed, the most
// that is known of it keeps the parameter above 0, which would claim perfect privacy.
inline double shifted_parameter(double g, double spread) {
    return g / std::sqrt(min(0x1p1000, spread)) * (1.0 + 0x1p-35);
}

// As if `rounds` more rounds with one Lipschitz constant had been added to s = `spread`, whose last term is `growth`.
inline void skip_rounds(double rounds, double lipschitz, double& growth, double& spread) {
    if (rounds <= 0.0) return;
    const double decay = -2.0 * std::log(lipschitz);  // of growth, per round
    const double last = growth * std::exp(rounds * decay);
    spread +=
        decay <= 0.0 ? growth * std::exp(decay) * geometric_sum(decay, rounds) : last * geometric_sum(-decay, rounds);
    growth = last;
}

// Participations side by side, an array an item; `rounds` many rounds are still to be run in each.
struct HiddenLanes {
    const double *eps, *log_gap, *g, *reach, *shrink;  // shrink = c^{-2}
    const double* rounds;
    double *growth, *spread, *nonlinear, *hybrid;  // of s_k; bounds of log delta
};

inline constexpr std::size_t most_lanes = 64;

// One place into which log_theta is inlined: three copies in a loop would not be, and then nothing vectorises.
inline void log_thetas(const double* __restrict eps, const double* __restrict r, double* __restrict out,
                       std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = log_theta(eps[i], r[i]);
}

inline void sharpen(const double* __restrict gap, const double* __restrict log_e, double* __restrict out,
                    std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = sharpened(gap[i], log_e[i]);
}

// Runs up to most_lanes of them, by lanes, so that the compiler vectorises.
inline void run_hidden_lanes(const HiddenLanes& l, std::size_t lanes, double longest) {
    double at[most_lanes], mu[most_lanes], shift[most_lanes], alone[most_lanes], both[most_lanes];
    double largest = 0.0;
    for (double done = 0.0; done < longest && largest >= gone; done += 1.0) {
        for (std::size_t i = 0; i < lanes; ++i) {
            const bool running = done < l.rounds[i];
            const double grown = l.growth[i] * l.shrink[i];
            l.growth[i] = running ? grown : l.growth[i];
            l.spread[i] = running ? l.spread[i] + grown : l.spread[i];
            mu[i] = shifted_parameter(l.g[i], l.spread[i]);
        }
        log_thetas(l.eps, mu, shift, lanes);
        sharpen(l.log_gap, l.nonlinear, at, lanes);
        log_thetas(at, l.reach, alone, lanes);
        sharpen(l.log_gap, l.hybrid, at, lanes);
        log_thetas(at, l.reach, both, lanes);
        largest = -infinity;
        for (std::size_t i = 0; i < lanes; ++i) {
            const bool running = done < l.rounds[i];
            const double nonlinear = contracted_by(l.nonlinear[i], alone[i]);
            const double hybrid = min(contracted_by(l.hybrid[i], both[i]), log_raised(shift[i]));
            l.nonlinear[i] = running ? nonlinear : l.nonlinear[i];
            l.hybrid[i] = running ? hybrid : l.hybrid[i];
            largest = max(largest, running ? nonlinear : -infinity);
        }
    }
}

// Bounds of log delta after the later rounds.
struct HiddenBounds {
    double nonlinear, shifted, hybrid;
};

// One participation of sensitivity `g`, and the rounds after it one by one.
class HiddenRounds {
  public:
    HiddenRounds(double eps, double g) : eps_(eps), gap_(log_gap(eps)), g_(g) {
        nonlinear_ = hybrid_ = log_raised(log_theta(eps, g));
    }

    // The Gaussian-DP parameter that shifted interpolation leaves.
    double parameter() const { return shifted_parameter(g_, spread_); }
    double shifted() const { return log_raised(log_theta(eps_, parameter())); }
    HiddenBounds bounds() const { return {nonlinear_, shifted(), hybrid_}; }

    // A round whose map's image has the diameter `reach` and which expands by at most `lipschitz`, in its noise's deviations.
    void advance(double reach, double lipschitz) {
        advance(lipschitz, [reach](double eps) { return log_theta(eps, reach); });
    }

    template <class LogEta> void advance(double lipschitz, const LogEta& log_eta) {
        const bool together = hybrid_ == nonlinear_;
        nonlinear_ = contracted(nonlinear_, log_eta);
        hybrid_ = together ? nonlinear_ : contracted(hybrid_, log_eta);
        growth_ /= lipschitz * lipschitz;
        spread_ += growth_;
        if (hybrid_ >= gone) hybrid_ = std::min(hybrid_, shifted());
    }

    // As if `rounds` rounds with one Lipschitz constant had passed, in which nothing else was contracted.
    void skip(double rounds, double lipschitz) {
        skip_rounds(rounds, lipschitz, growth_, spread_);
        if (rounds > 0.0) hybrid_ = std::min(hybrid_, shifted());
    }

  private:
    double eps_, gap_, g_;
    double growth_ = 1.0, spread_ = 1.0;
    double nonlinear_, hybrid_;

    template <class LogEta> double contracted(double log_e, const LogEta& log_eta) const {
        return log_e < gone ? log_e : log_contracted(gap_, log_e, log_eta);
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

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
#include <hockeystick/simd/hidden_rounds.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

using namespace simd;

inline constexpr double max_passes = 4096.0;  // rounds that are run one by one, at either end

// log(e^eps - 1), -inf for 0.
inline double log_gap(double eps) { return eps > 1.0 ? eps + std::log1p(-std::exp(-eps)) : std::log(std::expm1(eps)); }

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

// As if `rounds` more rounds with one Lipschitz constant had been added to s = `spread`, whose last term is `growth`.
inline void skip_rounds(double rounds, double lipschitz, double& growth, double& spread) {
    if (rounds <= 0.0) return;
    const double decay = -2.0 * std::log(lipschitz);  // of growth, per round
    const double last = growth * std::exp(rounds * decay);
    spread +=
        decay <= 0.0 ? growth * std::exp(decay) * geometric_sum(decay, rounds) : last * geometric_sum(-decay, rounds);
    growth = last;
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
        if (hybrid_ >= log_underflow) hybrid_ = std::min(hybrid_, shifted());
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
        return log_e < log_underflow ? log_e : log_contracted(gap_, log_e, log_eta);
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

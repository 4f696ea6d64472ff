// What the rounds after a record's use hide, tighter than a product of contraction coefficients.
// docs/core/hidden_state.md has the theorems and proofs; this header computes, as upper bounds:
//
//   nonlinear               a kernel K maps E = E_gamma(mu||nu) to at most
//                           F(E) = E sup_{x, x'} E_{gamma'}(K(x)||K(x')),
//                           gamma' = 1 + (gamma - 1)/E. For a map with an image of diameter d
//                           before noise of deviation s, the supremum is theta(log gamma', d/s).
//   shifted                 one use of sensitivity g (in deviations), then k rounds with Lipschitz
//                           constants c_j, leaves the Gaussian-DP parameter g/sqrt(S_k),
//                           S_k = sum_{i <= k} prod_{j <= i} c_j^{-2}.
//   shift_then_contraction  shifted interpolation for j rounds, F for the rest, with the best j.
//                           One pass finds it, since F increases: v_0 = theta(eps, g),
//                           v_k = min(F(v_{k-1}), theta(eps, g/sqrt(S_k))).
//
// Deltas are held as logarithms and rounded up: log theta is right to 4e-15 relative or 1e-14
// absolute (divergence/hockey_stick.hpp), and an error of some ulps in eps' moves it by some ulps.
//
// Cost: two or three log theta a round. Beyond 2 max_passes rounds the bound F is held in between,
// which is sound since it can only fall, and S is a geometric sum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <hockeystick/hidden_state/contraction_sum.hpp>
#include <hockeystick/simd/hidden_rounds.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace divergence;
using simd::conditional_eps;
using simd::log_underflow;
using simd::shifted_parameter;
using simd::upper_log;
using simd::upper_log_product;

inline constexpr double max_passes = 4096.0;  // rounds that are run one by one, at either end

// log(gamma - 1) = log(e^eps - 1), -inf for eps = 0.
inline double log_gamma_minus_one(double eps) {
    return eps > 1.0 ? eps + std::log1p(-std::exp(-eps)) : std::log(std::expm1(eps));
}

// log F(E), rounded up, for a kernel whose log contraction coefficient at eps' is log_eta(eps').
template <class LogEta> double log_contracted(double log_gamma_minus_1, double log_e, const LogEta& log_eta) {
    return upper_log_product(log_e, log_eta(conditional_eps(log_gamma_minus_1, log_e)));
}

// log of the coefficient of a kernel projected onto an interval, from the kernel's image_diameter
// before projection, the interval's `width` and the longest step |psi(w) - w|; lengths in noise
// deviations.
//
// The two rows' means are at most `width` apart. The best threshold lies beyond the interval's end
// where eps > width (width/2 + longest_step). Then only the atom at the end is left to tell them
// by: the supremum is Q(longest_step) - gamma Q(width + longest_step).
inline double log_projected_eta(double eps, double image_diameter, double width, double longest_step) {
    const double unprojected = log_theta(eps, image_diameter);
    if (!(eps * (1.0 - 1e-12) > width * (0.5 * width + longest_step))) return unprojected;
    const double log_p = log_q(longest_step), log_gamma_q = eps + log_q(width + longest_step);
    // eps is what cancels in log_gamma_q.
    const double error = 1e-13 * (1.0 + eps + std::fabs(log_p));
    if (log_gamma_q >= log_p + error) return -infinity;
    return std::min(unprojected, log_p + std::log(error - std::expm1(std::min(0.0, log_gamma_q - log_p))));
}

// Adds to S = shift_sum what `rounds` more rounds with one Lipschitz constant add; its last term is
// shift_term.
inline void skip_rounds(double rounds, double lipschitz, double& shift_term, double& shift_sum) {
    if (rounds <= 0.0) return;
    const double log_ratio = -2.0 * std::log(lipschitz);  // of one term to the one before
    const double last = shift_term * std::exp(rounds * log_ratio);
    shift_sum += log_ratio <= 0.0 ? shift_term * std::exp(log_ratio) * geometric_sum(log_ratio, rounds)
                                  : last * geometric_sum(-log_ratio, rounds);
    shift_term = last;
}

// Bounds of log delta after some rounds.
struct LaterBounds {
    double nonlinear, shifted, shift_then_contraction;
};

// One use of the record, and the rounds after it one by one.
class LaterRounds {
  public:
    LaterRounds(double eps, double sensitivity)
        : eps_(eps), log_gamma_minus_1_(log_gamma_minus_one(eps)), sensitivity_(sensitivity) {
        nonlinear_ = shift_then_contraction_ = upper_log(log_theta(eps, sensitivity));
    }

    // The Gaussian-DP parameter that shifted interpolation leaves.
    double parameter() const { return shifted_parameter(sensitivity_, shift_sum_); }
    double shifted() const { return upper_log(log_theta(eps_, parameter())); }
    LaterBounds bounds() const { return {nonlinear_, shifted(), shift_then_contraction_}; }

    // One round whose map expands by at most `lipschitz`, lengths before and after in the
    // deviations of their rounds' noise.
    void advance(double image_diameter, double lipschitz) {
        advance_by(lipschitz, [image_diameter](double eps) { return log_theta(eps, image_diameter); });
    }

    // The same for a kernel with another contraction coefficient.
    template <class LogEta> void advance_by(double lipschitz, const LogEta& log_eta) {
        const bool equal = shift_then_contraction_ == nonlinear_;
        nonlinear_ = contracted(nonlinear_, log_eta);
        shift_then_contraction_ = equal ? nonlinear_ : contracted(shift_then_contraction_, log_eta);
        shift_term_ /= lipschitz * lipschitz;
        shift_sum_ += shift_term_;
        if (shift_then_contraction_ >= log_underflow)
            shift_then_contraction_ = std::min(shift_then_contraction_, shifted());
    }

    // As if `rounds` rounds with one Lipschitz constant had passed in which F contracted nothing.
    void skip(double rounds, double lipschitz) {
        skip_rounds(rounds, lipschitz, shift_term_, shift_sum_);
        if (rounds > 0.0) shift_then_contraction_ = std::min(shift_then_contraction_, shifted());
    }

  private:
    double eps_, log_gamma_minus_1_, sensitivity_;
    double shift_term_ = 1.0, shift_sum_ = 1.0;
    double nonlinear_, shift_then_contraction_;

    template <class LogEta> double contracted(double log_e, const LogEta& log_eta) const {
        return log_e < log_underflow ? log_e : log_contracted(log_gamma_minus_1_, log_e, log_eta);
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

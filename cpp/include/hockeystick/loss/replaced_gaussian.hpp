// The privacy loss of Gaussian noise on a Poisson sample when one record is replaced: P = (1-q)
// N(0,1) + q N(r,1), Q = (1-q) N(0,1) + q N(-r,1), with r = 1/noise_multiplier (Lebeda, Regehr,
// Kamath and Steinke 2024). Reflection of x exchanges P and Q. The pair dominates:
// docs/core/loss.md.
//
// With y = r x and h = r^2/2, L = log(1-q + q e^{y-h}) - log(1-q + q e^{-y-h}) rises in y, and is
// eps at
//
//   y = eps/2 + asinh(c sinh(eps/2)),  c = e^h (1-q)/q.
//
// With E = e^eps and the ratio P/N(0,1) at that y taken out on both sides,
//
//   delta = q theta(y - h, r) + q E e^{-y-h} theta(y + h, r).
//
// Errors: y errs by 4u|y| + (4 + 2h)u, with y <= |eps| + h - log q + 1. dL/dy <= 2, and at most 6
// |L| below y = 1, because y dL/dy <= 8 |L| there.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/loss/poisson_sampled.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

class ReplacedGaussianLoss final : public PrivacyLoss {
  public:
    // 0 < rate < 1.
    ReplacedGaussianLoss(double shift, double rate)
        : shift_(shift), rate_(rate), half_(0.5 * shift * shift), log_odds_(std::log1p(-rate) - std::log(rate)) {}
    LossMasses masses(double eps) const override {
        const double x = outcome(eps) / shift_;
        const double none = 1.0 - rate_;
        return {none * q(-x) + rate_ * q(shift_ - x), none * q(x) + rate_ * q(x - shift_),
                none * q(-x) + rate_ * q(-shift_ - x), none * q(x) + rate_ * q(x + shift_)};
    }
    double delta(double eps) const override {
        const double y = outcome(eps);
        return rate_ * (theta(y - half_, shift_) + std::exp(eps - y - half_) * theta(y + half_, shift_));
    }
    double lowest() const override { return -infinity; }
    double highest() const override { return infinity; }
    double scale() const override { return shift_; }
    LossErrors errors() const override {
        LossErrors errors;
        errors.loss = 64.0 * unit_roundoff * (2.0 + half_ - std::log(rate_));
        errors.atoms = 1.0 + half_;  // e^{eps - y - h} errs by 4u h beside what every formula does
        return errors;
    }
    std::vector<OutlinePoint> outline() const override {  // as that of a Gaussian, between -39 and 39 beyond the shifts
        constexpr int points = 512;
        const double low = -39.0 - shift_, step = -2.0 * low / (points - 1);
        const double unit = std::log(step) - half_log_2pi;
        std::vector<OutlinePoint> result;
        for (int i = 0; i < points; ++i) {
            const double x = low + step * i;
            const double above = sampled_loss(shift_ * x - half_, rate_);
            const double below = sampled_loss(-shift_ * x - half_, rate_);
            result.push_back({above - below, unit - 0.5 * x * x + above, unit - 0.5 * x * x + below});
        }
        return result;
    }

  private:
    // The y of L = eps, by logarithms, because sinh and e^h may overflow.
    double outcome(double eps) const {
        const double half = 0.5 * std::fabs(eps);
        const double log_sinh =
            half < 1.0 ? std::log(std::sinh(half)) : half - std::log(2.0) + std::log1p(-std::exp(-2.0 * half));
        const double log_size = half_ + log_odds_ + log_sinh;
        const double y = half + (log_size < 20.0 ? std::asinh(std::exp(log_size)) : std::log(2.0) + log_size);
        return eps < 0.0 ? -y : y;
    }

    double shift_, rate_, half_, log_odds_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss

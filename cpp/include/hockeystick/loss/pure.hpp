// One pair of distributions dominates every epsilon-DP mechanism (Kairouz, Oh and Viswanath 2015).
// This is its privacy loss. Under P the loss is epsilon with probability 1/(1 + e^-epsilon), and
// -epsilon with probability e^-epsilon/(1 + e^-epsilon). The losses are the doubles that were given
// and have no error.
//
// The masses have errors, stated as in loss/privacy_loss.hpp. A call costs one exponential.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/loss/privacy_loss.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

class PureLoss final : public PrivacyLoss {
  public:
    explicit PureLoss(double epsilon)
        : epsilon_(epsilon), high_(1.0 / (1.0 + std::exp(-epsilon))), low_(std::exp(-epsilon) * high_) {}
    LossMasses masses(double eps) const override {
        if (eps >= epsilon_) return {1.0, 0.0, 1.0, 0.0};
        if (eps < -epsilon_) return {0.0, 1.0, 0.0, 1.0};
        return {low_, high_, high_, low_};
    }
    double delta(double eps) const override {
        if (eps >= epsilon_) return 0.0;
        if (eps < -epsilon_) return -std::expm1(eps);
        return -std::expm1(eps - epsilon_) * high_;
    }
    double lowest() const override { return -epsilon_; }
    double highest() const override { return epsilon_; }
    double lattice() const override { return epsilon_; }
    LossErrors errors() const override {
        LossErrors errors;
        errors.relative = 0.0;
        errors.atoms = 4.0;
        return errors;
    }
    std::vector<OutlinePoint> outline() const override {
        const double log_high = -std::log1p(std::exp(-epsilon_)), log_low = log_high - epsilon_;
        return {{epsilon_, log_high, log_low}, {-epsilon_, log_low, log_high}};
    }

  private:
    double epsilon_, high_, low_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss

// The privacy loss of a mechanism of bounded range, such as the exponential mechanism: the losses
// of any two adjacent data sets lie in an interval [t - eps0, t], for a t in [0, eps0] that may
// differ from pair to pair (Dong, Durfee and Rogers 2020).
//
// The curve delta(eps) = (1 - e^{(eps-eps0)/2})^2/(1 - e^{-eps0}), |eps| <= eps0, is the worst over
// t; it is that of a pair, which dominates whatever t is. Its loss has the density e^{l/2}/(4
// sinh(eps0/2)) under P on [-eps0, eps0] and no atoms, and exchanging P and Q reflects it. Proof:
// docs/core/loss.md.
//
// Errors as in loss/privacy_loss.hpp. Cost: four exponentials a call.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/loss/privacy_loss.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

class BoundedRangeLoss final : public PrivacyLoss {
  public:
    explicit BoundedRangeLoss(double range) : range_(range) {}  // in (0, 600]
    LossMasses masses(double eps) const override {
        if (eps >= range_) return {1.0, 0.0, 1.0, 0.0};
        if (eps < -range_) return {0.0, 1.0, 0.0, 1.0};
        return {lower_mass(eps), upper_mass(eps), upper_mass(-eps), lower_mass(-eps)};
    }
    double delta(double eps) const override {
        if (eps >= range_) return 0.0;
        if (eps <= -range_) return -std::expm1(eps);
        const double root = std::expm1(0.5 * (eps - range_));
        return root * root / -std::expm1(-range_);
    }
    double lowest() const override { return -range_; }
    double highest() const override { return range_; }
    std::vector<OutlinePoint> outline() const override {  // the midpoint rule
        constexpr int points = 256;
        const double step = 2.0 * range_ / points;
        // log 1/(4 sinh(range/2)), without overflow
        const double log_unit = std::log(0.5 * step) - 0.5 * range_ - std::log(-std::expm1(-range_));
        std::vector<OutlinePoint> result;
        for (int i = 0; i < points; ++i) {
            const double loss = -range_ + step * (i + 0.5);
            result.push_back({loss, log_unit + 0.5 * loss, log_unit - 0.5 * loss});
        }
        return result;
    }

  private:
    // P of {L <= eps} and of {L > eps}; Q's are those of -eps, exchanged.
    double lower_mass(double eps) const { return std::expm1(0.5 * (eps + range_)) / std::expm1(range_); }
    double upper_mass(double eps) const { return std::expm1(0.5 * (eps - range_)) / std::expm1(-range_); }

    double range_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss

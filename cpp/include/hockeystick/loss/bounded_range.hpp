// The privacy loss of a mechanism of bounded range, such as the exponential mechanism.
//
// Range: the losses log dP/dQ of any two adjacent data sets lie in an interval [t - eps0, t] for a t in [0, eps0] that may
// differ from pair to pair. Of all pairs with losses in that interval the one with two outcomes, at its ends, dominates: the
// ratio dP/dQ has mean 1 under Q, and of all laws on an interval with that mean the two-point law at the ends is the largest in
// convex order. It puts (1 - e^{t-eps0})/(1 - e^{-eps0}) of P at the loss t (Dong, Durfee and Rogers 2020), and
//
//   delta_t(eps) = (1 - e^{t-eps0})(1 - e^{eps-t})/(1 - e^{-eps0}),    t - eps0 <= eps <= t.
//
// The largest over t, at t = (eps + eps0)/2 as both exponents are then equal, is the curve of this file,
//
//   delta(eps) = (1 - e^{(eps-eps0)/2})^2/(1 - e^{-eps0}),    |eps| <= eps0.
//
// A supremum of curves convex in e^eps is convex, decreasing, and 1 at e^eps = 0: it is the curve of a pair, which thus
// dominates whatever t is, in adaptive compositions too (Zhu, Dong and Wang 2022). Its loss has the density
// e^{l/2}/(4 sinh(eps0/2)) under P on [-eps0, eps0], and no atoms; exchanging P and Q reflects it. One step attains the
// curve at every eps; many steps with the worst fixed t leak less, by up to 1 - sqrt(3)/2 of epsilon as standard deviations go.
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

// The privacy loss of Laplace noise of scale 1 at distance r: |L| <= r, with an atom at either end.
//
// Errors as in loss/privacy_loss.hpp. Cost: two exponentials a call.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/loss/privacy_loss.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

class LaplaceLoss final : public PrivacyLoss {
  public:
    explicit LaplaceLoss(double shift) : shift_(shift) {}
    LossMasses masses(double eps) const override {
        if (eps >= shift_) return {1.0, 0.0, 1.0, 0.0};
        if (eps < -shift_) return {0.0, 1.0, 0.0, 1.0};
        const double p_below = 0.5 * std::exp(0.5 * (eps - shift_));
        const double q_above = 0.5 * std::exp(-0.5 * (eps + shift_));
        return {p_below, 1.0 - p_below, 1.0 - q_above, q_above};
    }
    double delta(double eps) const override { return laplace_theta(eps, shift_); }
    double lowest() const override { return -shift_; }
    double highest() const override { return shift_; }
    double lattice() const override { return shift_; }
    std::vector<OutlinePoint> outline() const override {  // both atoms, and the midpoint rule in between
        constexpr int points = 256;
        const double log_half = -0.6931471805599453;  // log 1/2
        const double step = 2.0 * shift_ / points;
        std::vector<OutlinePoint> result{{-shift_, log_half - shift_, log_half}, {shift_, log_half, log_half - shift_}};
        for (int i = 0; i < points; ++i) {
            const double loss = -shift_ + step * (i + 0.5);
            const double log_p = std::log(0.25 * step) + 0.5 * (loss - shift_);
            result.push_back({loss, log_p, log_p - loss});
        }
        return result;
    }

  private:
    double shift_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss

// The privacy loss of Gaussian noise: P = N(r, 1), Q = N(0, 1), L = r x - r^2/2 (Balle and Wang
// 2018).
//
// Errors as in loss/privacy_loss.hpp. Cost: two Gaussian tails a call.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/loss/privacy_loss.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

class GaussianLoss final : public PrivacyLoss {
  public:
    explicit GaussianLoss(double shift) : shift_(shift) {}
    LossMasses masses(double eps) const override {
        const double a = eps / shift_ - 0.5 * shift_;
        const double b = eps / shift_ + 0.5 * shift_;
        const double p = q(std::fabs(a)), r = q(std::fabs(b));  // the smaller tails
        return {a < 0.0 ? p : 1.0 - p, a < 0.0 ? 1.0 - p : p, b < 0.0 ? r : 1.0 - r, b < 0.0 ? 1.0 - r : r};
    }
    double delta(double eps) const override { return theta(eps, shift_); }
    double lowest() const override { return -infinity; }
    double highest() const override { return infinity; }
    double scale() const override { return shift_; }
    double gaussian_shift() const override { return shift_; }
    std::vector<OutlinePoint> outline() const override {  // trapezoidal rule in x, out to tails below 1e-300
        constexpr int points = 512;
        const double low = -39.0, step = (78.0 + shift_) / (points - 1);
        std::vector<OutlinePoint> result;
        for (int i = 0; i < points; ++i) {
            const double x = low + step * i, y = x - shift_;
            const double unit = std::log(step) - half_log_2pi;
            result.push_back({shift_ * (x - 0.5 * shift_), unit - 0.5 * y * y, unit - 0.5 * x * x});
        }
        return result;
    }

  private:
    double shift_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss

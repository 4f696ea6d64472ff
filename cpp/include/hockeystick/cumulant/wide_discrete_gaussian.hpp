// The cumulant of discrete Gaussian noise of sigma >= 2, moved by an integer: nearly that of
// Gaussian noise. With z = shift (s + 1), Poisson's summation formula gives
//
//   M(s) = e^{r^2 s (s + 1)/2} theta(z)/theta(0),
//   theta(z) = sum_m e^{-2 pi^2 sigma^2 m^2 + 2 pi i m z},
//
// r = shift/sigma. Up to the frequency pi sigma^2/(2 shift), a quarter of the period, theta(z) is
// within 2.01 e^{-pi^2 sigma^2} of 1: less than 2e-17. Beyond, only |phi| <= 1 is said.
// docs/core/cumulant.md, "Wide discrete Gaussian noise", has the proof.
//
// Both directions have the same cumulant.
#pragma once

#include <cmath>

#include <hockeystick/cumulant/cumulant.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

class WideDiscreteGaussianCumulant final : public Cumulant {
  public:
    static constexpr double least_sigma = 2.0;

    WideDiscreteGaussianCumulant(double sigma, double shift)
        : square_((shift / sigma) * (shift / sigma)), end_(0.5 * pi * sigma * (sigma / shift) * (1.0 - 1e-12)) {}
    Moment log_moment(double c) const override {
        const double value = 0.5 * square_ * c * (c + 1.0);
        return {value, 6.0 * u * std::fabs(value) + theta_error};
    }
    double log_decay(double, double omega) const override {
        return omega < end_ ? min(-0.5 * square_ * omega * omega * (1.0 - 8.0 * u) + theta_error, 0.0) : 0.0;
    }
    double decay_end(double) const override { return end_; }
    bool add_nodes(double c, double h, std::size_t last, double count, NodeTable& nodes) const override {
        for (std::size_t k = 0; k <= last; ++k) {
            const double omega = static_cast<double>(k) * h;
            if (!(omega < end_)) {
                nodes.error[k] += count * 2.0;
                continue;
            }
            const double fall = 0.5 * square_ * omega * omega, turn = 0.5 * square_ * omega * (2.0 * c + 1.0);
            nodes.log_abs[k] -= count * fall;
            nodes.phase[k] += count * turn;
            nodes.error[k] += count * (10.0 * u * (fall + std::fabs(turn)) + theta_error);
        }
        return true;
    }
    double log_variance() const override { return std::log(square_); }

  private:
    static constexpr double u = unit_roundoff;
    static constexpr double theta_error = 1e-16;  // 4.1 e^{-4 pi^2}, rounded up, of the quotient of two thetas

    double square_, end_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant

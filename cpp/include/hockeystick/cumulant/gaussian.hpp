// The Gaussian mechanism's cumulant. With the shift r = sensitivity/noise, the loss is L = r
// x - r^2/2 for x ~ N(r, 1), and
//
//   log M(s) = r^2 s (s + 1)/2.
//
// Both directions have the same cumulant.
#pragma once

#include <cmath>

#include <hockeystick/cumulant/cumulant.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

class GaussianCumulant final : public Cumulant {
  public:
    explicit GaussianCumulant(double shift) : square_(shift * shift) {}
    Moment log_moment(double c) const override {
        const double value = 0.5 * square_ * c * (c + 1.0);
        return {value, 4.0 * u * std::fabs(value)};
    }
    double log_decay(double, double omega) const override { return -0.5 * square_ * omega * omega; }
    bool add_nodes(double c, double h, std::size_t last, double count, NodeTable& nodes) const override {
        for (std::size_t k = 0; k <= last; ++k) {
            const double omega = static_cast<double>(k) * h;
            nodes.log_abs[k] -= count * 0.5 * square_ * omega * omega;
            const double phase = count * square_ * omega * (c + 0.5);
            nodes.phase[k] += phase;
            nodes.error[k] += 4.0 * u * (std::fabs(phase) + count * square_ * omega * omega);
        }
        return true;
    }
    double log_variance() const override { return std::log(square_); }

  private:
    static constexpr double u = unit_roundoff;
    double square_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant

// The Laplace mechanism's cumulant, for noise of scale 1 and means at distance r:
//
//   M(s) = ((s+1) e^{sr} + s e^{-(s+1)r})/(2s+1)
//        = e^{-r/2} (cosh ur + sinh(ur)/(2u)),   u = s + 1/2.
//
// Both directions have the same cumulant. The losses have atoms at +-r, so that |phi| falls to the
// atoms' share of M(c) and no further. With c + 1/2 = |u| >= 0, for every omega' >= omega,
//
//   |phi(omega')| <= (a e^{cr} + b e^{-(c+1)r})/M(c),
//   a = max(|s+1|/|2s+1|, 1/2),  b = max(|s|/|2s+1|, 1/2)
//
// at s = c + i omega (docs/core/cumulant.md).
#pragma once

#include <cmath>
#include <complex>

#include <hockeystick/cumulant/cumulant.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

class LaplaceCumulant final : public Cumulant {
  public:
    explicit LaplaceCumulant(double shift) : shift_(shift) {}
    Moment log_moment(double c) const override {
        const double value = log_transform({c, 0.0}).real();
        return {value, 16.0 * u * (1.0 + shift_ * (1.0 + std::fabs(c)))};
    }
    double log_decay(double c, double omega) const override {
        const double value = log_transform({c, 0.0}).real();
        const double low = std::fabs(c + 0.5) - 0.5;  // c or -1 - c, which have the same |phi|
        const double square = omega * omega, whole = (2.0 * low + 1.0) * (2.0 * low + 1.0) + 4.0 * square;
        const double a = max(std::sqrt(((low + 1.0) * (low + 1.0) + square) / whole), 0.5);
        const double b = max(std::sqrt((low * low + square) / whole), 0.5);
        const double bound = low * shift_ + std::log(a + b * std::exp(-(2.0 * low + 1.0) * shift_)) - value;
        return min(bound + 32.0 * u * (1.0 + shift_ * (1.0 + std::fabs(c))), 0.0);
    }
    bool add_nodes(double c, double h, std::size_t last, double count, NodeTable& nodes) const override {
        const std::complex<double> at_tilt = log_transform({c, 0.0});
        for (std::size_t k = 0; k <= last; ++k) {
            const double omega = static_cast<double>(k) * h;
            const std::complex<double> ratio = log_transform({c, omega}) - at_tilt;
            nodes.log_abs[k] += count * min(ratio.real(), 0.0);
            nodes.phase[k] += count * ratio.imag();
            // M(s) is a sum of terms below M(c): its relative error grows as it falls.
            const double lost = min(std::exp(-ratio.real()), 1e15);
            nodes.error[k] += count * 32.0 * u * (1.0 + shift_ * (1.0 + std::fabs(c) + omega)) * lost;
        }
        return true;
    }
    double log_variance() const override { return std::log(min(shift_ * shift_, 2.0 * shift_)); }
    double highest() const override { return shift_; }

  private:
    static constexpr double u = unit_roundoff;

    // M(s) = e^{-r/2 + ur} ((1 + E)/2 + (1 - E)/(4u)), E = e^{-2ur}; even in u, so Re u >= 0 will
    // do.
    std::complex<double> log_transform(std::complex<double> s) const {
        std::complex<double> v = s + 0.5;
        if (v.real() < 0.0) v = -v;
        const std::complex<double> x = 2.0 * shift_ * v;
        const std::complex<double> rest = one_minus_exp(x);
        const std::complex<double> quotient =
            std::abs(v) > 1e-150 ? rest / (4.0 * v) : std::complex<double>(0.5 * shift_);
        return -0.5 * shift_ + shift_ * v + std::log(1.0 - 0.5 * rest + quotient);
    }

    // 1 - e^{-x} without cancellation for small x.
    static std::complex<double> one_minus_exp(std::complex<double> x) {
        const double sine = std::sin(0.5 * x.imag());
        const double decay = std::exp(-x.real());
        return {-std::expm1(-x.real()) + 2.0 * decay * sine * sine, decay * std::sin(x.imag())};
    }

    double shift_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant

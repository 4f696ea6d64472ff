// log E_P[e^{sL}] of one step's privacy loss L = log dP/dQ for complex s: what the contour engine (contour/contour.hpp) composes.
//
// A cumulant may leave out losses beyond a cut (cumulant/sampled_gaussian.hpp): all it says is then about the rest of P, and
// `log_missing` is what the rest lacks, which the engine sends to infinity.
//
//   Gaussian   L = r x - r^2/2:  log M(s) = r^2 s (s + 1)/2.
//   Laplace    scale 1 at distance r: M(s) = ((s+1) e^{sr} + s e^{-(s+1)r})/(2s+1)
//                                          = e^{-r/2} (cosh ur + sinh(ur)/(2u)), u = s + 1/2.
//
// Both are the same in the two directions.
#pragma once

#include <complex>
#include <vector>

#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/simd/contour_nodes.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace simd;

// What the nodes s = c + i k h, k = 0, 1, ..., know about phi(k h) = M(s)/M(c).
struct NodeTable {
    std::vector<double> log_abs, phase;
    std::vector<double> error;  // relative, of phi: quadrature and rounding

    explicit NodeTable(std::size_t n = 0) : log_abs(n), phase(n), error(n) {}
    simd::NodePowers powers() { return {log_abs.data(), phase.data(), error.data()}; }
};

// What `raise` may err by, in units of u min(2, omega E|L|), of phi; x = |phi - 1|. Where x <= 1/2, |log phi| <= 1.39 x errs by 8u of
// itself at most; elsewhere the angle errs by 7u, absolutely, and |phi| log|phi| by u.
inline constexpr double of_log = 16.0;

// By how much phi(omega) moves, at most, if weights err by delta: E delta |e^{i omega L} - phi|, |.| <= min(2, omega (|L| + E|L|)), from the means of
// delta, delta |L| and |L|.
inline double of_weights(double of_weight, double of_product, double loss, double omega) {
    return 1.1 * min(2.0 * of_weight, omega * (of_product + of_weight * loss));
}

class Cumulant {
  public:
    struct Moment {
        double value, error;  // log M(c), and how far it may be off
    };

    virtual ~Cumulant() = default;
    virtual Moment log_moment(double c) const = 0;
    // Largest log |phi(omega')| over omega' >= omega, or more; never positive.
    virtual double log_decay(double c, double omega) const = 0;
    // Adds `count` steps to nodes up to k = `last`; false where that would take too much work.
    virtual bool add_nodes(double c, double h, std::size_t last, double count, NodeTable& nodes) const = 0;
    virtual double log_missing() const { return -infinity; }
    virtual double log_variance() const = 0;  // of L near c = 0, roughly; to start searches from
    virtual double highest() const { return infinity; }
    virtual double lowest() const { return -infinity; }
    virtual double work() const { return 0.0; }  // points visited so far, times nodes
};

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

class LaplaceCumulant final : public Cumulant {
  public:
    explicit LaplaceCumulant(double shift) : shift_(shift) {}
    Moment log_moment(double c) const override {
        const double value = log_transform({c, 0.0}).real();
        return {value, 16.0 * u * (1.0 + shift_ * (1.0 + std::fabs(c)))};
    }
    double log_decay(double, double) const override { return 0.0; }  // its atoms never decay
    bool add_nodes(double c, double h, std::size_t last, double count, NodeTable& nodes) const override {
        const std::complex<double> at_tilt = log_transform({c, 0.0});
        for (std::size_t k = 0; k <= last; ++k) {
            const double omega = static_cast<double>(k) * h;
            const std::complex<double> ratio = log_transform({c, omega}) - at_tilt;
            nodes.log_abs[k] += count * min(ratio.real(), 0.0);
            nodes.phase[k] += count * ratio.imag();
            const double lost = min(std::exp(-ratio.real()), 1e15);  // M(s) is a sum of terms below M(c)
            nodes.error[k] += count * 32.0 * u * (1.0 + shift_ * (1.0 + std::fabs(c) + omega)) * lost;
        }
        return true;
    }
    double log_variance() const override { return std::log(min(shift_ * shift_, 2.0 * shift_)); }
    double highest() const override { return shift_; }

  private:
    static constexpr double u = unit_roundoff;

    // M(s) = e^{-r/2 + ur} ((1 + E)/2 + (1 - E)/(4u)), E = e^{-2ur}; even in u, so Re u >= 0 will do.
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

// The privacy loss L = log dP/dQ of a dominating pair (P, Q): what a mechanism must tell, and two without sampling.
//
// `masses(eps)` cuts the outcomes into {L <= eps} and {L > eps}; each mass is relatively accurate in its own tail. What
// P puts where Q has nothing (L = inf) is `p_infinite()` and belongs to neither side. `delta(eps)` is the exact
// hockey-stick divergence, without the cancellation of p_above - e^eps q_above.
//
//   Gaussian      N(r, 1) against N(0, 1), L = r x - r^2/2 (Balle and Wang 2018).
//   Laplace       scale 1 at distance r, |L| <= r with atoms at both ends.
//
// Errors: masses carry (1 + scale()) (32 + 24 |log mass|) u relative error and belong to a cut at eps (1 + 8u) + 8u;
// pld/composition.hpp charges both. Cost: two tails of a Gaussian a call.
#pragma once

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <hockeystick/divergence/hockey_stick.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

using namespace divergence;

// P and Q of {L <= eps} and of {eps < L < inf}.
struct LossMasses {
    double p_below, p_above, q_below, q_above;
};

// A node of a quadrature over the outcomes: a loss and what P and Q weigh there (logarithms). Good to choose a tilt by.
struct OutlinePoint {
    double loss, log_p, log_q;
};

// What rounding does to the answers about one step, beyond 16 u of a loss and the relative error of the formulas.
struct LossErrors {
    double loss = 0.0;     // of any loss
    double growing = 0.0;  // of a loss eps, in units of e^eps
    double removed_rate =
        0.0;                // of a removed record: 16 u (1 - log rate) min(rate + eps, 1) of a loss eps; 0 if not so
    double highest = 0.0;   // of highest(), beside `loss`
    double atoms = 0.0;     // terms that are summed
    double infinite = 0.0;  // relative, of p_infinite(), in units of 2u
};

class PrivacyLoss {
  public:
    virtual ~PrivacyLoss() = default;
    virtual LossMasses masses(double eps) const = 0;
    virtual double delta(double eps) const = 0;
    virtual double p_infinite() const { return 0.0; }
    virtual double lowest() const = 0;   // of the finite losses that P knows; may be -inf
    virtual double highest() const = 0;  // of the finite losses; may be inf
    // What highest() may be off by, beyond a relative 1e-14.
    virtual double highest_error() const { return 0.0; }
    // Spacing of a grid through 0 on which all atoms lie, 0 if there is none.
    virtual double lattice() const { return 0.0; }
    virtual double scale() const { return 0.0; }  // see Errors above
    virtual LossErrors errors() const { return {}; }
    virtual std::vector<OutlinePoint> outline() const = 0;
    // Shift of a Gaussian mechanism, whose compositions are Gaussian; 0 for all others.
    virtual double gaussian_shift() const { return 0.0; }
};

using Loss = std::shared_ptr<const PrivacyLoss>;

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

// How two mixtures of Gaussians with one noise s compare at a point: p, gamma q, u = log(p/(gamma q)), and how far u may be from that
// nearby.
//
// u' = (mean_P - mean_Q)/s^2 and u'' = (var_P - var_Q)/s^4 for the laws of the centre given y, hence |u''| <= W^2/(4 s^4), W the
// range of the centres (Popoviciu).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <hockeystick/chain/mixture.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double tiny = 1e-280;  // densities below it are not told apart

class DensityContrast {
  public:
    struct Local {
        double p, gq, u, slope;  // densities without 1/(s sqrt(2 pi))
    };

    DensityContrast(const Mixture& p, const Mixture& q, double noise, double radius, double gamma)
        : p_(p), q_(q), s_(noise), gamma_(gamma) {
        const auto ends = [](const Mixture& m) { return std::minmax_element(m.centre.begin(), m.centre.end()); };
        const auto [p_low, p_high] = ends(p);
        const auto [q_low, q_high] = ends(q);
        low_ = static_cast<double>(std::min(*p_low, *q_low));
        high_ = static_cast<double>(std::max(*p_high, *q_high));
        farthest_ = (radius + std::max(std::fabs(low_), std::fabs(high_))) / s_;
        const double terms = static_cast<double>(p.weight.size() + q.weight.size());
        // exponents above -700 are right to 4 of 745 ulp, positions to an ulp; sums add an ulp a term
        log_error_ = 0x1p-52 * (4.0 * 745.0 + 80.0 * farthest_ + terms);
        slope_bound_ = (high_ - low_) / (s_ * s_);
    }

    double low() const { return low_; }
    double high() const { return high_; }
    double farthest() const { return farthest_; }    // of a centre from a point of the interval, in deviations
    double log_error() const { return log_error_; }  // of u where it is resolved

    Local look(double y) const {
        const Density p = density(p_, y), q = density(q_, y);
        const double gq = q.value * gamma_;
        return {p.value, gq, std::log(std::max(p.value, tiny)) - std::log(std::max(gq, tiny)), p.slope - q.slope};
    }

    bool resolved(const Local& at) const { return at.p >= tiny && at.gq >= tiny; }

    // How far u may be from its value in the middle of a cell of width h.
    double drift(const Local& middle, double h) const {
        const double anyhow = 0.5 * slope_bound_ * h;
        const double local =
            0.5 * std::fabs(middle.slope) * h * (1.0 + 1e-10) + 0.03125 * slope_bound_ * slope_bound_ * h * h;
        return log_error_ + (resolved(middle) ? std::min(anyhow, local + log_error_ * slope_bound_ * h) : anyhow);
    }

    // Bound of int |d| over a cell of width h.
    double stake(const Local& middle, double h) const {
        const double density = std::exp(0.5 * farthest_ / s_ * h) * 0.4 * h / s_ * (1.0 + 1e-9);  // 0.4 > 1/sqrt(2 pi)
        const double most = std::fabs(middle.u) + drift(middle, h);
        if (!resolved(middle) || most > 30.0) return density * (middle.p + middle.gq + 2.0 * tiny);
        return density * middle.p * std::expm1(most);
    }

    bool certain(const Local& middle, double h) const { return std::fabs(middle.u) > drift(middle, h); }

  private:
    const Mixture& p_;
    const Mixture& q_;
    double s_, gamma_, low_ = 0.0, high_ = 0.0, farthest_ = 0.0, log_error_ = 0.0, slope_bound_ = 0.0;

    struct Density {
        double value, slope;
    };
    Density density(const Mixture& m, double y) const {
        double value = 0.0, moment = 0.0;
        for (std::size_t j = 0; j < m.weight.size(); ++j) {
            const double z = (static_cast<double>(m.centre[j]) - y) / s_;
            const double term = m.weight[j] * std::exp(-0.5 * z * z);
            value += term;
            moment += term * z;
        }
        return {value, value > 0.0 ? moment / value / s_ : 0.0};
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain

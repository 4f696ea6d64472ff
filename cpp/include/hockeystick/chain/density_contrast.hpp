// How two mixtures of Gaussians with one noise s compare at a point, and near it.
//
// With u = log(p/(gamma q)): u' = (mean_P - mean_Q)/s^2 and u'' = (var_P - var_Q)/s^4, for the laws
// of the centre given y. Hence |u'| <= W/s^2 and |u''| <= W^2/(4 s^4), W the range of the centres
// (Popoviciu).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <hockeystick/chain/mixture.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double resolved_density = 1e-280;  // smaller densities are not told apart

class DensityContrast {
  public:
    struct Point {
        double p, gamma_q;  // densities, without the factor 1/(s sqrt(2 pi))
        double u, slope;    // log(p/(gamma q)) and its derivative
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
        // Exponents above -745 are right to 4 ulps of themselves, positions to an ulp; sums add an
        // ulp a term.
        log_error_ = one_ulp * (4.0 * 745.0 + 80.0 * farthest_ + terms);
        slope_bound_ = (high_ - low_) / (s_ * s_);
    }

    double low() const { return low_; }
    double high() const { return high_; }
    // Of a centre from a point of the interval, in deviations.
    double farthest() const { return farthest_; }
    // Of u where it is resolved.
    double log_error() const { return log_error_; }

    Point at(double y) const {
        const Density p = density(p_, y), q = density(q_, y);
        const double gamma_q = q.value * gamma_;
        const double u = std::log(std::max(p.value, resolved_density)) - std::log(std::max(gamma_q, resolved_density));
        return {p.value, gamma_q, u, p.slope - q.slope};
    }

    bool resolved(const Point& point) const { return point.p >= resolved_density && point.gamma_q >= resolved_density; }

    // Whether the sign of u is that of the exact one.
    bool sign_known(const Point& point) const { return resolved(point) && std::fabs(point.u) > log_error_; }

    // How far u may be from its value in the middle of a cell of width h.
    double change_over(const Point& middle, double h) const {
        const double by_slope_bound = 0.5 * slope_bound_ * h;
        const double by_slope =
            0.5 * std::fabs(middle.slope) * h * (1.0 + 1e-10) + 0.03125 * slope_bound_ * slope_bound_ * h * h;
        return log_error_ +
               (resolved(middle) ? std::min(by_slope_bound, by_slope + log_error_ * slope_bound_ * h) : by_slope_bound);
    }

    // Bound of int |p - gamma q| over a cell of width h.
    double difference_bound(const Point& middle, double h) const {
        // 0.4 > 1/sqrt(2 pi)
        const double density = std::exp(0.5 * farthest_ / s_ * h) * 0.4 * h / s_ * (1.0 + 1e-9);
        const double max_u = std::fabs(middle.u) + change_over(middle, h);
        if (!resolved(middle) || max_u > 30.0) return density * (middle.p + middle.gamma_q + 2.0 * resolved_density);
        return density * middle.p * std::expm1(max_u);
    }

    // Whether u has one sign in a cell of width h.
    bool certain(const Point& middle, double h) const { return std::fabs(middle.u) > change_over(middle, h); }

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

// What is known of the privacy of a state before a round, and what the round makes of it when the record takes part: the whole
// curve gamma -> E_gamma of two laws, bounded from above at the losses k h, k = 0..n, in both directions.
//
// Between those points. E_gamma is convex in gamma, 1 at gamma = 0 and not increasing: it lies below the chords between any
// bounds of it, and below the last one beyond. For gamma < 1, E_gamma(P||Q) = 1 - gamma + gamma E_{1/gamma}(Q||P). The lower convex
// hull of all these points is y_inf + sum_j q_j (gamma_j - gamma)_+, q_j >= 0 its changes of slope: a discrete law of the loss.
//
// A round without the record. Every point goes through F (hidden_state/nonlinear_contraction.hpp).
//
// A round with the record. Two maps phi, phi' with |phi - phi'| <= d everywhere, phi with an image of diameter R, noise of variance
// s^2 = s1^2 + s2^2 taken as two independent parts. Y = phi(X) + Z1 and Y' = phi(X') + Z1 come from X and X' through one kernel, so
// F with R/s1 applies to every E_gamma(Y||Y'). The next states are Y + Z2 and Y' + (phi' - phi)(X') + Z2: given Y' the
// shift is random, of length <= d, and Z2 knows nothing of it, so that by joint convexity the second part is no more than a
// Gaussian mechanism of sensitivity d/s2 run after the first (adaptive composition):
//
//   E_gamma <= y_inf + sum_j q_j gamma_j E_{gamma/gamma_j}(N(d/s2, 1)||N(0, 1)).
//
// If the record takes part with probability q only, unseen, the second part is a sampled Gaussian mechanism: with phi the map of
// a round without it and pairwise distances <= d, E_gamma <= q theta(log(1 + (gamma - 1)/q), d/s2) for gamma >= 1 (advanced
// joint convexity: Balle, Barthe and Gaboardi 2018, Theorem 2).
//
// Rounding: all sums are of positive terms; widths on the gamma axis are built from differences of losses, since small losses have
// gammas that doubles do not tell apart; changes of slope are raised by what their differences may have lost, and a factor
// 1 + 1e-11 a round covers sums, tables and the ulps of losses.
// Cost: O(n^2) for a round with the record, O(n) without.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/hidden_state/nonlinear_contraction.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

// theta(log(1 + (e^eps - 1)/rate), r) rate, rounded up: one step in which the record is used with probability `rate`; any eps.
inline double sampled_theta(double eps, double r, double rate) {
    const double at = std::fabs(eps);
    const double seen = std::exp(log_raised(log_theta(sharpened(log_gap(at), std::log(rate)), r))) * rate;
    const double value = eps >= 0.0 ? seen : -std::expm1(eps) + std::exp(eps) * seen;
    return std::min(1.0, value * (1.0 + 1e-13) + 0x1p-1074);
}

class PrivacyProfile {
  public:
    // Losses k step, k = 0..points; nothing is known yet.
    PrivacyProfile(double step, std::size_t points)
        : step_(step), points_(points), y_(points + 1, 1.0), gap_(points + 1), gamma_(2 * points + 1),
          below_(2 * points + 1) {
        for (std::size_t k = 0; k <= points; ++k) gap_[k] = log_gap(loss(k));
        for (std::size_t j = 0; j <= 2 * points; ++j) {
            gamma_[j] = std::exp((static_cast<double>(j) - static_cast<double>(points)) * step);
            below_[j] = -std::expm1(-static_cast<double>(j) * step);
        }
    }

    double loss(std::size_t k) const { return static_cast<double>(k) * step_; }
    double operator[](std::size_t k) const { return y_[k]; }

    // The curve is also known to lie below this one.
    void restrict_to(const std::vector<double>& other) {
        for (std::size_t k = 0; k <= points_; ++k) y_[k] = std::min(y_[k], other[k]);
    }

    // A round without the record, whose map's image has the diameter `reach` in deviations of its noise.
    void contract(double reach) {
        for (std::size_t k = 0; k <= points_; ++k) {
            const double log_e = std::log(y_[k]);
            if (log_e < -690.0) continue;
            const auto log_eta = [reach](double eps) { return log_theta(eps, reach); };
            const double contracted = std::exp(log_contracted(gap_[k], log_e, log_eta)) * (1.0 + 0x1p-50);
            y_[k] = std::max(contracted, 1e-300);  // less is not told from it
        }
    }

    // What follow() needs of a second mechanism: its curve at the losses (k - points) step, k = 0..3 points.
    template <class Curve> std::vector<double> table(const Curve& curve) const {
        std::vector<double> values(3 * points_ + 1);
        for (std::size_t k = 0; k < values.size(); ++k)
            values[k] = curve((static_cast<double>(k) - static_cast<double>(points_)) * step_);
        return values;
    }

    // Another mechanism runs after it.
    void follow(const std::vector<double>& table) {
        const std::vector<double> mass = masses();
        const double never = y_[points_];
        for (std::size_t k = 0; k <= points_; ++k) {
            double sum = never;
            const double* at = table.data() + k + 2 * points_;  // the loss k - j + points, in steps
            for (std::size_t j = 0; j <= 2 * points_; ++j) sum += mass[j] * at[-static_cast<std::ptrdiff_t>(j)];
            y_[k] = std::min(1.0, sum * (1.0 + 1e-11));
        }
    }

  private:
    double step_;
    std::size_t points_;
    std::vector<double> y_, gap_, gamma_;
    std::vector<double> below_;  // 1 - gamma_i/gamma_{i+j}

    struct Corner {
        double gamma, y;
        std::size_t j;
    };

    // Right to 2^-43 for losses up to 600, however small they are.
    double width(const Corner& a, const Corner& b) const {
        return a.gamma == 0.0 ? b.gamma : b.gamma * below_[b.j - a.j];
    }

    // The bound at the loss (j - points) step.
    Corner corner(std::size_t j) const {
        if (j >= points_) return {gamma_[j], y_[j - points_], j};
        return {gamma_[j], (below_[points_ - j] + gamma_[j] * y_[points_ - j]) * (1.0 + 0x1p-50), j};
    }

    // Convex from below but for rounding; any corners left out are harmless.
    std::vector<Corner> hull() const {
        std::vector<Corner> kept{{0.0, 1.0, 0}};
        for (std::size_t j = 0; j <= 2 * points_; ++j) {
            const Corner next = corner(j);
            const auto above = [&](const Corner& a, const Corner& b) {
                return (b.y - a.y) * width(b, next) >= (next.y - b.y) * width(a, b);
            };
            while (kept.size() > 1 && above(kept[kept.size() - 2], kept.back())) kept.pop_back();
            kept.push_back(next);
        }
        return kept;
    }

    // q_j gamma_j of the hull at the losses (j - points) step.
    std::vector<double> masses() const {
        const std::vector<Corner> corners = hull();
        std::vector<double> mass(2 * points_ + 1, 0.0);
        double slope = 0.0, lost = 0.0;  // after the corner, and what it may be wrong by
        for (std::size_t i = corners.size(); i-- > 1;) {
            const double before = (corners[i].y - corners[i - 1].y) / width(corners[i - 1], corners[i]);
            const double error = 0x1p-42 * std::fabs(before);
            mass[corners[i].j] = std::max(0.0, slope - before + error + lost) * corners[i].gamma;
            slope = before;
            lost = error;
        }
        return mass;
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

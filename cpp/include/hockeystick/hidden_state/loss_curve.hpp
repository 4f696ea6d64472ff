// The whole privacy curve of a hidden state, and what a round makes of it.
//
// A LossCurve bounds gamma -> E_gamma of the state's two laws from above, in both directions, at
// the losses log gamma = k step, k = 0..points. docs/core/hidden_state.md has the proofs of what
// follows.
//
// Between the points. E_gamma is convex in gamma, 1 at gamma = 0, and does not increase; for gamma
// < 1, E_gamma(P||Q) = 1 - gamma + gamma E_{1/gamma}(Q||P). So the curve lies below the lower
// convex hull of all these points, which is y_inf + sum_j q_j (gamma_j - gamma)_+ with q_j >= 0 its
// changes of slope: a discrete law of the loss, with mass y_inf at infinity.
//
// A round without the record (`contract`) sends every point through F
// (hidden_state/nonlinear_contraction.hpp).
//
// A round with the record divides its noise into two independent parts. The first contracts, with F
// again; the second is a Gaussian mechanism, or a sampled one, that runs after the first
// (`compose`):
//
//   E_gamma <= y_inf + sum_j q_j gamma_j E_{gamma/gamma_j}(second mechanism).
//
// Rounding. All sums are of positive terms. Widths on the gamma axis come from differences of
// losses, since doubles do not tell apart the gammas of small losses. Each change of slope is
// raised by what its difference may have lost. A factor 1 + 1e-11 a round pays for sums, tables and
// the ulps of losses.
//
// Cost: O(n^2) for a round with the record, O(n) for one without.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/hidden_state/nonlinear_contraction.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

// E_{e^eps}, rounded up, of a mechanism that uses the record with probability `rate` and is then a
// Gaussian one of parameter r: rate theta(log(1 + (e^eps - 1)/rate), r) for eps >= 0 (advanced
// joint convexity: Balle, Barthe and Gaboardi 2018, Theorem 2), and its reflection for eps < 0.
inline double sampled_theta(double eps, double r, double rate) {
    const double size = std::fabs(eps);
    const double eps_when_used = conditional_eps(log_gamma_minus_one(size), std::log(rate));
    const double positive = std::exp(upper_log(log_theta(eps_when_used, r))) * rate;
    const double value = eps >= 0.0 ? positive : -std::expm1(eps) + std::exp(eps) * positive;
    return std::min(1.0, value * (1.0 + 1e-13) + smallest_positive);
}

// Where eps lies among the losses k step, k = 0..points: at the point `index`, or, where it is far
// below the first step, between 0 and that, `next` of the way on the gamma axis. The points reach
// to `end` at least: a grid that ended where the curve is not yet small would charge its mass there
// as infinite losses.
struct EpsPlace {
    double step = 0.0, next = 0.0;
    std::size_t points = 0, index = 0;

    EpsPlace() = default;
    EpsPlace(double eps, double end, std::size_t size) : step(end / static_cast<double>(size)), points(size) {
        if (eps <= 0.5 * step) {
            next = std::expm1(eps) / std::expm1(step) * down;
            return;
        }
        index = static_cast<std::size_t>(std::ceil(eps / step));
        step = eps / static_cast<double>(index);
        points = std::max(index + 1, static_cast<std::size_t>(std::ceil(end / step)));
    }

    // The bound at eps, from bounds at the points that do not rise: E_gamma is convex in gamma.
    template <class At> double bound(const At& at) const {
        return next == 0.0 ? at(index) : ((1.0 - next) * at(0) + next * at(1)) * up;
    }
};

class LossCurve {
  public:
    // The losses k step, k = 0..points; the bounds are 1.
    LossCurve(double step, std::size_t points)
        : step_(step), points_(points), y_(points + 1, 1.0), log_gamma_minus_1_(points + 1), gamma_(2 * points + 1),
          one_minus_ratio_(2 * points + 1) {
        for (std::size_t k = 0; k <= points; ++k) log_gamma_minus_1_[k] = log_gamma_minus_one(loss(k));
        for (std::size_t j = 0; j <= 2 * points; ++j) {
            gamma_[j] = std::exp((static_cast<double>(j) - static_cast<double>(points)) * step);
            one_minus_ratio_[j] = -std::expm1(-static_cast<double>(j) * step);
        }
    }

    double loss(std::size_t k) const { return static_cast<double>(k) * step_; }
    double operator[](std::size_t k) const { return y_[k]; }
    std::size_t points() const { return points_; }

    // The least of the bounds up to point k: E_gamma does not rise.
    double least(std::size_t k) const {
        return *std::min_element(y_.begin(), y_.begin() + static_cast<std::ptrdiff_t>(k) + 1);
    }
    double bound(const EpsPlace& eps) const {
        return eps.bound([this](std::size_t k) { return least(k); });
    }

    // The curve is also known to lie below this one.
    void restrict_to(const std::vector<double>& other) {
        for (std::size_t k = 0; k <= points_; ++k) y_[k] = std::min(y_[k], other[k]);
    }

    const std::vector<double>& values() const { return y_; }

    // The least epsilon at which a chord is at most delta; infinity where the curve ends above it.
    // E_gamma is convex in gamma and does not rise.
    double epsilon(double delta) const {
        std::size_t k = 0;
        while (k <= points_ && !(y_[k] <= delta)) ++k;
        if (k > points_) return infinity;
        if (k == 0) return 0.0;
        // the share of the chord, from its low end, on which it is below delta
        const double share = (delta - y_[k]) / (y_[k - 1] - y_[k]) * down;
        return std::min(loss(k), loss(k) * (1.0 + 1e-14) + std::log1p(share * std::expm1(-step_)) * down);
    }

    // A higher curve: bounds and losses grow by a factor.
    void enlarge(double factor) {
        const std::vector<double> old = y_;
        for (std::size_t k = 0; k <= points_; ++k) {
            const double place = static_cast<double>(k) / factor;
            const auto i = static_cast<std::size_t>(place);
            const double share = place - static_cast<double>(i);
            y_[k] =
                std::min(1.0, factor * std::pow(old[i], 1.0 - share) * std::pow(old[std::min(i + 1, points_)], share));
        }
    }
    // Whether no bound is above the other curve's times a factor.
    bool within(const LossCurve& other, double factor = 1.0) const {
        for (std::size_t k = 0; k <= points_; ++k)
            if (y_[k] > factor * other.y_[k]) return false;
        return true;
    }

    // A round of the bound joint, whose map's image has this diameter in deviations of its noise.
    template <class Round> void apply(const Round& round, double image_diameter) { round.advance(y_, image_diameter); }

    // The mean of this curve, with weight `share`, and another.
    void mix_with(const LossCurve& other, double share) {
        for (std::size_t k = 0; k <= points_; ++k)
            y_[k] = std::min(1.0, (share * y_[k] + (1.0 - share) * other.y_[k]) * up);
    }

    // A round without the record, whose map's image has this diameter in deviations of its noise.
    void contract(double image_diameter) {
        const auto log_eta = [image_diameter](double eps) { return log_theta(eps, image_diameter); };
        for (std::size_t k = 0; k <= points_; ++k) {
            const double log_e = std::log(y_[k]);
            if (log_e < -690.0) continue;
            const double contracted = std::exp(log_contracted(log_gamma_minus_1_[k], log_e, log_eta)) * up;
            y_[k] = std::max(contracted, 1e-300);  // keeps the logarithm finite
        }
    }

    // What compose() needs of a second mechanism: its curve at the losses (k - points) step, k =
    // 0..3 points.
    template <class Curve> std::vector<double> table(const Curve& curve) const {
        std::vector<double> values(3 * points_ + 1);
        for (std::size_t k = 0; k < values.size(); ++k)
            values[k] = curve((static_cast<double>(k) - static_cast<double>(points_)) * step_);
        return values;
    }

    // A second mechanism, given by its table, runs after what the curve describes.
    void compose(const std::vector<double>& table) {
        const std::vector<double> mass = masses();
        const double mass_at_infinity = y_[points_];
        for (std::size_t k = 0; k <= points_; ++k) {
            double sum = mass_at_infinity;
            const double* curve = table.data() + k + 2 * points_;  // loss k - j + points, in steps
            for (std::size_t j = 0; j <= 2 * points_; ++j) sum += mass[j] * curve[-static_cast<std::ptrdiff_t>(j)];
            y_[k] = std::min(1.0, sum * (1.0 + 1e-11));
        }
    }

  private:
    double step_;
    std::size_t points_;
    std::vector<double> y_, log_gamma_minus_1_, gamma_;
    std::vector<double> one_minus_ratio_;  // 1 - gamma_i/gamma_{i+j}

    struct Corner {
        double gamma, y;
        std::size_t j;
    };

    // Right to 2^-43 for losses up to 600, however small they are.
    double width(const Corner& a, const Corner& b) const {
        return a.gamma == 0.0 ? b.gamma : b.gamma * one_minus_ratio_[b.j - a.j];
    }

    // The bound at the loss (j - points) step.
    Corner corner(std::size_t j) const {
        if (j >= points_) return {gamma_[j], y_[j - points_], j};
        return {gamma_[j], (one_minus_ratio_[points_ - j] + gamma_[j] * y_[points_ - j]) * up, j};
    }

    // The lower convex hull, but for rounding. Leaving a corner out is harmless: the chord lies
    // above.
    std::vector<Corner> hull() const {
        std::vector<Corner> kept{{0.0, 1.0, 0}};
        for (std::size_t j = 0; j <= 2 * points_; ++j) {
            const Corner next = corner(j);
            const auto above_chord = [&](const Corner& a, const Corner& b) {
                return (b.y - a.y) * width(b, next) >= (next.y - b.y) * width(a, b);
            };
            while (kept.size() > 1 && above_chord(kept[kept.size() - 2], kept.back())) kept.pop_back();
            kept.push_back(next);
        }
        return kept;
    }

    // q_j gamma_j of the hull at the losses (j - points) step.
    //
    // Where y is near 1, at losses l far below 0, a difference of ordinates loses more than
    // hull_slope_error counts, and a mass may be short by about 2^-53/step. compose() then misses
    // this much of the second mechanism's E_{e^{eps - l}} <= E_{e^eps}, which is no more than the
    // result: 1025 such terms are about 2e-12 of it, a fifth of what compose() adds.
    std::vector<double> masses() const {
        const std::vector<Corner> corners = hull();
        std::vector<double> mass(2 * points_ + 1, 0.0);
        double slope = 0.0, slope_error = 0.0;  // to the right of the corner
        for (std::size_t i = corners.size(); i-- > 1;) {
            const double left_slope = (corners[i].y - corners[i - 1].y) / width(corners[i - 1], corners[i]);
            const double left_error = hull_slope_error * std::fabs(left_slope);
            mass[corners[i].j] = std::max(0.0, slope - left_slope + left_error + slope_error) * corners[i].gamma;
            slope = left_slope;
            slope_error = left_error;
        }
        return mass;
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

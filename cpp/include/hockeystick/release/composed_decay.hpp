// How fast the transform of a sampled composition falls: by a path off the real line on which
// e^{i omega log(1 + z)} falls (docs/core/composed.md has the proof).
//
// With w = q e^l/(1 + z) and eta >= 0 linear in each cell, the integrand f (1 + z)^p grows on
// l + i eta(l) by at most e^{eta^2/2 r^2}, times |1 - w + w e^{i eta}|^p where p < 0; and
// e^{i omega log(1 + z)} falls by e^{-omega arg(1 - w + w e^{i eta})}. A larger omega falls more.
#pragma once

#include <vector>

#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// The integrand f (1 + z)^power at Im s = 0, at points a step apart.
struct IntegrandOnGrid {
    std::vector<double> weight;             // w
    std::vector<double> log_low, log_high;  // bounds of its logarithm
    double step, power, shift;
    double log_curvature;  // the second derivative of log f is at most this, and at least -1/shift^2
};

class ComposedDecay {
  public:
    // M(c) is at most e^log_moment. What lies between the ends of the grid and those of the range
    // of l, on either side, is at most e^log_outside. An empty grid tells nothing.
    ComposedDecay(IntegrandOnGrid grid, double log_moment, double log_outside)
        : grid_(std::move(grid)), log_moment_(log_moment), outside_(std::exp(min(log_outside - log_moment, 0.0))) {
        const double negative = max(-grid_.power, 0.0), square = grid_.step * grid_.step / 8.0;
        const double falls = 1.0 / (grid_.shift * grid_.shift);
        for (std::size_t j = 0; j + 1 < grid_.weight.size(); ++j) {
            const double spread = largest_spread(j);
            const double bent = square * (falls + negative * spread);
            const double raised = square * max(grid_.log_curvature + max(grid_.power, 0.0) * spread, 0.0);
            const double one = std::exp(grid_.log_high[j] - log_moment),
                         other = std::exp(grid_.log_high[j + 1] - log_moment);
            most_.push_back(0.5 * grid_.step * (one + other) * std::exp(bent) * up);
            least_.push_back(grid_.step *
                             std::exp(0.5 * (grid_.log_low[j] + grid_.log_low[j + 1]) - log_moment - raised) * down);
        }
    }

    // An upper bound of log |M(c + i omega')| - log_moment for all omega' >= omega, never positive.
    double log_bound(double omega) const {
        const std::size_t n = grid_.weight.size();
        if (n < 2) return 0.0;
        double by_all = outside_, by_rest = 1.0 + 2.0 * outside_, low = height(0, omega);
        const double first = low;
        for (std::size_t j = 0; j + 1 < n; ++j) {
            const double high = height(j + 1, omega);
            const double factor = std::exp(min(growth(j, low, high, omega), 700.0)) * (1.0 + 1e-12);
            by_all += most_[j] * factor;
            by_rest += factor < 1.0 ? -least_[j] * (1.0 - factor) : most_[j] * (factor - 1.0);
            low = high;
        }
        const double ends = end(0, first) + end(n - 1, low);
        const double bound = min(by_all, by_rest) + ends + 1e-13;
        return min(std::log(bound) + 1e-12, 0.0);
    }

  private:
    static constexpr double highest = 2.5;  // below pi, where 1 + z may vanish

    double height(std::size_t j, double omega) const {
        const double w = grid_.weight[j], r = grid_.shift;
        const double bend =
            (1.0 + r * r * (1.0 - w) * (1.0 - w)) / (r * r) + 2.0 * max(-grid_.power, 0.0) * w * (1.0 - w);
        return min(omega * w / bend, highest);
    }
    // The largest w (1 - w) in a cell; w rises.
    double largest_spread(std::size_t j) const {
        const double a = grid_.weight[j], b = grid_.weight[j + 1];
        return a < 0.5 && b > 0.5 ? 0.25 : max(a * (1.0 - a), b * (1.0 - b)) * up;
    }
    // Of the logarithm of f (1 + z)^p e^{i omega log(1 + z)} in a cell, whose path goes from height
    // `one` to `other`.
    double growth(std::size_t j, double one, double other, double omega) const {
        const double least = min(one, other), most = max(one, other), w = grid_.weight[j];
        // The angle of 1 - w + w e^{i eta} rises with w, and with eta up to some point, then falls.
        const auto angle_at = [w](double eta) { return std::atan2(w * std::sin(eta), 1.0 - w + w * std::cos(eta)); };
        const double angle = min(angle_at(least), angle_at(most)) * (1.0 - 1e-12);
        const double slope = (most - least) / grid_.step;
        return grown(largest_spread(j), most) - omega * angle + 0.5 * std::log1p(slope * slope);
    }
    double grown(double spread, double height) const {
        const double square = 1.0 - 2.0 * spread * (1.0 - std::cos(height));
        const double lost = grid_.power < 0.0 ? 0.5 * grid_.power * std::log(max(square, 1e-3)) : 0.0;
        return 0.5 * (height / grid_.shift) * (height / grid_.shift) + lost;
    }
    // The way up to the path at an end.
    double end(std::size_t j, double height) const {
        const double spread = j == 0 ? largest_spread(0) : largest_spread(j - 1);
        return height * std::exp(min(grid_.log_high[j] - log_moment_ + grown(spread, height), 700.0));
    }

    IntegrandOnGrid grid_;
    double log_moment_, outside_;
    std::vector<double> most_, least_;  // bounds of the cells' integrals over M(c)
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release

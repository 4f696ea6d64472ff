// A bound of gamma -> E_gamma of a hidden state that is linear in gamma between the points of a
// LossCurve (hidden_state/loss_curve.hpp).
//
// The curve is y_k at the losses k step, k = 0..points, for both directions. E_gamma is convex, so
// that its chords bound it. What this class holds is the excess over the curve of two equal laws,
//
//   excess(s) = E_s - (1 - s)_+,
//
// at the losses i step, i = -points..points: y_i for i >= 0 and, by reflection, s_i y_{-i} for
// i < 0. It is linear in s between them, constant beyond the last one and proportional to s below
// the first one. Two more functions follow from it without cancellation:
//
//   falling(s) = E_s = excess + (1 - s)_+,        rising(s) = E_s - 1 + s = excess + (s - 1)_+.
//
// The points are first lowered to their convex hull. The line through a point (s, y) and its
// reflection (1/s, 1 - 1/s + y/s) passes through (-1, 1), so that the hull of both sides is, for
// s >= 1, that of y and this one point more (docs/core/hidden_state.md, section 9). Then falling
// falls and rising rises.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// A number and what rounding may have moved it by.
struct Rounded {
    double value, error;
};

class ChordCurve {
  public:
    ChordCurve(std::vector<double> y, double step)
        : points_(y.size() - 1), end_(static_cast<double>(points_) * step), step_(step), expm1_step_(std::expm1(step)),
          excess_(2 * points_ + 1) {
        lower_to_hull(y);
        for (std::size_t k = 0; k <= points_; ++k) {
            excess_[points_ - k] = y[k] * (std::exp(-static_cast<double>(k) * step) * up);
            excess_[points_ + k] = y[k];
        }
    }

    std::size_t points() const { return points_; }
    double step() const { return step_; }

    // excess(s_i) at [points + i]. The same array has excess(s_i)/s_i at [points - i], since the
    // curve bounds both directions.
    const std::vector<double>& excess() const { return excess_; }

    Rounded falling(double loss) const { return with(loss, loss < 0.0 ? -std::expm1(loss) : 0.0); }
    Rounded rising(double loss) const { return with(loss, loss > 0.0 ? std::expm1(loss) : 0.0); }

  private:
    std::size_t points_;
    double end_, step_, expm1_step_;
    std::vector<double> excess_;

    static constexpr std::size_t outside = static_cast<std::size_t>(-1);  // the point (-1, 1)

    double width(std::size_t a, std::size_t b) const {
        const double at_b = std::exp(static_cast<double>(b) * step_);
        return a == outside ? at_b + 1.0 : -at_b * std::expm1(-static_cast<double>(b - a) * step_);
    }

    void lower_to_hull(std::vector<double>& y) const {
        const auto ordinate = [&y](std::size_t k) { return k == outside ? 1.0 : y[k]; };
        std::vector<std::size_t> corners{outside};
        for (std::size_t k = 0; k <= points_; ++k) {
            if (k > 0) y[k] = std::min(y[k], y[k - 1]);
            while (corners.size() > 1) {
                const std::size_t b = corners.back(), a = corners[corners.size() - 2];
                if ((ordinate(a) - y[b]) * width(b, k) > (y[b] - y[k]) * width(a, b)) break;
                corners.pop_back();
            }
            corners.push_back(k);
        }
        for (std::size_t i = 1; i < corners.size(); ++i) {
            const std::size_t a = corners[i - 1], b = corners[i];
            for (std::size_t k = a + 1; k < b; ++k)
                y[k] = std::min(y[k], (y[b] + (ordinate(a) - y[b]) * (width(k, b) / width(a, b))) * up);
        }
    }

    Rounded with(double loss, double rest) const {
        const Rounded at = interpolated(loss);
        return {at.value + rest, at.error + curve_error * rest};
    }

    // The loss is right to some ulps, which are up to 2^-44 of a step.
    Rounded interpolated(double loss) const {
        if (!(loss < end_)) return {excess_.back(), curve_error * excess_.back()};
        if (!(loss > -end_)) {
            const double value = excess_.front() * std::exp(loss + end_);
            return {value, curve_error * value};
        }
        const double place = std::floor(loss / step_) + static_cast<double>(points_);
        const std::size_t i = std::min(static_cast<std::size_t>(std::max(place, 0.0)), 2 * points_ - 1);
        const double offset = loss - (static_cast<double>(i) - static_cast<double>(points_)) * step_;
        const double share = std::min(1.0, std::max(0.0, std::expm1(offset) / expm1_step_));
        const double left = excess_[i], right = excess_[i + 1];
        return {left + (right - left) * share, curve_error * std::max(left, right)};
    }

    static constexpr double curve_error = 1e-12;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state

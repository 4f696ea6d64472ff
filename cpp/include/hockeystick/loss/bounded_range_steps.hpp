// The curve of T adaptive steps of bounded range (loss/bounded_range.hpp), each of which may have
// the interval of losses [t - range, t] that is worst after what the steps before it released.
//
// With H_0(g) = (1 - g)_+, g = e^eps, k steps have at most the divergence (docs/core/loss.md)
//
//   H_k(g) = sup over t in [0, range] of p H_{k-1}(g e^{-t}) + (1 - p) H_{k-1}(g e^{range - t}),
//   p = (1 - e^{t - range})/(1 - e^{-range}),
//
// and H(1/g) = (H(g) - 1 + g)/g. H is known at the nodes g = e^{i h}, h = range/cells, and bounded
// by its chords between them, because it is convex in g. In a cell of t both terms are on one chord
// each, a + b g below and c + d g above, so that the sum is a constant less A u + B/u, u = e^{-t},
// A = (d - b) g/(1 - e^{-range}), B = (a - c) e^{-range}/(1 - e^{-range}). Its supremum is at an
// end, or at u = sqrt(B/A), where it exceeds that at u_0 by (sqrt(A u_0) - sqrt(B/u_0))^2.
//
// Errors: every step raises H by a share that pays for its roundings. Beyond the last node H is at
// most its value there. Twelve cells lift epsilon by half a per cent, six by two.
// Cost: some 7 cells sqrt T nodes, and a few nanoseconds for each node, cell and step: 5 ms for a
// hundred steps, up to two seconds for two thousand of a wide range.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/divergence/hockey_stick.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

using namespace divergence;

class BoundedRangeSteps {
  public:
    static constexpr double most_steps = 2048.0;  // more would take too long

    // For up to `most` steps.
    BoundedRangeSteps(double range, double most)
        : range_(range), cells_(most <= 512.0 ? 12 : 6), h_(range / static_cast<double>(cells_)) {
        const double deviation = 0.5 * range * std::sqrt(most), typical = 0.5 * deviation * deviation;
        const double reach = min(most * range, typical + deviations * deviation) + 2.0 * range;
        values_.assign(static_cast<std::size_t>(std::ceil(reach / h_)) + 1, 0.0);
        for (std::size_t j = 0; j <= cells_; ++j) {
            const double t = h_ * static_cast<double>(j);
            high_.push_back(std::expm1(t - range) / std::expm1(-range));
            decays_.push_back(std::exp(-t));
        }
    }

    double count() const { return count_; }
    void advance_to(double count) {
        for (; count_ < count; ++count_) step();
    }

    // An upper bound of delta(eps), eps >= 0.
    double delta(double eps) const {
        const double at = std::floor(eps / h_), error = sixteen_roundings * (at + 2.0);
        if (at >= static_cast<double>(values_.size() - 1)) return values_.back();
        const auto i = static_cast<std::size_t>(at);
        const double share = std::expm1(eps - h_ * at) / std::expm1(h_), part = min(max(share - error, 0.0), 1.0);
        return min((values_[i] * (1.0 - part) + values_[i + 1] * part) * up, 1.0);
    }

    // An epsilon at which that is at most delta, close to the least; infinity beyond the last node.
    double epsilon(double delta) const {
        for (std::size_t i = 0; i < values_.size(); ++i)
            if (values_[i] <= delta) return i == 0 ? 0.0 : between(i - 1, delta);
        return infinity;
    }

  private:
    static constexpr double deviations = 13.5;    // of the total loss: a delta of 1e-40
    static constexpr double step_error = 1e-13;   // more than a step's few dozen roundings
    static constexpr double chord_error = 1e-11;  // of the place between two nodes
    static constexpr double slack = 1e-3;         // of differences of slopes, which cancel

    // The chord's epsilon between nodes i and i + 1, where delta lies between the values.
    double between(std::size_t i, double delta) const {
        const double share = (values_[i] - delta) / (values_[i] - values_[i + 1]);
        const double eps = h_ * static_cast<double>(i) + std::log1p(share * std::expm1(h_));
        return eps * (1.0 + step_error) + h_ * chord_error;
    }

    // H at all nodes from -cells on; g times the slope, and the intercept, of the chord from each.
    void prepare() {
        all_.resize(values_.size() + 2 * cells_ + 1), falls_.resize(all_.size() - 1);
        for (std::size_t k = 0; k < all_.size(); ++k) {
            const double x = (static_cast<double>(k) - static_cast<double>(cells_)) * h_;
            if (k >= cells_) all_[k] = values_[std::min(k - cells_, values_.size() - 1)];
            else all_[k] = -std::expm1(x) + std::exp(x) * values_[cells_ - k];
        }
        for (std::size_t k = 0; k + 1 < all_.size(); ++k) falls_[k] = (all_[k + 1] - all_[k]) / std::expm1(h_);
    }

    void step() {
        prepare();
        const double kept = std::exp(-range_), c = -std::expm1(-range_), inside = std::exp(-2.0 * h_) * (1.0 - slack);
        for (std::size_t i = 0; i < values_.size(); ++i) {
            double best = 0.0;
            for (std::size_t j = 0; j <= cells_; ++j) {
                const std::size_t below = i + cells_ - j, above = below + cells_;
                const double at_end = high_[j] * all_[below] + (1.0 - high_[j]) * all_[above];
                best = max(best, at_end);
                if (j == cells_) break;
                // A u_0 and B/u_0 at u_0 = e^{-jh}; the chords start one node lower, g e^{-jh-h}
                const double low = falls_[below - 1], high = falls_[above - 1];
                const double a = max(high * kept - low, 0.0) * growth_ / c;
                const double b = max((all_[below - 1] - low) - (all_[above - 1] - high), 0.0) * kept / (c * decays_[j]);
                if (b > a * (1.0 + slack) || b < a * inside) continue;
                best = max(best, at_end + max(a + b - 2.0 * std::sqrt(a * b), 0.0) * (1.0 + slack));
            }
            values_[i] = min(best * (1.0 + step_error), 1.0);
        }
    }

    double range_;
    std::size_t cells_;  // of an interval of losses
    double h_, count_ = 0.0, growth_ = std::exp(h_);
    std::vector<double> values_;         // H at the nodes from g = 1 on
    std::vector<double> high_, decays_;  // p and e^{-t} at t = j h
    std::vector<double> all_, falls_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss

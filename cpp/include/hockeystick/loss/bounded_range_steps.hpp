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
// end, or at u = sqrt(B/A), where it exceeds that at u_0 by (sqrt(x) - sqrt(y))^2, x = A u_0 and
// y = B/u_0. For y <= x that is at most (x - y)^2/(x + 3 y), in which nothing cancels.
//
// The curve of a block of steps is that of a pair, which composes with all other steps. Blocks of
// 256 lift epsilon by a quarter of a per cent above one recursion over all steps.
//
// Errors: every step raises H by a share that pays for its roundings. x and y are differences of
// slopes; what these err by moves the sum by (e^h - 1) times as much at most, which is added.
// Beyond the last node H is at most its value there. 24 cells lift epsilon by a twentieth of a per
// cent. Cost: some 7 cells sqrt T nodes, and about a nanosecond for each node, cell and step.
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
    static constexpr double max_steps = 256.0;  // more are blocks of these

    // For up to `most` steps.
    BoundedRangeSteps(double range, double most) : range_(range), h_(range / static_cast<double>(cells)) {
        const double deviation = 0.5 * range * std::sqrt(most), typical = 0.5 * deviation * deviation;
        const double reach = min(most * range, typical + deviations * deviation) + 2.0 * range;
        values_.assign(static_cast<std::size_t>(std::ceil(reach / h_)) + 1, 0.0);
        for (std::size_t j = 0; j <= cells; ++j) {
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
        const double at = std::floor(eps / h_ * down), error = sixteen_roundings * (at + 2.0);
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

    // Points on or above the curve, from eps = 0 to the largest loss, where delta is 0.
    struct Points {
        std::vector<double> epsilons, deltas;
    };
    Points points() const {
        const double highest = count_ * range_ * up;
        Points found;
        for (std::size_t i = 0; i < values_.size(); ++i) {
            const double eps = h_ * static_cast<double>(i), delta = min(values_[i] * (1.0 + node_error), 1.0);
            if (eps * up >= highest || delta < least_delta) break;
            found.epsilons.push_back(eps);
            found.deltas.push_back(i == 0 ? delta : min(delta, found.deltas.back()));
        }
        found.epsilons.push_back(highest), found.deltas.push_back(0.0);
        return found;
    }

  private:
    static constexpr std::size_t cells = 24;      // of an interval of losses
    static constexpr double deviations = 13.5;    // of the total loss: a delta of 1e-40
    static constexpr double least_delta = 1e-38;  // below, one chord reaches to the largest loss
    static constexpr double step_error = 1e-13;   // more than a step's few dozen roundings
    static constexpr double node_error = 1e-12;   // more than a node's rounding moves delta by
    static constexpr double chord_error = 1e-11;  // of the place between two nodes
    static constexpr double slack = 1e-3;         // of the cells that are looked at, and of their excess

    // The chord's epsilon between nodes i and i + 1, where delta lies between the values.
    double between(std::size_t i, double delta) const {
        const double share = (values_[i] - delta) / (values_[i] - values_[i + 1]);
        const double eps = h_ * static_cast<double>(i) + std::log1p(share * std::expm1(h_));
        return eps * (1.0 + step_error) + h_ * chord_error;
    }

    // H at all nodes from -cells on, and g times the slope of the chord from each.
    void prepare() {
        all_.resize(values_.size() + 2 * cells + 1), falls_.resize(all_.size() - 1);
        for (std::size_t k = 0; k < all_.size(); ++k) {
            const double x = (static_cast<double>(k) - static_cast<double>(cells)) * h_;
            if (k >= cells) all_[k] = values_[std::min(k - cells, values_.size() - 1)];
            else all_[k] = -std::expm1(x) + std::exp(x) * values_[cells - k];
        }
        const double width = std::expm1(h_);
        for (std::size_t k = 0; k + 1 < all_.size(); ++k) falls_[k] = (all_[k + 1] - all_[k]) / width;
        errors_.resize(falls_.size() - cells);
        const double error = sixteen_roundings * width * (std::exp(h_) + 1.0) / -std::expm1(-range_);
        for (std::size_t k = 0; k < errors_.size(); ++k)
            errors_[k] = error * (std::fabs(falls_[k]) + std::fabs(falls_[k + cells]) + 2.0 * all_[k]);
    }

    void step() {
        prepare();
        for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = all_[i + cells];  // t = range
        for (std::size_t j = 0; j < cells; ++j) raise_to_end(j);
        for (std::size_t k = 0; k < errors_.size(); ++k) raise_within_cell(k);
        for (double& value : values_) value = min(value * (1.0 + step_error), 1.0);
    }

    // Raises all values to those of t = j h, and by what the slopes err by.
    void raise_to_end(std::size_t j) {
        const double p = high_[j], rest = 1.0 - p;
        const double *below = &all_[cells - j], *above = below + cells, *error = &errors_[cells - j - 1];
        double* value = values_.data();
        for (std::size_t i = 0, n = values_.size(); i < n; ++i)
            value[i] = max(value[i], p * below[i] + rest * above[i] + error[i]);
    }

    // Raises values to the supremum within cells of t. The chords from nodes k and k + cells serve
    // one cell for each value, [j h, (j + 1) h] for i = k + j + 1 - cells. There y/x is e^{(j - 1) h}
    // times a ratio that does not depend on j. The supremum is within the cell if y/x lies in
    // [e^{-2h}, 1]: for two or three j.
    void raise_within_cell(std::size_t k) {
        const double low = falls_[k], high = falls_[k + cells], kept = decays_[cells];
        const double unit = high * kept - low, other = ((all_[k] - low) - (all_[k + cells] - high)) * kept;
        if (!(unit > 0.0 && other > 0.0)) return;
        const double last = std::log(unit / other) / h_ + 1.0, c = -std::expm1(-range_);
        if (!(last + slack >= 0.0)) return;
        const auto end = static_cast<std::size_t>(min(std::floor(last + slack), static_cast<double>(cells) - 1.0));
        for (std::size_t j = end + 1; j-- > 0 && static_cast<double>(j) >= last - 2.0 - slack;) {
            const std::size_t i = k + j + 1 - cells;
            if (k + j + 1 < cells || i >= values_.size()) continue;
            const double x = unit * growth_ / c, y = other / (c * decays_[j]);
            const double at_end = high_[j] * all_[k + 1] + (1.0 - high_[j]) * all_[k + 1 + cells] + errors_[k];
            const double excess = (x - y) * ((x - y) / (x + 3.0 * min(x, y))) * (1.0 + slack);
            values_[i] = max(values_[i], at_end + excess);
        }
    }

    double range_, h_, growth_ = std::exp(h_), count_ = 0.0;
    std::vector<double> values_;                // H at the nodes from g = 1 on
    std::vector<double> high_, decays_;         // p and e^{-t} at t = j h
    std::vector<double> all_, falls_, errors_;  // of one step
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss

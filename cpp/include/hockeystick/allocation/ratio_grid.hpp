// Where to put the atoms of a sum of two likelihood ratios (allocation/ratio_law.hpp): at equal
// steps of the normal quantile of (P + Q)/2, which grow beyond six deviations, out to masses near
// 1e-148.
//
// A step c spreads the variance by a share c^2/6, or merges away half of that, and moves log delta
// by about as much of itself. The quantiles are those of a sketch: any grid is sound.
#pragma once

#include <algorithm>

#include <hockeystick/allocation/ratio_law.hpp>
#include <hockeystick/numeric/gaussian_tail.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

inline constexpr double max_quantile = 26.0;  // in normal quantiles

// The next quantile, `depth` deviations from the middle.
inline double next_quantile(double z, double depth, double step) { return z + step * max(1.0, depth / 6.0); }

// Adds the masses under (P + Q)/2 of a share of one law plus the rest of another between the edges,
// roughly: the smaller summand is taken in some hundred groups. `ties` counts equal summands too.
inline void add_sketch(const RatioLaw& large, const RatioLaw& small, double share, bool ties,
                       const std::vector<double>& edges, std::vector<double>& masses) {
    const std::size_t step = small.values.size() / 100 + 1;
    std::vector<double> value, mass;
    for (std::size_t j = 0; j < small.values.size(); j += step) {
        double sum = 0.0, mean = 0.0;
        for (std::size_t k = j; k < std::min(j + step, small.values.size()); ++k)
            sum += small.masses[k], mean += small.masses[k] * small.values[k];
        value.push_back(sum > 0.0 ? mean / sum : 0.0);
        mass.push_back(sum);
    }
    for (std::size_t i = 0; i < large.values.size(); ++i) {
        std::size_t k = 0;
        for (std::size_t j = 0; j < value.size(); ++j) {
            if (ties ? value[j] > large.values[i] : value[j] >= large.values[i]) break;
            const double sum = share * large.values[i] + (1.0 - share) * value[j];
            while (sum >= edges[k]) ++k;
            masses[k] += (0.5 + 0.5 * sum) * large.masses[i] * mass[j];
        }
    }
}

// Edges whose spacing grows with the distance from 1: uniform in asinh(log(value)/scale). The last
// one is infinity.
inline std::vector<double> neutral_edges(const RatioLaw& law) {
    double variance = 0.0, lowest = infinity;
    for (std::size_t i = 0; i < law.values.size(); ++i) {
        if (!(law.values[i] > 0.0)) continue;
        const double log_value = std::log(law.values[i]);
        variance += law.masses[i] * log_value * log_value;
        lowest = min(lowest, log_value);
    }
    const double scale = std::sqrt(variance), low = std::asinh(lowest / scale);
    const double high = std::asinh(std::log(law.values.back()) / scale);
    std::vector<double> edges;
    constexpr int count = 2000;
    for (int k = 0; k <= count; ++k) edges.push_back(std::exp(scale * std::sinh(low + (high - low) * k / count)));
    edges.push_back(infinity);
    return edges;
}

// The grid for the sum of a share of one law and the rest of another, by the quantiles of its
// sketch.
inline std::vector<double> grid_points(const RatioLaw& one, const RatioLaw& other, double share, double step) {
    const std::vector<double> edges = neutral_edges(one);
    std::vector<double> masses(edges.size() + 1, 0.0);
    add_sketch(one, other, share, true, edges, masses);
    add_sketch(other, one, 1.0 - share, false, edges, masses);
    std::vector<double> above(edges.size() + 1, 0.0);
    for (std::size_t k = edges.size(); k-- > 0;) above[k] = above[k + 1] + masses[k + 1];
    std::vector<double> points;
    double below = 0.0, target = -max_quantile, last_z = -infinity, last_log = 0.0;
    for (std::size_t k = 0; k + 1 < edges.size() && target < max_quantile; ++k) {
        below += masses[k];
        const double z = below < above[k] ? -q_inv(min(below, 0.5)) : q_inv(min(above[k], 0.5));
        const double at = std::log(edges[k]);
        if (!(z > last_z) || !std::isfinite(z)) continue;
        if (last_z == -infinity) target = max(target, z);
        while (target <= z && target < max_quantile) {
            const double part = last_z > -infinity ? (target - last_z) / (z - last_z) : 1.0;
            const double point = std::exp(last_log + part * (at - last_log));
            if (points.empty() || point > points.back() * (1.0 + distinct_points)) points.push_back(point);
            target = next_quantile(target, std::fabs(target), step);
        }
        last_z = z, last_log = at;
    }
    return points;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation

// The inverses of theta(eps, r) = delta over arrays: vector steps (divergence/inverse_steps.hpp)
// until each lane has settled.
//
// A lane that has settled leaves, and those that remain close ranks, so that it takes as many
// steps as it needs, whatever its neighbours do: a result depends on its own arguments alone.
// Arrays are padded to whole registers by copies of the last lane, for the same reason.
//
// NaN is left where the arguments are out of the domain or near its ends, and where no step
// settles: the caller asks divergence/hockey_stick_inverse.hpp there. Cost: about three steps,
// each of some 100 sums and products, six divisions and a root.
#pragma once

#include <cstddef>
#include <cstdint>

#include <hockeystick/divergence/inverse_steps.hpp>
#include <hockeystick/simd/lanes.hpp>

namespace hockeystick::simd {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace divergence;

// 8 arrays of so many doubles stay in the first-level cache.
inline constexpr std::size_t root_lanes = 256;
inline constexpr int most_steps = 10;  // random arguments of all sizes took up to five

struct RootLanes {
    alignas(64) double root[root_lanes], next[root_lanes], open[root_lanes];
    alignas(64) double given[root_lanes], log_delta[root_lanes], log_rest[root_lanes];
    std::uint32_t place[root_lanes];
    std::size_t count;

    void copy(std::size_t from, std::size_t to) {
        root[to] = root[from];
        given[to] = given[from];
        log_delta[to] = log_delta[from];
        log_rest[to] = log_rest[from];
        place[to] = place[from];
    }

    std::size_t pad() {
        const std::size_t whole = (count + lanes - 1) / lanes * lanes;  // padded_to_lanes is one symbol for all sets
        for (std::size_t i = count; i < whole; ++i) copy(count - 1, i);
        return whole;
    }

    // Writes what every lane has reached; those that have not settled close ranks.
    void retire(double* out) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < count; ++i) {
            root[i] = next[i];
            out[place[i]] = next[i];
            if (kept < i) copy(i, kept);
            kept += open[i] != 0.0 ? 1 : 0;
        }
        count = kept;
    }
};

// The root in eps for a given r, 0 where it is negative.
struct EpsilonRoot {
    // Beyond, roundings may hide the root from a step.
    static bool inside(double r) { return r >= 1e-30 && r <= 1e10; }
    static double start(double r, double delta, const LogTargets& logs) { return epsilon_start(r, delta, logs); }
    static RootStep step(double eps, double r, const LogTargets& logs) { return epsilon_step(eps, r, logs); }
    static double moved(double eps, double step) { return eps + step < 0.0 ? 0.0 : eps + step; }  // NaN passes
    static bool at_end(double eps, double newton) { return (eps == 0.0) & (newton <= 0.0); }
};

// The root in r for a given eps >= 0.
struct DistanceRoot {
    static bool inside(double eps) { return eps >= 0.0 && eps <= 1e10; }
    static double start(double eps, double delta, const LogTargets& logs) { return distance_start(eps, delta, logs); }
    static RootStep step(double r, double eps, const LogTargets& logs) { return distance_step(eps, r, logs); }
    static double moved(double r, double step) { return moved_distance(r, step); }
    static bool at_end(double, double) { return false; }
};

// The lanes that are in the domain, with a start for each.
template <class Root> void start_roots(RootLanes& l, const double* given, const double* delta, std::size_t n) {
    l.count = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const bool inside = Root::inside(given[i]) & (delta[i] >= 1e-300) & (delta[i] < 1.0);
        l.given[l.count] = given[i];
        l.root[l.count] = delta[i];
        l.log_delta[l.count] = l.log_rest[l.count] = 0.0;
        l.place[l.count] = static_cast<std::uint32_t>(i);
        l.count += inside ? 1 : 0;
    }
    if (l.count == 0) return;
    const std::size_t whole = l.pad();
    for (std::size_t i = 0; i < whole; ++i) {
        const LogTargets logs = log_targets(l.root[i]);
        l.log_delta[i] = logs.log_delta;
        l.log_rest[i] = logs.log_rest;
        l.next[i] = Root::start(l.given[i], l.root[i], logs);
    }
    for (std::size_t i = 0; i < whole; ++i) l.root[i] = l.next[i];
}

template <class Root> void step_roots(RootLanes& l) {
    const std::size_t whole = l.pad();
    for (std::size_t i = 0; i < whole; ++i) {
        const double root = l.root[i];
        const RootStep s = Root::step(root, l.given[i], {l.log_delta[i], l.log_rest[i]});
        l.next[i] = Root::moved(root, s.step);
        l.open[i] = (s.settled() | Root::at_end(root, s.newton)) ? 0.0 : 1.0;
    }
}

// n <= root_lanes.
template <class Root> void solve_roots(const double* given, const double* delta, double* out, std::size_t n) {
    RootLanes l;
    start_roots<Root>(l, given, delta, n);
    for (std::size_t i = 0; i < n; ++i) out[i] = nan;
    for (int step = 0; step < most_steps && l.count > 0; ++step) {
        step_roots<Root>(l);
        l.retire(out);
    }
    for (std::size_t i = 0; i < l.count; ++i) out[l.place[i]] = nan;
}

// The smallest eps >= 0 with theta(eps, r) <= delta.
inline void gdp_epsilons(const double* r, const double* delta, double* out, std::size_t n) {
    for (std::size_t i = 0; i < n; i += root_lanes) {
        solve_roots<EpsilonRoot>(r + i, delta + i, out + i, n - i < root_lanes ? n - i : root_lanes);
    }
}

// theta_inverse for eps >= 0, where it is not tiny.
inline void theta_inverses(const double* eps, const double* delta, double* out, std::size_t n) {
    for (std::size_t i = 0; i < n; i += root_lanes) {
        solve_roots<DistanceRoot>(eps + i, delta + i, out + i, n - i < root_lanes ? n - i : root_lanes);
    }
    for (std::size_t i = 0; i < n; ++i) out[i] = out[i] >= 1e-100 ? out[i] : nan;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd

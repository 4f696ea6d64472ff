// The closed forms as loops over columns; part of batch_kernels.cpp, once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <hockeystick/divergence/gaussian_dp.hpp>
#include <hockeystick/federated/trusted_aggregator.hpp>
#include <hockeystick/federated/unbounded_drift.hpp>
#include <hockeystick/hidden_state/projected_sgd.hpp>
#include <hockeystick/simd/gaussian_inverses.hpp>
#include <hockeystick/simd/gaussian_quantiles.hpp>

#include "batch_kernels.hpp"

namespace hockeystick::batch {
namespace {

bool any_nan(const double* x, std::size_t n) {
    std::int64_t found = 0;
    for (std::size_t i = 0; i < n; ++i) found |= x[i] != x[i] ? 1 : 0;
    return found != 0;
}

// A loop over `Function`, which has no branches.
template <auto Function, class Indices> struct Rows;

template <class... Doubles, double (*Function)(Doubles...), std::size_t... K>
struct Rows<Function, std::index_sequence<K...>> {
    template <class... Pointers>
    HOCKEYSTICK_FLATTEN static void loop(double* __restrict out, std::size_t n, const Pointers* __restrict... x) {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#elif defined(__GNUC__)
#pragma GCC ivdep  // too many pairs of addresses to compare: the columns do not overlap the output
#endif
        for (std::size_t i = 0; i < n; ++i) out[i] = Function(x[i]...);
    }
    // n is a multiple of `lanes`.
    static bool run(const double* const* columns, double* out, std::size_t n) {
        loop(out, simd::whole_lanes(n), columns[K]...);
        return any_nan(out, simd::whole_lanes(n));
    }
    static bool run_any(const double* const* columns, double* out, std::size_t n) {
        loop(out, n, columns[K]...);
        return any_nan(out, n);
    }
};

template <class... Doubles> constexpr std::size_t arity(double (*)(Doubles...)) { return sizeof...(Doubles); }

template <auto Function> constexpr Block rows = Rows<Function, std::make_index_sequence<arity(Function)>>::run;
template <auto Function> constexpr Block any_rows = Rows<Function, std::make_index_sequence<arity(Function)>>::run_any;

template <auto Inside> bool all_inside(const double* eps, const double* r, std::size_t n) {
    std::int64_t special = 0;
    for (std::size_t i = 0; i < n; ++i) special |= Inside(eps[i], r[i]) ? 0 : 1;
    return special == 0;
}

// The selects for infinities, zeros and negative eps take a third of the time (Intel Xeon, AVX-512
// and AVX2) and are rarely needed: look first. Columns: eps, r.
template <auto General, auto Moderate, auto Inside>
bool look_first(const double* const* columns, double* out, std::size_t n) {
    if (!all_inside<Inside>(columns[0], columns[1], n)) return any_rows<General>(columns, out, n);
    Rows<Moderate, std::make_index_sequence<2>>::loop(out, n, columns[0], columns[1]);
    return false;
}

inline double moderate_gdp_delta(double mu, double eps) {
    return divergence::reported_delta(divergence::theta_moderate(eps, mu), mu, eps);
}

HOCKEYSTICK_APART void moderate_gdp_deltas(const double* const* columns, double* out, std::size_t n) {
    Rows<moderate_gdp_delta, std::make_index_sequence<2>>::loop(out, simd::whole_lanes(n), columns[0], columns[1]);
}

// As look_first, for gdp_delta; columns: mu, eps.
template <auto General> bool gdp_deltas(const double* const* columns, double* out, std::size_t n) {
    if (!all_inside<divergence::moderate>(columns[1], columns[0], n)) return rows<General>(columns, out, n);
    moderate_gdp_deltas(columns, out, n);
    return false;
}

HOCKEYSTICK_FLATTEN bool gdp_epsilons(const double* const* columns, double* out, std::size_t n) {
    simd::gdp_epsilons(columns[0], columns[1], out, n);
    return any_nan(out, n);
}

HOCKEYSTICK_FLATTEN bool quantiles(const double* p, double* out, std::size_t n) {
    simd::quantiles(p, out, n);
    return any_nan(out, n);
}

// Columns: mu, fpr.
bool gdp_trade_offs(const double* const* columns, double* out, std::size_t n) {
    double thresholds[block_rows];
    quantiles(columns[1], thresholds, n);
    const double* const all[] = {columns[0], thresholds};
    return rows<divergence::gdp_missed>(all, out, n);
}

constexpr ClosedForms closed_forms = {
    look_first<divergence::theta, divergence::theta_moderate, divergence::moderate>,
    look_first<divergence::log_theta, divergence::log_theta_moderate, divergence::log_moderate>,
    any_rows<divergence::laplace_theta>,
    rows<hidden_state::log_laplace_eta>,
    gdp_deltas<divergence::gdp_delta>,
    gdp_deltas<divergence::gdp_dp_delta>,
    gdp_epsilons,
    gdp_trade_offs,
    rows<divergence::gdp_rdp>,
    rows<divergence::gdp_advantage>,
    rows<federated::fedavg_root_cost>,
    rows<federated::fedprox_root_cost>,
    rows<federated::fedavg_scale>,
    rows<federated::fedprox_scale>,
    rows<federated::drift_parameter>,
    rows<hidden_state::use_distance>,
    rows<hidden_state::step_image_diameter>,
    rows<hidden_state::log_step_lipschitz>,
    rows<hidden_state::later_steps>,
    rows<hidden_state::gaussian_use>,
    rows<hidden_state::gaussian_descent>,
    rows<hidden_state::laplace_use>,
    rows<hidden_state::laplace_descent>,
    rows<hidden_state::gaussian_random_stop>,
    rows<hidden_state::renyi_root>,
    rows<hidden_state::renyi_slope>,
    rows<hidden_state::renyi_descent>,
    rows<federated::aggregator_use_distance>,
    rows<federated::aggregator_image_diameter<true>>,
    rows<federated::aggregator_image_diameter<false>>,
    rows<federated::constant_aggregator>,
    rows<federated::aggregator_stops>,
    rows<federated::certain_rounds>,
    rows<federated::aggregator_share>,
    rows<federated::constant_random_stop>,
};

}  // namespace
}  // namespace hockeystick::batch

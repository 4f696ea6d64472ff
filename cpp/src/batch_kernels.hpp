// Loops over the vectorised kernels, one set per instruction set.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>

#include <hockeystick/simd/kernel_table.hpp>

namespace hockeystick::batch {

// Inputs and output may not overlap. Returns whether the output may hold a NaN.
using Unary = bool (*)(const double* x, double* out, std::size_t n);
using Binary = bool (*)(const double* x, const double* y, double* out, std::size_t n);

// The same for any number of inputs, the columns of a table with n rows: n <= block_rows, a multiple of simd::lanes.
using Block = bool (*)(const double* const* columns, double* out, std::size_t n);
inline constexpr std::size_t block_rows = 1024;  // a few such columns stay in the first-level cache

// run_hidden_rounds of simd/hidden_rounds.hpp: the members of HiddenRoundLanes in their order, read
// and written.
using HiddenRounds = void (*)(const double* const* read, double* const* written, std::size_t lanes, double longest);

// What the simulator's compiled Python calls by address, of many signatures: loops of simd/record_losses.hpp,
// simd/model_vectors.hpp and simd/random_streams.hpp, in the order of these names.
using Address = void (*)();
inline constexpr const char* simulator_names[] = {
    "record_gradient", "record_value", "record_class", "add_batch", "to_normals",  "add_normals", "norm", "copy",
    "clear",           "scale",        "add",          "clip",      "add_clipped", "project",     "step", "residual",
    "keep_within",     "all_finite"};

inline namespace HOCKEYSTICK_ISA {

// Writes the addresses. A table of such casts would be filled where the library is loaded, by code of each instruction set that
// runs on every machine, and the linker would keep all that it names.
void simulator_loops(Address* out);

}  // namespace HOCKEYSTICK_ISA

// Closed forms under the names of their scalar functions, whose arguments are the columns
// (convex_image_diameter and nonconvex_image_diameter are aggregator_image_diameter<true> and <false>).
// gdp_epsilon, theta_inverse and gaussian_epsilon leave NaN to the scalar function where
// simd/gaussian_inverses.hpp does.
struct ClosedForms {
    Block theta, log_theta, laplace_theta, log_laplace_eta;
    Block gdp_delta, gdp_dp_delta, gdp_epsilon, gdp_trade_off, gdp_rdp, gdp_advantage;
    Block fedavg_root_cost, fedprox_root_cost, fedavg_scale, fedprox_scale, drift_parameter;
    Block use_distance, step_image_diameter, log_step_lipschitz;
    Block later_steps, gaussian_use, gaussian_descent, laplace_use, laplace_descent, gaussian_random_stop;
    Block renyi_root, renyi_slope, renyi_descent;
    Block aggregator_use_distance, convex_image_diameter, nonconvex_image_diameter, constant_aggregator,
        aggregator_stops, certain_rounds, aggregator_share, constant_random_stop;
};

struct Kernels {
    const char* isa;
    Unary q, log_q, q_inv;
    Binary theta, log_theta, laplace_theta;
    simd::Kernels contour;
};

// What grids and inverses need besides. The C library has neither, and names no such table: the linker leaves them out of it,
// with their loops.
struct GridKernels {
    Binary theta_inverse, gaussian_epsilon;
    ClosedForms closed;
    HiddenRounds hidden_rounds;
    void (*simulator)(Address* out);
};

extern const Kernels kernels_portable, kernels_v3, kernels_v4;
extern const GridKernels grid_kernels_portable, grid_kernels_v3, grid_kernels_v4;

// Those of the same instruction set.
const GridKernels& grid_kernels(const Kernels& set);

// The set of that name. Throws std::invalid_argument, whose message begins with `argument`, if the
// name is unknown or this machine cannot run the set.
const Kernels& named(const std::string& name, const char* argument);

// The best set that this machine runs, or the one that the environment variable HOCKEYSTICK_ISA
// names; throws as `named` does.
const Kernels& choose();

// The names of those that this build has and this machine runs, the best last.
std::string available();

}  // namespace hockeystick::batch

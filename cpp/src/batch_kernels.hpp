// Loops over the vectorised kernels, one set per instruction set.
#pragma once

#include <cstddef>
#include <string>

#include <hockeystick/simd/kernel_table.hpp>

namespace hockeystick::batch {

// Inputs and output may not overlap. Returns whether the output may hold a NaN.
using Unary = bool (*)(const double* x, double* out, std::size_t n);
using Binary = bool (*)(const double* x, const double* y, double* out, std::size_t n);

// run_hidden_rounds of simd/hidden_rounds.hpp: the members of HiddenRoundLanes in their order, read
// and written.
using HiddenRounds = void (*)(const double* const* read, double* const* written, std::size_t lanes, double longest);

struct Kernels {
    const char* isa;
    Unary q, log_q, q_inv;
    Binary theta, log_theta, laplace_theta;
    simd::Kernels contour;
    HiddenRounds hidden_rounds;
};

extern const Kernels kernels_portable, kernels_v2, kernels_v3, kernels_v4;

// The set of that name. Throws std::invalid_argument, with what is named by `argument`, if the name
// is unknown or this machine cannot run the set.
const Kernels& named(const std::string& name, const char* argument);

// The best set that this machine runs, or the one that the environment variable HOCKEYSTICK_ISA
// names.
const Kernels& choose();

}  // namespace hockeystick::batch

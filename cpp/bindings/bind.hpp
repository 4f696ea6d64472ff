// What module.cpp calls, one function a header of the core.
#pragma once

#include "batch_kernels.hpp"

#include "pybind.hpp"

void bind_capsules(py::module_& m, const hockeystick::batch::Kernels& kernels);
void bind_contour(py::module_& m, const hockeystick::simd::Kernels& kernels);
void bind_contraction(py::module_& m);
void bind_dpsgd(py::module_& m, const hockeystick::simd::Kernels& kernels);
void bind_fedavg(py::module_& m);
void bind_gaussian_dp(py::module_& m);
void bind_hidden_bounds(py::module_& m);
void bind_last_iterate(py::module_& m);
void bind_one_step(py::module_& m);
void bind_markov(py::module_& m);
void bind_published(py::module_& m);
void bind_pld(py::module_& m);
void bind_random_allocation(py::module_& m);
void bind_shifted_interpolation(py::module_& m);
void bind_trusted_aggregator(py::module_& m);

// What module.cpp calls: one function for each room of the core, two where one file would be too
// long.
#pragma once

#include "batch_kernels.hpp"

#include "pybind.hpp"

void bind_capsules(py::module_& m, const hockeystick::batch::Kernels& kernels);
void bind_chain(py::module_& m);
void bind_contour(py::module_& m, const hockeystick::simd::Kernels& kernels);
void bind_dpsgd(py::module_& m, const hockeystick::simd::Kernels& kernels);
void bind_accounting(py::module_& m, const hockeystick::simd::Kernels& kernels);
void bind_federated(py::module_& m, const hockeystick::batch::ClosedForms& closed);
void bind_gaussian_dp(py::module_& m, const hockeystick::batch::ClosedForms& closed);
void bind_hidden_state(py::module_& m, const hockeystick::batch::ClosedForms& closed);
void bind_pld(py::module_& m);
void bind_mechanism(py::module_& m);
void bind_release(py::module_& m);
void bind_round_sums(py::module_& m);

// What module.cpp calls: one function for each room of the core, two where one file would be too
// long.
#pragma once

#include "pybind.hpp"

void bind_capsules(door::Module& m);
void bind_chain(door::Module& m);
void bind_contour(door::Module& m);
void bind_dpsgd(door::Module& m);
void bind_accounting(door::Module& m);
void bind_federated(door::Module& m);
void bind_gaussian_dp(door::Module& m);
void bind_hidden_state(door::Module& m);
void bind_numeric(py::module_& m);
void bind_pld(door::Module& m);
void bind_mechanism(door::Module& m);
void bind_release(door::Module& m);
void bind_round_sums(door::Module& m);

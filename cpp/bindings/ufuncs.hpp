#pragma once

#include "pybind.hpp"

// Adds the kernels to the module as ufuncs that run the instruction set of the calling thread (active_kernels.hpp).
void register_ufuncs(door::Module& m);

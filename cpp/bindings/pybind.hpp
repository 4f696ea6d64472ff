// The only place that includes pybind11: every unit must see the same casters, or the
// one-definition rule is broken without a diagnostic.
#pragma once

#include <pybind11/complex.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace py = pybind11;

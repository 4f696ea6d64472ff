#include <hockeystick/allocation/random_allocation.hpp>

#include "bind.hpp"
#include "grid.hpp"

namespace {

namespace hs = hockeystick;

// Returns the parameters of "discrete_pairs": the dominating ones, or dominated ones.
std::vector<double> random_allocation_pairs(double shift, std::int64_t num_steps, bool upper) {
    std::vector<double> pairs;
    grid::run_in_worker([&](const std::atomic<bool>& stop) {
        pairs = hs::allocation::random_allocation_pairs(shift, num_steps, upper, &stop);
    });
    return pairs;
}

}  // namespace

void bind_random_allocation(py::module_& m) {
    m.def("random_allocation_pairs", random_allocation_pairs, py::arg("shift"), py::arg("num_steps"), py::arg("upper"));
}

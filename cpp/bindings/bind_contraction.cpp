#include <hockeystick/hidden_state/contraction_sum.hpp>

#include "bind.hpp"
#include "grid.hpp"

namespace {

namespace hs = hockeystick;

// Arrays of shape (..., T), T >= 1, broadcast; the result has the shape (...).
grid::Double contraction_sum(const std::vector<grid::Double>& arguments, std::size_t threads) {
    std::vector<py::ssize_t> shape = grid::shape_of(arguments.at(0));
    const auto rounds = static_cast<std::size_t>(shape.back());
    shape.pop_back();
    const auto per_round = [&](std::size_t k) {
        return arguments[k].strides(arguments[k].ndim() - 1) / py::ssize_t{sizeof(double)};
    };
    const py::ssize_t steps[] = {per_round(0), per_round(1), per_round(2)};
    grid::require_shape(arguments, grid::shape_of(arguments[0]));
    grid::Double result(shape);
    double* out = result.mutable_data();
    grid::for_each_cell(arguments, shape, threads, rounds < 1000000 ? 2 + grid::cheap / rounds : 1,
                        [&](const grid::Walk& walk, std::size_t cell, const std::atomic<bool>&) {
                            const auto row = [&](std::size_t k) {
                                return hs::hidden_state::Rounds{reinterpret_cast<const double*>(walk.pointer(k)),
                                                                steps[k]};
                            };
                            out[cell] = hs::hidden_state::contraction_sum(row(0), row(1), row(2), rounds);
                        });
    return result;
}

}  // namespace

void bind_contraction(py::module_& m) {
    m.def("contraction_sum", contraction_sum, py::arg("arguments"), py::arg("threads"));
    grid::define(m, "constant_contraction_sum", hs::hidden_state::constant_contraction_sum);
}

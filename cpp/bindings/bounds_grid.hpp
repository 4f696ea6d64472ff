// One call over a grid of cells that returns every bound of each cell: an array whose first axis is
// the bound, in the order of hidden_state/bounds.hpp.
#pragma once

#include <utility>
#include <vector>

#include <hockeystick/hidden_state/bounds.hpp>

#include "grid.hpp"

namespace grid {

class BoundsArray {
  public:
    BoundsArray(const std::vector<Double>& arguments, std::vector<py::ssize_t> cell_shape)
        : shape_(std::move(cell_shape)), result_(with_bounds(shape_)),
          cells_(static_cast<std::size_t>(result_.size()) / hockeystick::hidden_state::bound_count),
          data_(result_.mutable_data()) {
        require_shape(arguments, shape_);
    }

    const std::vector<py::ssize_t>& cell_shape() const { return shape_; }
    const Double& result() const { return result_; }

    void write(std::size_t cell, const hockeystick::hidden_state::Deltas& deltas) const {
        for (std::size_t k = 0; k < deltas.values.size(); ++k) data_[k * cells_ + cell] = deltas.values[k];
    }

  private:
    std::vector<py::ssize_t> shape_;
    Double result_;
    std::size_t cells_;
    double* data_;

    static std::vector<py::ssize_t> with_bounds(const std::vector<py::ssize_t>& shape) {
        std::vector<py::ssize_t> wide{static_cast<py::ssize_t>(hockeystick::hidden_state::bound_count)};
        wide.insert(wide.end(), shape.begin(), shape.end());
        return wide;
    }
};

constexpr std::size_t few = 16;  // cells per task where a cell takes up to a millisecond

// Evaluates function(walk) -> Deltas on every cell.
template <class Function>
Double map_bounds(const std::vector<Double>& arguments, const std::vector<py::ssize_t>& shape, std::size_t threads,
                  const Function& function, std::size_t cells_per_task = few) {
    const BoundsArray out(arguments, shape);
    for_each_cell(
        arguments, shape, threads, cells_per_task,
        [&](const Walk& walk, std::size_t cell, const std::atomic<bool>&) { out.write(cell, function(walk)); });
    return out.result();
}

}  // namespace grid

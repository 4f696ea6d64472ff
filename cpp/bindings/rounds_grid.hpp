// Arguments that have one value for each round of a cell: arrays of shape (..., T), or (..., 1) for
// constants, which are walked over `...`.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <hockeystick/hidden_state/contraction_sum.hpp>

#include "grid.hpp"

namespace grid {

class RoundArrays {
  public:
    // `first` is the place of the first of `arrays` among the arguments of a walk.
    RoundArrays(const std::vector<Double>& arrays, std::size_t count, std::size_t first) : first_(first) {
        require_size(arrays, "rounds", count);
        for (const Double& array : arrays) {
            const py::ssize_t axis = array.ndim() - 1;
            if (axis < 0)
                throw std::invalid_argument("arrays must have an axis of rounds. This is a bug in hockeystick.");
            const bool constant = array.shape(axis) == 1;
            strides_.push_back(constant ? 0 : array.strides(axis) / py::ssize_t{sizeof(double)});
            if (!constant) rounds_ = std::min(rounds_, static_cast<double>(array.shape(axis)));
        }
    }

    // Whether all arrays hold at least so many rounds, as constants do.
    bool hold(double rounds) const { return !(rounds > rounds_); }

    hockeystick::hidden_state::Rounds at(const Walk& walk, std::size_t k) const {
        return {reinterpret_cast<const double*>(walk.pointer(first_ + k)), strides_[k]};
    }

  private:
    std::size_t first_;
    double rounds_ = hockeystick::numeric::infinity;
    std::vector<py::ssize_t> strides_;
};

}  // namespace grid

// Values for the cells of a grid, read block by block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <hockeystick/simd/lanes.hpp>

#include "batch_kernels.hpp"
#include "grid.hpp"

namespace grid {

using Shape = std::vector<py::ssize_t>;

inline std::size_t cells_of(const Shape& shape) {
    std::size_t cells = 1;
    for (const py::ssize_t length : shape) cells *= static_cast<std::size_t>(length);
    return cells;
}

// Values for the cells of a shape; stride 0 along an axis on which they do not depend.
struct Column {
    const char* data;
    Shape strides;  // in bytes

    bool constant() const {
        return std::all_of(strides.begin(), strides.end(), [](py::ssize_t stride) { return stride == 0; });
    }
};

inline Column column_of(const Double& array, std::size_t axes) {
    Shape strides;
    for (std::size_t d = 0; d < axes; ++d) {
        const auto axis = static_cast<py::ssize_t>(d);
        strides.push_back(array.shape(axis) == 1 ? 0 : array.strides(axis));
    }
    return {reinterpret_cast<const char*>(array.data()), std::move(strides)};
}

// Reads columns block by block. Neighbouring axes that all columns walk as one are one axis.
class BlockReader {
  public:
    static constexpr std::size_t rows = hockeystick::batch::block_rows;

    BlockReader(const Shape& shape, const std::vector<Column>& columns, std::size_t begin, std::size_t longest)
        : buffers_(columns.size() * rows), at_(columns.size()), strides_(columns.size()) {
        for (std::size_t d = 0; d < shape.size(); ++d) {
            if (shape[d] != 1) add_axis(shape[d], d, columns);
        }
        if (shape_.empty()) add_axis(1, columns.empty() ? 0 : columns[0].strides.size(), columns);
        for (std::size_t k = 0; k < columns.size(); ++k) {
            at_[k] = columns[k].data;
            constant_.push_back(columns[k].constant());
            if (constant_[k]) std::fill_n(buffer(k), std::min(rows, padded(longest)), value(at_[k]));
        }
        index_.assign(shape_.size(), 0);
        seek(shape_, begin, strides_, index_, at_);
    }

    // A multiple of the lanes of every instruction set: what is left over would be computed by other
    // instructions, with other last bits.
    static std::size_t padded(std::size_t count) { return hockeystick::simd::padded_to_lanes(count); }

    // Columns of the next `count` rows, padded by copies of the last row.
    void read(std::size_t count, const double** columns) {
        const bool one_run = left_in_run() >= count, whole = padded(count) == count;
        for (std::size_t k = 0; k < at_.size(); ++k) {
            const bool in_place =
                one_run && whole && strides_[k].back() == py::ssize_t{sizeof(double)} && aligned(at_[k]);
            columns[k] = in_place ? reinterpret_cast<const double*>(at_[k]) : buffer(k);
            if (one_run && !in_place && !constant_[k]) copy(k, 0, count);
        }
        if (one_run) advance(count);
        for (std::size_t done = one_run ? count : 0; done < count;) {
            const std::size_t run = std::min(left_in_run(), count - done);
            for (std::size_t k = 0; k < at_.size(); ++k) {
                if (!constant_[k]) copy(k, done, run);
            }
            advance(run);
            done += run;
        }
        for (std::size_t k = 0; k < at_.size() && !whole; ++k) {
            if (!constant_[k]) std::fill(buffer(k) + count, buffer(k) + padded(count), buffer(k)[count - 1]);
        }
    }

  private:
    Shape shape_;
    std::vector<double> buffers_;
    std::vector<const char*> at_;
    std::vector<Shape> strides_;  // of each column
    std::vector<bool> constant_;
    Shape index_;

    double* buffer(std::size_t k) { return buffers_.data() + k * rows; }
    static bool aligned(const char* at) { return reinterpret_cast<std::uintptr_t>(at) % alignof(double) == 0; }
    static double value(const char* at) {
        double x;
        std::memcpy(&x, at, sizeof x);
        return x;
    }

    void add_axis(py::ssize_t length, std::size_t d, const std::vector<Column>& columns) {
        const auto stride = [&](std::size_t k) { return d < columns[k].strides.size() ? columns[k].strides[d] : 0; };
        bool joins = !shape_.empty();
        for (std::size_t k = 0; k < columns.size() && joins; ++k) joins = strides_[k].back() == stride(k) * length;
        if (joins) shape_.back() *= length;
        else shape_.push_back(length);
        for (std::size_t k = 0; k < columns.size(); ++k) {
            if (joins) strides_[k].back() = stride(k);
            else strides_[k].push_back(stride(k));
        }
    }

    std::size_t left_in_run() const { return static_cast<std::size_t>(shape_.back() - index_.back()); }

    void copy(std::size_t k, std::size_t to, std::size_t count) {
        const py::ssize_t stride = strides_[k].back();
        double* out = buffer(k) + to;
        if (stride == py::ssize_t{sizeof(double)}) std::memcpy(out, at_[k], count * sizeof(double));
        else if (stride == 0) std::fill_n(out, count, value(at_[k]));
        else
            for (std::size_t i = 0; i < count; ++i) out[i] = value(at_[k] + static_cast<py::ssize_t>(i) * stride);
    }

    // By at most the rest of the run.
    void advance(std::size_t count) {
        auto steps = static_cast<py::ssize_t>(count);
        for (std::size_t d = shape_.size(); d-- > 0;) {
            index_[d] += steps;
            const bool carry = index_[d] == shape_[d];
            for (std::size_t k = 0; k < at_.size(); ++k) {
                at_[k] += (carry ? steps - shape_[d] : steps) * strides_[k][d];
            }
            if (!carry) return;
            index_[d] = 0;
            steps = 1;
        }
    }
};

}  // namespace grid

// One call over a grid of cells in blocks: closed forms that the kernels compute many rows at a
// time, with factors that depend on fewer axes computed once.
//
// A formula is a list of stages. Each stage is a block kernel whose columns are arguments of the
// formula or earlier stages; the last stage is the result. A stage that varies over at most half of
// the cells is computed beforehand over its own axes, like an argument; the others go through the
// cache, a block at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "active_kernels.hpp"
#include "batch_kernels.hpp"
#include "columns.hpp"
#include "grid.hpp"

namespace grid {

using hockeystick::batch::ClosedForms;

// `kernel` is a member of the table that the call uses (active_kernels.hpp). `scalar`, if any, is
// asked for every row that the kernel leaves as NaN, or without a kernel for every row; its argument
// is the row.
struct Stage {
    hockeystick::batch::Block ClosedForms::* kernel;
    std::vector<std::size_t> columns;  // arguments from 0 on, then the earlier stages
    std::function<double(const double*)> scalar = {};
};

// A function of doubles that takes them from a row.
template <class... Doubles, std::size_t... K>
std::function<double(const double*)> of_row(double (*function)(Doubles...), std::index_sequence<K...>) {
    return [function](const double* row) { return function(row[K]...); };
}
template <class... Doubles> std::function<double(const double*)> of_row(double (*function)(Doubles...)) {
    return of_row(function, std::index_sequence_for<Doubles...>{});
}

// The rows of one block through one stage; `out` has room for padded ones.
inline void run_stage(const Stage& stage, const ClosedForms& kernels, const double* const* all, double* out,
                      std::size_t count) {
    constexpr std::size_t most_columns = 16;
    const double* columns[most_columns] = {};
    for (std::size_t k = 0; k < stage.columns.size(); ++k) columns[k] = all[stage.columns[k]];
    const std::size_t padded = BlockReader::padded(count);
    const bool nan_found = stage.kernel ? (kernels.*stage.kernel)(columns, out, padded) : true;
    if (!nan_found || !stage.scalar) return;
    for (std::size_t i = 0; i < count; ++i) {
        if (stage.kernel && out[i] == out[i]) continue;
        double row[most_columns] = {};
        for (std::size_t k = 0; k < stage.columns.size(); ++k) row[k] = columns[k][i];
        out[i] = stage.scalar(row);
    }
    std::fill(out + count, out + padded, out[count - 1]);
}

// Stages that go through the cache together: what they read, and the place of their results among
// all columns, of which the last is written to `out`.
class Pass {
  public:
    Pass(const std::vector<Column>& columns, const ClosedForms& kernels)
        : columns_(columns), kernels_(kernels), place_(columns.size(), nowhere) {}

    void add(const Stage& stage, std::size_t target) {
        for (const std::size_t k : stage.columns) {
            if (columns_[k].data && place_[k] == nowhere) {
                place_[k] = read_.size();
                read_.push_back(columns_[k]);
            }
        }
        stages_.push_back(&stage);
        targets_.push_back(target);
    }

    void run_over(const Shape& shape, double* out, std::size_t threads) const {
        const std::size_t cells = cells_of(shape);
        const std::size_t tasks = (cells + cells_per_task - 1) / cells_per_task;
        const auto task = [&](std::size_t index, const std::atomic<bool>& stop) {
            run_task(shape, index * cells_per_task, std::min(cells, (index + 1) * cells_per_task), out, stop);
        };
        if (tasks > 1) return run(tasks, threads, task);
        const py::gil_scoped_release released;  // not worth a thread
        if (tasks == 1) task(0, std::atomic<bool>{false});
    }

  private:
    static constexpr std::size_t rows = BlockReader::rows;
    static constexpr std::size_t cells_per_task = 16 * rows;
    static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

    const std::vector<Column>& columns_;
    const ClosedForms& kernels_;
    std::vector<std::size_t> place_;  // of each column in read_
    std::vector<Column> read_;
    std::vector<const Stage*> stages_;
    std::vector<std::size_t> targets_;

    void run_task(const Shape& shape, std::size_t begin, std::size_t end, double* out,
                  const std::atomic<bool>& stop) const {
        BlockReader reader(shape, read_, begin, end - begin);
        std::vector<double> between(stages_.size() * rows);
        std::vector<const double*> blocks(read_.size()), all(columns_.size() + 1);
        for (std::size_t at = begin; at < end && !stop; at += rows) {
            const std::size_t count = std::min(rows, end - at);
            reader.read(count, blocks.data());
            for (std::size_t k = 0; k < columns_.size(); ++k) {
                if (place_[k] != nowhere) all[k] = blocks[place_[k]];
            }
            for (std::size_t s = 0; s < stages_.size(); ++s) {
                const bool direct = s + 1 == stages_.size() && BlockReader::padded(count) == count;
                double* const target = direct ? out + at : between.data() + s * rows;
                run_stage(*stages_[s], kernels_, all.data(), target, count);
                all[targets_[s]] = target;
            }
            const double* const last = all[targets_.back()];
            if (last != out + at) std::copy(last, last + count, out + at);
        }
    }
};

// The axes of `shape` along which any of the stage's columns varies; 1 for the others.
inline Shape own_shape(const Shape& shape, const std::vector<Column>& columns, const Stage& stage) {
    Shape own(shape.size(), 1);
    for (const std::size_t k : stage.columns) {
        for (std::size_t d = 0; d < shape.size(); ++d) {
            if (columns[k].strides[d] != 0) own[d] = shape[d];
        }
    }
    return own;
}

inline Shape own_strides(const Shape& own) {
    Shape strides(own.size(), 0);
    py::ssize_t stride = sizeof(double);
    for (std::size_t d = own.size(); d-- > 0;) {
        strides[d] = own[d] == 1 ? 0 : stride;
        stride *= own[d];
    }
    return strides;
}

// Evaluates a formula on arrays that begin with the axes of `shape`.
inline Double evaluate(const std::vector<Double>& arguments, const Shape& shape, const std::vector<Stage>& stages,
                       std::size_t threads) {
    require_shape(arguments, shape);
    const ClosedForms& kernels = active::grid_kernels().closed;
    std::vector<Column> columns;
    for (const Double& argument : arguments) columns.push_back(column_of(argument, shape.size()));
    columns.reserve(arguments.size() + stages.size());
    std::vector<std::vector<double>> computed;
    for (std::size_t s = 0; s + 1 < stages.size(); ++s) {
        const Shape own = own_shape(shape, columns, stages[s]);
        Column result{nullptr, own_strides(own)};
        if (cells_of(own) <= cells_of(shape) / 2) {
            computed.emplace_back(cells_of(own));
            Pass beforehand(columns, kernels);
            beforehand.add(stages[s], columns.size());
            beforehand.run_over(own, computed.back().data(), threads);
            result.data = reinterpret_cast<const char*>(computed.back().data());
        }
        columns.push_back(std::move(result));
    }
    Pass pass(columns, kernels);
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const std::size_t target = arguments.size() + s;
        if (s + 1 == stages.size() || !columns[target].data) pass.add(stages[s], target);
    }
    Double result(shape);
    pass.run_over(shape, result.mutable_data(), threads);
    return result;
}

// Binds a formula as name(arrays, threads).
inline void define(door::Module& m, const char* name, std::size_t count, std::vector<Stage> stages) {
    m.def(
        name,
        [count, stages = std::move(stages)](const std::vector<Double>& arguments, std::size_t threads) {
            require_size(arguments, "arguments", count);
            return evaluate(arguments, shape_of(arguments[0]), stages, threads);
        },
        py::arg("arguments"), py::arg("threads"));
}

}  // namespace grid

// One call over a grid of cells: arguments that the facade has broadcast to one shape, a scalar
// function, all cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <hockeystick/numeric/parallel.hpp>

#include "pybind.hpp"

namespace grid {

using Double = py::array_t<double>;

// What is done for a task, a block of cells or one long computation: compiled as functions, not as templates, because
// threads and queues would be compiled again for each.
using Stop = const std::atomic<bool>&;
using Job = std::function<void(Stop)>;

// Runs tasks without the GIL (the tasks touch no Python object) and raises KeyboardInterrupt if a
// signal asks for it.
inline void run(std::size_t tasks, std::size_t threads, const std::function<void(std::size_t, Stop)>& body) {
    bool signalled = false;
    const auto interrupted = [&signalled] {
        if (signalled) return true;
        const py::gil_scoped_acquire held;
        return signalled = PyErr_CheckSignals() != 0;
    };
    {
        const py::gil_scoped_release released;
        try {
            hockeystick::numeric::parallel_for(tasks, threads, body, interrupted);
        } catch (...) {
            if (!signalled) throw;
        }
    }
    if (signalled) throw py::error_already_set();
}

// Runs one long body beside the calling thread, which waits for signals.
inline void run_in_worker(const Job& body) {
    run(1, 1, [&](std::size_t, Stop stop) { body(stop); });
}

// The same for a caller that has released the GIL.
inline void run_long_job(const Job& body) {
    const py::gil_scoped_acquire held;
    run_in_worker(body);
}

// For a long computation in the calling thread, which has released the GIL: raises what a signal
// handler raises. Looks ten times a second, however often it is called.
class SignalCheck {
  public:
    void operator()() {
        const Clock::time_point now = Clock::now();
        if (now - last_ < std::chrono::milliseconds(100)) return;
        last_ = now;
        const py::gil_scoped_acquire held;
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }

  private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point last_ = Clock::now();
};

// Moves from the first cell of `shape` to another one: its index, and each array's place by its
// strides in bytes.
template <class Strides>
void seek(const std::vector<py::ssize_t>& shape, std::size_t cell, const Strides& strides,
          std::vector<py::ssize_t>& index, std::vector<const char*>& at) {
    for (std::size_t d = shape.size(); d-- > 0;) {
        const auto length = static_cast<std::size_t>(shape[d]);
        index[d] = static_cast<py::ssize_t>(cell % length);
        cell /= length;
        for (std::size_t k = 0; k < at.size(); ++k) at[k] += index[d] * strides[k][d];
    }
}

// Walks the flattened cells of arrays that share a shape but not strides (broadcast axes have
// stride 0).
class Walk {
  public:
    Walk(const std::vector<py::ssize_t>& shape, std::vector<const py::ssize_t*> strides, std::vector<const char*> data)
        : shape_(shape), strides_(std::move(strides)), at_(std::move(data)), index_(shape.size(), 0) {}

    void seek(std::size_t cell) { grid::seek(shape_, cell, strides_, index_, at_); }

    void next() {
        for (std::size_t d = shape_.size(); d-- > 0;) {
            const bool carry = ++index_[d] == shape_[d];
            const py::ssize_t steps = carry ? 1 - shape_[d] : 1;
            for (std::size_t k = 0; k < at_.size(); ++k) at_[k] += steps * strides_[k][d];
            if (!carry) return;
            index_[d] = 0;
        }
    }

    const char* pointer(std::size_t k) const { return at_[k]; }
    double value(std::size_t k) const { return *reinterpret_cast<const double*>(at_[k]); }

  private:
    const std::vector<py::ssize_t>& shape_;
    std::vector<const py::ssize_t*> strides_;
    std::vector<const char*> at_;
    std::vector<py::ssize_t> index_;
};

// Calls body(walk, begin, end, stop) for runs of up to `cells_per_task` cells, the walk standing at
// the first.
inline void for_each_task(const std::vector<Double>& arguments, const std::vector<py::ssize_t>& shape,
                          std::size_t threads, std::size_t cells_per_task,
                          const std::function<void(Walk&, std::size_t, std::size_t, Stop)>& body) {
    std::vector<const py::ssize_t*> strides;
    std::vector<const char*> data;
    for (const Double& argument : arguments) {
        strides.push_back(argument.strides());
        data.push_back(reinterpret_cast<const char*>(argument.data()));
    }
    std::size_t cells = 1;
    for (const py::ssize_t length : shape) cells *= static_cast<std::size_t>(length);
    if (cells == 0) return;
    const std::size_t tasks = (cells + cells_per_task - 1) / cells_per_task;
    const auto one = [&](std::size_t task, Stop stop) {
        Walk walk(shape, strides, data);
        walk.seek(task * cells_per_task);
        body(walk, task * cells_per_task, std::min(cells, (task + 1) * cells_per_task), stop);
    };
    if (tasks == 1 && cells_per_task > 1) {  // cheap cells, not worth a thread
        const py::gil_scoped_release released;
        return one(0, std::atomic<bool>{false});
    }
    run(tasks, threads, one);
}

// Calls write(walk, cell, stop) for every cell, `cells_per_task` at a time; 1 says that a cell may
// take long.
template <class Write>
void for_each_cell(const std::vector<Double>& arguments, const std::vector<py::ssize_t>& shape, std::size_t threads,
                   std::size_t cells_per_task, const Write& write) {
    for_each_task(arguments, shape, threads, cells_per_task,
                  [&](Walk& walk, std::size_t begin, std::size_t end, Stop stop) {
                      for (std::size_t cell = begin; cell < end && !stop; ++cell, walk.next()) write(walk, cell, stop);
                  });
}

inline std::vector<py::ssize_t> shape_of(const Double& array) { return {array.shape(), array.shape() + array.ndim()}; }

// Every array begins with the axes of `shape`; a walk reads without looking.
inline void require_shape(const std::vector<Double>& arrays, const std::vector<py::ssize_t>& shape) {
    for (const Double& array : arrays) {
        const bool wide = array.ndim() >= static_cast<py::ssize_t>(shape.size());
        if (!wide || !std::equal(shape.begin(), shape.end(), array.shape())) {
            throw std::invalid_argument("arrays must share their shape. This is a bug in hockeystick.");
        }
    }
}

// `arrays` itself, which must hold `count` arrays.
template <class Array>
const std::vector<Array>& require_size(const std::vector<Array>& arrays, const char* name, std::size_t count) {
    if (arrays.size() != count)
        throw std::invalid_argument(std::string(name) + " must hold " + std::to_string(count) + " arrays, not " +
                                    std::to_string(arrays.size()));
    return arrays;
}

constexpr std::size_t cheap = 512;  // cells per task where a cell costs tenths of a microsecond

template <std::size_t N, class Function, std::size_t... K>
Double map(const std::vector<Double>& arguments, std::size_t threads, std::size_t cells_per_task,
           const Function& function, std::index_sequence<K...>) {
    const std::vector<py::ssize_t> shape = shape_of(arguments.at(0));
    require_shape(arguments, shape);
    Double result(shape);
    double* out = result.mutable_data();
    for_each_cell(arguments, shape, threads, cells_per_task,
                  [&](const Walk& walk, std::size_t cell, const std::atomic<bool>& stop) {
                      out[cell] = function(stop, walk.value(K)...);
                  });
    return result;
}

// Evaluates function(stop, x_1, ..., x_N) on N arrays of one shape.
template <std::size_t N, class Function>
Double map(const std::vector<Double>& arguments, std::size_t threads, const Function& function,
           std::size_t cells_per_task = cheap) {
    return map<N>(require_size(arguments, "arguments", N), threads, cells_per_task, function,
                  std::make_index_sequence<N>{});
}

// Binds a function of doubles as name(arrays, threads).
template <class... Doubles> void define(door::Module& m, const char* name, double (*function)(Doubles...)) {
    m.def(
        name,
        [function](const std::vector<Double>& arguments, std::size_t threads) {
            const auto cell = [function](const std::atomic<bool>&, Doubles... values) { return function(values...); };
            return map<sizeof...(Doubles)>(arguments, threads, cell);
        },
        py::arg("arguments"), py::arg("threads"));
}

}  // namespace grid

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <hockeystick/federated/trusted_aggregator_bounds.hpp>
#include <hockeystick/hidden_state/cyclic_bounds.hpp>
#include <hockeystick/hidden_state/random_participation_bounds.hpp>

#include "batch_kernels.hpp"
#include "bind.hpp"
#include "grid.hpp"

namespace {

namespace hs = hockeystick;

constexpr std::size_t few = 16;  // cells per task: each may take up to a millisecond

// An array whose first axis is the method.
struct Outcome {
    std::vector<py::ssize_t> shape;
    grid::Double result;
    std::size_t cells;
    double* data;

    Outcome(const std::vector<grid::Double>& arguments, std::vector<py::ssize_t> cell_shape)
        : shape(std::move(cell_shape)), result(wide(shape)),
          cells(static_cast<std::size_t>(result.size()) / hs::hidden_state::hidden_methods),
          data(result.mutable_data()) {
        grid::require_shape(arguments, shape);
    }
    void write(std::size_t cell, const hs::hidden_state::HiddenDeltas& deltas) const {
        for (std::size_t method = 0; method < hs::hidden_state::hidden_methods; ++method)
            data[method * cells + cell] = deltas[method];
    }
    static std::vector<py::ssize_t> wide(const std::vector<py::ssize_t>& shape) {
        std::vector<py::ssize_t> wide{static_cast<py::ssize_t>(hs::hidden_state::hidden_methods)};
        wide.insert(wide.end(), shape.begin(), shape.end());
        return wide;
    }
};

// Evaluates function(walk) -> HiddenDeltas on every cell.
template <class Function>
grid::Double each_method(const std::vector<grid::Double>& arguments, const std::vector<py::ssize_t>& shape,
                         std::size_t threads, const Function& function, std::size_t cells_per_task = few) {
    Outcome out(arguments, shape);
    grid::for_each_cell(
        arguments, shape, threads, cells_per_task,
        [&](const grid::Walk& walk, std::size_t cell, const std::atomic<bool>&) { out.write(cell, function(walk)); });
    return out.result;
}

// eps, index, num_records, learning_rate, noise, lipschitz, smoothness, strong_convexity, diameter, ball_dimension
hs::hidden_state::DescentCell descent(const grid::Walk& w) {
    return {w.value(0), w.value(1), w.value(2), w.value(3), w.value(4),
            w.value(5), w.value(6), w.value(7), w.value(8), w.value(9)};
}

grid::Double last_iterate_bounds(const std::vector<grid::Double>& arguments, std::size_t threads) {
    const hs::batch::Lanes kernel = hs::batch::choose().hidden_lanes;
    const auto run_lanes = [kernel](const hs::simd::HiddenLanes& l, std::size_t lanes, double longest) {
        const double* const read[] = {l.eps, l.log_gap, l.g, l.reach, l.shrink, l.rounds};
        double* const written[] = {l.growth, l.spread, l.nonlinear, l.hybrid};
        kernel(read, written, lanes, longest);
    };
    Outcome out(arguments, grid::shape_of(arguments.at(9)));
    grid::for_each_task(arguments, out.shape, threads, hs::hidden_state::hidden_block,
                        [&](grid::Walk& walk, std::size_t begin, std::size_t end, const std::atomic<bool>&) {
                            hs::hidden_state::DescentCell cells[hs::hidden_state::hidden_block];
                            hs::hidden_state::HiddenDeltas deltas[hs::hidden_state::hidden_block];
                            for (std::size_t i = begin; i < end; ++i, walk.next()) cells[i - begin] = descent(walk);
                            hs::hidden_state::last_iterate_bounds(cells, end - begin, run_lanes, deltas);
                            for (std::size_t i = begin; i < end; ++i) out.write(i, deltas[i - begin]);
                        });
    return out.result;
}

template <hs::hidden_state::HiddenDeltas (*Function)(const hs::hidden_state::DescentCell&)>
grid::Double descent_bounds(const std::vector<grid::Double>& arguments, std::size_t threads) {
    return each_method(arguments, grid::shape_of(arguments.at(9)), threads,
                       [](const grid::Walk& walk) { return Function(descent(walk)); });
}

// As for descent, with the period in the place of ball_dimension.
grid::Double cyclic_bounds(const std::vector<grid::Double>& arguments, std::size_t threads) {
    const auto one = [](const grid::Walk& walk) {
        hs::hidden_state::CyclicCell cell{descent(walk), walk.value(9)};
        cell.descent.ball_dimension = 0.0;
        return hs::hidden_state::cyclic_bounds(cell);
    };
    return each_method(arguments, grid::shape_of(arguments.at(9)), threads, one, 1);
}

// As for descent, with the sampling rate in the place of ball_dimension; losses that are not convex have maps that may expand.
hs::hidden_state::SampledCell sampled(const grid::Walk& walk, bool convex) {
    hs::hidden_state::DescentCell d = descent(walk);
    d.ball_dimension = 0.0;
    if (!d.legal()) return {hs::numeric::nan, 0.0, 0.0, 0.0, 0.0, 0.0};
    const double expanding = (1.0 + d.learning_rate * d.smoothness) * (1.0 + 0x1p-50);
    return {d.eps,
            walk.value(9),
            d.num_records,
            std::max(d.sensitivity(), hs::hidden_state::least_length),
            std::max(d.width(), hs::hidden_state::least_length),
            convex ? d.contraction() : expanding};
}

grid::Double sampled_bounds(const std::vector<grid::Double>& arguments, bool convex, std::size_t threads) {
    const auto one = [convex](const grid::Walk& walk) {
        return hs::hidden_state::sampled_bounds(sampled(walk, convex));
    };
    return each_method(arguments, grid::shape_of(arguments.at(9)), threads, one, 1);
}

// For each cell the rounds that are composed, and the parameters of what is composed: of all, and of the last ones.
std::vector<std::array<double, 4>> sampled_splits(const std::vector<grid::Double>& arguments, bool convex) {
    const std::vector<py::ssize_t> shape = grid::shape_of(arguments.at(9));
    grid::require_shape(arguments, shape);
    std::vector<std::array<double, 4>> splits(static_cast<std::size_t>(arguments[9].size()));
    grid::for_each_cell(arguments, shape, 1, few,
                        [&](const grid::Walk& walk, std::size_t cell, const std::atomic<bool>&) {
                            const hs::hidden_state::SampledCell c = sampled(walk, convex);
                            const hs::hidden_state::SampledSplit split = hs::hidden_state::sampled_split(c);
                            const double alone = c.legal() ? 2.0 / c.g * (1.0 - 0x1p-50) : hs::numeric::nan;
                            splits[cell] = {alone, split.rounds, split.noise_multiplier, split.mu};
                        });
    return splits;
}

// `cells`: eps, num_users, batch_size, suffix; `rounds`: learning_rate, noise_std, lipschitz, radius, smoothness,
// strong_convexity of shape (..., T), or (..., 1) for constants.
grid::Double trusted_aggregator_bounds(const std::vector<grid::Double>& cells, const std::vector<grid::Double>& rounds,
                                       bool convex, std::size_t threads) {
    std::vector<grid::Double> arguments = cells;
    arguments.insert(arguments.end(), rounds.begin(), rounds.end());
    py::ssize_t steps[6];
    for (std::size_t k = 0; k < 6; ++k) {
        const py::ssize_t axis = rounds.at(k).ndim() - 1;
        steps[k] = rounds[k].shape(axis) == 1 ? 0 : rounds[k].strides(axis) / py::ssize_t{sizeof(double)};
    }
    const auto cell = [&](const grid::Walk& walk) {
        const auto row = [&](std::size_t k) {
            return hs::hidden_state::Rounds{reinterpret_cast<const double*>(walk.pointer(4 + k)), steps[k]};
        };
        const hs::federated::AggregatorRounds r{walk.value(0), walk.value(2), convex, row(0),
                                                row(1),        row(2),        row(3), row(4)};
        return hs::federated::trusted_aggregator_bounds({r, row(5)}, walk.value(1), walk.value(3));
    };
    return each_method(arguments, grid::shape_of(cells.at(0)), threads, cell);
}

}  // namespace

void bind_hidden_bounds(py::module_& m) {
    const auto define = [&](const char* name, auto function) {
        m.def(name, function, py::arg("arguments"), py::arg("threads"));
    };
    define("last_iterate_bounds", last_iterate_bounds);
    define("last_iterate_laplace_bounds", descent_bounds<hs::hidden_state::last_iterate_laplace_bounds>);
    define("cyclic_bounds", cyclic_bounds);
    define("last_iterate_random_stop_bounds", descent_bounds<hs::hidden_state::last_iterate_random_stop_bounds>);
    m.def("sampled_bounds", sampled_bounds, py::arg("arguments"), py::arg("convex"), py::arg("threads"));
    m.def("sampled_splits", sampled_splits, py::arg("arguments"), py::arg("convex"));
    m.def("trusted_aggregator_bounds", trusted_aggregator_bounds, py::arg("cells"), py::arg("rounds"),
          py::arg("convex"), py::arg("threads"));
    m.def("hidden_methods", [] {
        return std::vector<std::string>{"plain",     "contraction", "nonlinear", "shifted", "hybrid",
                                        "projected", "renyi",       "divided",   "pattern", "sampled"};
    });
}

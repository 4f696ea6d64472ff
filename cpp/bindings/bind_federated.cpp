#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <hockeystick/divergence/gaussian_dp.hpp>
#include <hockeystick/federated/fedavg.hpp>
#include <hockeystick/federated/published_fedavg.hpp>
#include <hockeystick/federated/trusted_aggregator_bounds.hpp>

#include "bind.hpp"
#include "blocks.hpp"
#include "bounds_grid.hpp"
#include "federated_stages.hpp"
#include "rounds_grid.hpp"

namespace {

namespace federated = hockeystick::federated;
using grid::ClosedForms;

// The cost of a cell grows with its rounds.
template <std::size_t Count>
grid::Double gdp_by_round(federated::StepSchedule schedule, const std::vector<grid::Double>& arguments,
                          std::size_t threads) {
    const auto cell = [schedule](const std::atomic<bool>& stop, auto... values) {
        const auto interrupted = [&stop] {
            if (stop) throw std::runtime_error("interrupted");
        };
        return grid::gdp_of_cell(schedule, interrupted, values...);
    };
    return grid::map<Count>(arguments, threads, cell, 1);
}

using Stages = std::vector<grid::Stage> (*)(federated::StepSchedule, std::size_t, bool);

// `conversion` has no columns, and no kernel where the parameter itself is the result. The last of
// the parameter's `Count` arguments is the diameter.
template <std::size_t Count>
void define_parameter(door::Module& m, const char* name, Stages parameter, const grid::Stage& conversion) {
    const std::size_t count = conversion.kernel ? Count + 1 : Count;
    m.def(
        name,
        [count, parameter, conversion](const std::string& schedule, const std::vector<grid::Double>& arguments,
                                       std::size_t threads) {
            grid::require_size(arguments, "arguments", count);
            const grid::Shape shape = grid::shape_of(arguments[0]);
            grid::require_shape(arguments, shape);
            const federated::StepSchedule known = grid::schedule_named(schedule);
            if (!federated::constant_over_rounds(known)) {
                if (!conversion.kernel) return gdp_by_round<Count>(known, arguments, threads);
                throw std::invalid_argument("schedule '" + schedule +
                                            "' has no formula. This is a bug in hockeystick.");
            }
            auto stages = parameter(known, count, !grid::unbounded(arguments[Count - 1], shape.size()));
            if (conversion.kernel) stages = grid::then(std::move(stages), conversion, Count);
            return grid::evaluate(arguments, shape, stages, threads);
        },
        py::arg("schedule"), py::arg("arguments"), py::arg("threads"));
}

void bind_parameters(door::Module& m) {
    const grid::Stage none{nullptr, {}};
    const grid::Stage delta{&ClosedForms::gdp_dp_delta, {}};
    const grid::Stage epsilon{&ClosedForms::gdp_epsilon, {}, grid::of_row(hockeystick::divergence::gdp_epsilon)};
    define_parameter<8>(m, "fedavg_gdp", grid::fedavg_stages, none);
    define_parameter<8>(m, "fedavg_delta", grid::fedavg_stages, delta);
    define_parameter<8>(m, "fedavg_epsilon", grid::fedavg_stages, epsilon);
    define_parameter<9>(m, "fedprox_gdp", grid::fedprox_stages, none);
    define_parameter<9>(m, "fedprox_delta", grid::fedprox_stages, delta);
    define_parameter<9>(m, "fedprox_epsilon", grid::fedprox_stages, epsilon);
}

grid::Double published_fedavg_gdp(const std::string& name, const std::vector<grid::Double>& arguments,
                                  std::size_t threads) {
    const federated::StepSchedule schedule = grid::schedule_named(name);
    return grid::map<8>(arguments, threads, [schedule](const std::atomic<bool>&, auto... values) {
        return federated::published::fedavg_gdp(schedule, values...);
    });
}

grid::Double fedavg_gdp_limit(const std::string& name, const std::vector<grid::Double>& arguments,
                              std::size_t threads) {
    const federated::StepSchedule schedule = grid::schedule_named(name);
    const auto cell = [schedule](const std::atomic<bool>&, auto... values) {
        std::vector<hockeystick::hidden_state::ShiftBlock> blocks;
        return federated::fedavg_gdp_limit(schedule, values..., blocks);
    };
    return grid::map<7>(arguments, threads, cell, 1);
}

// The arguments of a trusted aggregator. `cells`: eps, num_users, batch_size, suffix of shape
// (...). `rounds`: learning_rate, noise_std, lipschitz, radius, smoothness, and for the bounds
// strong_convexity, of shape (..., T), or (..., 1) for constants.
struct Aggregation {
    std::vector<grid::Double> arguments;
    std::vector<py::ssize_t> shape;
    grid::RoundArrays per_round;
    bool convex;

    Aggregation(const std::vector<grid::Double>& cells, const std::vector<grid::Double>& rounds, std::size_t rows,
                bool convex_losses)
        : arguments(cells), shape(grid::shape_of(grid::require_size(cells, "cells", 4)[3])), per_round(rounds, rows, 4),
          convex(convex_losses) {
        arguments.insert(arguments.end(), rounds.begin(), rounds.end());
        grid::require_shape(arguments, shape);
    }

    federated::AggregatorRounds rounds(const grid::Walk& walk) const {
        const auto row = [&](std::size_t k) { return per_round.at(walk, k); };
        const federated::AggregatorRounds r{walk.value(0), walk.value(2), convex, row(0),
                                            row(1),        row(2),        row(3), row(4)};
        if (legal(r, walk.value(1)) && !per_round.hold(std::floor(walk.value(1) / walk.value(2))))
            throw std::invalid_argument("arrays must hold all rounds. This is a bug in hockeystick.");
        return r;
    }
};

// Evaluates function(rounds, num_users, suffix) on every cell.
template <class Function>
grid::Double map_aggregations(const std::vector<grid::Double>& cells, const std::vector<grid::Double>& rounds,
                              bool convex, std::size_t threads, const Function& function) {
    const Aggregation a(cells, rounds, 5, convex);
    grid::Double result(a.shape);
    double* out = result.mutable_data();
    grid::for_each_cell(a.arguments, a.shape, threads, 2,
                        [&](const grid::Walk& walk, std::size_t cell, const std::atomic<bool>&) {
                            out[cell] = function(a.rounds(walk), walk.value(1), walk.value(3));
                        });
    return result;
}

// Constants, through the kernels.
grid::Double constant_aggregations(const std::vector<grid::Double>& cells, const std::vector<grid::Double>& rounds,
                                   bool convex, std::size_t threads, const std::vector<grid::Stage>& last) {
    const Aggregation a(cells, rounds, 5, convex);
    return grid::evaluate(a.arguments, a.shape, grid::aggregator_stages(convex, last), threads);
}

bool constants(const std::vector<grid::Double>& rounds) {
    grid::require_size(rounds, "rounds", 5);
    const auto constant = [](const grid::Double& row) { return row.ndim() > 0 && row.shape(row.ndim() - 1) == 1; };
    return std::all_of(rounds.begin(), rounds.end(), constant);
}

grid::Double trusted_aggregator(const std::vector<grid::Double>& cells, const std::vector<grid::Double>& rounds,
                                bool convex, std::size_t threads) {
    const auto function = [](const federated::AggregatorRounds& r, double num_users, double) {
        return federated::trusted_aggregator(r, num_users);
    };
    return map_aggregations(cells, rounds, convex, threads, function);
}

grid::Double trusted_aggregator_random_stop(const std::vector<grid::Double>& cells,
                                            const std::vector<grid::Double>& rounds, bool convex, std::size_t threads) {
    return map_aggregations(cells, rounds, convex, threads, federated::trusted_aggregator_random_stop);
}

grid::Double trusted_aggregator_bounds(const std::vector<grid::Double>& cells, const std::vector<grid::Double>& rounds,
                                       bool convex, std::size_t threads) {
    const Aggregation a(cells, rounds, 6, convex);
    const auto cell = [&](const grid::Walk& walk) {
        return federated::trusted_aggregator_bounds({a.rounds(walk), a.per_round.at(walk, 5)}, walk.value(1),
                                                    walk.value(3));
    };
    return grid::map_bounds(a.arguments, a.shape, threads, cell);
}

}  // namespace

void bind_federated(door::Module& m) {
    const auto define = [&](const char* name, auto function) {
        m.def(name, function, py::arg("cells"), py::arg("rounds"), py::arg("convex"), py::arg("threads"));
    };
    using Arrays = std::vector<grid::Double>;
    define("trusted_aggregator", [](const Arrays& cells, const Arrays& rounds, bool convex, std::size_t threads) {
        if (!constants(rounds)) return trusted_aggregator(cells, rounds, convex, threads);
        return constant_aggregations(cells, rounds, convex, threads,
                                     {{&ClosedForms::constant_aggregator, {10, 12, 0, 1, 2}}});
    });
    define("trusted_aggregator_random_stop",
           [](const Arrays& cells, const Arrays& rounds, bool convex, std::size_t threads) {
               if (!constants(rounds)) return trusted_aggregator_random_stop(cells, rounds, convex, threads);
               return constant_aggregations(cells, rounds, convex, threads,
                                            {{&ClosedForms::aggregator_share, {1, 2}},
                                             {&ClosedForms::aggregator_stops, {1, 2, 3}},
                                             {&ClosedForms::certain_rounds, {1, 2, 14}},
                                             {&ClosedForms::constant_random_stop, {10, 12, 0, 13, 14, 15}}});
           });
    define("trusted_aggregator_bounds", trusted_aggregator_bounds);
    m.attr("max_scheduled_rounds") = federated::max_scheduled_rounds;
    bind_parameters(m);
    m.def("fedavg_gdp_limit", fedavg_gdp_limit, py::arg("schedule"), py::arg("arguments"), py::arg("threads"));
    m.def("published_fedavg_gdp", published_fedavg_gdp, py::arg("schedule"), py::arg("arguments"), py::arg("threads"));
    grid::define(m, "published_fedprox_gdp", federated::published::fedprox_gdp);
}

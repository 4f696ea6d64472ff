#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <hockeystick/federated/fedavg.hpp>
#include <hockeystick/federated/published_fedavg.hpp>
#include <hockeystick/federated/trusted_aggregator_bounds.hpp>

#include "bind.hpp"
#include "bounds_grid.hpp"
#include "rounds_grid.hpp"

namespace {

namespace federated = hockeystick::federated;

federated::StepSchedule schedule_named(const std::string& name) {
    using federated::StepSchedule;
    constexpr std::pair<const char*, StepSchedule> schedules[] = {
        {"constant", StepSchedule::constant},
        {"cyclic", StepSchedule::cyclic},
        {"stagewise", StepSchedule::stagewise},
        {"continuous", StepSchedule::continuous},
    };
    for (const auto& [known, schedule] : schedules) {
        if (name == known) return schedule;
    }
    throw std::invalid_argument("unknown schedule '" + name + "'");
}

grid::Double fedavg_gdp(const std::string& name, const std::vector<grid::Double>& arguments, std::size_t threads) {
    const federated::StepSchedule schedule = schedule_named(name);
    const auto cell = [schedule](const std::atomic<bool>& stop, auto... values) {
        std::vector<hockeystick::hidden_state::ShiftBlock> blocks;
        const auto interrupted = [&stop] {
            if (stop) throw std::runtime_error("interrupted");
        };
        return federated::fedavg_gdp(schedule, values..., blocks, interrupted);
    };
    return grid::map<8>(arguments, threads, cell, federated::constant_over_rounds(schedule) ? grid::cheap : 1);
}

grid::Double published_fedavg_gdp(const std::string& name, const std::vector<grid::Double>& arguments,
                                  std::size_t threads) {
    const federated::StepSchedule schedule = schedule_named(name);
    return grid::map<8>(arguments, threads, [schedule](const std::atomic<bool>&, auto... values) {
        return federated::published::fedavg_gdp(schedule, values...);
    });
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
    const bool constant = rounds[0].shape(rounds[0].ndim() - 1) == 1;
    grid::Double result(a.shape);
    double* out = result.mutable_data();
    grid::for_each_cell(a.arguments, a.shape, threads, constant ? grid::cheap : 2,
                        [&](const grid::Walk& walk, std::size_t cell, const std::atomic<bool>&) {
                            out[cell] = function(a.rounds(walk), walk.value(1), walk.value(3));
                        });
    return result;
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

void bind_federated(py::module_& m) {
    const auto define = [&](const char* name, auto function) {
        m.def(name, function, py::arg("cells"), py::arg("rounds"), py::arg("convex"), py::arg("threads"));
    };
    define("trusted_aggregator", trusted_aggregator);
    define("trusted_aggregator_random_stop", trusted_aggregator_random_stop);
    define("trusted_aggregator_bounds", trusted_aggregator_bounds);
    m.attr("max_scheduled_rounds") = federated::max_scheduled_rounds;
    m.def("fedavg_gdp", fedavg_gdp, py::arg("schedule"), py::arg("arguments"), py::arg("threads"));
    m.def("published_fedavg_gdp", published_fedavg_gdp, py::arg("schedule"), py::arg("arguments"), py::arg("threads"));
    grid::define(m, "fedprox_gdp", federated::fedprox_gdp);
    grid::define(m, "published_fedprox_gdp", federated::published::fedprox_gdp);
}

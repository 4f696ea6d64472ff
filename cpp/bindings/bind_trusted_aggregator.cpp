#include <hockeystick/federated/trusted_aggregator.hpp>

#include "bind.hpp"
#include "grid.hpp"

namespace {

namespace hs = hockeystick;

// `cells`: eps, num_users, batch_size, suffix of shape (...); `rounds`: learning_rate, noise_std, lipschitz, radius, smoothness of
// shape (..., T), or (..., 1) for constants. `function` takes the rounds, num_users and suffix.
template <class Function>
grid::Double evaluate(const std::vector<grid::Double>& cells, const std::vector<grid::Double>& rounds, bool convex,
                      std::size_t threads, const Function& function) {
    std::vector<grid::Double> arguments = cells;
    arguments.insert(arguments.end(), rounds.begin(), rounds.end());
    const std::vector<py::ssize_t> shape = grid::shape_of(cells.at(0));
    py::ssize_t steps[5];
    for (std::size_t k = 0; k < 5; ++k) {
        const py::ssize_t axis = rounds.at(k).ndim() - 1;
        steps[k] = rounds[k].shape(axis) == 1 ? 0 : rounds[k].strides(axis) / py::ssize_t{sizeof(double)};
    }
    const bool constant = rounds[0].shape(rounds[0].ndim() - 1) == 1;
    grid::require_shape(arguments, shape);
    grid::Double result(shape);
    double* out = result.mutable_data();
    grid::for_each_cell(arguments, shape, threads, constant ? grid::cheap : 2,
                        [&](const grid::Walk& walk, std::size_t cell, const std::atomic<bool>&) {
                            const auto row = [&](std::size_t k) {
                                return hs::hidden_state::Rounds{reinterpret_cast<const double*>(walk.pointer(4 + k)),
                                                                steps[k]};
                            };
                            const hs::federated::AggregatorRounds r{walk.value(0), walk.value(2), convex, row(0),
                                                                    row(1),        row(2),        row(3), row(4)};
                            out[cell] = function(r, walk.value(1), walk.value(3));
                        });
    return result;
}

grid::Double last_model(const std::vector<grid::Double>& cells, const std::vector<grid::Double>& rounds, bool convex,
                        std::size_t threads) {
    const auto function = [](const hs::federated::AggregatorRounds& r, double num_users, double) {
        return hs::federated::trusted_aggregator(r, num_users);
    };
    return evaluate(cells, rounds, convex, threads, function);
}

grid::Double random_stop(const std::vector<grid::Double>& cells, const std::vector<grid::Double>& rounds, bool convex,
                         std::size_t threads) {
    return evaluate(cells, rounds, convex, threads, hs::federated::trusted_aggregator_random_stop);
}

}  // namespace

void bind_trusted_aggregator(py::module_& m) {
    const auto define = [&](const char* name, auto function) {
        m.def(name, function, py::arg("cells"), py::arg("rounds"), py::arg("convex"), py::arg("threads"));
    };
    define("trusted_aggregator", last_model);
    define("trusted_aggregator_random_stop", random_stop);
}

#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <hockeystick/chain/scalar_chain.hpp>
#include <hockeystick/hidden_state/ball_projection.hpp>

#include "bind.hpp"
#include "grid.hpp"

namespace {

namespace hs = hockeystick;

// kind, record, smoothness, curvature, learning_rate, noise, gradient
using Map = std::tuple<std::string, double, double, double, double, double, std::vector<double>>;

hs::chain::MapKind kind_named(const std::string& name) {
    if (name == "linear") return hs::chain::MapKind::linear;
    if (name == "quadratic") return hs::chain::MapKind::quadratic;
    if (name == "logistic") return hs::chain::MapKind::logistic;
    if (name == "table") return hs::chain::MapKind::table;
    throw std::invalid_argument("unknown gradient_map '" + name + "'");
}

std::pair<std::vector<double>, std::vector<double>>
scalar_chain(const std::vector<double>& eps, const std::vector<Map>& maps, std::vector<std::size_t> first,
             std::vector<std::size_t> second, double radius, double start, bool laplace, std::size_t points) {
    hs::chain::ScalarChain chain{{}, std::move(first), std::move(second), radius, start, laplace};
    for (const auto& [kind, record, smoothness, curvature, rate, noise, gradient] : maps)
        chain.maps.push_back({kind_named(kind), record, smoothness, curvature, rate, noise, gradient});
    hs::chain::ChainBracket result;
    grid::run_in_worker(
        [&](const std::atomic<bool>& stop) { result = hs::chain::scalar_chain(chain, eps, points, stop); });
    return {result.lower, result.upper};
}

grid::Double projected_contraction(const std::vector<grid::Double>& arguments, bool laplace, std::size_t threads) {
    return grid::map<5>(
        arguments, threads,
        [laplace](const std::atomic<bool>&, double eps, double low, double high, double diameter, double noise) {
            return hs::chain::projected_contraction(eps, low, high, diameter, noise, laplace);
        });
}

}  // namespace

void bind_markov(py::module_& m) {
    m.def("scalar_chain", scalar_chain, py::arg("eps"), py::arg("maps"), py::arg("first"), py::arg("second"),
          py::arg("radius"), py::arg("start"), py::arg("laplace"), py::arg("points"));
    grid::define(m, "ball_contraction", hs::hidden_state::ball_contraction);
    m.def("projected_contraction", projected_contraction, py::arg("arguments"), py::arg("laplace"), py::arg("threads"));
}

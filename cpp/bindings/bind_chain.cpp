#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <hockeystick/chain/projected_kernel.hpp>
#include <hockeystick/chain/scalar_chain.hpp>

#include "bind.hpp"
#include "grid.hpp"

namespace {

namespace chain = hockeystick::chain;

// kind, record, smoothness, curvature, learning_rate, noise, gradient
using Map = std::tuple<std::string, double, double, double, double, double, std::vector<double>>;

chain::MapKind kind_named(const std::string& name) {
    if (name == "linear") return chain::MapKind::linear;
    if (name == "quadratic") return chain::MapKind::quadratic;
    if (name == "logistic") return chain::MapKind::logistic;
    if (name == "table") return chain::MapKind::table;
    throw std::invalid_argument("unknown gradient_map '" + name + "'");
}

// Returns the lower and the upper ends, one for each eps.
std::pair<std::vector<double>, std::vector<double>>
scalar_chain(const std::vector<double>& eps, const std::vector<Map>& maps, std::vector<std::size_t> first,
             std::vector<std::size_t> second, double radius, double start, bool laplace, std::size_t points) {
    chain::ScalarChain both{{}, std::move(first), std::move(second), radius, start, laplace};
    for (const auto& [kind, record, smoothness, curvature, rate, noise, gradient] : maps)
        both.maps.push_back({kind_named(kind), record, smoothness, curvature, rate, noise, gradient});
    std::vector<hockeystick::numeric::Interval> brackets;
    grid::run_in_worker(
        [&](const std::atomic<bool>& stop) { brackets = chain::scalar_chain(both, eps, points, stop); });
    std::pair<std::vector<double>, std::vector<double>> ends;
    for (const hockeystick::numeric::Interval& bracket : brackets) {
        ends.first.push_back(bracket.lower);
        ends.second.push_back(bracket.upper);
    }
    return ends;
}

grid::Double projected_contraction(const std::vector<grid::Double>& arguments, bool laplace, std::size_t threads) {
    return grid::map<5>(
        arguments, threads,
        [laplace](const std::atomic<bool>&, double eps, double low, double high, double diameter, double noise) {
            return chain::projected_contraction(eps, low, high, diameter, noise, laplace);
        });
}

}  // namespace

void bind_chain(door::Module& m) {
    m.def("scalar_chain", scalar_chain, py::arg("epsilon"), py::arg("maps"), py::arg("first"), py::arg("second"),
          py::arg("radius"), py::arg("start"), py::arg("laplace"), py::arg("points"));
    m.def("projected_contraction", projected_contraction, py::arg("arguments"), py::arg("laplace"), py::arg("threads"));
}

#include <hockeystick/contour.hpp>
#include <hockeystick/sampled_gaussian.hpp>

#include "bind.hpp"
#include "grid.hpp"

namespace {

namespace hs = hockeystick;

using Entry = std::tuple<std::string, std::vector<double>, double, double>;  // kind, parameters, rate, count
using Ledger = std::vector<Entry>;

bool is_sampled_gaussian(const Entry& entry) { return std::get<0>(entry) == "gaussian" && std::get<2>(entry) < 1.0; }

// Whether every step has a cumulant here.
bool covered(const Ledger& ledger) {
    return std::all_of(ledger.begin(), ledger.end(), [](const Entry& entry) {
        const auto& [kind, parameters, rate, count] = entry;
        return (kind == "gaussian" &&
                (rate == 1.0 || hs::SampledGaussianCumulant::covers(1.0 / parameters.at(0), rate))) ||
               (kind == "laplace" && rate == 1.0);
    });
}

std::unique_ptr<hs::Cumulant> cumulant(const Entry& entry, bool forward, double cut,
                                       const hs::contour::Kernels& kernels) {
    const auto& [kind, parameters, rate, count] = entry;
    const double shift = parameters.at(0);
    if (kind == "laplace") return std::make_unique<hs::LaplaceCumulant>(shift);
    if (rate == 1.0) return std::make_unique<hs::GaussianCumulant>(shift);
    return std::make_unique<hs::SampledGaussianCumulant>(1.0 / shift, rate, forward, cut, kernels);
}

hs::Contour contour_of(const Ledger& ledger, bool forward, const hs::contour::Kernels& kernels) {
    const auto make = [ledger, forward, &kernels](double cut) {
        std::vector<hs::ContourPart> parts;
        for (const Entry& entry : ledger) parts.push_back({cumulant(entry, forward, cut, kernels), std::get<3>(entry)});
        return parts;
    };
    return {make, forward && std::any_of(ledger.begin(), ledger.end(), is_sampled_gaussian), kernels};
}

// Returns a dictionary of what one direction gives, or None where the engine does not apply.
py::object contour_bracket(const Ledger& ledger, bool forward, bool for_epsilon, double value,
                           const hs::contour::Kernels& kernels) {
    if (!covered(ledger)) return py::none();
    hs::ContourResult r;
    grid::run_in_worker([&](const std::atomic<bool>&) {
        hs::Contour contour = contour_of(ledger, forward, kernels);
        r = for_epsilon ? contour.epsilon(1.0, value) : contour.delta(1.0, value);
    });
    if (!r.usable) return py::none();
    return py::dict(py::arg("lower") = r.lower, py::arg("upper") = r.upper, py::arg("log_lower") = r.log_lower,
                    py::arg("log_upper") = r.log_upper, py::arg("alias") = r.alias,
                    py::arg("truncation") = r.truncation, py::arg("rounding") = r.rounding,
                    py::arg("missing") = r.missing, py::arg("nodes") = r.nodes, py::arg("tilt") = r.tilt);
}

using NodeRow = std::tuple<double, double, double, double>;

// What a sampled Gaussian's cumulant says at the tilt c and the frequencies k h, k = 0..nodes: (log M(c), its error), and
// for each node (log |phi|, arg phi, relative error, bound of log |phi| from there on); no rows where that is too much work.
std::pair<std::pair<double, double>, std::vector<NodeRow>> sampled_gaussian_nodes(double sigma, double rate,
                                                                                  bool forward, double c, double h,
                                                                                  std::size_t nodes,
                                                                                  const hs::contour::Kernels& kernels) {
    const hs::SampledGaussianCumulant cumulant(sigma, rate, forward, 26.0, kernels);
    const hs::Cumulant::Moment moment = cumulant.log_moment(c);
    hs::NodeTable table;
    for (auto* array : {&table.log_abs, &table.phase, &table.error}) array->assign(nodes + 1, 0.0);
    std::vector<NodeRow> rows;
    const bool usable = cumulant.add_nodes(c, h, static_cast<double>(nodes) * h, 1.0, table);
    for (std::size_t k = 0; usable && k <= nodes; ++k) {
        const double decay = cumulant.log_decay(c, static_cast<double>(k) * h);
        rows.emplace_back(table.log_abs[k], table.phase[k], table.error[k], decay);
    }
    return {{moment.value, moment.error}, rows};
}

}  // namespace

void bind_contour(py::module_& m, const hs::contour::Kernels& kernels) {
    m.def(
        "contour_bracket",
        [&kernels](const Ledger& ledger, bool forward, bool for_epsilon, double value) {
            return contour_bracket(ledger, forward, for_epsilon, value, kernels);
        },
        py::arg("ledger"), py::arg("forward"), py::arg("for_epsilon"), py::arg("value"));
    m.def(
        "sampled_gaussian_nodes",
        [&kernels](double sigma, double rate, bool forward, double c, double h, std::size_t nodes) {
            return sampled_gaussian_nodes(sigma, rate, forward, c, h, nodes, kernels);
        },
        py::arg("sigma"), py::arg("rate"), py::arg("forward"), py::arg("c"), py::arg("h"), py::arg("nodes"));
}

#include <hockeystick/contour/contour.hpp>

#include "active_kernels.hpp"
#include "bind.hpp"
#include "grid.hpp"
#include "steps.hpp"

namespace {

namespace hs = hockeystick;

// What was tried, in order, as (strategy, (lower, upper) or None where it has no answer, nodes).
py::list tried(const hs::contour::StrategyLog& log) {
    py::list rows;
    for (const hs::contour::Tried& one : log) {
        const py::object bracket = one.usable ? py::object(py::make_tuple(one.lower, one.upper)) : py::none();
        rows.append(py::make_tuple(one.name(), bracket, one.nodes));
    }
    return rows;
}

// Returns a dictionary of what one direction gives, or None where the engine does not apply.
py::object contour_bracket(const steps::Counted& entries, bool forward, bool for_epsilon, double value,
                           const hs::simd::Kernels& kernels) {
    steps::require_question(for_epsilon, value);
    const hs::mechanism::Steps ledger = steps::counted(entries);
    if (ledger.empty() || !hs::contour::has_contour(ledger)) return py::none();
    hs::contour::ContourResult r;
    hs::contour::StrategyLog log;
    grid::run_in_worker([&](const std::atomic<bool>&) {
        hs::contour::Contour contour = hs::contour::make_contour(ledger, steps::direction_of(forward), kernels);
        r = for_epsilon ? contour.epsilon(1.0, value, &log) : contour.delta(1.0, value, &log);
    });
    if (!r.usable) return py::none();
    return py::dict(py::arg("lower") = r.lower, py::arg("upper") = r.upper, py::arg("log_lower") = r.log_lower,
                    py::arg("log_upper") = r.log_upper, py::arg("smoothing") = r.smoothing,
                    py::arg("missing") = r.missing, py::arg("nodes") = r.nodes, py::arg("slices") = r.slices,
                    py::arg("tried") = tried(log));
}

using NodeRow = std::tuple<double, double, double, double>;
using Nodes = std::pair<std::pair<double, double>, std::vector<NodeRow>>;

// What a cumulant says at the tilt c and the frequencies k h, k = 0..nodes: (log M(c), its error),
// and for each node (log |phi|, arg phi, relative error, bound of log |phi| from there on); no rows
// where that is too much work.
Nodes nodes_of(const hs::cumulant::Cumulant& cumulant, double c, double h, std::size_t nodes) {
    const hs::cumulant::Cumulant::Moment moment = cumulant.log_moment(c);
    hs::cumulant::NodeTable table(nodes + 1);
    std::vector<NodeRow> rows;
    const bool usable = cumulant.add_nodes(c, h, nodes, 1.0, table);
    for (std::size_t k = 0; usable && k <= nodes; ++k) {
        const double decay = cumulant.log_decay(c, static_cast<double>(k) * h);
        rows.emplace_back(table.log_abs[k], table.phase[k], table.error[k], decay);
    }
    return {{moment.value, moment.error}, rows};
}

// The nodes of a pair's cumulant, and the logarithm of the mass that it leaves out.
std::pair<Nodes, double> pair_nodes(const hs::mechanism::PairPointer& pair, bool forward, double cutoff, double c,
                                    double h, std::size_t nodes, const hs::simd::Kernels& kernels) {
    if (!pair->has_cumulant(1.0)) throw std::invalid_argument("pair must have a cumulant");
    const auto cumulant = pair->cumulant(1.0, steps::direction_of(forward), cutoff,
                                         {&kernels, std::make_shared<hs::cumulant::FourierWorkspace>()});
    return {nodes_of(*cumulant, c, h, nodes), cumulant->log_missing()};
}

}  // namespace

void bind_contour(door::Module& m) {
    m.def(
        "contour_bracket",
        [](const steps::Counted& entries, bool forward, bool for_epsilon, double value) {
            return contour_bracket(entries, forward, for_epsilon, value, active::kernels().contour);
        },
        py::arg("ledger"), py::arg("forward"), py::arg("for_epsilon"), py::arg("value"));
    m.def(
        "pair_nodes",
        [](const steps::Held& pair, bool forward, double cutoff, double c, double h, std::size_t nodes) {
            return pair_nodes(pair, forward, cutoff, c, h, nodes, active::kernels().contour);
        },
        py::arg("pair").none(false), py::arg("forward"), py::arg("cutoff"), py::arg("c"), py::arg("h"),
        py::arg("nodes"));
}

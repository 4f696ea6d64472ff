#include <hockeystick/pld/composed_pair.hpp>
#include <hockeystick/pld/composition.hpp>

#include "bind.hpp"
#include "grid.hpp"
#include "steps.hpp"

namespace {

namespace hs = hockeystick;

std::vector<hs::pld::Step> steps_of(const steps::Counted& entries, bool forward) {
    std::vector<hs::pld::Step> result;
    for (const hs::mechanism::CountedPair& step : steps::counted(entries))
        result.push_back({step.pair->loss_for_grid(steps::direction_of(forward)), step.count});
    return result;
}

// Returns (lower, upper, interval, coarsened, work) of one direction. An upper end not above
// `floor` is not narrowed.
std::tuple<double, double, double, bool, double> pld_bracket(const steps::Counted& entries, bool forward,
                                                             bool for_epsilon, double value, double interval,
                                                             double tolerance, double floor) {
    steps::require_question(for_epsilon, value);
    hs::numeric::require(interval >= 0.0 && interval < hs::numeric::infinity, "interval", "be 0 or positive and finite",
                         interval);
    hs::numeric::require(hs::numeric::positive(tolerance), "tolerance", "be positive and finite", tolerance);
    hs::numeric::require(floor >= 0.0, "floor", "be non-negative", floor);
    hs::pld::PldBracket result{};
    grid::run_in_worker([&](const std::atomic<bool>& stop) {
        std::vector<hs::pld::Step> losses = steps_of(entries, forward);
        hs::pld::PldSettings settings;
        settings.interval = interval;
        settings.tolerance = tolerance;
        settings.floor = floor;
        settings.stop = &stop;
        const hs::pld::Composition composition(std::move(losses), settings);
        result = for_epsilon ? composition.epsilon(value) : composition.delta(value);
    });
    return {result.lower, result.upper, result.interval, result.coarsened, result.work};
}

// Returns the outcomes' masses (p, q) of a pair that leaks at least, or at most, what one direction
// of a composition does.
std::pair<std::vector<double>, std::vector<double>> composed_pair(const steps::Counted& entries, bool forward,
                                                                  bool raised, double points) {
    hs::numeric::require(points >= 1.0 && points <= 1e5, "points", "lie in [1, 100000]", points);
    hs::loss::Masses pair;
    grid::run_in_worker([&](const std::atomic<bool>& stop) {
        pair = hs::pld::composed_pair(steps_of(entries, forward), raised, points, &stop);
    });
    return {pair.p, pair.q};
}

// Returns the forward transform of the signal, as `RealTransform` packs it, the transform of that
// back, and the relative error promised for each.
std::tuple<std::vector<double>, std::vector<double>, double> fft_round_trip(std::vector<double> signal) {
    hs::numeric::require(signal.size() >= 2, "signal", "hold two values or more", static_cast<double>(signal.size()));
    const hs::numeric::RealTransform transform(signal.size());
    transform.forward(signal.data());
    std::vector<double> spectrum = signal;
    transform.backward(signal.data());
    return {std::move(spectrum), signal, hs::numeric::fft_relative_error(signal.size())};
}

}  // namespace

void bind_pld(door::Module& m) {
    m.def("pld_bracket", pld_bracket, py::arg("ledger"), py::arg("forward"), py::arg("for_epsilon"), py::arg("value"),
          py::arg("interval"), py::arg("tolerance"), py::arg("floor") = 0.0);
    m.def("composed_pair", composed_pair, py::arg("ledger"), py::arg("forward"), py::arg("raised"), py::arg("points"));
    m.def("fft_round_trip", fft_round_trip, py::arg("signal"));
}

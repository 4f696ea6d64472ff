#include <complex>

#include <hockeystick/pld/composed_pair.hpp>
#include <hockeystick/pld/composition.hpp>

#include "bind.hpp"
#include "grid.hpp"
#include "ledger.hpp"

namespace {

namespace hs = hockeystick;

hs::loss::Loss loss_of(const std::string& kind, const std::vector<double>& parameters, double rate, bool forward) {
    return hs::loss::make_loss({kind, parameters, rate}, forward);
}

std::vector<hs::pld::Step> steps_of(const std::vector<ledger::Entry>& entries, bool forward) {
    std::vector<hs::pld::Step> steps;
    for (const ledger::Entry& entry : entries)
        steps.push_back({hs::loss::make_loss(ledger::mechanism_of(entry), forward), std::get<3>(entry)});
    return steps;
}

// Returns (lower, upper, interval, coarsened, work) of one direction. An upper end not above `floor` is not narrowed.
std::tuple<double, double, double, bool, double> pld_bracket(const std::vector<ledger::Entry>& entries, bool forward,
                                                             bool for_epsilon, double value, double interval,
                                                             double tolerance, double floor) {
    hs::pld::PldBracket result{};
    grid::run_in_worker([&](const std::atomic<bool>& stop) {
        std::vector<hs::pld::Step> steps = steps_of(entries, forward);
        hs::pld::PldSettings settings;
        settings.interval = interval;
        settings.tolerance = tolerance;
        settings.floor = floor;
        settings.stop = &stop;
        const hs::pld::Composition composition(std::move(steps), settings);
        result = for_epsilon ? composition.epsilon(value) : composition.delta(value);
    });
    return {result.lower, result.upper, result.interval, result.coarsened, result.work};
}

// Returns the outcomes' masses (p, q) of a pair that leaks at least, or at most, what one direction of a composition does.
std::pair<std::vector<double>, std::vector<double>> composed_pair(const std::vector<ledger::Entry>& entries,
                                                                  bool forward, bool raised, double points) {
    hs::pld::DiscretePair pair;
    grid::run_in_worker([&](const std::atomic<bool>& stop) {
        pair = hs::pld::composed_pair(steps_of(entries, forward), raised, points, &stop);
    });
    return {pair.p, pair.q};
}

double one_step_delta(const std::string& kind, const std::vector<double>& parameters, double rate, bool forward,
                      double eps) {
    return loss_of(kind, parameters, rate, forward)->delta(eps);
}

// Returns (p_below, p_above, q_below, q_above, p_infinite).
std::tuple<double, double, double, double, double>
one_step_masses(const std::string& kind, const std::vector<double>& parameters, double rate, bool forward, double eps) {
    const hs::loss::Loss loss = loss_of(kind, parameters, rate, forward);
    const hs::loss::LossMasses m = loss->masses(eps);
    return {m.p_below, m.p_above, m.q_below, m.q_above, loss->p_infinite()};
}

std::pair<double, double> one_step_support(const std::string& kind, const std::vector<double>& parameters, double rate,
                                           bool forward) {
    const hs::loss::Loss loss = loss_of(kind, parameters, rate, forward);
    return {loss->lowest(), loss->highest()};
}

// Returns (forward transform of the signal, transform of that back, relative error promised for each).
std::tuple<std::vector<std::complex<double>>, std::vector<double>, double> fft_round_trip(std::vector<double> signal) {
    const std::size_t n = signal.size();
    const hs::numeric::RealTransform transform(n);
    transform.forward(signal.data());
    std::vector<std::complex<double>> spectrum{{signal[0], 0.0}};
    for (std::size_t k = 1; 2 * k < n; ++k) spectrum.emplace_back(signal[2 * k - 1], signal[2 * k]);
    spectrum.emplace_back(signal[n - 1], 0.0);
    transform.backward(signal.data());
    return {spectrum, signal, hs::numeric::fft_relative_error(n)};
}

}  // namespace

void bind_pld(py::module_& m) {
    m.def("pld_bracket", pld_bracket, py::arg("ledger"), py::arg("forward"), py::arg("for_epsilon"), py::arg("value"),
          py::arg("interval"), py::arg("tolerance"), py::arg("floor") = 0.0);
    m.def("composed_pair", composed_pair, py::arg("ledger"), py::arg("forward"), py::arg("raised"), py::arg("points"));
    m.def("one_step_delta", one_step_delta, py::arg("kind"), py::arg("parameters"), py::arg("rate"), py::arg("forward"),
          py::arg("eps"));
    m.def("one_step_masses", one_step_masses, py::arg("kind"), py::arg("parameters"), py::arg("rate"),
          py::arg("forward"), py::arg("eps"));
    m.def("one_step_support", one_step_support, py::arg("kind"), py::arg("parameters"), py::arg("rate"),
          py::arg("forward"));
    m.def("fft_round_trip", fft_round_trip, py::arg("signal"));
}

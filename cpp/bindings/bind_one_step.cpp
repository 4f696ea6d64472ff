#include <hockeystick/loss/one_step.hpp>

#include "bind.hpp"

namespace {

namespace hs = hockeystick;

hs::loss::OneStep step_of(const std::string& kind, const std::vector<double>& parameters, double rate, bool forward) {
    return hs::loss::OneStep({kind, parameters, rate}, forward);
}

// Returns (lower, upper) of one direction.
std::pair<double, double> one_step_bracket(const std::string& kind, const std::vector<double>& parameters, double rate,
                                           bool forward, bool for_epsilon, double value) {
    const hs::loss::OneStep step = step_of(kind, parameters, rate, forward);
    const hs::numeric::Interval result = for_epsilon ? step.epsilon(value) : step.delta(value);
    return {result.lower, result.upper};
}

// Returns (lower, upper) of the largest finite loss, then of the mass with an infinite one.
std::tuple<double, double, double, double>
one_step_limits(const std::string& kind, const std::vector<double>& parameters, double rate, bool forward) {
    const hs::loss::OneStep step = step_of(kind, parameters, rate, forward);
    const hs::numeric::Interval highest = step.highest(), infinite = step.infinite_mass();
    return {highest.lower, highest.upper, infinite.lower, infinite.upper};
}

}  // namespace

void bind_one_step(py::module_& m) {
    m.def("one_step_bracket", one_step_bracket, py::arg("kind"), py::arg("parameters"), py::arg("rate"),
          py::arg("forward"), py::arg("for_epsilon"), py::arg("value"));
    m.def("one_step_limits", one_step_limits, py::arg("kind"), py::arg("parameters"), py::arg("rate"),
          py::arg("forward"));
}

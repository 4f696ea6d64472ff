// The accountant (accounting/accountant.hpp) for Python, and its answers.
#include <hockeystick/accounting/accountant.hpp>

#include "active_kernels.hpp"
#include "bind.hpp"
#include "contour_cache.hpp"
#include "grid.hpp"
#include "steps.hpp"

namespace {

namespace hs = hockeystick;

using hs::accounting::Accountant;
using hs::accounting::Answer;

// An accountant that runs long jobs in a worker thread, while the calling thread looks for signals
// such as Ctrl-C.
std::unique_ptr<Accountant> make_accountant() {
    return std::make_unique<Accountant>(active::kernels().contour, &contour_cache(), grid::run_long_job);
}

std::vector<Answer> answers(const Accountant& accountant, bool for_epsilon, double value, const std::string& engine,
                            bool upper_only) {
    const hs::accounting::EngineChoice choice = hs::accounting::engine_named(engine);
    const py::gil_scoped_release released;
    return accountant.answers({for_epsilon, value}, {choice, upper_only});
}

void bind_answer(py::module_& m) {
    const auto share = [](double hs::contour::ContourResult::* member) {
        return [member](const Answer& self) { return self.contour.*member; };
    };
    py::class_<Answer>(m, "Answer")
        .def_readonly("lower", &Answer::lower)
        .def_readonly("upper", &Answer::upper)
        .def_property_readonly("method", [](const Answer& self) { return hs::accounting::name_of(self.method); })
        .def_readonly("both_directions", &Answer::both_directions)
        .def_property_readonly("forward",
                               [](const Answer& self) { return self.direction == hs::mechanism::Direction::remove; })
        .def_property_readonly("nodes", [](const Answer& self) { return self.contour.nodes; })
        .def_property_readonly("slices", [](const Answer& self) { return self.contour.slices; })
        .def_property_readonly("tilt", share(&hs::contour::ContourResult::tilt))
        .def_property_readonly("log_upper", share(&hs::contour::ContourResult::log_upper))
        .def_property_readonly("alias", share(&hs::contour::ContourResult::alias))
        .def_property_readonly("truncation", share(&hs::contour::ContourResult::truncation))
        .def_property_readonly("rounding", share(&hs::contour::ContourResult::rounding))
        .def_property_readonly("smoothing", share(&hs::contour::ContourResult::smoothing))
        .def_property_readonly("missing", share(&hs::contour::ContourResult::missing))
        .def_property_readonly("tried",
                               [](const Answer& self) {
                                   std::vector<std::tuple<std::string, double, double, std::size_t>> rows;
                                   for (const hs::contour::Tried& one : self.tried)
                                       if (one.usable) rows.emplace_back(one.strategy, one.lower, one.upper, one.nodes);
                                   return rows;
                               })
        .def_property_readonly("pairs", &Answer::pairs_share)
        .def_readonly("interval", &Answer::interval)
        .def_readonly("order", &Answer::order)
        .def_readonly("coarsened", &Answer::coarsened);
}

void bind_queries(py::module_& m) {
    py::class_<Accountant>(m, "Accountant")
        .def(py::init(&make_accountant))
        .def(
            "compose",
            [](Accountant& self, const steps::Held& pair, double count, bool upper) {
                self.compose_for(steps::end_of(upper), pair, count);
            },
            py::arg("pair").none(false), py::arg("count"), py::arg("upper"))
        .def("answers", answers, py::arg("for_epsilon"), py::arg("value"), py::arg("engine"), py::arg("upper_only"))
        .def(
            "steps",
            [](const Accountant& self, bool upper) {
                const hs::accounting::StepsBetween both = self.steps();
                steps::Counted result;
                for (const hs::mechanism::CountedPair& step : upper ? both.above : both.below)
                    result.emplace_back(steps::held(step.pair), step.count);
                return result;
            },
            py::arg("upper"));
}

}  // namespace

void bind_accounting(py::module_& m) {
    bind_answer(m);
    bind_queries(m);
}

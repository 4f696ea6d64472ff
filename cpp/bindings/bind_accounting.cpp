#include <hockeystick/accounting/accountant.hpp>

#include "bind.hpp"
#include "contour_cache.hpp"
#include "grid.hpp"
#include "steps.hpp"

namespace {

namespace hs = hockeystick;

using hs::accounting::Accountant;
using hs::accounting::Answer;

// An accountant whose long jobs wait for signals in the calling thread.
std::unique_ptr<Accountant> make_accountant(const hs::simd::Kernels& kernels) {
    const auto in_worker = [](const std::function<void(const std::atomic<bool>&)>& body) {
        const py::gil_scoped_acquire held;
        grid::run_in_worker(body);
    };
    return std::make_unique<Accountant>(kernels, &contour_cache(), in_worker);
}

std::vector<Answer> answers(const Accountant& accountant, bool for_epsilon, double value,
                            hs::accounting::EngineChoice engine, bool upper_only) {
    const py::gil_scoped_release released;
    return accountant.answers({for_epsilon, value}, {engine, upper_only});
}

void bind_answer(py::module_& m) {
    using hs::accounting::Method;
    py::native_enum<Method>(m, "Method", "enum.Enum")
        .value("none", Method::none)
        .value("nothing_composed", Method::nothing_composed)
        .value("one_step", Method::one_step)
        .value("one_step_between_pairs", Method::one_step_between_pairs)
        .value("gaussian", Method::gaussian)
        .value("infinite_mass", Method::infinite_mass)
        .value("largest_loss", Method::largest_loss)
        .value("total_variation", Method::total_variation)
        .value("beyond_largest_loss", Method::beyond_largest_loss)
        .value("contour", Method::contour)
        .value("pld", Method::pld)
        .value("gaussian_without_sampling", Method::gaussian_without_sampling)
        .value("near_largest_loss", Method::near_largest_loss)
        .finalize();
    const auto share = [](double hs::contour::ContourResult::* member) {
        return [member](const Answer& self) { return self.contour.*member; };
    };
    py::class_<Answer>(m, "Answer")
        .def_readonly("lower", &Answer::lower)
        .def_readonly("upper", &Answer::upper)
        .def_readonly("method", &Answer::method)
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
        .def_readonly("interval", &Answer::interval)
        .def_readonly("coarsened", &Answer::coarsened);
}

void bind_queries(py::module_& m, const hs::simd::Kernels& kernels) {
    using hs::accounting::EngineChoice;
    py::native_enum<EngineChoice>(m, "EngineChoice", "enum.Enum")
        .value("auto", EngineChoice::best)
        .value("contour", EngineChoice::contour)
        .value("pld", EngineChoice::pld)
        .finalize();
    py::class_<Accountant>(m, "Accountant")
        .def(py::init([&kernels] { return make_accountant(kernels); }))
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

void bind_accounting(py::module_& m, const hs::simd::Kernels& kernels) {
    bind_answer(m);
    bind_queries(m, kernels);
}

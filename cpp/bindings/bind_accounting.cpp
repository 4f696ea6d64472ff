// The accountant (accounting/accountant.hpp) for Python, its answers, and shuffled batches.
#include <hockeystick/accounting/shuffled_batches.hpp>

#include "active_kernels.hpp"
#include "bind.hpp"
#include "contour_cache.hpp"
#include "grid.hpp"
#include "remembered.hpp"
#include "steps.hpp"

namespace {

namespace hs = hockeystick;

using hs::accounting::Accountant;
using hs::accounting::Answer;
using hs::accounting::AttainedEpoch;

// An accountant that runs long jobs in a worker thread, while the calling thread looks for signals
// such as Ctrl-C.
Accountant make_accountant() { return Accountant(active::kernels().contour, &contour_cache(), grid::run_long_job); }

std::vector<Answer> answers(const Accountant& accountant, bool for_epsilon, double value, const std::string& engine,
                            bool upper_only) {
    const hs::accounting::EngineChoice choice = hs::accounting::engine_named(engine);
    const py::gil_scoped_release released;
    return accountant.answers({for_epsilon, value}, {choice, upper_only});
}

void bind_answer(door::Module& m) {
    const auto share = [](double hs::contour::ContourResult::* member) {
        return [member](const Answer& self) { return self.contour.*member; };
    };
    door::Class<Answer>(m, "Answer")
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
                                       if (one.usable) rows.emplace_back(one.name(), one.lower, one.upper, one.nodes);
                                   return rows;
                               })
        .def_property_readonly("numerical", &Answer::numerical_share)
        .def_property_readonly("pairs", &Answer::pairs_share)
        .def_readonly("interval", &Answer::interval)
        .def_readonly("order", &Answer::order)
        .def_readonly("coarsened", &Answer::coarsened);
}

void bind_queries(door::Module& m) {
    door::Class<Accountant>(m, "Accountant")
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
                const hs::accounting::BracketingSteps both = self.steps();
                steps::Counted result;
                for (const hs::mechanism::CountedPair& step : upper ? both.above : both.below)
                    result.emplace_back(steps::held(step.pair), step.count);
                return result;
            },
            py::arg("upper"));
}

// (the least bound of epsilon or delta by Renyi divergences, its order).
std::pair<double, double> renyi_bound(const std::vector<double>& orders, const std::vector<double>& divergences,
                                      bool for_epsilon, double value) {
    if (orders.empty() || orders.size() != divergences.size())
        throw std::invalid_argument("orders and divergences must be as many, and at least one");
    const hs::accounting::RenyiBound found =
        hs::accounting::least_renyi_bound(orders, divergences, {for_epsilon, value});
    return {found.value, found.order};
}

// What an epoch of shuffled batches attains takes some ten milliseconds, a tenth of a second at
// worst; it is computed in a worker that Ctrl-C stops.
std::vector<AttainedEpoch> attained_epochs(double noise_multiplier, double num_batches) {
    static Remembered<std::pair<double, double>, std::vector<AttainedEpoch>> known(16);
    return known.get({noise_multiplier, num_batches}, [&] {
        std::vector<AttainedEpoch> found;
        grid::run_in_worker([&](const std::atomic<bool>& stop) {
            found = hs::accounting::attained_epochs(noise_multiplier, num_batches, &stop);
        });
        return found;
    });
}

// (lower, upper, what attains the lower end).
std::tuple<double, double, std::string> shuffled_batches(bool for_epsilon, double value, double noise_multiplier,
                                                         double num_batches, double epochs) {
    const std::vector<AttainedEpoch> attained = attained_epochs(noise_multiplier, num_batches);
    const py::gil_scoped_release released;
    const hs::accounting::ShuffledAnswer answer = hs::accounting::shuffled_batches(
        {noise_multiplier, num_batches, epochs}, attained, {for_epsilon, value}, make_accountant);
    return {answer.ends.lower, answer.ends.upper, answer.by};
}

void bind_shuffled_batches(door::Module& m) {
    m.def("shuffled_batches", shuffled_batches, py::arg("for_epsilon"), py::arg("value"), py::arg("noise_multiplier"),
          py::arg("num_batches"), py::arg("epochs"));
    // One pair for each name of what attains it, for tests against integrals and fractions.
    m.def(
        "attained_epochs",
        [](double noise_multiplier, double num_batches) {
            std::vector<std::pair<std::string, steps::Held>> found;
            for (const AttainedEpoch& epoch : attained_epochs(noise_multiplier, num_batches))
                found.emplace_back(epoch.by, steps::held(epoch.pair));
            return found;
        },
        py::arg("noise_multiplier"), py::arg("num_batches"));
}

}  // namespace

void bind_accounting(door::Module& m) {
    bind_answer(m);
    bind_queries(m);
    m.def("renyi_bound", renyi_bound, py::arg("orders"), py::arg("divergences"), py::arg("for_epsilon"),
          py::arg("value"));
    bind_shuffled_batches(m);
}

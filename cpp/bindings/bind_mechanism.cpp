// Pairs (mechanism/pair.hpp) for Python: their queries, and a function that makes each of them.
#include <hockeystick/loss/one_step.hpp>
#include <hockeystick/mechanism/registry.hpp>

#include "bind.hpp"
#include "steps.hpp"

namespace {

namespace hs = hockeystick;
namespace mechanism = hockeystick::mechanism;

using mechanism::Pair;
using steps::Held;
using Vector = std::vector<double>;

hs::loss::OneStep one_step(const Pair& pair, bool forward) {
    return hs::loss::OneStep(pair.loss(steps::direction_of(forward)));
}

void require_number(const char* name, double value) {
    hs::numeric::require(value == value, name, "be a number", value);
}

// (lower, upper) of one direction.
std::pair<double, double> bracket(const Pair& pair, bool forward, bool for_epsilon, double value) {
    steps::require_question(for_epsilon, value);
    const hs::loss::OneStep step = one_step(pair, forward);
    const hs::numeric::Interval found = for_epsilon ? step.epsilon(value) : step.delta(value);
    return {found.lower, found.upper};
}

// (lower, upper) of the largest finite loss, then of the mass with an infinite one.
std::tuple<double, double, double, double> limits(const Pair& pair, bool forward) {
    const hs::loss::OneStep step = one_step(pair, forward);
    const hs::numeric::Interval highest = step.highest(), infinite = step.infinite_mass();
    return {highest.lower, highest.upper, infinite.lower, infinite.upper};
}

// (p_below, p_above, q_below, q_above, p_infinite)
std::tuple<double, double, double, double, double> masses(const Pair& pair, bool forward, double eps) {
    require_number("epsilon", eps);
    const hs::loss::Loss loss = pair.loss(steps::direction_of(forward));
    const hs::loss::LossMasses m = loss->masses(eps);
    return {m.p_below, m.p_above, m.q_below, m.q_above, loss->p_infinite()};
}

void bind_queries(door::Class<Pair, Held>& pair) {
    pair.def("one_step", bracket, py::arg("forward"), py::arg("for_epsilon"), py::arg("value"))
        .def("limits", limits, py::arg("forward"))
        .def("masses", masses, py::arg("forward"), py::arg("epsilon"))
        .def(
            "delta",
            [](const Pair& self, bool forward, double eps) {
                require_number("epsilon", eps);
                return self.loss(steps::direction_of(forward))->delta(eps);
            },
            py::arg("forward"), py::arg("epsilon"))
        .def(
            "renyi",
            [](const Pair& self, double order, bool forward) {
                hs::numeric::require(order >= 1.0 && order <= 1e5, "order", "lie in [1, 100000]", order);
                return self.renyi(order, 1.0, steps::direction_of(forward));
            },
            py::arg("order"), py::arg("forward"));
}

template <class Mechanism> Held of_weighted_shifts(Vector shifts, Vector weights) {
    return std::make_shared<Mechanism>(mechanism::WeightedShifts{std::move(shifts), std::move(weights)});
}

void bind_continuous(door::Module& m) {
    m.def("nothing", [] { return steps::held(mechanism::nothing()); });
    m.def("gaussian", [](double x) { return steps::held(mechanism::gaussian(x)); }, py::arg("noise_multiplier"));
    m.def(
        "gaussian_of_shift", [](double x) -> Held { return steps::held(mechanism::Gaussian::of_shift(x)); },
        py::arg("shift"));
    m.def("laplace", [](double x) { return steps::held(mechanism::laplace(x)); }, py::arg("noise_multiplier"));
    m.def(
        "laplace_of_shift", [](double x) -> Held { return steps::held(mechanism::Laplace::of_shift(x)); },
        py::arg("shift"));
    m.def(
        "bounded_range",
        [](double range, bool upper) { return steps::held(mechanism::bounded_range(range, steps::end_of(upper))); },
        py::arg("range"), py::arg("upper") = true);
    m.def("gaussian_mixture", of_weighted_shifts<mechanism::GaussianMixture>, py::arg("shifts"), py::arg("weights"));
    m.def("labelled_gaussian", of_weighted_shifts<mechanism::LabelledGaussian>, py::arg("shifts"), py::arg("weights"));
}

void bind_discrete(door::Module& m) {
    m.def(
        "discrete", [](Vector p, Vector q) { return steps::held(mechanism::discrete(std::move(p), std::move(q))); },
        py::arg("p"), py::arg("q"));
    m.def(
        "discrete_pairs",
        [](Vector p, Vector q, Vector added_p, Vector added_q) -> Held {
            return std::make_shared<mechanism::DiscretePairs>(
                mechanism::Masses{std::move(p), std::move(q)},
                mechanism::Masses{std::move(added_p), std::move(added_q)});
        },
        py::arg("p"), py::arg("q"), py::arg("added_p"), py::arg("added_q"));
    m.def(
        "approximate_dp",
        [](double epsilon, double delta) { return steps::held(mechanism::approximate_dp(epsilon, delta)); },
        py::arg("epsilon"), py::arg("delta"));
    m.def(
        "permute_and_flip",
        [](double epsilon, bool upper) {
            return steps::held(mechanism::permute_and_flip(epsilon, steps::end_of(upper)));
        },
        py::arg("epsilon"), py::arg("upper"));
    m.def(
        "two_candidates",
        [](double distance, bool gaussian) {
            const auto noise = gaussian ? mechanism::CandidateNoise::gaussian : mechanism::CandidateNoise::laplace;
            return steps::held(mechanism::made<mechanism::TwoCandidates>(distance, noise));
        },
        py::arg("distance"), py::arg("gaussian"));
    m.def(
        "discrete_gaussian",
        [](double sigma, double sensitivity) { return steps::held(mechanism::discrete_gaussian(sigma, sensitivity)); },
        py::arg("sigma"), py::arg("sensitivity"));
    m.def(
        "discrete_laplace",
        [](double parameter, double moved) { return steps::held(mechanism::discrete_laplace(parameter, moved)); },
        py::arg("parameter"), py::arg("sensitivity"));
    m.def(
        "randomized_response",
        [](double noise, double buckets) { return steps::held(mechanism::randomized_response(noise, buckets)); },
        py::arg("noise_probability"), py::arg("num_buckets"));
}

void bind_sampled(door::Module& m) {
    m.def(
        "replaced_gaussian",
        [](double shift, double rate) -> Held { return std::make_shared<mechanism::ReplacedGaussian>(shift, rate); },
        py::arg("shift"), py::arg("sampling_rate"));
    m.def(
        "truncated_poisson",
        [](double shift, double rate, double last, double excess, double swapped, int change) -> Held {
            return std::make_shared<mechanism::TruncatedPoisson>(
                shift, rate, mechanism::Truncation{last, excess, swapped}, steps::change_of(change));
        },
        py::arg("shift"), py::arg("sampling_rate"), py::arg("last"), py::arg("excess"), py::arg("swapped"),
        py::arg("change"));
    m.def(
        "poisson_sampled",
        [](const Held& base, double rate, bool upper) {
            return steps::held(mechanism::poisson_sampled(base, rate, steps::end_of(upper)));
        },
        py::arg("pair").none(false), py::arg("sampling_rate"), py::arg("upper") = true);
    m.def(
        "fixed_size_sampled",
        [](const Held& base, double rate) -> Held { return std::make_shared<mechanism::FixedSizeSampled>(base, rate); },
        py::arg("pair").none(false), py::arg("rate"));
}

}  // namespace

void bind_mechanism(door::Module& m) {
    door::Class<Pair, Held> pair(m, "Pair");
    pair.def_property_readonly("symmetric", &Pair::symmetric)
        .def_property_readonly("leaks", &Pair::leaks)
        .def_property_readonly("is_gaussian", &Pair::is_gaussian)
        .def_property_readonly("gaussian_shift", [](const Pair& self) { return self.gaussian_noise().shift; })
        .def_property_readonly("concentrated_shift", &Pair::concentrated_shift)
        .def_property_readonly("parameters", &Pair::parameters)
        .def_property_readonly("base", [](const Pair& self) { return steps::held(self.base()); })
        .def("__eq__",
             [](const Pair& self, const py::object& other) {
                 return py::isinstance<Pair>(other) && self.equals(*other.cast<Held>());
             })
        .def("__hash__", &Pair::hash);
    bind_queries(pair);
    bind_continuous(m);
    bind_discrete(m);
    bind_sampled(m);
}

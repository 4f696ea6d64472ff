// What one step releases (release/): composed, sampled and shuffled steps as pairs.
#include <hockeystick/release/allocated_steps.hpp>
#include <hockeystick/release/fixed_size_sampled.hpp>
#include <hockeystick/release/gaussian_mixture.hpp>
#include <hockeystick/release/integer_noise.hpp>
#include <hockeystick/release/normalised.hpp>
#include <hockeystick/release/poisson_sampled.hpp>
#include <hockeystick/release/privacy_profile.hpp>
#include <hockeystick/release/shuffled.hpp>
#include <hockeystick/release/trade_off.hpp>
#include <hockeystick/release/truncated_poisson_sampled.hpp>

#include "bind.hpp"
#include "grid.hpp"
#include "remembered.hpp"
#include "steps.hpp"

namespace {

namespace hs = hockeystick;
namespace mechanism = hockeystick::mechanism;
namespace release = hockeystick::release;

using steps::Counted;
using steps::Held;
using Vector = std::vector<double>;

struct MergeKey {
    mechanism::Steps steps;
    mechanism::Direction direction;
    mechanism::End end;

    bool operator==(const MergeKey& other) const {
        return direction == other.direction && end == other.end && mechanism::equal(steps, other.steps);
    }
};

// Computes in a worker that Ctrl-C stops. A thread without the interpreter's lock, as that of an
// engine which asks for a table, computes it itself.
template <class Value, class Make> Value in_worker(const Make& make) {
    if (!PyGILState_Check()) return make(nullptr);
    Value value{};
    grid::run_in_worker([&](const std::atomic<bool>& stop) { value = make(&stop); });
    return value;
}

// A merged pair takes tenths of a second, and every question about a sample asks for it.
mechanism::Masses merge(const mechanism::Steps& steps, mechanism::Direction direction, mechanism::End end) {
    static Remembered<MergeKey, mechanism::Masses> known(64);
    return known.get({steps, direction, end}, [&] {
        return in_worker<mechanism::Masses>(
            [&](const std::atomic<bool>* stop) { return release::merged_pair(steps, direction, end, stop); });
    });
}

mechanism::PairPointer allocate(const release::Selection& s, mechanism::End end) {
    static Remembered<std::tuple<double, std::int64_t, std::int64_t, mechanism::End>, mechanism::PairPointer> known(16);
    return known.get({s.shift, s.steps, s.selected, end}, [&] {
        return in_worker<mechanism::PairPointer>(
            [&](const std::atomic<bool>* stop) { return release::allocated(s, end, stop); });
    });
}

struct ReleaseKey {
    mechanism::Steps steps;
    release::Share share;
    mechanism::End end;

    bool operator==(const ReleaseKey& other) const {
        return share.steps == other.share.steps && share.selected == other.share.selected && end == other.end &&
               mechanism::equal(steps, other.steps);
    }
};

mechanism::PairPointer allocate_release(const mechanism::Steps& steps, const release::Share& share,
                                        mechanism::End end) {
    static Remembered<ReleaseKey, mechanism::PairPointer> known(16);
    return known.get({steps, share, end}, [&] {
        return in_worker<mechanism::PairPointer>(
            [&](const std::atomic<bool>* stop) { return release::allocated_release(steps, share, end, merge, stop); });
    });
}

Held shuffled(double epsilon0, double num_users, bool randomized_response, bool upper) {
    static Remembered<std::tuple<double, double, bool, bool>, mechanism::PairPointer> known(64);
    return steps::held(known.get({epsilon0, num_users, randomized_response, upper}, [&] {
        return in_worker<mechanism::PairPointer>([&](const std::atomic<bool>* stop) {
            return release::shuffled({epsilon0, num_users, randomized_response}, steps::end_of(upper), stop);
        });
    }));
}

Counted held_steps(const mechanism::Steps& steps) {
    Counted result;
    for (const mechanism::CountedPair& step : steps) result.emplace_back(steps::held(step.pair), step.count);
    return result;
}

Counted allocated_steps(const Counted& entries, double num_steps, double num_selected, bool upper) {
    return held_steps(release::allocated_steps(steps::counted(entries), {num_steps, num_selected}, steps::end_of(upper),
                                               {allocate_release, allocate}));
}

mechanism::PairPointer replace_release(const mechanism::Steps& steps, const mechanism::Steps& own,
                                       const release::Share& share, mechanism::End end) {
    static Remembered<ReleaseKey, mechanism::PairPointer> known(16);
    const bool upper = end == mechanism::End::upper, one = share.selected == 1;
    const mechanism::PairPointer above =
        one && !upper ? replace_release(steps, own, share, mechanism::End::upper) : nullptr;
    mechanism::Steps both = steps;
    both.insert(both.end(), own.begin(), own.end());
    return known.get({both, share, end}, [&] {
        return in_worker<mechanism::PairPointer>([&](const std::atomic<bool>* stop) {
            if (!one) return release::replaced_subset(steps, share, merge, stop);
            return upper ? release::replaced_above(steps, own, share.steps, merge, stop)
                         : release::replaced_below(steps, above, share.steps, merge, stop);
        });
    });
}

Counted replaced_allocation(const Counted& entries, const Counted& own, double num_steps, double num_selected,
                            bool on_line, bool upper) {
    const mechanism::Steps all = steps::counted(entries), alone = steps::counted(own);
    const release::Allocation epoch{num_steps, num_selected};
    if (upper) return held_steps(release::replaced_upper(all, alone, epoch, replace_release));
    return held_steps(
        release::replaced_lower(all, alone, epoch, on_line, {allocate_release, allocate}, replace_release));
}

std::pair<Vector, Vector> merge_discrete(const Counted& entries, bool forward, bool upper) {
    mechanism::Masses pair =
        release::merge_discrete(steps::counted(entries), steps::direction_of(forward), steps::end_of(upper), merge);
    return {std::move(pair.p), std::move(pair.q)};
}

Counted privacy_profile(Vector epsilons, Vector remove, Vector add, bool upper) {
    return held_steps(
        release::privacy_profile({std::move(epsilons), std::move(remove), std::move(add)}, steps::end_of(upper)));
}

std::tuple<Vector, Vector, Vector> lists(release::Profile profile) {
    return {std::move(profile.epsilons), std::move(profile.remove), std::move(profile.add)};
}

auto trade_off_profile(const Vector& rates, const Vector& missed, bool symmetric, bool upper) {
    const std::vector<release::Corner> with = release::corners_of(rates, missed);
    return lists(release::trade_off_profile(with, release::mirrored(with), symmetric, steps::end_of(upper)));
}

auto tested_profile(const Vector& rates, const Vector& found) {
    const std::vector<release::Corner> tests = release::tests_of(rates, found);
    return lists(release::trade_off_profile(tests, tests, true, mechanism::End::lower));
}

auto trade_off_hull(const Vector& rates, const Vector& missed) {
    return release::corners_below(release::corners_of(rates, missed));
}

auto trade_off_tangents(const Vector& rates, const Vector& lows, const Vector& highs) {
    return release::corners_below(release::below_tangents(rates, lows, highs));
}

// The quotient of two sums of doubles, and its error, for tests against fractions.
std::tuple<double, double, double> enclosed_quotient(const Vector& x, const Vector& y) {
    const auto sum = [](const Vector& terms) {
        hs::numeric::Enclosed result;
        for (const double term : terms) result = result + hs::numeric::Enclosed{term};
        return result;
    };
    const hs::numeric::Enclosed quotient = sum(x) / sum(y);
    return {quotient.hi, quotient.lo, quotient.error};
}

void bind_samples(door::Module& m) {
    m.def(
        "as_one",
        [](const Counted& entries, bool upper) {
            return steps::held(release::merge_into_one_pair(steps::counted(entries), steps::end_of(upper), merge));
        },
        py::arg("steps"), py::arg("upper"));
    m.def(
        "poisson_sampled_steps",
        [](const Counted& entries, double rate, bool upper) {
            return steps::held(release::poisson_sampled(steps::counted(entries), rate, steps::end_of(upper), merge));
        },
        py::arg("steps"), py::arg("sampling_rate"), py::arg("upper"));
    m.def(
        "poisson_replaced_steps",
        [](const Counted& entries, double rate, bool one_output, bool upper) {
            return steps::held(
                release::poisson_replaced(steps::counted(entries), rate, one_output, steps::end_of(upper), merge));
        },
        py::arg("steps"), py::arg("sampling_rate"), py::arg("one_output"), py::arg("upper"));
    m.def(
        "fixed_size_steps",
        [](const Counted& entries, double num_records, double batch_size, bool replacement, bool replace, bool upper) {
            return steps::held(release::fixed_size_sampled(
                steps::counted(entries), {num_records, batch_size, replacement}, replace, steps::end_of(upper), merge));
        },
        py::arg("steps"), py::arg("num_records"), py::arg("batch_size"), py::arg("replacement"), py::arg("replace"),
        py::arg("upper"));
    m.def("allocated_steps", allocated_steps, py::arg("steps"), py::arg("num_steps"), py::arg("num_selected"),
          py::arg("upper"));
    m.def("replaced_allocation", replaced_allocation, py::arg("steps"), py::arg("own"), py::arg("num_steps"),
          py::arg("num_selected"), py::arg("on_line"), py::arg("upper"));
}

using Noise = std::shared_ptr<release::IntegerNoise>;

Noise held_noise(const release::IntegerNoisePointer& noise) {
    return std::const_pointer_cast<release::IntegerNoise>(noise);
}

void bind_integer_noise(door::Module& m) {
    using release::IntegerNoise;
    door::Class<IntegerNoise, Noise>(m, "IntegerNoise")
        .def(
            "renyi",
            [](const IntegerNoise& self, double order, double sensitivity, double times, double dimension) {
                return self.renyi(order, {sensitivity, times, dimension});
            },
            py::arg("order"), py::arg("sensitivity"), py::arg("times"), py::arg("dimension"))
        .def(
            "concentration",
            [](const IntegerNoise& self, double sensitivity, double times, double dimension) {
                return self.concentration({sensitivity, times, dimension});
            },
            py::arg("sensitivity"), py::arg("times"), py::arg("dimension"))
        .def(
            "has_pair",
            [](const IntegerNoise& self, double sensitivity, double times, double dimension) {
                return self.has_pair({sensitivity, times, dimension});
            },
            py::arg("sensitivity"), py::arg("times"), py::arg("dimension"))
        .def(
            "pairs",
            [](const IntegerNoise& self, double sensitivity, double times, double dimension, bool upper) {
                return held_steps(in_worker<mechanism::Steps>([&](const std::atomic<bool>* stop) {
                    return self.pairs({sensitivity, times, dimension}, steps::end_of(upper), stop);
                }));
            },
            py::arg("sensitivity"), py::arg("times"), py::arg("dimension"), py::arg("upper"))
        .def_property_readonly("log_range", &IntegerNoise::log_range_of_law);
    m.def(
        "discrete_gaussian_noise", [](double sigma) { return held_noise(release::discrete_gaussian_noise(sigma)); },
        py::arg("sigma"));
    m.def(
        "sum_of_discrete_gaussian_noise",
        [](double sigma, double clients) {
            return held_noise(release::sum_of_discrete_gaussian_noise(sigma, clients));
        },
        py::arg("sigma"), py::arg("clients"));
    m.def(
        "skellam_noise", [](double variance) { return held_noise(release::skellam_noise(variance)); },
        py::arg("variance"));
}

}  // namespace

void bind_release(door::Module& m) {
    bind_samples(m);
    bind_integer_noise(m);
    m.def(
        "truncated_poisson_sampled",
        [](double noise_multiplier, double num_records, double rate, double max_batch_size, int change, bool upper) {
            return steps::held(release::truncated_poisson_sampled(noise_multiplier, {num_records, rate, max_batch_size},
                                                                  steps::change_of(change), steps::end_of(upper)));
        },
        py::arg("noise_multiplier"), py::arg("num_records"), py::arg("sampling_rate"), py::arg("max_batch_size"),
        py::arg("change"), py::arg("upper"));
    m.def(
        "mixture_of_gaussians",
        [](double noise_multiplier, Vector sensitivities, Vector probabilities, bool upper) {
            return steps::held(release::mixture_of_gaussians(
                noise_multiplier, {std::move(sensitivities), std::move(probabilities)}, steps::end_of(upper)));
        },
        py::arg("noise_multiplier"), py::arg("sensitivities"), py::arg("probabilities"), py::arg("upper"));
    m.def("shuffled", shuffled, py::arg("epsilon0"), py::arg("num_users"), py::arg("randomized_response"),
          py::arg("upper"));
    m.def("merge_discrete", merge_discrete, py::arg("steps"), py::arg("forward"), py::arg("upper"));
    m.def("privacy_profile", privacy_profile, py::arg("epsilons"), py::arg("remove"), py::arg("add"), py::arg("upper"));
    m.def("trade_off_profile", trade_off_profile, py::arg("rates"), py::arg("missed"), py::arg("symmetric"),
          py::arg("upper"));
    m.def("tested_profile", tested_profile, py::arg("rates"), py::arg("found"));
    m.def("trade_off_hull", trade_off_hull, py::arg("rates"), py::arg("missed"));
    m.def("trade_off_tangents", trade_off_tangents, py::arg("rates"), py::arg("lows"), py::arg("highs"));
    m.def("enclosed_quotient", enclosed_quotient, py::arg("x"), py::arg("y"));
    m.def("normalised", release::normalised, py::arg("law"));
    m.def("binomial_upper_tail", hs::numeric::binomial_upper_tail, py::arg("trials"), py::arg("rate"),
          py::arg("least"));
}

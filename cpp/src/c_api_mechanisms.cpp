// What the mechanisms of the C API release. Constructors check their parameters; a mechanism that
// has no pair under an adjacency says so when it is composed.
#include "c_api_mechanisms.hpp"

#include <cmath>
#include <memory>
#include <utility>

#include <hockeystick/release/normalised.hpp>
#include <hockeystick/release/poisson_sampled.hpp>

namespace c_api {

namespace {

using hs::mechanism::End;
using hs::mechanism::Masses;
using hs::mechanism::PairPointer;
using hs::mechanism::Steps;
using hs::numeric::require_probability;

Steps once(PairPointer pair) { return {{std::move(pair), 1.0}}; }

// How far one record moves a sum of vectors of norm at most 1.
double sensitivity_of(bool replace) { return replace ? 2.0 : 1.0; }

[[noreturn]] void refuse(const char* name, bool replace, const std::string& reason) {
    throw std::invalid_argument(std::string(name) + " is not supported under " +
                                (replace ? "HS_REPLACE: " : "HS_ADD_OR_REMOVE: ") + reason);
}

// A pair that does not depend on the adjacency, for which its guarantee is taken to hold.
Mechanism guarantee(const char* name, const PairPointer& above, const PairPointer& below) {
    Mechanism made{name, [above, below](bool, End end) { return once(end == End::upper ? above : below); }};
    made.one_adjacency = true;
    return made;
}
Mechanism guarantee(const char* name, const PairPointer& pair) { return guarantee(name, pair, pair); }

void require_sensitivity(double sensitivity, double most, const char* domain) {
    require(hs::numeric::count(sensitivity) && sensitivity <= most, "sensitivity", domain, sensitivity);
}

void require_range(double epsilon) {
    require(epsilon > 0.0 && epsilon <= 600.0, "epsilon", "lie in (0, 600]", epsilon);
}

}  // namespace

std::vector<double> distribution(const double* x, size_t n, const char* name) {
    require_pointer(x, name);
    double sum = 0.0;
    for (size_t i = 0; i < n; ++i) {
        require(x[i] >= 0.0 && x[i] <= 2.0, name, "hold probabilities", x[i]);
        sum += x[i];
    }
    require(std::fabs(sum - 1.0) <= 1e-12, name, "sum to 1 within 1e-12", sum);
    return hs::release::normalised({x, x + n});
}

Mechanism gaussian(double noise_multiplier) {
    hs::mechanism::require_noise_multiplier(noise_multiplier);
    return {"gaussian", [=](bool replace, End) {
                return once(hs::mechanism::gaussian(noise_multiplier / sensitivity_of(replace)));
            }};
}

Mechanism laplace(double noise_multiplier) {
    hs::mechanism::require_noise_multiplier(noise_multiplier);
    return {"laplace", [=](bool replace, End) {
                return once(hs::mechanism::laplace(noise_multiplier / sensitivity_of(replace)));
            }};
}

Mechanism discrete_gaussian(double sigma, double sensitivity) {
    require(sigma >= 1e-3 && sigma <= 1e5, "noise_std", "lie in [0.001, 100000]", sigma);
    require_sensitivity(sensitivity, 1e9, "be an integer in [1, 1000000000]");
    return {"discrete_gaussian", [=](bool replace, End) {
                return once(hs::mechanism::discrete_gaussian(sigma, sensitivity * sensitivity_of(replace)));
            }};
}

Mechanism discrete_laplace(double parameter, double sensitivity) {
    require(hs::numeric::positive(parameter), "inverse_scale", "be positive and finite", parameter);
    require_sensitivity(sensitivity, 1e4, "be an integer in [1, 10000]");
    require(parameter * sensitivity <= 300.0, "inverse_scale times sensitivity", "be at most 300",
            parameter * sensitivity);
    return {"discrete_laplace", [=](bool replace, End) {
                return once(hs::mechanism::discrete_laplace(parameter, sensitivity * sensitivity_of(replace)));
            }};
}

Mechanism integer_noise(const char* name, hs::release::IntegerNoisePointer noise, double sensitivity,
                        double dimension) {
    require(sensitivity >= 1.0 && sensitivity <= 1e9, "sensitivity", "lie in [1, 1000000000]", sensitivity);
    require(dimension == hs::numeric::infinity || hs::numeric::count(dimension), "dimension",
            "be infinite or an integer in [1, 2^53]", dimension);
    if (!noise->has_pair({sensitivity, 1.0, dimension}))
        throw std::invalid_argument(std::string("no dominating pair is known of ") + name +
                                    " with these parameters, but only bounds of Renyi divergences");
    return {name, [=](bool replace, End end) {
                return noise->pairs({sensitivity, sensitivity_of(replace), dimension}, end);
            }};
}

Mechanism randomized_response(double noise_probability, double num_buckets) {
    const PairPointer pair = hs::mechanism::randomized_response(noise_probability, num_buckets);
    return {"randomized_response", [=](bool replace, End) {
                if (!replace)
                    refuse("randomized_response", replace,
                           "a response is replaced, not added or removed; use HS_REPLACE");
                return once(pair);
            }};
}

Mechanism exponential(double epsilon) {
    require_range(epsilon);
    return guarantee("exponential", hs::mechanism::bounded_range(epsilon, End::upper),
                     hs::mechanism::bounded_range(epsilon, End::lower));
}

Mechanism permute_and_flip(double epsilon) {
    require_range(epsilon);
    return guarantee("permute_and_flip", hs::mechanism::permute_and_flip(epsilon, End::upper),
                     hs::mechanism::permute_and_flip(epsilon, End::lower));
}

Mechanism approximate_dp(double epsilon, double delta) {
    return guarantee("approximate_dp", hs::mechanism::approximate_dp(epsilon, delta));
}

Mechanism discrete(const double* p, const double* q, size_t n) {
    std::vector<double> with = distribution(p, n, "p"), without = distribution(q, n, "q");
    return guarantee("discrete", hs::mechanism::discrete(std::move(with), std::move(without)));
}

Mechanism discrete_pairs(Masses removed, Masses added) {
    return guarantee("discrete_pairs",
                     std::make_shared<hs::mechanism::DiscretePairs>(std::move(removed), std::move(added)));
}

Mechanism privacy_profile(const hs::release::Profile& profile) {
    const Steps above = hs::release::privacy_profile(profile, End::upper);
    const Steps below = hs::release::privacy_profile(profile, End::lower);
    Mechanism made{"privacy_profile", [above, below](bool, End end) { return end == End::upper ? above : below; }};
    made.one_adjacency = true;
    return made;
}

Mechanism gaussian_mixture(double noise_multiplier, hs::release::Distances distances) {
    const PairPointer above = hs::release::mixture_of_gaussians(noise_multiplier, distances, End::upper);
    const PairPointer below = hs::release::mixture_of_gaussians(noise_multiplier, distances, End::lower);
    return {"gaussian_mixture", [above, below](bool replace, End end) {
                if (replace) refuse("gaussian_mixture", replace, "the pair is that of a record added or removed");
                return once(end == End::upper ? above : below);
            }};
}

Mechanism shuffled(const hs::release::ShuffledRound& round) {
    const PairPointer pair = hs::release::shuffled(round);
    Mechanism made{"shuffled", [round, pair](bool replace, End end) {
                       if (!replace) refuse("shuffled", replace, "a report is replaced, not added or removed");
                       return once(end == End::upper ? pair : hs::release::shuffled(round, end));
                   }};
    made.least_records = round.num_users;
    return made;
}

Mechanism truncated_poisson(double noise_multiplier, const hs::release::TruncatedSample& sample, bool zeroed_out) {
    hs::mechanism::require_noise_multiplier(noise_multiplier);
    hs::release::require_truncated_sample(sample);
    Mechanism made{"truncated_poisson", [=](bool replace, End end) {
                       using hs::mechanism::Change;
                       const Change comes = zeroed_out ? Change::zeroed : Change::removed;
                       const Change change = replace ? Change::replaced : comes;
                       return once(hs::release::truncated_poisson_sampled(noise_multiplier, sample, change, end));
                   }};
    made.samples = true;
    made.most_records = sample.num_records;
    return made;
}

Mechanism composed(std::vector<std::pair<Mechanism, double>> parts) {
    Mechanism made{"composed", nullptr};
    made.several_outputs = true;
    for (const auto& [part, count] : parts) {
        require_count_or_none(count, "counts");
        if (count == 0.0) continue;
        made.one_adjacency = made.one_adjacency || part.one_adjacency;
        made.samples = made.samples || part.samples;
        made.draws_batch = made.draws_batch || part.draws_batch;
        made.least_records = std::max(made.least_records, part.least_records);
        made.most_records = std::min(made.most_records, part.most_records);
    }
    made.steps = [parts = std::move(parts)](bool replace, End end) {
        Steps all;
        for (const auto& [part, count] : parts)
            if (count > 0.0)
                for (const hs::mechanism::CountedPair& step : part.steps(replace, end))
                    all.push_back({step.pair, step.count * count});
        return all.empty() && end == End::upper ? once(hs::mechanism::nothing()) : all;
    };
    return made;
}

Mechanism poisson_sampled(Mechanism mechanism, double rate) {
    require_rate(rate);
    if (mechanism.draws_batch)
        throw std::invalid_argument(
            "mechanism must not need a fixed number of records, which a Poisson sample has not");
    Mechanism made = mechanism;
    made.name = "poisson_sampled";
    made.samples = true;
    made.steps = [base = std::move(mechanism), rate](bool replace, End end) {
        if (rate == 1.0) return base.steps(replace, end);
        if (!replace || rate == 0.0) return once(hs::release::poisson_sampled(base.steps(replace, end), rate, end));
        if (base.one_adjacency)
            refuse("poisson_sampled", replace, "its mechanism must have a pair for removing a record as well");
        Steps removed;
        try {
            removed = base.steps(false, end);
        } catch (const std::invalid_argument& reason) {
            refuse("poisson_sampled", replace,
                   std::string("its mechanism must have a pair for removing a record, and ") + reason.what());
        }
        return once(hs::release::poisson_replaced(removed, rate, !base.several_outputs, end));
    };
    return made;
}

// The pairs for replacing a record, or none if they are not known.
Steps replaced_or_none(const Mechanism& mechanism, End end) {
    try {
        return mechanism.steps(true, end);
    } catch (const std::invalid_argument&) {
        return {};
    }
}

// Log-concave noise added to one number.
bool is_on_line(const Mechanism& mechanism) {
    const std::string name = mechanism.name;
    return name == "gaussian" || name == "laplace" || name == "discrete_gaussian" || name == "discrete_laplace";
}

Mechanism allocated(Mechanism mechanism, const hs::release::Allocation& epoch) {
    hs::release::require_epoch(epoch);
    if (mechanism.draws_batch)
        throw std::invalid_argument("mechanism must not need a fixed number of records, which a batch has not");
    Mechanism made = mechanism;
    made.name = "random_allocation";
    made.several_outputs = true;
    made.steps = [base = std::move(mechanism), epoch](bool replace, End end) {
        if (epoch.num_selected == epoch.num_steps) {
            Steps all = base.steps(replace, end);
            for (hs::mechanism::CountedPair& step : all) step.count *= epoch.num_steps;
            return all;
        }
        if (replace && base.one_adjacency)
            refuse("random_allocation", replace, "its mechanism must have a pair for removing a record as well");
        const auto removed = [&]() -> Steps {
            try {
                return base.steps(false, end);
            } catch (const std::invalid_argument& reason) {
                if (!replace) throw;
                refuse("random_allocation", replace,
                       std::string("its mechanism must have a pair for removing a record, and ") + reason.what());
            }
        };
        if (!replace) return hs::release::allocated_steps(removed(), epoch, end, hs::release::allocators_now());
        return hs::release::replaced_epoch(removed(), replaced_or_none(base, End::upper), epoch, is_on_line(base), end);
    };
    return made;
}

Mechanism random_allocation(double noise_multiplier, const hs::release::Allocation& epoch) {
    hs::release::require_allocation(noise_multiplier, epoch);
    return allocated(gaussian(noise_multiplier), epoch);
}

Mechanism fixed_size_sampled(Mechanism mechanism, const hs::release::Batch& batch) {
    if (mechanism.draws_batch) throw std::invalid_argument("mechanism must not draw a batch of a data set itself");
    hs::release::require_batch(batch);
    require(batch.batch_size >= mechanism.least_records, "batch_size", "be at least the num_users of its mechanism",
            batch.batch_size);
    require(batch.batch_size <= mechanism.most_records, "batch_size", "be at most the num_records of its mechanism",
            batch.batch_size);
    Mechanism made = mechanism;
    made.name = "fixed_size_sampled";
    made.draws_batch = true;
    made.steps = [base = std::move(mechanism), batch](bool replace, End end) {
        // A lower end needs a data set whose other records show nothing. In a sample of the base's they may show.
        if (end == End::lower && base.samples) return Steps{};
        if (replace && !batch.replacement && batch.batch_size == batch.num_records) return base.steps(replace, end);
        if (!replace && base.one_adjacency)
            refuse("fixed_size_sampled", replace, "its mechanism must have a pair for replacing a record as well");
        const Steps steps = base.steps(true, end);
        try {
            return once(hs::release::fixed_size_sampled(steps, batch, replace, end));
        } catch (const std::invalid_argument& reason) {
            refuse("fixed_size_sampled", replace, reason.what());
        }
    };
    return made;
}

void compose(hs_accountant* accountant, const Mechanism& mechanism, double count) {
    require_count_or_none(count, "count");
    const bool replace = accountant->adjacency == HS_REPLACE;
    const Steps above = mechanism.steps(replace, End::upper), below = mechanism.steps(replace, End::lower);
    for (const Steps* steps : {&above, &below})
        for (const hs::mechanism::CountedPair& step : *steps) require_count_or_none(step.count * count, "count in all");
    for (const hs::mechanism::CountedPair& step : above)
        accountant->accountant.compose_for(End::upper, step.pair, step.count * count);
    for (const hs::mechanism::CountedPair& step : below)
        accountant->accountant.compose_for(End::lower, step.pair, step.count * count);
}

}  // namespace c_api

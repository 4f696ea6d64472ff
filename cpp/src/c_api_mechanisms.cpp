// The mechanisms of the C API. Each function makes its pair, whose constructor checks the
// parameters, and composes it. Only what the constructor cannot name as the caller does is checked
// here.
#include <cmath>
#include <memory>
#include <vector>

#include "c_api_support.hpp"

namespace {

using namespace c_api;
using hs::mechanism::End;
using hs::mechanism::PairPointer;

// How far one record moves a sum of vectors of norm at most 1.
double sensitivity(bool replace) { return replace ? 2.0 : 1.0; }

// Noise on a Poisson sample. noise(multiplier) is the pair for adding or removing one record.
template <class Noise> PairPointer sampled(const Noise& noise, double multiplier, double rate, bool replace) {
    require_noise(multiplier);
    require_rate(rate);
    if (!replace || rate == 0.0 || rate == 1.0)
        return hs::mechanism::poisson_sampled(noise(multiplier / sensitivity(replace)), rate);
    const PairPointer pair = noise(multiplier)->sampled_and_replaced(rate, End::upper);
    if (!pair) throw std::invalid_argument("Laplace noise on Poisson samples has no proven pair under HS_REPLACE");
    return pair;
}

std::vector<double> distribution(const double* x, size_t n, const char* name) {
    require_pointer(x, name);
    double sum = 0.0;
    for (size_t i = 0; i < n; ++i) sum += x[i];
    require(std::fabs(sum - 1.0) <= 1e-12, name, "sum to 1 within 1e-12", sum);
    return {x, x + n};
}

// Noise on a batch of fixed size, drawn without replacement. Under HS_REPLACE one pair dominates
// it, and another one bounds it from below. Under HS_ADD_OR_REMOVE both are the same.
template <class Noise>
hs_status fixed_size(hs_accountant* accountant, const Noise& noise, double multiplier, double dataset_size,
                     double batch_size, double count) noexcept {
    return guarded([&] {
        require_pointer(accountant, "accountant");
        require_noise(multiplier);
        require_count(dataset_size, "dataset_size");
        require_count(batch_size, "batch_size");
        require_count(count, "count");
        require(batch_size < dataset_size, "batch_size", "be less than dataset_size", batch_size);
        const PairPointer pair = noise(multiplier / 2.0);
        const double drawn = batch_size / dataset_size;
        const PairPointer below = hs::mechanism::poisson_sampled(pair, drawn);
        const bool replace = accountant->adjacency == HS_REPLACE;
        const PairPointer above = replace ? std::make_shared<hs::mechanism::FixedSizeSampled>(pair, drawn) : below;
        accountant->accountant.compose_for(End::upper, above, count);
        accountant->accountant.compose_for(End::lower, below, count);
    });
}

}  // namespace

hs_status hs_accountant_gaussian(hs_accountant* accountant, double noise_multiplier, double count) {
    return hs_accountant_poisson_gaussian(accountant, noise_multiplier, 1.0, count);
}
hs_status hs_accountant_laplace(hs_accountant* accountant, double noise_multiplier, double count) {
    return hs_accountant_poisson_laplace(accountant, noise_multiplier, 1.0, count);
}
hs_status hs_accountant_poisson_gaussian(hs_accountant* accountant, double noise_multiplier, double sampling_rate,
                                         double count) {
    return compose(accountant, count, [&](bool replace) {
        return sampled(hs::mechanism::gaussian, noise_multiplier, sampling_rate, replace);
    });
}
hs_status hs_accountant_poisson_laplace(hs_accountant* accountant, double noise_multiplier, double sampling_rate,
                                        double count) {
    return compose(accountant, count, [&](bool replace) {
        return sampled(hs::mechanism::laplace, noise_multiplier, sampling_rate, replace);
    });
}
hs_status hs_accountant_fixed_size_gaussian(hs_accountant* accountant, double noise_multiplier, double dataset_size,
                                            double batch_size, double count) {
    return fixed_size(accountant, hs::mechanism::gaussian, noise_multiplier, dataset_size, batch_size, count);
}
hs_status hs_accountant_fixed_size_laplace(hs_accountant* accountant, double noise_multiplier, double dataset_size,
                                           double batch_size, double count) {
    return fixed_size(accountant, hs::mechanism::laplace, noise_multiplier, dataset_size, batch_size, count);
}
hs_status hs_accountant_discrete_gaussian(hs_accountant* accountant, double sigma, double query_sensitivity,
                                          double count) {
    return compose(accountant, count, [&](bool replace) {
        return hs::mechanism::discrete_gaussian(sigma, query_sensitivity * sensitivity(replace));
    });
}

hs_status hs_accountant_discrete_laplace(hs_accountant* accountant, double parameter, double query_sensitivity,
                                         double count) {
    return compose(accountant, count, [&](bool replace) {
        return hs::mechanism::discrete_laplace(parameter, query_sensitivity * sensitivity(replace));
    });
}

hs_status hs_accountant_randomized_response(hs_accountant* accountant, double noise_parameter, double num_buckets,
                                            double count) {
    return compose(accountant, count, [&](bool replace) {
        if (!replace) throw std::invalid_argument("a response is replaced, not added or removed; use HS_REPLACE");
        return hs::mechanism::randomized_response(noise_parameter, num_buckets);
    });
}

hs_status hs_accountant_exponential(hs_accountant* accountant, double epsilon, double count) {
    return guarded([&] {
        require_pointer(accountant, "accountant");
        require_count(count, "count");
        accountant->accountant.compose_for(End::upper, hs::mechanism::bounded_range(epsilon), count);
        accountant->accountant.compose_for(End::lower, hs::mechanism::approximate_dp(0.5 * epsilon, 0.0), count);
    });
}

hs_status hs_accountant_permute_and_flip(hs_accountant* accountant, double epsilon, double count) {
    return guarded([&] {
        require_pointer(accountant, "accountant");
        require_count(count, "count");
        for (const End end : {End::upper, End::lower})
            accountant->accountant.compose_for(end, hs::mechanism::permute_and_flip(epsilon, end), count);
    });
}

hs_status hs_accountant_approximate_dp(hs_accountant* accountant, double epsilon, double delta, double count) {
    return compose(accountant, count, [&](bool) { return hs::mechanism::approximate_dp(epsilon, delta); });
}

hs_status hs_accountant_discrete(hs_accountant* accountant, const double* p, const double* q, size_t n, double count) {
    return compose(accountant, count, [&](bool) {
        std::vector<double> with = distribution(p, n, "p"), without = distribution(q, n, "q");
        return hs::mechanism::discrete(std::move(with), std::move(without));
    });
}

hs_status hs_accountant_discrete_pairs(hs_accountant* accountant, const double* p, const double* q, size_t n,
                                       const double* added_p, const double* added_q, size_t added_n, double count) {
    return compose(accountant, count, [&](bool) -> PairPointer {
        hs::mechanism::Masses removed{distribution(p, n, "p"), distribution(q, n, "q")};
        hs::mechanism::Masses added{distribution(added_p, added_n, "added_p"),
                                    distribution(added_q, added_n, "added_q")};
        return std::make_shared<hs::mechanism::DiscretePairs>(std::move(removed), std::move(added));
    });
}

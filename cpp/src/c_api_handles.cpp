// Mechanisms as handles of the C API, and the functions that compose one of them at once. What each
// releases is in c_api_mechanisms.cpp.
#include <utility>
#include <vector>

#include "c_api_mechanisms.hpp"

namespace {

using namespace c_api;

// Writes a handle of what make() returns.
template <class Make> hs_status make_handle(hs_mechanism** out, const Make& make) noexcept {
    return guarded([&] {
        require_pointer(out, "out");
        *out = new hs_mechanism(make());
    });
}

template <class Make> hs_status compose_at_once(hs_accountant* accountant, double count, const Make& make) noexcept {
    return guarded([&] {
        require_pointer(accountant, "accountant");
        compose(accountant, make(), count);
    });
}

const hs_mechanism& checked(const hs_mechanism* mechanism) {
    require_pointer(mechanism, "mechanism");
    return *mechanism;
}

std::vector<double> array(const double* x, size_t n, const char* name) {
    require_array(x, n, name);
    return {x, x + n};
}

hs::mechanism::Masses masses(const double* p, const double* q, size_t n, const char* p_name, const char* q_name) {
    return {distribution(p, n, p_name), distribution(q, n, q_name)};
}

}  // namespace

void hs_mechanism_free(hs_mechanism* mechanism) { delete mechanism; }

hs_status hs_accountant_compose(hs_accountant* accountant, const hs_mechanism* mechanism, double count) {
    return guarded([&] {
        require_pointer(accountant, "accountant");
        compose(accountant, checked(mechanism), count);
    });
}

hs_status hs_mechanism_gaussian(double noise_multiplier, hs_mechanism** out) {
    return make_handle(out, [&] { return gaussian(noise_multiplier); });
}
hs_status hs_mechanism_laplace(double noise_multiplier, hs_mechanism** out) {
    return make_handle(out, [&] { return laplace(noise_multiplier); });
}
hs_status hs_mechanism_discrete_gaussian(double sigma, double sensitivity, hs_mechanism** out) {
    return make_handle(out, [&] { return discrete_gaussian(sigma, sensitivity); });
}
hs_status hs_mechanism_discrete_laplace(double parameter, double sensitivity, hs_mechanism** out) {
    return make_handle(out, [&] { return discrete_laplace(parameter, sensitivity); });
}
hs_status hs_mechanism_discrete_gaussian_vector(double sigma, double sensitivity, double dimension,
                                                hs_mechanism** out) {
    return make_handle(out, [&] {
        return integer_noise("discrete_gaussian_vector", hs::release::discrete_gaussian_noise(sigma), sensitivity,
                             dimension);
    });
}
hs_status hs_mechanism_distributed_discrete_gaussian(double sigma, double num_clients, double sensitivity,
                                                     double dimension, hs_mechanism** out) {
    return make_handle(out, [&] {
        return integer_noise("distributed_discrete_gaussian",
                             hs::release::sum_of_discrete_gaussian_noise(sigma, num_clients), sensitivity, dimension);
    });
}
hs_status hs_mechanism_skellam(double variance, double sensitivity, double dimension, hs_mechanism** out) {
    return make_handle(
        out, [&] { return integer_noise("skellam", hs::release::skellam_noise(variance), sensitivity, dimension); });
}
hs_status hs_mechanism_randomized_response(double noise_probability, double num_buckets, hs_mechanism** out) {
    return make_handle(out, [&] { return randomized_response(noise_probability, num_buckets); });
}
hs_status hs_mechanism_exponential(double epsilon, hs_mechanism** out) {
    return make_handle(out, [&] { return exponential(epsilon); });
}
hs_status hs_mechanism_permute_and_flip(double epsilon, hs_mechanism** out) {
    return make_handle(out, [&] { return permute_and_flip(epsilon); });
}
hs_status hs_mechanism_approximate_dp(double epsilon, double delta, hs_mechanism** out) {
    return make_handle(out, [&] { return approximate_dp(epsilon, delta); });
}
hs_status hs_mechanism_discrete(const double* p, const double* q, size_t n, hs_mechanism** out) {
    return make_handle(out, [&] { return discrete(p, q, n); });
}
hs_status hs_mechanism_discrete_pairs(const double* p, const double* q, size_t n, const double* added_p,
                                      const double* added_q, size_t added_n, hs_mechanism** out) {
    return make_handle(out, [&] {
        return discrete_pairs(masses(p, q, n, "p", "q"), masses(added_p, added_q, added_n, "added_p", "added_q"));
    });
}
hs_status hs_mechanism_privacy_profile(const double* epsilons, const double* remove, const double* add, size_t n,
                                       hs_mechanism** out) {
    return make_handle(out, [&] {
        return privacy_profile({array(epsilons, n, "epsilons"), array(remove, n, "remove"),
                                add ? array(add, n, "add") : array(remove, n, "remove")});
    });
}
hs_status hs_mechanism_gaussian_mixture(double noise_multiplier, const double* sensitivities,
                                        const double* probabilities, size_t n, hs_mechanism** out) {
    return make_handle(out, [&] {
        return gaussian_mixture(noise_multiplier,
                                {array(sensitivities, n, "sensitivities"), array(probabilities, n, "probabilities")});
    });
}
hs_status hs_mechanism_random_allocation(double noise_multiplier, double num_steps, double num_selected,
                                         hs_mechanism** out) {
    return make_handle(out, [&] { return random_allocation(noise_multiplier, {num_steps, num_selected}); });
}
hs_status hs_mechanism_shuffled(double epsilon0, double num_users, int32_t randomizer, hs_mechanism** out) {
    return make_handle(out, [&] {
        require(randomizer == HS_ANY_RANDOMIZER || randomizer == HS_RANDOMIZED_RESPONSE, "randomizer",
                "be HS_ANY_RANDOMIZER or HS_RANDOMIZED_RESPONSE", randomizer);
        return shuffled({epsilon0, num_users, randomizer == HS_RANDOMIZED_RESPONSE});
    });
}
hs_status hs_mechanism_truncated_poisson(double noise_multiplier, double num_records, double sampling_rate,
                                         double max_batch_size, hs_mechanism** out) {
    return make_handle(
        out, [&] { return truncated_poisson(noise_multiplier, {num_records, sampling_rate, max_batch_size}, false); });
}
hs_status hs_mechanism_truncated_poisson_zeroed_out(double noise_multiplier, double num_records, double sampling_rate,
                                                    double max_batch_size, hs_mechanism** out) {
    return make_handle(
        out, [&] { return truncated_poisson(noise_multiplier, {num_records, sampling_rate, max_batch_size}, true); });
}
hs_status hs_mechanism_composed(const hs_mechanism* const* mechanisms, const double* counts, size_t n,
                                hs_mechanism** out) {
    return make_handle(out, [&] {
        require_array(mechanisms, n, "mechanisms");
        require_array(counts, n, "counts");
        std::vector<std::pair<hs_mechanism, double>> steps;
        for (size_t i = 0; i < n; ++i) steps.emplace_back(checked(mechanisms[i]), counts[i]);
        return composed(std::move(steps));
    });
}
hs_status hs_mechanism_poisson_sampled(const hs_mechanism* mechanism, double sampling_rate, hs_mechanism** out) {
    return make_handle(out, [&] { return poisson_sampled(checked(mechanism), sampling_rate); });
}
hs_status hs_mechanism_allocated(const hs_mechanism* mechanism, double num_steps, double num_selected,
                                 hs_mechanism** out) {
    return make_handle(out, [&] { return allocated(checked(mechanism), {num_steps, num_selected}); });
}
hs_status hs_mechanism_fixed_size_sampled(const hs_mechanism* mechanism, double num_records, double batch_size,
                                          int32_t replacement, hs_mechanism** out) {
    return make_handle(out, [&] {
        require(replacement == 0 || replacement == 1, "replacement", "be 0 or 1", replacement);
        return fixed_size_sampled(checked(mechanism), {num_records, batch_size, replacement == 1});
    });
}

hs_status hs_accountant_gaussian(hs_accountant* accountant, double noise_multiplier, double count) {
    return compose_at_once(accountant, count, [&] { return gaussian(noise_multiplier); });
}
hs_status hs_accountant_laplace(hs_accountant* accountant, double noise_multiplier, double count) {
    return compose_at_once(accountant, count, [&] { return laplace(noise_multiplier); });
}
hs_status hs_accountant_poisson_gaussian(hs_accountant* accountant, double noise_multiplier, double sampling_rate,
                                         double count) {
    return compose_at_once(accountant, count,
                           [&] { return poisson_sampled(gaussian(noise_multiplier), sampling_rate); });
}
hs_status hs_accountant_poisson_laplace(hs_accountant* accountant, double noise_multiplier, double sampling_rate,
                                        double count) {
    return compose_at_once(accountant, count,
                           [&] { return poisson_sampled(laplace(noise_multiplier), sampling_rate); });
}
hs_status hs_accountant_fixed_size_gaussian(hs_accountant* accountant, double noise_multiplier, double num_records,
                                            double batch_size, double count) {
    return compose_at_once(accountant, count, [&] {
        return fixed_size_sampled(gaussian(noise_multiplier), {num_records, batch_size, false});
    });
}
hs_status hs_accountant_fixed_size_laplace(hs_accountant* accountant, double noise_multiplier, double num_records,
                                           double batch_size, double count) {
    return compose_at_once(accountant, count, [&] {
        return fixed_size_sampled(laplace(noise_multiplier), {num_records, batch_size, false});
    });
}
hs_status hs_accountant_discrete_gaussian(hs_accountant* accountant, double sigma, double query_sensitivity,
                                          double count) {
    return compose_at_once(accountant, count, [&] { return discrete_gaussian(sigma, query_sensitivity); });
}
hs_status hs_accountant_discrete_laplace(hs_accountant* accountant, double parameter, double query_sensitivity,
                                         double count) {
    return compose_at_once(accountant, count, [&] { return discrete_laplace(parameter, query_sensitivity); });
}
hs_status hs_accountant_randomized_response(hs_accountant* accountant, double noise_probability, double num_buckets,
                                            double count) {
    return compose_at_once(accountant, count, [&] { return randomized_response(noise_probability, num_buckets); });
}
hs_status hs_accountant_exponential(hs_accountant* accountant, double epsilon, double count) {
    return compose_at_once(accountant, count, [&] { return exponential(epsilon); });
}
hs_status hs_accountant_permute_and_flip(hs_accountant* accountant, double epsilon, double count) {
    return compose_at_once(accountant, count, [&] { return permute_and_flip(epsilon); });
}
hs_status hs_accountant_approximate_dp(hs_accountant* accountant, double epsilon, double delta, double count) {
    return compose_at_once(accountant, count, [&] { return approximate_dp(epsilon, delta); });
}
hs_status hs_accountant_discrete(hs_accountant* accountant, const double* p, const double* q, size_t n, double count) {
    return compose_at_once(accountant, count, [&] { return discrete(p, q, n); });
}
hs_status hs_accountant_discrete_pairs(hs_accountant* accountant, const double* p, const double* q, size_t n,
                                       const double* added_p, const double* added_q, size_t added_n, double count) {
    return compose_at_once(accountant, count, [&] {
        return discrete_pairs(masses(p, q, n, "p", "q"), masses(added_p, added_q, added_n, "added_p", "added_q"));
    });
}

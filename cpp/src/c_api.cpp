// The C API (hockeystick/c_api.h): kernels, DP-SGD, shuffled batches, and the accountant's life and
// queries. Its mechanisms are in c_api_handles.cpp.
#include <algorithm>
#include <vector>

#include <hockeystick/accounting/dpsgd.hpp>
#include <hockeystick/accounting/shuffled_batches.hpp>

#include "c_api_support.hpp"

namespace {

using namespace c_api;

hs_status unary(hs::batch::Unary hs::batch::Kernels::* kernel, const double* x, double* out, size_t n) {
    return guarded([&] {
        require_array(x, n, "input");
        require_array(out, n, "out");
        (kernels().*kernel)(x, out, n);
    });
}

hs_status binary(hs::batch::Binary hs::batch::Kernels::* kernel, const double* x, const double* y, double* out,
                 size_t n) {
    return guarded([&] {
        require_array(x, n, "first input");
        require_array(y, n, "second input");
        require_array(out, n, "out");
        (kernels().*kernel)(x, y, out, n);
    });
}

// An accountant that holds one training.
hs::accounting::Accountant training(double noise, double rate, double steps) {
    require_noise(noise);
    require_rate(rate);
    require_count_or_none(steps, "steps");
    hs::accounting::Accountant accountant(kernels().contour);
    accountant.compose(hs::mechanism::poisson_sampled(hs::mechanism::gaussian(noise), rate), steps);
    return accountant;
}

hs_bracket bracket(const hs::numeric::Interval& found) { return {found.lower, found.upper}; }

hs_bracket shuffled(const hs::accounting::ShuffledBatches& training, const hs::accounting::Question& question) {
    require_count(training.epochs, "epochs");
    return bracket(hs::accounting::shuffled_batches(
                       training, hs::accounting::attained_epochs(training.noise_multiplier, training.num_batches),
                       question, [] { return hs::accounting::Accountant(kernels().contour); })
                       .ends);
}

// Answers n queries. Writes all brackets, or none if one query fails. The accountant checks the
// numbers.
template <class Query>
hs_status answer(const hs_accountant* accountant, const double* x, const char* name, size_t n, hs_bracket* out,
                 const Query& query) {
    return guarded([&] {
        require_pointer(accountant, "accountant");
        require_array(x, n, name);
        require_array(out, n, "out");
        std::vector<hs_bracket> found;
        for (size_t i = 0; i < n; ++i) found.push_back(bracket(query(accountant->accountant, x[i])));
        std::copy(found.begin(), found.end(), out);
    });
}

}  // namespace

// Every function below is one call of `number` or of a template that ends in `guarded`, which let no exception out.
int32_t hs_abi_version(void) { return HS_ABI_VERSION; }
const char* hs_version(void) { return HOCKEYSTICK_VERSION; }
const char* hs_last_error_message(void) { return last_error.c_str(); }

double hs_q(double x) { return number<hs::numeric::q>(x); }
double hs_log_q(double x) { return number<hs::numeric::log_q>(x); }
double hs_q_inv(double p) { return number<hs::numeric::q_inv>(p); }
double hs_theta(double eps, double r) { return number<hs::divergence::theta>(eps, r); }
double hs_log_theta(double eps, double r) { return number<hs::divergence::log_theta>(eps, r); }
double hs_laplace_theta(double eps, double r) { return number<hs::divergence::laplace_theta>(eps, r); }
double hs_theta_inverse(double eps, double delta) { return number<hs::divergence::theta_inverse>(eps, delta); }
double hs_gaussian_epsilon(double r, double delta) { return number<hs::divergence::gaussian_epsilon>(r, delta); }

hs_status hs_q_batch(const double* x, double* out, size_t n) { return unary(&hs::batch::Kernels::q, x, out, n); }
hs_status hs_log_q_batch(const double* x, double* out, size_t n) {
    return unary(&hs::batch::Kernels::log_q, x, out, n);
}
hs_status hs_q_inv_batch(const double* p, double* out, size_t n) {
    return unary(&hs::batch::Kernels::q_inv, p, out, n);
}
hs_status hs_theta_batch(const double* eps, const double* r, double* out, size_t n) {
    return binary(&hs::batch::Kernels::theta, eps, r, out, n);
}
hs_status hs_log_theta_batch(const double* eps, const double* r, double* out, size_t n) {
    return binary(&hs::batch::Kernels::log_theta, eps, r, out, n);
}
hs_status hs_laplace_theta_batch(const double* eps, const double* r, double* out, size_t n) {
    return binary(&hs::batch::Kernels::laplace_theta, eps, r, out, n);
}

hs_status hs_dpsgd_delta(double noise_multiplier, double sampling_rate, double steps, double eps, hs_bracket* out) {
    return guarded([&] {
        require_pointer(out, "out");
        require_epsilon(eps, "epsilon");
        *out = bracket(training(noise_multiplier, sampling_rate, steps).delta(eps));
    });
}

hs_status hs_dpsgd_epsilon(double noise_multiplier, double sampling_rate, double steps, double delta, hs_bracket* out) {
    return guarded([&] {
        require_pointer(out, "out");
        require_delta(delta);
        *out = bracket(training(noise_multiplier, sampling_rate, steps).epsilon(delta));
    });
}

hs_status hs_dpsgd_noise_multiplier(double sampling_rate, double steps, double epsilon, double delta, double* out) {
    return guarded([&] {
        require_pointer(out, "out");
        require_rate(sampling_rate);
        require_count_or_none(steps, "steps");
        require_epsilon(epsilon, "epsilon");
        require_delta(delta);
        hs::accounting::Engine engine(kernels().contour);
        *out = hs::accounting::dpsgd_noise_multiplier(engine, sampling_rate, steps, epsilon, delta);
    });
}

hs_status hs_shuffled_batches_delta(double noise_multiplier, double num_batches, double epochs, double eps,
                                    hs_bracket* out) {
    return guarded([&] {
        require_pointer(out, "out");
        require_epsilon(eps, "epsilon");
        *out = shuffled({noise_multiplier, num_batches, epochs}, {false, eps});
    });
}

hs_status hs_shuffled_batches_epsilon(double noise_multiplier, double num_batches, double epochs, double delta,
                                      hs_bracket* out) {
    return guarded([&] {
        require_pointer(out, "out");
        require_delta(delta);
        *out = shuffled({noise_multiplier, num_batches, epochs}, {true, delta});
    });
}

hs_status hs_accountant_create(int32_t adjacency, hs_accountant** out) {
    return guarded([&] {
        require_pointer(out, "out");
        require(adjacency == HS_ADD_OR_REMOVE || adjacency == HS_REPLACE, "adjacency",
                "be HS_ADD_OR_REMOVE or HS_REPLACE", adjacency);
        *out = new hs_accountant{hs::accounting::Accountant(kernels().contour), adjacency};
    });
}

void hs_accountant_destroy(hs_accountant* accountant) { delete accountant; }

hs_status hs_accountant_delta(const hs_accountant* accountant, const double* eps, size_t n, hs_bracket* out) {
    return answer(accountant, eps, "epsilon", n, out,
                  [](const hs::accounting::Accountant& a, double x) { return a.delta(x); });
}
hs_status hs_accountant_epsilon(const hs_accountant* accountant, const double* delta, size_t n, hs_bracket* out) {
    return answer(accountant, delta, "delta", n, out,
                  [](const hs::accounting::Accountant& a, double x) { return a.epsilon(x); });
}

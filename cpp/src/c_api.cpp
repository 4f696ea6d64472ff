#define HOCKEYSTICK_BUILDS_C_API
#include <hockeystick/c_api.h>

#include <cstdio>
#include <new>
#include <string>

#include <hockeystick/accounting/accountant.hpp>
#include <hockeystick/accounting/dpsgd.hpp>
#include <hockeystick/accounting/dpsgd_engine.hpp>

#include "batch_kernels.hpp"

namespace hs = hockeystick;

struct hs_accountant {
    hs::accounting::Accountant accountant;
    int32_t adjacency;
    double shift() const { return adjacency == HS_REPLACE ? 2.0 : 1.0; }
};

namespace {

thread_local std::string last_error;

const hs::batch::Kernels& kernels() {
    static const hs::batch::Kernels& chosen = hs::batch::choose();
    return chosen;
}

hs_status failed(hs_status status, const char* what) noexcept {
    try {
        last_error = what;
    } catch (...) {
        last_error.clear();
    }
    return status;
}

// Runs what may throw, and says how it ended.
template <class Body> hs_status guarded(const Body& body) noexcept {
    try {
        body();
        return HS_OK;
    } catch (const std::invalid_argument& error) {
        return failed(HS_INVALID_ARGUMENT, error.what());
    } catch (const std::bad_alloc&) {
        return failed(HS_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception& error) {
        return failed(HS_INTERNAL_ERROR, error.what());
    } catch (...) {
        return failed(HS_INTERNAL_ERROR, "unknown exception");
    }
}

void require(bool holds, const char* name, const char* domain, double value) {
    if (holds) return;
    char text[160];
    std::snprintf(text, sizeof text, "%s must %s, not %.17g", name, domain, value);
    throw std::invalid_argument(text);
}

void require_pointer(const void* pointer, const char* name) {
    if (!pointer) throw std::invalid_argument(std::string(name) + " must not be NULL");
}

void require_array(const void* pointer, size_t n, const char* name) {
    if (n > 0) require_pointer(pointer, name);
}

void require_noise(double x) {
    require(x > 0.0 && x < hs::numeric::infinity, "noise_multiplier", "be positive and finite", x);
}
void require_rate(double x) { require(x >= 0.0 && x <= 1.0, "sampling_rate", "lie in [0, 1]", x); }
void require_count(double x, const char* name) {
    require(x >= 1.0 && x <= 0x1p53 && x == std::floor(x), name, "be an integer in [1, 2^53]", x);
}
void require_epsilon(double x, const char* name) { require(x >= 0.0, name, "be non-negative", x); }
void require_delta(double x) { require(x >= 0.0 && x < 1.0, "delta", "lie in [0, 1)", x); }

hs_status compose(hs_accountant* accountant, const char* kind, double noise, double rate, double count) {
    return guarded([&] {
        require_pointer(accountant, "accountant");
        require_noise(noise);
        require_rate(rate);
        require_count(count, "count");
        hs::loss::Mechanism mechanism{kind, {accountant->shift() / noise}, rate};
        if (rate > 0.0 && rate < 1.0 && accountant->adjacency == HS_REPLACE) {
            if (mechanism.kind != "gaussian")
                throw std::invalid_argument("Laplace noise on Poisson samples has no proven pair under HS_REPLACE");
            mechanism = {"replaced_gaussian", {1.0 / noise, rate}, 1.0};
        }
        accountant->accountant.compose(mechanism, count);
    });
}

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

hs::accounting::Accountant training(double noise, double rate, double steps) {
    require_noise(noise);
    require_rate(rate);
    require_count(steps, "steps");
    hs::accounting::Accountant accountant(kernels().contour);
    accountant.compose({"gaussian", {1.0 / noise}, rate}, steps);
    return accountant;
}

hs_bracket bracket(const hs::numeric::Interval& found) { return {found.lower, found.upper}; }

// All brackets or none. The accountant checks the numbers.
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

void require_distribution(const double* x, size_t n, const char* name) {
    double sum = 0.0;
    for (size_t i = 0; i < n; ++i) {
        require(x[i] >= 0.0 && x[i] <= 1.0, name, "hold probabilities in [0, 1]", x[i]);
        sum += x[i];
    }
    require(std::fabs(sum - 1.0) <= 1e-12, name, "sum to 1 within 1e-12", sum);
}

}  // namespace

int32_t hs_abi_version(void) { return HS_ABI_VERSION; }
const char* hs_version(void) { return HOCKEYSTICK_VERSION; }
const char* hs_last_error_message(void) { return last_error.c_str(); }

double hs_q(double x) { return hs::numeric::q(x); }
double hs_log_q(double x) { return hs::numeric::log_q(x); }
double hs_q_inv(double p) { return hs::numeric::q_inv(p); }
double hs_theta(double eps, double r) { return hs::divergence::theta(eps, r); }
double hs_log_theta(double eps, double r) { return hs::divergence::log_theta(eps, r); }
double hs_laplace_theta(double eps, double r) { return hs::divergence::laplace_theta(eps, r); }
double hs_theta_inverse(double eps, double delta) { return hs::divergence::theta_inverse(eps, delta); }
double hs_gaussian_epsilon(double r, double delta) { return hs::divergence::gaussian_epsilon(r, delta); }

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
        require_epsilon(eps, "eps");
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
        require_count(steps, "steps");
        require_epsilon(epsilon, "epsilon");
        require_delta(delta);
        const std::atomic<bool> stop{false};
        const hs::accounting::DpsgdEngine engine(kernels().contour, stop);
        *out = hs::accounting::dpsgd_noise_multiplier(engine, sampling_rate, steps, epsilon, delta);
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

hs_status hs_accountant_gaussian(hs_accountant* accountant, double noise_multiplier, double count) {
    return compose(accountant, "gaussian", noise_multiplier, 1.0, count);
}
hs_status hs_accountant_laplace(hs_accountant* accountant, double noise_multiplier, double count) {
    return compose(accountant, "laplace", noise_multiplier, 1.0, count);
}
hs_status hs_accountant_poisson_gaussian(hs_accountant* accountant, double noise_multiplier, double sampling_rate,
                                         double count) {
    return compose(accountant, "gaussian", noise_multiplier, sampling_rate, count);
}
hs_status hs_accountant_poisson_laplace(hs_accountant* accountant, double noise_multiplier, double sampling_rate,
                                        double count) {
    return compose(accountant, "laplace", noise_multiplier, sampling_rate, count);
}

hs_status hs_accountant_approximate_dp(hs_accountant* accountant, double epsilon, double delta, double count) {
    return guarded([&] {
        require_pointer(accountant, "accountant");
        require(epsilon >= 0.0 && epsilon <= 600.0, "epsilon", "lie in [0, 600]", epsilon);
        require(delta >= 0.0 && delta <= 1.0, "delta", "lie in [0, 1]", delta);
        require_count(count, "count");
        const double small = std::exp(-epsilon), rest = (1.0 - delta) / (1.0 + small);
        const std::vector<double> pair{delta, rest, rest * small, 0.0, 0.0, rest * small, rest, delta};
        accountant->accountant.compose({"discrete", pair, 1.0}, count);
    });
}

hs_status hs_accountant_discrete(hs_accountant* accountant, const double* p, const double* q, size_t n, double count) {
    return guarded([&] {
        require_pointer(accountant, "accountant");
        require_pointer(p, "p");
        require_pointer(q, "q");
        require_distribution(p, n, "p");
        require_distribution(q, n, "q");
        require_count(count, "count");
        std::vector<double> pair(p, p + n);
        pair.insert(pair.end(), q, q + n);
        accountant->accountant.compose({"discrete", std::move(pair), 1.0}, count);
    });
}

hs_status hs_accountant_delta(const hs_accountant* accountant, const double* eps, size_t n, hs_bracket* out) {
    return answer(accountant, eps, "eps", n, out,
                  [](const hs::accounting::Accountant& a, double x) { return a.delta(x); });
}
hs_status hs_accountant_epsilon(const hs_accountant* accountant, const double* delta, size_t n, hs_bracket* out) {
    return answer(accountant, delta, "delta", n, out,
                  [](const hs::accounting::Accountant& a, double x) { return a.epsilon(x); });
}

/* hockeystick for C, and for whatever calls C: kernels, DP-SGD, and an accountant.
 *
 * Natural logarithms throughout. Functions that return an hs_status never let an exception out; on anything but HS_OK the
 * results are untouched and hs_last_error_message() says which argument, its value and its domain. Scalar kernels
 * return NaN outside their domains instead. No function depends on the rounding mode of its thread, or on whether that takes
 * subnormal numbers for zero: each sets the floating-point environment right and restores the caller's.
 *
 * Handles are opaque: an accountant is made by hs_accountant_create and freed by hs_accountant_destroy, a mechanism is made
 * by hs_mechanism_... and freed by hs_mechanism_free; both take NULL. Queries of one accountant may run in several threads at
 * once; composing may not. Mechanisms never change. Within one ABI version functions and codes are only added, never
 * changed. */
#ifndef HOCKEYSTICK_C_API_H
#define HOCKEYSTICK_C_API_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(HOCKEYSTICK_BUILDS_C_API)
#define HS_API __declspec(dllexport)
#elif defined(_WIN32)
#define HS_API __declspec(dllimport)
#else
#define HS_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HS_ABI_VERSION 1

typedef int32_t hs_status;
#define HS_OK 0
#define HS_INVALID_ARGUMENT 1
#define HS_OUT_OF_MEMORY 2
#define HS_INTERNAL_ERROR 3 /* a bug in hockeystick */

#define HS_ADD_OR_REMOVE 0
#define HS_REPLACE 1 /* sensitivities are twice those of adding or removing */

/* Certified ends: the truth lies between them, rounding included. */
typedef struct {
    double lower, upper;
} hs_bracket;

typedef struct hs_accountant hs_accountant;
typedef struct hs_mechanism hs_mechanism;

HS_API int32_t hs_abi_version(void);            /* HS_ABI_VERSION of the library that runs */
HS_API const char* hs_version(void);            /* "major.minor.patch" */
HS_API const char* hs_last_error_message(void); /* of this thread; "" if there was none; until its next error */

/* Kernels, as hockeystick.q, .theta and so on in Python. */
HS_API double hs_q(double x);
HS_API double hs_log_q(double x);
HS_API double hs_q_inv(double p);
HS_API double hs_theta(double epsilon, double r);
HS_API double hs_log_theta(double epsilon, double r);
HS_API double hs_laplace_theta(double epsilon, double r);
HS_API double hs_theta_inverse(double epsilon, double delta);
HS_API double hs_gaussian_epsilon(double r, double delta);

/* The same for n elements, by the best instruction set of the machine. `out` overlaps no input. */
HS_API hs_status hs_q_batch(const double* x, double* out, size_t n);
HS_API hs_status hs_log_q_batch(const double* x, double* out, size_t n);
HS_API hs_status hs_q_inv_batch(const double* p, double* out, size_t n);
HS_API hs_status hs_theta_batch(const double* epsilon, const double* r, double* out, size_t n);
HS_API hs_status hs_log_theta_batch(const double* epsilon, const double* r, double* out, size_t n);
HS_API hs_status hs_laplace_theta_batch(const double* epsilon, const double* r, double* out, size_t n);

/* DP-SGD: Gaussian noise on Poisson samples, add-or-remove adjacency; steps is a whole number in [0, 2^53]. */
HS_API hs_status hs_dpsgd_delta(double noise_multiplier, double sampling_rate, double steps, double epsilon,
                                hs_bracket* out);
HS_API hs_status hs_dpsgd_epsilon(double noise_multiplier, double sampling_rate, double steps, double delta,
                                  hs_bracket* out);
/* The least noise multiplier whose certified epsilon does not exceed the budget. */
HS_API hs_status hs_dpsgd_noise_multiplier(double sampling_rate, double steps, double epsilon, double delta,
                                           double* out);

/* Gaussian differential privacy: delta at epsilon >= 0, the least epsilon >= 0 at delta in [0, 1], and the least rate of
 * records that a test misses at a false-positive rate in [0, 1]. NaN outside the domains. */
HS_API double hs_gdp_delta(double mu, double epsilon);
HS_API double hs_gdp_epsilon(double mu, double delta);
HS_API double hs_gdp_trade_off(double mu, double false_positive_rate);

#define HS_CONSTANT_STEPS 0   /* learning_rate */
#define HS_CYCLIC_STEPS 1     /* learning_rate/(k + 1) in local step k, from 0 */
#define HS_STAGEWISE_STEPS 2  /* learning_rate/(t + 1) in round t, from 0; at most 10^6 rounds, as for the next one */
#define HS_CONTINUOUS_STEPS 3 /* learning_rate/(tK + k + 1) */
/* Noisy federated averaging, as hockeystick.federated.fedavg_gdp: the last model is mu-GDP with respect to replacing one
 * record, up to a relative rounding of 1e-12. The diameter is that of the set that the global model is projected onto,
 * INFINITY if there is none. */
HS_API hs_status hs_fedavg_gdp(int32_t schedule, double rounds, double local_steps, double num_clients,
                               double clip_norm, double noise_std, double smoothness, double learning_rate,
                               double diameter, double* mu);
/* Projected noisy SGD that releases its last iterate, as hockeystick.last_iterate.pnsgd_gaussian: an upper bound of delta
 * for the record of step `index` of num_records, up to a relative rounding of 1e-12 in log delta. */
HS_API hs_status hs_pnsgd_gaussian(double epsilon, double index, double num_records, double learning_rate,
                                   double noise_std, double lipschitz, double smoothness, double strong_convexity,
                                   double diameter, double* delta);
/* Gaussian noise on num_batches batches, in [1, 10^6], that a shuffle of the records fills, a new one for each of `epochs`; a
 * record that is added or removed leaves its place empty. The upper end holds for all data, the lower end is attained by
 * some: no amplification by sampling is claimed. */
HS_API hs_status hs_shuffled_batches_delta(double noise_multiplier, double num_batches, double epochs, double epsilon,
                                           hs_bracket* out);
HS_API hs_status hs_shuffled_batches_epsilon(double noise_multiplier, double num_batches, double epochs, double delta,
                                             hs_bracket* out);

/* Mechanisms: what one step releases, as the classes of Python's package with these names and parameters. A handle is
 * written to *out. Whether a mechanism has a pair under the accountant's adjacency is said when it is composed.
 *
 * Python's ZeroConcentratedDP, RenyiDP and PrivateSelection are not here. Of them only bounds of Renyi divergences are
 * known and no dominating pair, and this accountant composes pairs: it could give no certified end. Staircase,
 * TruncatedLaplace and TradeOff are made by hs_mechanism_privacy_profile, from what profile() of Python's class gives. */
HS_API void hs_mechanism_free(hs_mechanism* mechanism);

/* Noise. The multiplier is the standard deviation (Laplace: scale) over the sensitivity to adding or removing a record. */
HS_API hs_status hs_mechanism_gaussian(double noise_multiplier, hs_mechanism** out);
HS_API hs_status hs_mechanism_laplace(double noise_multiplier, hs_mechanism** out);
/* Noise on integers. The sensitivity is that of adding or removing a record, a whole number. */
HS_API hs_status hs_mechanism_discrete_gaussian(double noise_std, double sensitivity, hs_mechanism** out);
HS_API hs_status hs_mechanism_discrete_laplace(double inverse_scale, double sensitivity, hs_mechanism** out);
/* The same on each coordinate of a vector of integers. The sensitivity is the Euclidean one; dimension is INFINITY if any
 * number of coordinates is allowed. A noise of which no dominating pair is known is refused. */
HS_API hs_status hs_mechanism_discrete_gaussian_vector(double noise_std, double sensitivity, double dimension,
                                                       hs_mechanism** out);
HS_API hs_status hs_mechanism_distributed_discrete_gaussian(double noise_std, double num_clients, double sensitivity,
                                                            double dimension, hs_mechanism** out);
HS_API hs_status hs_mechanism_skellam(double noise_variance, double sensitivity, double dimension, hs_mechanism** out);
/* Gaussian noise on a sum that a record moves by one of n distances at random, noise and distances in one unit. Under
 * HS_ADD_OR_REMOVE only. */
HS_API hs_status hs_mechanism_gaussian_mixture(double noise_multiplier, const double* sensitivities,
                                               const double* probabilities, size_t n, hs_mechanism** out);

/* Guarantees, taken to hold for the accountant's adjacency. */
HS_API hs_status hs_mechanism_exponential(double epsilon, hs_mechanism** out);
HS_API hs_status hs_mechanism_permute_and_flip(double epsilon, hs_mechanism** out);
HS_API hs_status hs_mechanism_approximate_dp(double epsilon, double delta, hs_mechanism** out);
/* Two distributions over n outcomes, each summing to 1 within 1e-12, with their reverse for the other direction. */
HS_API hs_status hs_mechanism_discrete(const double* p, const double* q, size_t n, hs_mechanism** out);
/* A pair for removing a record and one for adding it. */
HS_API hs_status hs_mechanism_discrete_pairs(const double* p, const double* q, size_t n, const double* added_p,
                                             const double* added_q, size_t added_n, hs_mechanism** out);

/* Upper bounds of delta at n epsilons, which increase from 0 to at most 600: for a record removed and for one added. They
 * lie in [0, 1], do not rise, and begin with one number, the total variation distance. If `add` is NULL, `remove` bounds
 * both directions. */
HS_API hs_status hs_mechanism_privacy_profile(const double* epsilons, const double* remove, const double* add, size_t n,
                                              hs_mechanism** out);

/* Local reports, under HS_REPLACE only. */
HS_API hs_status hs_mechanism_randomized_response(double noise_probability, double num_buckets, hs_mechanism** out);
#define HS_ANY_RANDOMIZER 0
#define HS_RANDOMIZED_RESPONSE 1 /* the true bucket is e^epsilon0 times as likely as each other one */
/* num_users reports in random order, each epsilon0-locally private. */
HS_API hs_status hs_mechanism_shuffled(double epsilon0, double num_users, int32_t randomizer, hs_mechanism** out);

/* Mechanisms made of others, which are copied and may be freed. */
/* mechanisms[i] is run counts[i] times on the same records; none, or 0 times, is nothing. */
HS_API hs_status hs_mechanism_composed(const hs_mechanism* const* mechanisms, const double* counts, size_t n,
                                       hs_mechanism** out);
HS_API hs_status hs_mechanism_poisson_sampled(const hs_mechanism* mechanism, double sampling_rate, hs_mechanism** out);
/* On batch_size of num_records records, drawn with (replacement = 1) or without (0) replacement. */
HS_API hs_status hs_mechanism_fixed_size_sampled(const hs_mechanism* mechanism, double num_records, double batch_size,
                                                 int32_t replacement, hs_mechanism** out);
/* Gaussian noise on a Poisson sample of at most num_records records, of which at most max_batch_size are kept. */
HS_API hs_status hs_mechanism_truncated_poisson(double noise_multiplier, double num_records, double sampling_rate,
                                                double max_batch_size, hs_mechanism** out);
/* The same where a record that is removed keeps its place in sample and batch, and contributes nothing. */
HS_API hs_status hs_mechanism_truncated_poisson_zeroed_out(double noise_multiplier, double num_records,
                                                           double sampling_rate, double max_batch_size,
                                                           hs_mechanism** out);
/* Run at each of `steps` steps, of which a record takes part in num_selected: composed once, it is all of them. */
HS_API hs_status hs_mechanism_allocated(const hs_mechanism* mechanism, double steps, double num_selected,
                                        hs_mechanism** out);
/* The same of Gaussian noise. */
HS_API hs_status hs_mechanism_random_allocation(double noise_multiplier, double steps, double num_selected,
                                                hs_mechanism** out);

/* An accountant: mechanisms as in Python, each `count` times, a whole number in [0, 2^53]. */
HS_API hs_status hs_accountant_create(int32_t adjacency, hs_accountant** out);
HS_API void hs_accountant_destroy(hs_accountant* accountant);
HS_API hs_status hs_accountant_compose(hs_accountant* accountant, const hs_mechanism* mechanism, double count);

/* The same without a handle, for mechanisms that are made and composed at once. */
HS_API hs_status hs_accountant_gaussian(hs_accountant* accountant, double noise_multiplier, double count);
HS_API hs_status hs_accountant_laplace(hs_accountant* accountant, double noise_multiplier, double count);
HS_API hs_status hs_accountant_poisson_gaussian(hs_accountant* accountant, double noise_multiplier,
                                                double sampling_rate, double count);
HS_API hs_status hs_accountant_poisson_laplace(hs_accountant* accountant, double noise_multiplier, double sampling_rate,
                                               double count);
/* On a batch of fixed size, drawn without replacement from num_records records. */
HS_API hs_status hs_accountant_fixed_size_gaussian(hs_accountant* accountant, double noise_multiplier,
                                                   double num_records, double batch_size, double count);
HS_API hs_status hs_accountant_fixed_size_laplace(hs_accountant* accountant, double noise_multiplier,
                                                  double num_records, double batch_size, double count);
/* Noise on integers; query_sensitivity is that of adding or removing a record, a whole number. */
HS_API hs_status hs_accountant_discrete_gaussian(hs_accountant* accountant, double noise_std, double query_sensitivity,
                                                 double count);
HS_API hs_status hs_accountant_discrete_laplace(hs_accountant* accountant, double inverse_scale,
                                                double query_sensitivity, double count);
/* Under HS_REPLACE only. */
HS_API hs_status hs_accountant_randomized_response(hs_accountant* accountant, double noise_probability,
                                                   double num_buckets, double count);
HS_API hs_status hs_accountant_exponential(hs_accountant* accountant, double epsilon, double count);
HS_API hs_status hs_accountant_permute_and_flip(hs_accountant* accountant, double epsilon, double count);
HS_API hs_status hs_accountant_approximate_dp(hs_accountant* accountant, double epsilon, double delta, double count);
/* Two distributions over n outcomes, each summing to 1 within 1e-12. */
HS_API hs_status hs_accountant_discrete(hs_accountant* accountant, const double* p, const double* q, size_t n,
                                        double count);
/* A pair for removing a record and one for adding it. */
HS_API hs_status hs_accountant_discrete_pairs(hs_accountant* accountant, const double* p, const double* q, size_t n,
                                              const double* added_p, const double* added_q, size_t added_n,
                                              double count);
/* Brackets of delta at n epsilons >= 0, and of epsilon at n deltas in [0, 1). */
HS_API hs_status hs_accountant_delta(const hs_accountant* accountant, const double* epsilon, size_t n, hs_bracket* out);
HS_API hs_status hs_accountant_epsilon(const hs_accountant* accountant, const double* delta, size_t n, hs_bracket* out);

#ifdef __cplusplus
}
#endif

#endif

/* The same training in C, and shuffled batches; then a refused argument. Prints ends, the kernel, ends, and the message. */
#include <hockeystick/c_api.h>

#include <stdio.h>

int main(void) {
    hs_accountant* training = NULL;
    hs_mechanism *noise = NULL, *step = NULL;
    hs_bracket epsilon, deltas[2], shuffled;
    const double delta = 1e-5, eps[2] = {2.0, 3.0};
    if (hs_abi_version() != HS_ABI_VERSION) return 1;
    if (hs_accountant_create(HS_ADD_OR_REMOVE, &training) || hs_mechanism_gaussian(1.1, &noise) ||
        hs_mechanism_poisson_sampled(noise, 0.01, &step) || hs_accountant_compose(training, step, 1000) ||
        hs_accountant_laplace(training, 20.0, 1) || hs_accountant_epsilon(training, &delta, 1, &epsilon) ||
        hs_accountant_delta(training, eps, 2, deltas) || hs_shuffled_batches_epsilon(1.1, 100, 10, delta, &shuffled)) {
        fprintf(stderr, "%s\n", hs_last_error_message());
        return 1;
    }
    hs_mechanism_free(noise);
    hs_mechanism_free(step);
    hs_accountant_destroy(training);
    printf("%.17g %.17g %.17g %.17g\n", epsilon.lower, epsilon.upper, deltas[0].lower, deltas[0].upper);
    printf("%.17g\n", hs_theta(1.0, 1.0));
    printf("%.17g %.17g\n", shuffled.lower, shuffled.upper);
    if (hs_dpsgd_epsilon(-1.0, 0.01, 1000, 1e-5, &epsilon) != HS_INVALID_ARGUMENT) return 1;
    printf("%s\n", hs_last_error_message());
    return 0;
}

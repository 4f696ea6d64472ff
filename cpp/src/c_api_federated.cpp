// The C API of Gaussian differential privacy, federated averaging and the last iterate.
#include <vector>

#include <hockeystick/divergence/gaussian_dp.hpp>
#include <hockeystick/federated/fedavg.hpp>
#include <hockeystick/hidden_state/projected_sgd.hpp>

#include "c_api_support.hpp"

namespace {

using namespace c_api;
using hs::federated::StepSchedule;

void require_positive(double x, const char* name) {
    require(hs::numeric::positive(x), name, "be positive and finite", x);
}

void require_diameter(double x) { require(x > 0.0, "diameter", "be positive", x); }

StepSchedule schedule_of(int32_t code) {
    require(code >= HS_CONSTANT_STEPS && code <= HS_CONTINUOUS_STEPS, "schedule",
            "be HS_CONSTANT_STEPS, HS_CYCLIC_STEPS, HS_STAGEWISE_STEPS or HS_CONTINUOUS_STEPS", code);
    constexpr StepSchedule schedules[] = {StepSchedule::constant, StepSchedule::cyclic, StepSchedule::stagewise,
                                          StepSchedule::continuous};
    return schedules[code];
}

void require_rounds(StepSchedule schedule, double rounds) {
    require_count(rounds, "rounds");
    if (hs::federated::constant_over_rounds(schedule)) return;
    require(rounds <= hs::federated::max_scheduled_rounds, "rounds", "be an integer in [1, 1000000]", rounds);
}

}  // namespace

double hs_gdp_delta(double mu, double eps) { return number<hs::divergence::gdp_dp_delta>(mu, eps); }
double hs_gdp_epsilon(double mu, double delta) { return number<hs::divergence::gdp_epsilon>(mu, delta); }
double hs_gdp_trade_off(double mu, double false_positive_rate) {
    return number<hs::divergence::gdp_trade_off>(mu, false_positive_rate);
}

hs_status hs_fedavg_gdp(int32_t schedule, double rounds, double local_steps, double num_clients, double clip_norm,
                        double noise_std, double smoothness, double learning_rate, double diameter, double* mu) {
    return guarded([&] {
        const StepSchedule steps = schedule_of(schedule);
        require_rounds(steps, rounds);
        require_count(local_steps, "local_steps");
        require_count(num_clients, "num_clients");
        require_positive(clip_norm, "clip_norm");
        require_positive(noise_std, "noise_std");
        require(hs::numeric::non_negative(smoothness), "smoothness", "be non-negative and finite", smoothness);
        require_positive(learning_rate, "learning_rate");
        require_diameter(diameter);
        require_pointer(mu, "mu");
        std::vector<hs::hidden_state::ShiftBlock> blocks;
        *mu = hs::federated::fedavg_gdp(steps, rounds, local_steps, num_clients, clip_norm, noise_std, smoothness,
                                        learning_rate, diameter, blocks, [] {});
    });
}

hs_status hs_pnsgd_gaussian(double eps, double index, double num_records, double learning_rate, double noise_std,
                            double lipschitz, double smoothness, double strong_convexity, double diameter,
                            double* delta) {
    return guarded([&] {
        require_epsilon(eps, "epsilon");
        require_count(index, "index");
        require_count(num_records, "num_records");
        require_positive(learning_rate, "learning_rate");
        require_positive(noise_std, "noise_std");
        require_positive(lipschitz, "lipschitz");
        require(hs::numeric::non_negative(smoothness), "smoothness", "be non-negative and finite", smoothness);
        require(strong_convexity >= 0.0 && strong_convexity <= smoothness, "strong_convexity", "lie in [0, smoothness]",
                strong_convexity);
        require_positive(diameter, "diameter");
        require(index <= num_records, "index", "lie in [1, num_records]", index);
        require(learning_rate * (smoothness + strong_convexity) <= 2.0, "learning_rate",
                "be at most 2/(smoothness + strong_convexity)", learning_rate);
        require_pointer(delta, "delta");
        *delta = hs::hidden_state::pnsgd_gaussian(eps, index, num_records, learning_rate, noise_std, lipschitz,
                                                  smoothness, strong_convexity, diameter);
    });
}

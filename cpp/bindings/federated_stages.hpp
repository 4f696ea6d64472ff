// The stages of the closed forms of federated training (blocks.hpp): each varies over as few axes as
// its columns do.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <hockeystick/federated/fedavg.hpp>

#include "blocks.hpp"

namespace grid {

namespace federated = hockeystick::federated;

inline federated::StepSchedule schedule_named(const std::string& name) {
    using federated::StepSchedule;
    constexpr std::pair<const char*, StepSchedule> schedules[] = {
        {"constant", StepSchedule::constant},
        {"cyclic", StepSchedule::cyclic},
        {"stagewise", StepSchedule::stagewise},
        {"continuous", StepSchedule::continuous},
    };
    for (const auto& [known, schedule] : schedules) {
        if (name == known) return schedule;
    }
    throw std::invalid_argument("unknown schedule '" + name + "'");
}

// FedAvg and FedProx by their number of arguments.
template <class Interrupted, class... Values>
double gdp_of_cell(federated::StepSchedule schedule, const Interrupted& interrupted, Values... values) {
    std::vector<hockeystick::hidden_state::ShiftBlock> blocks;
    if constexpr (sizeof...(values) == 8) return federated::fedavg_gdp(schedule, values..., blocks, interrupted);
    else return federated::fedprox_gdp(schedule, values..., blocks, interrupted);
}

inline double fedavg_of_row(federated::StepSchedule schedule, const double* x) {
    return gdp_of_cell(schedule, [] {}, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
}

inline double fedprox_of_row(federated::StepSchedule schedule, const double* x) {
    return gdp_of_cell(schedule, [] {}, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8]);
}

// Whether there is one diameter, the infinite one.
inline bool unbounded(const Double& diameter, std::size_t axes) {
    return column_of(diameter, axes).constant() && diameter.size() > 0 &&
           *diameter.data() == hockeystick::numeric::infinity;
}

// Arguments 0 to 7: rounds, local_steps, num_clients, clip_norm, noise_std, smoothness,
// learning_rate, diameter. `first` is the place of the first stage.
inline std::vector<Stage> fedavg_stages(federated::StepSchedule schedule, std::size_t first, bool bounded) {
    if (bounded) {
        const auto scalar = [schedule](const double* x) { return fedavg_of_row(schedule, x); };
        return {{nullptr, {0, 1, 2, 3, 4, 5, 6, 7}, scalar}};
    }
    std::vector<Stage> stages;
    const bool cyclic = schedule == federated::StepSchedule::cyclic;
    if (cyclic) {
        const auto rise = [](const double* x) {
            return hockeystick::numeric::count(x[0]) ? federated::reciprocal_sum(1.0, x[0]) : hockeystick::numeric::nan;
        };
        stages.push_back({nullptr, {1}, rise});
    }
    const std::size_t next = first + stages.size();
    stages.push_back({&ClosedForms::fedavg_root_cost, {cyclic ? first : 1, 0, 1}});
    stages.push_back({&ClosedForms::fedavg_scale, {2, 3, 4, 5, 6}});
    stages.push_back({&ClosedForms::drift_parameter, {next + 1, next}});
    return stages;
}

// Arguments 0 to 8: those of FedAvg with prox before the diameter.
inline std::vector<Stage> fedprox_stages(federated::StepSchedule schedule, std::size_t first, bool bounded) {
    if (bounded || schedule != federated::StepSchedule::constant) {
        const auto scalar = [schedule](const double* x) { return fedprox_of_row(schedule, x); };
        return {{nullptr, {0, 1, 2, 3, 4, 5, 6, 7, 8}, scalar}};
    }
    return {{&ClosedForms::fedprox_root_cost, {0, 1, 6, 7}},
            {&ClosedForms::fedprox_scale, {2, 3, 4, 5, 6, 7}},
            {&ClosedForms::drift_parameter, {first + 1, first}}};
}

// The parameter, then what Gaussian DP makes of it with the argument `last`.
inline std::vector<Stage> then(std::vector<Stage> stages, Stage conversion, std::size_t last) {
    conversion.columns = {last + stages.size(), last};
    stages.push_back(std::move(conversion));
    return stages;
}

// Arguments 0 to 8: eps, num_users, batch_size, suffix, learning_rate, noise_std, lipschitz, radius,
// smoothness. Columns 9 to 12 are the stages before `last`; 10 and 12 are the divergence of a use
// and the logarithm of what each later round leaves of it.
inline std::vector<Stage> aggregator_stages(bool convex, const std::vector<Stage>& last) {
    const auto image_diameter = convex ? &ClosedForms::convex_image_diameter : &ClosedForms::nonconvex_image_diameter;
    std::vector<Stage> stages{{&ClosedForms::aggregator_use_distance, {2, 5, 6}},
                              {&ClosedForms::theta, {0, 9}},
                              {image_diameter, {2, 4, 5, 6, 7, 8}},
                              {&ClosedForms::log_theta, {0, 11}}};
    stages.insert(stages.end(), last.begin(), last.end());
    return stages;
}

}  // namespace grid

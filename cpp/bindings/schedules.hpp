// The names of the step-size schedules.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <hockeystick/federated/fedavg.hpp>

inline hockeystick::federated::StepSchedule schedule_named(const std::string& name) {
    using hockeystick::federated::StepSchedule;
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

// A door: grids and budgets of DP-SGD (accounting/dpsgd.hpp). Needs pocketfft on the include path.
#pragma once

#include <hockeystick/accounting/dpsgd.hpp>

namespace hockeystick {

using accounting::Engine;

// The functions of accounting/dpsgd.hpp as a door has them: (engine, and four numbers).
#define HOCKEYSTICK_DOOR(name)                                                                                         \
    template <class... Numbers> double name(Engine& engine, const Numbers&... numbers) {                               \
        return numeric::at_door<accounting::name>(engine, numbers...);                                                 \
    }

HOCKEYSTICK_DOOR(dpsgd_delta)
HOCKEYSTICK_DOOR(dpsgd_epsilon)
HOCKEYSTICK_DOOR(dpsgd_noise_multiplier)
HOCKEYSTICK_DOOR(dpsgd_sampling_rate)
HOCKEYSTICK_DOOR(dpsgd_steps)

#undef HOCKEYSTICK_DOOR

}  // namespace hockeystick

// A door: grids and budgets of DP-SGD (accounting/dpsgd.hpp). Needs pocketfft on the include path.
#pragma once

#include <hockeystick/accounting/dpsgd.hpp>

namespace hockeystick {

using accounting::dpsgd_delta;
using accounting::dpsgd_epsilon;
using accounting::dpsgd_noise_multiplier;
using accounting::dpsgd_sampling_rate;
using accounting::dpsgd_steps;
using accounting::Engine;

}  // namespace hockeystick

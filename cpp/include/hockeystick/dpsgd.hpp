// A door: grids and budgets of DP-SGD (accounting/dpsgd.hpp).
#pragma once

#include <hockeystick/accounting/dpsgd.hpp>

namespace hockeystick {

using accounting::dpsgd_delta;
using accounting::dpsgd_epsilon;
using accounting::dpsgd_noise_multiplier;
using accounting::dpsgd_sampling_rate;
using accounting::dpsgd_steps;

}  // namespace hockeystick

// How much must be known of a small delta: below deep_delta a hundredth of it, below
// very_deep_delta a hundredth of its logarithm, below smallest_delta, which is hardly a double, only
// an upper end.
#pragma once

#include <hockeystick/version.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double deep_delta = 1e-30, very_deep_delta = 1e-100, smallest_delta = 1e-300;
// The logarithms of the last two, rounded down.
inline constexpr double log_very_deep_delta = -231.0, log_smallest_delta = -691.0;
// Relative to delta, or to its logarithm.
inline constexpr double enough_for_deep_delta = 1e-2;

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour

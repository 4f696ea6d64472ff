// The constant of Chernoff's bound on a hockey-stick divergence, for any privacy loss L and tilt
// c > 0:
//
//   delta(eps) = E (1 - e^{eps - L})_+ <= kappa(c) E[e^{cL}] e^{-c eps},
//   kappa(c) = c^c/(1 + c)^{1 + c},
//
// because kappa(c) is the largest value of (1 - e^{-x}) e^{-cx} over x >= 0, attained where
// e^{-x} = c/(1 + c).
#pragma once

#include <cmath>

#include <hockeystick/version.hpp>

namespace hockeystick::divergence {
inline namespace HOCKEYSTICK_ISA {

inline double log_kappa(double c) { return -c * std::log1p(1.0 / c) - std::log1p(c); }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::divergence

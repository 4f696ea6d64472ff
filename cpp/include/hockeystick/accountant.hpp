// A door: the accountant, and the mechanisms to compose. Needs pocketfft on the include path.
//
//   hockeystick::Accountant training;
//   training.compose(hockeystick::poisson_sampled(hockeystick::gaussian(1.1), 0.01), 1000);
//   const hockeystick::Interval epsilon = training.epsilon(1e-5);  // .lower, .upper
#pragma once

#include <hockeystick/accounting/accountant.hpp>
#include <hockeystick/mechanism/registry.hpp>

#ifdef HOCKEYSTICK_COMPILED
#include <hockeystick/accounting/compiled.hpp>
#endif

namespace hockeystick {

using accounting::Accountant;
using mechanism::approximate_dp;
using mechanism::bounded_range;
using mechanism::discrete;
using mechanism::discrete_gaussian;
using mechanism::discrete_laplace;
using mechanism::gaussian;
using mechanism::laplace;
using mechanism::PairPointer;
using mechanism::poisson_sampled;
using mechanism::randomized_response;
using numeric::Interval;

}  // namespace hockeystick

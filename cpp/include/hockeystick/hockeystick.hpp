// Everything that an embedder may include, but pld.hpp and accountant.hpp, which need pocketfft on the include path.
#pragma once

#include <hockeystick/aggregator_bounds.hpp>
#include <hockeystick/contraction.hpp>
#include <hockeystick/domain.hpp>
#include <hockeystick/dpsgd.hpp>
#include <hockeystick/feasible.hpp>
#include <hockeystick/fedavg.hpp>
#include <hockeystick/gaussian_dp.hpp>
#include <hockeystick/gaussian_tail.hpp>
#include <hockeystick/hidden_bounds.hpp>
#include <hockeystick/hockey_stick.hpp>
#include <hockeystick/hockey_stick_inverse.hpp>
#include <hockeystick/last_iterate.hpp>
#include <hockeystick/markov.hpp>
#include <hockeystick/mechanism.hpp>
#include <hockeystick/nonlinear_contraction.hpp>
#include <hockeystick/one_step.hpp>
#include <hockeystick/parallel.hpp>
#include <hockeystick/published.hpp>
#include <hockeystick/root.hpp>
#include <hockeystick/shifted_interpolation.hpp>
#include <hockeystick/trusted_aggregator.hpp>
#include <hockeystick/version.hpp>

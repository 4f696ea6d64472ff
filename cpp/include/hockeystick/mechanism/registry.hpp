// All mechanisms: one file each, listed here and in bindings/bind_mechanism.cpp.
#pragma once

#include <hockeystick/mechanism/approximate_dp.hpp>
#include <hockeystick/mechanism/bounded_range.hpp>
#include <hockeystick/mechanism/discrete.hpp>
#include <hockeystick/mechanism/discrete_gaussian.hpp>
#include <hockeystick/mechanism/fixed_size_sampled.hpp>
#include <hockeystick/mechanism/gaussian.hpp>
#include <hockeystick/mechanism/gaussian_mixture.hpp>
#include <hockeystick/mechanism/labelled.hpp>
#include <hockeystick/mechanism/laplace.hpp>
#include <hockeystick/mechanism/nothing.hpp>
#include <hockeystick/mechanism/poisson_sampled.hpp>
#include <hockeystick/mechanism/replaced_gaussian.hpp>
#include <hockeystick/mechanism/truncated_poisson.hpp>

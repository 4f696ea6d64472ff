// The front door: everything that an embedder may include without pocketfft.
// accounting/accountant.hpp and pld/composition.hpp, which need pocketfft on the include path, are
// doors of their own. A room's further names are found in its namespace, such as
// hockeystick::chain.
#pragma once

#include <hockeystick/allocation/random_allocation.hpp>
#include <hockeystick/chain/scalar_chain.hpp>
#include <hockeystick/divergence/gaussian_dp.hpp>
#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/divergence/hockey_stick_inverse.hpp>
#include <hockeystick/federated/fedavg.hpp>
#include <hockeystick/federated/published_fedavg.hpp>
#include <hockeystick/federated/trusted_aggregator.hpp>
#include <hockeystick/federated/trusted_aggregator_bounds.hpp>
#include <hockeystick/hidden_state/ball_projection.hpp>
#include <hockeystick/hidden_state/contraction_sum.hpp>
#include <hockeystick/hidden_state/cyclic_bounds.hpp>
#include <hockeystick/hidden_state/loss_curve.hpp>
#include <hockeystick/hidden_state/nonlinear_contraction.hpp>
#include <hockeystick/hidden_state/projected_sgd.hpp>
#include <hockeystick/hidden_state/projected_sgd_bounds.hpp>
#include <hockeystick/hidden_state/random_participation_bounds.hpp>
#include <hockeystick/hidden_state/shifted_interpolation.hpp>
#include <hockeystick/loss/one_step.hpp>
#include <hockeystick/numeric/gaussian_tail.hpp>
#include <hockeystick/numeric/parallel.hpp>
#include <hockeystick/version.hpp>

namespace hockeystick {

using divergence::gaussian_epsilon;
using divergence::gdp_advantage;
using divergence::gdp_delta;
using divergence::gdp_epsilon;
using divergence::gdp_rdp;
using divergence::gdp_trade_off;
using divergence::laplace_theta;
using divergence::log_theta;
using divergence::theta;
using divergence::theta_inverse;
using numeric::Interval;
using numeric::log_q;
using numeric::q;
using numeric::q_inv;

using federated::fedavg_gdp;
using federated::fedprox_gdp;
using federated::StepSchedule;
using federated::trusted_aggregator;
using federated::trusted_aggregator_random_stop;
using hidden_state::constant_contraction_sum;
using hidden_state::contraction_sum;
using hidden_state::pnsgd_gaussian;
using hidden_state::pnsgd_gaussian_random_stop;
using hidden_state::pnsgd_laplace;
using hidden_state::pnsgd_rdp;

using loss::OneStep;

}  // namespace hockeystick

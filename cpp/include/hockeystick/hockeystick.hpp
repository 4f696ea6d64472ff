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

// A kernel as a door has it. Rooms see both this and their own, which they take, since theirs is no
// template; so their loops have no guards in them.
#define HOCKEYSTICK_DOOR(room, name)                                                                                   \
    template <class... Arguments> double name(const Arguments&... arguments) {                                         \
        return numeric::at_door<room::name>(arguments...);                                                             \
    }

HOCKEYSTICK_DOOR(divergence, gaussian_epsilon)
HOCKEYSTICK_DOOR(divergence, gdp_advantage)
HOCKEYSTICK_DOOR(divergence, gdp_delta)
HOCKEYSTICK_DOOR(divergence, gdp_epsilon)
HOCKEYSTICK_DOOR(divergence, gdp_rdp)
HOCKEYSTICK_DOOR(divergence, gdp_trade_off)
HOCKEYSTICK_DOOR(divergence, laplace_theta)
HOCKEYSTICK_DOOR(divergence, log_theta)
HOCKEYSTICK_DOOR(divergence, theta)
HOCKEYSTICK_DOOR(divergence, theta_inverse)
HOCKEYSTICK_DOOR(numeric, log_q)
HOCKEYSTICK_DOOR(numeric, q)
HOCKEYSTICK_DOOR(numeric, q_inv)

HOCKEYSTICK_DOOR(federated, trusted_aggregator)
HOCKEYSTICK_DOOR(federated, trusted_aggregator_random_stop)
HOCKEYSTICK_DOOR(hidden_state, constant_contraction_sum)
HOCKEYSTICK_DOOR(hidden_state, pnsgd_gaussian)
HOCKEYSTICK_DOOR(hidden_state, pnsgd_gaussian_random_stop)
HOCKEYSTICK_DOOR(hidden_state, pnsgd_laplace)
HOCKEYSTICK_DOOR(hidden_state, pnsgd_rdp)

#undef HOCKEYSTICK_DOOR

using federated::fedavg_gdp;
using federated::fedprox_gdp;
using federated::StepSchedule;
using hidden_state::contraction_sum;
using loss::OneStep;
using numeric::FloatingEnvironment;
using numeric::Interval;

}  // namespace hockeystick

"""Formulas exactly as printed in papers, kept for comparison. Never plan or report privacy with these.

Those whose proofs fail emit `UnsoundBoundWarning`; each docstring shows the counterexample. Others are sound and loose, and
say so. What holds, under the same names, is in `hockeystick.last_iterate`, `hockeystick.federated`, `hockeystick.isrl`,
`hockeystick.distortion` and `hockeystick.utility`. Nothing outside this package calls it but `hockeystick.utility.analyses`, to
show it beside what holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick._checks.doors import keep_module
from hockeystick._checks.hints import missing
from hockeystick.published.distortion.algorithm import (
    DistortionHistory,
    run_near_optimal_utility_fl,
)
from hockeystick.published.distortion.bounds import (
    gaussian_tv_bounds,
    min_distortion_for_budget,
    noise_variance_for_budget,
    privacy_leakage,
    privacy_leakage_upper_bound,
)
from hockeystick.published.distortion.sampling import SamplingConditions, sampling_conditions, sampling_probability
from hockeystick.published.distortion.tradeoffs import (
    TradeoffConditions,
    distortion_ratio,
    nfl_utility_weight,
    optimal_tradeoff_conditions,
    tradeoff_upper_bound,
)
from hockeystick.published.distortion.utility import (
    bias_gap_bound,
    sampled_update_variance,
    utility_loss_constant,
    utility_loss_upper_bound,
    variance_gap_bound,
)
from hockeystick.published.federated.accumulated_steps import StepSizeBounds, accumulated_step_size_bounds
from hockeystick.published.federated.comparison import compared_noise_std, compared_rdp
from hockeystick.published.federated.sensitivities import (
    fedavg_data_sensitivity,
    fedavg_model_sensitivity,
    fedprox_data_sensitivity,
    fedprox_model_sensitivity,
)
from hockeystick.published.federated.theorems import fedavg_gdp, fedprox_gdp
from hockeystick.published.isrl.budgets import (
    group_privacy,
    shuffle_amplification,
    subsampling_amplification,
    user_level_to_isrl,
)
from hockeystick.published.isrl.experiments import (
    HeuristicNoise,
    experimental_batch_size,
    experimental_local_sgd_sigma,
    experimental_sigma,
)
from hockeystick.published.isrl.rounds import (
    erm_rounds,
    multistage_schedule,
    shuffle_composed_delta,
)
from hockeystick.published.isrl.shuffling import (
    shuffle_composed_epsilon,
    shuffle_rounds,
    shuffle_vector_sum,
    shuffled_mb_sgd_sigma,
)
from hockeystick.published.isrl.silo_noise import silo_noise_sigmas, silo_xi, unequal_silos_rounds, xi_aggregate
from hockeystick.published.isrl.theorems import (
    min_batch_size,
    noisy_mb_sgd_sigma,
    one_pass_sigma,
    step_size_convex,
    uniform_stability,
)
from hockeystick.published.pnsgd import pnsgd_gaussian_random_stop, pnsgd_rdp
from hockeystick.published.random_stop import random_stop_excess_risk_rate
from hockeystick.published.trusted_aggregator import (
    trusted_aggregator,
    trusted_aggregator_delta,
    trusted_aggregator_excess_risk,
)
from hockeystick.published.warning import UnsoundBoundWarning

__all__ = [
    "DistortionHistory",
    "HeuristicNoise",
    "SamplingConditions",
    "StepSizeBounds",
    "TradeoffConditions",
    "UnsoundBoundWarning",
    "accumulated_step_size_bounds",
    "bias_gap_bound",
    "compared_noise_std",
    "compared_rdp",
    "distortion_ratio",
    "erm_rounds",
    "experimental_batch_size",
    "experimental_local_sgd_sigma",
    "experimental_sigma",
    "fedavg_data_sensitivity",
    "fedavg_gdp",
    "fedavg_model_sensitivity",
    "fedprox_data_sensitivity",
    "fedprox_gdp",
    "fedprox_model_sensitivity",
    "gaussian_tv_bounds",
    "group_privacy",
    "min_batch_size",
    "min_distortion_for_budget",
    "multistage_schedule",
    "nfl_utility_weight",
    "noise_variance_for_budget",
    "noisy_mb_sgd_sigma",
    "one_pass_sigma",
    "optimal_tradeoff_conditions",
    "pnsgd_gaussian_random_stop",
    "pnsgd_rdp",
    "privacy_leakage",
    "privacy_leakage_upper_bound",
    "random_stop_excess_risk_rate",
    "run_near_optimal_utility_fl",
    "sampled_update_variance",
    "sampling_conditions",
    "sampling_probability",
    "shuffle_amplification",
    "shuffle_composed_delta",
    "shuffle_composed_epsilon",
    "shuffle_rounds",
    "shuffle_vector_sum",
    "shuffled_mb_sgd_sigma",
    "silo_noise_sigmas",
    "silo_xi",
    "step_size_convex",
    "subsampling_amplification",
    "tradeoff_upper_bound",
    "trusted_aggregator",
    "trusted_aggregator_delta",
    "trusted_aggregator_excess_risk",
    "unequal_silos_rounds",
    "uniform_stability",
    "user_level_to_isrl",
    "utility_loss_constant",
    "utility_loss_upper_bound",
    "variance_gap_bound",
    "xi_aggregate",
]


def __dir__() -> list[str]:
    return sorted(__all__)


keep_module(__name__)
if not TYPE_CHECKING:
    __getattr__ = missing(__name__, __dir__)

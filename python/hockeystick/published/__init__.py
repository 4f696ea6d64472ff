"""Formulas exactly as printed in papers, kept for comparison. Never plan or report privacy with these.

Those whose proofs fail emit `UnsoundBoundWarning`; each docstring shows the counterexample. Others are sound and loose, and
say so. What holds, under the same names, is in `hockeystick.last_iterate`, `hockeystick.federated`, `hockeystick.isrl`,
`hockeystick.distortion` and `hockeystick.utility`. Nothing outside this package calls it but `hockeystick.utility.analyses`, to
show it beside what holds.
"""

from __future__ import annotations

from hockeystick._checks.hints import open_room
from hockeystick.published.contraction import (
    pnsgd_gaussian_random_stop,
    pnsgd_rdp,
    random_stop_excess_risk_rate,
    trusted_aggregator,
    trusted_aggregator_delta,
    trusted_aggregator_excess_risk,
)
from hockeystick.published.federated_fdp import (
    StepSizeBounds,
    accumulated_step_size_bounds,
    compared_noise_std,
    compared_rdp,
    fedavg_data_sensitivity,
    fedavg_gdp,
    fedavg_model_sensitivity,
    fedprox_data_sensitivity,
    fedprox_gdp,
    fedprox_model_sensitivity,
)
from hockeystick.published.inter_silo import (
    HeuristicNoise,
    erm_rounds,
    experimental_batch_size,
    experimental_local_sgd_sigma,
    experimental_sigma,
    group_privacy,
    min_batch_size,
    multistage_schedule,
    noisy_mb_sgd_sigma,
    one_pass_sigma,
    silo_noise_sigmas,
    silo_xi,
    step_size_convex,
    subsampling_amplification,
    unequal_silos_rounds,
    uniform_stability,
    user_level_to_isrl,
    xi_aggregate,
)
from hockeystick.published.parameter_distortion import (
    DistortionHistory,
    SamplingConditions,
    TradeoffConditions,
    bias_gap_bound,
    distortion_ratio,
    gaussian_tv_bounds,
    min_distortion_for_budget,
    nfl_utility_weight,
    noise_variance_for_budget,
    optimal_tradeoff_conditions,
    privacy_leakage,
    privacy_leakage_upper_bound,
    run_near_optimal_utility_fl,
    sampled_update_variance,
    sampling_conditions,
    sampling_probability,
    tradeoff_upper_bound,
    utility_loss_constant,
    utility_loss_upper_bound,
    variance_gap_bound,
)
from hockeystick.published.shuffled_messages import (
    shuffle_amplification,
    shuffle_composed_delta,
    shuffle_composed_epsilon,
    shuffle_rounds,
    shuffle_vector_sum,
    shuffled_mb_sgd_sigma,
)
from hockeystick.published.warning import UnsoundBoundWarning

__all__ = [
    "DistortionHistory", "HeuristicNoise", "SamplingConditions", "StepSizeBounds", "TradeoffConditions",
    "UnsoundBoundWarning", "accumulated_step_size_bounds", "bias_gap_bound", "compared_noise_std", "compared_rdp",
    "distortion_ratio", "erm_rounds", "experimental_batch_size", "experimental_local_sgd_sigma", "experimental_sigma",
    "fedavg_data_sensitivity", "fedavg_gdp", "fedavg_model_sensitivity", "fedprox_data_sensitivity", "fedprox_gdp",
    "fedprox_model_sensitivity", "gaussian_tv_bounds", "group_privacy", "min_batch_size", "min_distortion_for_budget",
    "multistage_schedule", "nfl_utility_weight", "noise_variance_for_budget", "noisy_mb_sgd_sigma", "one_pass_sigma",
    "optimal_tradeoff_conditions", "pnsgd_gaussian_random_stop", "pnsgd_rdp", "privacy_leakage",
    "privacy_leakage_upper_bound", "random_stop_excess_risk_rate", "run_near_optimal_utility_fl",
    "sampled_update_variance", "sampling_conditions", "sampling_probability", "shuffle_amplification",
    "shuffle_composed_delta", "shuffle_composed_epsilon", "shuffle_rounds", "shuffle_vector_sum",
    "shuffled_mb_sgd_sigma", "silo_noise_sigmas", "silo_xi", "step_size_convex", "subsampling_amplification",
    "tradeoff_upper_bound", "trusted_aggregator", "trusted_aggregator_delta", "trusted_aggregator_excess_risk",
    "unequal_silos_rounds", "uniform_stability", "user_level_to_isrl", "utility_loss_constant",
    "utility_loss_upper_bound", "variance_gap_bound", "xi_aggregate",
]  # fmt: skip

open_room(__name__)

"""Privacy leakage and utility under parameter distortion, after Zhang, Chen and Yang 2023.

Nothing here is a differential-privacy guarantee: leakage is how far an averaged belief moves, for an adversary who ignores
the mechanism. The way from a guarantee to a leakage is `ldp_epsilon_for_leakage`; for privacy itself use
`hockeystick.Accountant`. The theorems of the paper that are false are in `hockeystick.published`, with their counterexamples.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.distortion.divergences import (
    chi_squared_divergence,
    gaussian_tv_isotropic,
    hockey_stick_divergence,
    jensen_shannon_distance,
    jensen_shannon_divergence,
    kl_divergence,
    noise_variance_for_tv,
    total_variation_distance,
)
from hockeystick.distortion.leakage import (
    InfeasibleBudgetError,
    averaged_posterior,
    belief_shift_bound,
    distortion_ratio,
    federated_privacy_leakage,
    ldp_epsilon_for_leakage,
    leakage_tv_coefficient,
    max_bayesian_privacy_leakage,
    max_near_optimal_gap,
    min_distortion_for_budget,
    near_optimal_set,
    nfl_utility_weight,
    privacy_leakage,
    privacy_leakage_bound_from_ldp,
    privacy_leakage_lower_bound,
    privacy_leakage_upper_bound,
    tradeoff_upper_bound,
    unprotected_leakage,
)
from hockeystick.distortion.sampled_updates import (
    BatchMeanVariance,
    aggregate,
    batch_mean_gradient_variance,
    distort_parameters,
    fedsgd_local_step,
    normalised_gradient_variance,
    sampled_update_mean,
    sampled_update_variance,
)
from hockeystick.distortion.utility_gaps import (
    GapDecomposition,
    TotalVariance,
    bias_gap_bound,
    bias_norm,
    bounded_function_gap,
    expected_gap,
    expected_gap_from_samples,
    expected_utility_loss_additive_noise,
    federated_utility_loss,
    sum_of_squares_gap,
    total_variance,
    utility_loss,
    utility_loss_tv_bound,
    variance_gap_bound,
)

__all__ = [
    "BatchMeanVariance",
    "GapDecomposition",
    "InfeasibleBudgetError",
    "TotalVariance",
    "aggregate",
    "averaged_posterior",
    "batch_mean_gradient_variance",
    "belief_shift_bound",
    "bias_gap_bound",
    "bias_norm",
    "bounded_function_gap",
    "chi_squared_divergence",
    "distort_parameters",
    "distortion_ratio",
    "expected_gap",
    "expected_gap_from_samples",
    "expected_utility_loss_additive_noise",
    "federated_privacy_leakage",
    "federated_utility_loss",
    "fedsgd_local_step",
    "gaussian_tv_isotropic",
    "hockey_stick_divergence",
    "jensen_shannon_distance",
    "jensen_shannon_divergence",
    "kl_divergence",
    "ldp_epsilon_for_leakage",
    "leakage_tv_coefficient",
    "max_bayesian_privacy_leakage",
    "max_near_optimal_gap",
    "min_distortion_for_budget",
    "near_optimal_set",
    "nfl_utility_weight",
    "noise_variance_for_tv",
    "normalised_gradient_variance",
    "privacy_leakage",
    "privacy_leakage_bound_from_ldp",
    "privacy_leakage_lower_bound",
    "privacy_leakage_upper_bound",
    "sampled_update_mean",
    "sampled_update_variance",
    "sum_of_squares_gap",
    "total_variance",
    "total_variation_distance",
    "tradeoff_upper_bound",
    "unprotected_leakage",
    "utility_loss",
    "utility_loss_tv_bound",
    "variance_gap_bound",
]

open_room(__name__)

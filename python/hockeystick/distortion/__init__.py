"""Privacy leakage and utility under parameter distortion, after Zhang, Chen and Yang 2023.

Nothing here is a differential-privacy guarantee: leakage is how far an averaged belief moves, for an adversary who ignores
the mechanism. The way from a guarantee to a leakage is `ldp_epsilon_for_leakage`; for privacy itself use
`hockeystick.Accountant`. The theorems of the paper that are false are in `hockeystick.published`, with their counterexamples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick._checks.doors import keep_module
from hockeystick._checks.hints import missing
from hockeystick.distortion.divergences import (
    chi_squared_divergence,
    hockey_stick_divergence,
    jensen_shannon_distance,
    jensen_shannon_divergence,
    kl_divergence,
    total_variation_distance,
)
from hockeystick.distortion.fedsgd import aggregate, distort_parameters, fedsgd_local_step
from hockeystick.distortion.gap_bounds import (
    bias_gap_bound,
    bounded_function_gap,
    utility_loss_tv_bound,
    variance_gap_bound,
)
from hockeystick.distortion.gaps import (
    GapDecomposition,
    TotalVariance,
    bias_norm,
    expected_gap,
    expected_gap_from_samples,
    sum_of_squares_gap,
    total_variance,
)
from hockeystick.distortion.gaussian import (
    gaussian_tv_isotropic,
    noise_variance_for_tv,
)
from hockeystick.distortion.leakage import (
    averaged_posterior,
    federated_privacy_leakage,
    max_bayesian_privacy_leakage,
    privacy_leakage,
    unprotected_leakage,
)
from hockeystick.distortion.leakage_bounds import (
    InfeasibleBudgetError,
    belief_shift_bound,
    leakage_tv_coefficient,
    min_distortion_for_budget,
    privacy_leakage_lower_bound,
    privacy_leakage_upper_bound,
)
from hockeystick.distortion.local_privacy import ldp_epsilon_for_leakage, privacy_leakage_bound_from_ldp
from hockeystick.distortion.tradeoffs import (
    distortion_ratio,
    max_near_optimal_gap,
    near_optimal_set,
    nfl_utility_weight,
    tradeoff_upper_bound,
)
from hockeystick.distortion.updates import (
    BatchMeanVariance,
    batch_mean_gradient_variance,
    normalised_gradient_variance,
    sampled_update_mean,
    sampled_update_variance,
)
from hockeystick.distortion.utility_loss import (
    expected_utility_loss_additive_noise,
    federated_utility_loss,
    utility_loss,
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


def __dir__() -> list[str]:
    return sorted(__all__)


keep_module(__name__)
if not TYPE_CHECKING:
    __getattr__ = missing(__name__, __dir__)

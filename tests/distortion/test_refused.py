"""What the room of distortion refuses, with a reason."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hockeystick import distortion

GRADIENTS = [(1.0, 0.0), (0.0, 2.0), (1.0, 1.0), (-2.0, 0.5)]


KERNEL = [[0.6, 0.4], [0.9, 0.1]]


FAIR = [0.5, 0.5]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: distortion.jensen_shannon_distance(FAIR, [0.2, 0.3, 0.5]), r"outcomes.*\(3,\) and \(2,\)"),
        (lambda: distortion.total_variation_distance([0.5, 0.6], FAIR), "p must sum to 1"),
        (lambda: distortion.kl_divergence([1.5, -0.5], FAIR), r"p\[0\] must lie in \[0, 1\], not 1.5"),
        (lambda: distortion.sum_of_squares_gap([1, 2], 0, scale=0), "scale must be positive"),
        (lambda: distortion.sum_of_squares_gap([1, 2], [1, 2, 3]), r"w_star.*\(3,\) and \(2,\)"),
        (lambda: distortion.sum_of_squares_gap([1, math.nan], 0), r"w\[1\] must be finite"),
        (lambda: distortion.expected_gap([0, 0], [[1, 2], [2, 1]], 0), "without negative eigenvalues"),
        (lambda: distortion.expected_gap([0, 0], [[1, 0.5], [0, 1]], 0), "must be symmetric"),
        (lambda: distortion.expected_gap([0, 0], [[1, 0, 0]], 0), "covariance must have the shape"),
        (lambda: distortion.expected_gap_from_samples([1.0, 2.0], 0), "samples must have the shape"),
        (lambda: distortion.total_variance(FAIR, [0, 2], [1, -3]), r"variances\[1\] must be non-negative"),
        (lambda: distortion.total_variance([0.5, 0.4], [0, 2], [1, 3]), "weights must sum to 1"),
        (lambda: distortion.total_variance(FAIR, [0, 2, 3], [1, 3]), "means must have one entry for each weight"),
        (lambda: distortion.federated_utility_loss([]), "losses must have the shape"),
        (lambda: distortion.federated_utility_loss([0.1]), "losses must have the shape"),
        (lambda: distortion.averaged_posterior([[0.5, 0.6]], [1.0]), "kernel must sum to 1"),
        (lambda: distortion.averaged_posterior(KERNEL, [1.0]), "a row for each weight"),
        (lambda: distortion.max_bayesian_privacy_leakage(KERNEL, [1.0, 0.0]), "prior must be positive"),
        (lambda: distortion.federated_privacy_leakage([0.9]), "per_client"),
        (lambda: distortion.federated_privacy_leakage([]), "per_client must not be empty"),
        (lambda: distortion.federated_privacy_leakage([0.1], "median"), "reduction must be one of"),
        (lambda: distortion.leakage_tv_coefficient(-0.1), "log_ratio must be non-negative"),
        (lambda: distortion.belief_shift_bound(0.1, 1.2), "total_variation must lie in"),
        (lambda: distortion.gaussian_tv_isotropic(0.0, 1.0, 1), "variance must be positive"),
        (lambda: distortion.gaussian_tv_isotropic(1.0, -1.0, 1), "noise_variance must be non-negative"),
        (lambda: distortion.gaussian_tv_isotropic(1.0, 1.0, 0), "dimension must be an integer"),
        (lambda: distortion.noise_variance_for_tv(1.0, 1.0, 1), "total_variation must lie in"),
        (lambda: distortion.bias_gap_bound(-1.0, 0.1), "radius must be non-negative"),
        (lambda: distortion.privacy_leakage_lower_bound(0.9, 0.1, 0.1), "unprotected must lie in"),
        (lambda: distortion.min_distortion_for_budget(0.3, 0.9, 0.1), "budget must lie in"),
        (lambda: distortion.privacy_leakage_bound_from_ldp(-1.0), "epsilon must be non-negative"),
        (lambda: distortion.ldp_epsilon_for_leakage(0.9), "budget must lie in"),
        (lambda: distortion.sampled_update_mean(0.0, GRADIENTS, 1.0), "sampling_rate must lie in"),
        (lambda: distortion.sampled_update_variance([], 0.3), "gradients must have the shape"),
        (lambda: distortion.sampled_update_variance(GRADIENTS, 0.3, num_rounds=0), "num_rounds must be an integer"),
        (lambda: distortion.fedsgd_local_step([0.0], np.zeros((0, 1)), learning_rate=1.0), "not be empty"),
        (lambda: distortion.aggregate([[1.0], [2.0]], [0.5, 0.6]), "weights must sum to 1"),
        (lambda: distortion.aggregate([[1.0], [2.0]], [1.0]), "one entry for each client"),
        (lambda: distortion.nfl_utility_weight(0.0, 1.0, 0.1), "ratio must be positive"),
        (lambda: distortion.nfl_utility_weight(1.0, 0.0, 0.1), "near_optimal_gap must be positive"),
        (lambda: distortion.distortion_ratio([0.1], 0.0), "aggregated_distance must lie in"),
        (lambda: distortion.max_near_optimal_gap([0.0, 1.0], [1.0], 0.5), "as long as deficits"),
    ],
)
def test_rejected(call: object, reason: str) -> None:
    """What is outside its domain is refused with a reason."""
    with pytest.raises(ValueError, match=reason):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: distortion.min_distortion_for_budget(0.8, 0.1, 0.1),
        lambda: distortion.min_distortion_for_budget(0.3, 0.1, 0.0),
        lambda: distortion.max_near_optimal_gap([0, 0.1, 0.5], [0.1, 0.2, 0.7], 0.1),
    ],
)
def test_infeasible(call: object) -> None:
    """A budget that nothing meets has an error of its own."""
    with pytest.raises(distortion.InfeasibleBudgetError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: distortion.sampled_update_variance(GRADIENTS, 0.3, num_rounds=True),
        lambda: distortion.sampled_update_variance(GRADIENTS, 0.3, num_rounds=2.0),
        lambda: distortion.gaussian_tv_isotropic("1", 1.0, 1),
        lambda: distortion.distort_parameters([0.0], 0.1, 7),
        lambda: distortion.leakage_tv_coefficient(True),
    ],
)
def test_wrong_types(call: object) -> None:
    """Wrong types are told from wrong values."""
    with pytest.raises(TypeError):
        call()

"""What the room of distortion refuses, with a reason."""

from __future__ import annotations

import math

import numpy as np
import pytest

import refused_calls
from hockeystick import distortion

NAMES = {
    **vars(distortion),
    "math": math,
    "np": np,
    "GRADIENTS": [(1.0, 0.0), (0.0, 2.0), (1.0, 1.0), (-2.0, 0.5)],
    "KERNEL": [[0.6, 0.4], [0.9, 0.1]],
    "FAIR": [0.5, 0.5],
}
REFUSED = r"""
jensen_shannon_distance(FAIR, [0.2, 0.3, 0.5]) -> outcomes.*\(3,\) and \(2,\)
total_variation_distance([0.5, 0.6], FAIR) -> p must sum to 1
sum_of_squares_gap([1, 2], [1, 2, 3]) -> w_star.*\(3,\) and \(2,\)
expected_gap([0, 0], [[1, 2], [2, 1]], 0) -> without negative eigenvalues
expected_gap([0, 0], [[1, 0.5], [0, 1]], 0) -> must be symmetric
expected_gap([0, 0], [[1, 0, 0]], 0) -> covariance must have the shape
expected_gap_from_samples([1.0, 2.0], 0) -> samples must have the shape
total_variance(FAIR, [0, 2, 3], [1, 3]) -> means must have one entry for each weight
federated_utility_loss([0.1]) -> losses must have the shape
averaged_posterior(KERNEL, [1.0]) -> a row for each weight
max_bayesian_privacy_leakage(KERNEL, [1.0, 0.0]) -> prior must be positive
federated_privacy_leakage([0.9]) -> per_client
federated_privacy_leakage([]) -> per_client must not be empty
federated_privacy_leakage([0.1], "median") -> reduction must be one of
privacy_leakage_lower_bound(0.9, 0.1, 0.1) -> unprotected must lie in
sampled_update_variance([], 0.3) -> gradients must have the shape
fedsgd_local_step([0.0], np.zeros((0, 1)), learning_rate=1.0) -> not be empty
aggregate([[1.0], [2.0]], [1.0]) -> one entry for each client
max_near_optimal_gap([0.0, 1.0], [1.0], 0.5) -> as long as deficits
min_distortion_for_budget(0.8, 0.1, 0.1) -> InfeasibleBudgetError
min_distortion_for_budget(0.3, 0.1, 0.0) -> InfeasibleBudgetError
max_near_optimal_gap([0, 0.1, 0.5], [0.1, 0.2, 0.7], 0.1) -> InfeasibleBudgetError
sampled_update_variance(GRADIENTS, 0.3, num_rounds=2.0) -> TypeError
distort_parameters([0.0], 0.1, 7) -> TypeError
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call: str, reason: str) -> None:
    """What is outside its domain is refused with a reason; wrong types, and budgets that nothing meets, have errors of their own."""
    refused_calls.check(call, reason, NAMES)

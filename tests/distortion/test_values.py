"""Leakage and utility under distortion: the specification's values, and what is refused with a reason."""

import math

import numpy as np
import pytest

import refused_calls
import value_tables
from hockeystick import distortion

NAMES = {
    **vars(distortion),
    "math": math,
    "np": np,
    "LN5": math.log(5.0),
    "LOG_2": math.log(2.0),
    "GRADIENTS": [(1.0, 0.0), (0.0, 2.0), (1.0, 1.0), (-2.0, 0.5)],
    "KERNEL": [[0.6, 0.4], [0.9, 0.1]],
    "FAIR": [0.5, 0.5],
}
VALUES = """
sum_of_squares_gap([1, 2], 0) -> 5
sum_of_squares_gap([1, 2], 0, scale=0.5) -> 2.5
expected_gap([0, 0], [[1, 0.3], [0.3, 2]], [1, -1]) -> (3, 2, 5)
utility_loss([1, 1], [1.1, 0.9], 0) -> 0.02
utility_loss([1, 1], [1.1, 0.9], 0, sign="original_minus_protected") -> -0.02
utility_loss([0, 0], [3, 4], 0, scale=2) -> 50
federated_utility_loss([[0.1, 0.2], [0.3, 0.4]]) -> 0.25
expected_utility_loss_additive_noise(0.01, 10) -> 0.1
expected_utility_loss_additive_noise(0.01, 10, weights=[0.25] * 4) -> 0.025
expected_utility_loss_additive_noise(0.01, 10, weights=[0.5, 0.25, 0.25]) -> 0.0375
jensen_shannon_divergence(FAIR, [0.9, 0.1]) -> 0.101749225079197
jensen_shannon_distance(FAIR, [0.9, 0.1]) -> 0.318981543477357
jensen_shannon_divergence([0.2, 0.3, 0.5], [0.1, 0.6, 0.3]) -> 0.0466133843198648
jensen_shannon_divergence([1, 0], [0, 1]) -> LOG_2
jensen_shannon_distance([1, 0], [0, 1]) -> 0.832554611157698
jensen_shannon_divergence([0.6, 0.4], FAIR) -> 0.0050593899289876
privacy_leakage([0.8, 0.2], FAIR) -> 0.225104058127715
federated_privacy_leakage(privacy_leakage([[0.9, 0.1], [0.8, 0.2]], FAIR), "mean") -> 0.272042800802536
federated_privacy_leakage([0.1, 0.3, 0.2]) -> 0.3
max_bayesian_privacy_leakage([[1, 0]], FAIR) -> math.inf
max_bayesian_privacy_leakage([[1, 0], [1, 0]], [1, 0]) -> 0.0
leakage_tv_coefficient([400, math.inf]) -> (math.inf, math.inf)
belief_shift_bound(2, 0.25) -> math.sqrt(0.25 * LOG_2)
belief_shift_bound(math.inf, 0.0) -> 0.0
total_variation_distance(FAIR, [0.9, 0.1]) -> 0.4
total_variation_distance([0.2, 0.3, 0.5], [0.1, 0.6, 0.3]) -> 0.3
bias_gap_bound(0.5, 0.1) -> 0.1
bias_gap_bound(1, 0.25) -> 0.5
utility_loss_tv_bound(2, 0.1) -> 0.4
utility_loss_tv_bound(1, 0.25, scale=2) -> 0.5
privacy_leakage_upper_bound([0.3, 0.2], 0.1, [0.5, 0.1]) -> (0.35535068954, 0.211070137908)
min_distortion_for_budget(0.3, [0.28, 0.1], [0.1, 0.5]) -> (0.180666222645, 0.232790682748)
min_distortion_for_budget(0.3, 0.1, math.inf) -> 0.0577078016356
min_distortion_for_budget(0.2, 0.25, 0.0) -> 0.0
ldp_epsilon_for_leakage([0.1, 0.3, 0.5]) -> (0.5685384598422, 1.779948111589, 3.285268738975)
ldp_epsilon_for_leakage([0.0, math.sqrt(LOG_2)]) -> (0.0, math.inf)
sampled_update_mean(1, [1, 2, 3], 0.2, noise=0.1) -> -0.1
sampled_update_variance([1, 2, 3], 0.2) -> 2.24
sampled_update_variance([1, 2, 3], 0.2, rounds=4) -> 0.56
sampled_update_variance(GRADIENTS, 0.3) -> 2.3625
sampled_update_variance(GRADIENTS, 0.3, rounds=4) -> 0.590625
sampled_update_variance(GRADIENTS, 0.3, rounds=10) -> 0.23625
batch_mean_gradient_variance(GRADIENTS, 0.3) -> (1.36889311094, 0.501579155152, 0.2401)
batch_mean_gradient_variance([1.0] * 50, 0.1).factor -> 0.232437275387
normalised_gradient_variance(GRADIENTS, 0.3) -> 1.640625
tradeoff_upper_bound([0.2, 0.5], [0.1, 0.5], [0.1, 0.05]) -> (0.222140275816, 0.585914091423)
max_near_optimal_gap([0, 0.1, 0.5], [0.1, 0.2, 0.7], 0.5) -> 0.1
max_near_optimal_gap([0, 0.1, 0.5], [0.1, 0.2, 0.7], 0.7) -> 0.5
max_near_optimal_gap([0, 0.1], [0.1, 0.4 + 0.5], 1.0) -> 0.1
aggregate([[1, 2], [3, 6]]) -> (2, 4)
aggregate([[1, 2], [3, 6]], [0.25, 0.75]) -> (2.5, 5)
kl_divergence([0.5, 0.5, 0.0], [0.25, 0.25, 0.5]) -> LOG_2
kl_divergence(FAIR, [1, 0]) -> math.inf
bias_norm([3, 4], 0) -> 5
near_optimal_set([1.0, 0.875, 0.5, 1.125], 0.125, best_utility=1.0) -> [0, 1, 3]
near_optimal_set([1.0, 0.875, 0.5, 1.125], 0.0, best_utility=0.75) -> []
"""


@pytest.mark.parametrize(("call", "expected"), value_tables.rows(VALUES))
def test_values(call: str, expected: str) -> None:
    """Every formula has the specification's value, to the digits given."""
    value_tables.check(call, expected, NAMES, 1e-9, 1e-15)


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
sampled_update_variance(GRADIENTS, 0.3, rounds=2.0) -> TypeError
distort_parameters([0.0], 0.1, 7) -> TypeError
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call: str, reason: str) -> None:
    """What is outside its domain is refused with a reason; wrong types, and budgets that nothing meets, have errors of their own."""
    refused_calls.check(call, reason, NAMES)

"""Leakage and utility under distortion: the specification's values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hockeystick import distortion

REL = 1e-9


LN5, LOG_2 = math.log(5.0), math.log(2.0)


GRADIENTS = [(1.0, 0.0), (0.0, 2.0), (1.0, 1.0), (-2.0, 0.5)]


KERNEL = [[0.6, 0.4], [0.9, 0.1]]


FAIR = [0.5, 0.5]


VALUES = {
    "gap": (distortion.sum_of_squares_gap([1, 2], 0), 5),
    "gap, scaled": (distortion.sum_of_squares_gap([1, 2], 0, scale=0.5), 2.5),
    "expected gap": (distortion.expected_gap([1, 2], [[0.5, 0], [0, 0.25]], 0), (0.75, 5, 5.75)),
    "expected gap, no noise": (distortion.expected_gap([1, 2], [[0, 0], [0, 0]], 0), (0, 5, 5)),
    "expected gap, correlated": (distortion.expected_gap([0, 0], [[1, 0.3], [0.3, 2]], [1, -1]), (3, 2, 5)),
    "total variance": (distortion.total_variance(FAIR, [0, 2], [1, 3]), (2, 1, 3)),
    "total variance, one mean": (distortion.total_variance([0.25, 0.75], [1, 1], [0, 4]), (3, 0, 3)),
    "utility": (distortion.utility_loss([1, 1], [1.1, 0.9], 0), 0.02),
    "utility, printed sign": (distortion.utility_loss([1, 1], [1.1, 0.9], 0, sign="original_minus_protected"), -0.02),
    "utility, scaled": (distortion.utility_loss([0, 0], [3, 4], 0, scale=2), 50),
    "federated utility": (distortion.federated_utility_loss([[0.1, 0.2], [0.3, 0.4]]), 0.25),
    "noise": (distortion.expected_utility_loss_additive_noise(0.01, 10), 0.1),
    "noise of 4": (distortion.expected_utility_loss_additive_noise(0.01, 10, weights=[0.25] * 4), 0.025),
    "noise of 3": (distortion.expected_utility_loss_additive_noise(0.01, 10, weights=[0.5, 0.25, 0.25]), 0.0375),
    "JS": (distortion.jensen_shannon_divergence(FAIR, [0.9, 0.1]), 0.101749225079197),
    "JS distance": (distortion.jensen_shannon_distance(FAIR, [0.9, 0.1]), 0.318981543477357),
    "JS of 3": (distortion.jensen_shannon_divergence([0.2, 0.3, 0.5], [0.1, 0.6, 0.3]), 0.0466133843198648),
    "JS of disjoint": (distortion.jensen_shannon_divergence([1, 0], [0, 1]), LOG_2),
    "JS distance of disjoint": (distortion.jensen_shannon_distance([1, 0], [0, 1]), 0.832554611157698),
    "JS of close": (distortion.jensen_shannon_divergence([0.6, 0.4], FAIR), 0.0050593899289876),
    "belief": (distortion.averaged_posterior(KERNEL, [0.75, 0.25]), (0.675, 0.325)),
    "belief, told": (distortion.averaged_posterior([[1, 0], [0, 1]], [0.3, 0.7]), (0.3, 0.7)),
    "leakage": (distortion.privacy_leakage([0.8, 0.2], FAIR), 0.225104058127715),
    "mean leakage": (
        distortion.federated_privacy_leakage(distortion.privacy_leakage([[0.9, 0.1], [0.8, 0.2]], FAIR), "mean"),
        0.272042800802536,
    ),
    "worst leakage": (distortion.federated_privacy_leakage([0.1, 0.3, 0.2]), 0.3),
    "unprotected": (distortion.unprotected_leakage([0.6, 0.4], FAIR), 0.0711293886448323),
    "unprotected, less": (distortion.unprotected_leakage([0.55, 0.45], FAIR), 0.0354070906502),
    "log ratio": (distortion.max_bayesian_privacy_leakage(KERNEL, FAIR), LN5),
    "log ratio, less": (distortion.max_bayesian_privacy_leakage([[0.55, 0.45], [0.6, 0.4]], FAIR), -math.log(0.8)),
    "log ratio, told": (distortion.max_bayesian_privacy_leakage([[1, 0]], FAIR), math.inf),
    "log ratio, known": (distortion.max_bayesian_privacy_leakage([[1, 0], [1, 0]], [1, 0]), 0.0),
    "C_2 .01": (distortion.leakage_tv_coefficient(0.01), 0.0101006700133779),
    "C_2 .1": (distortion.leakage_tv_coefficient(0.1), 0.110701379080085),
    "C_2 .5": (distortion.leakage_tv_coefficient(0.5), 0.859140914229523),
    "C_2 ln 5": (distortion.leakage_tv_coefficient(LN5), 12),
    "C_2 2": (distortion.leakage_tv_coefficient(2), 26.7990750165721),
    "C_2, no end": (distortion.leakage_tv_coefficient([400, math.inf]), (math.inf, math.inf)),
    "shift .1": (distortion.belief_shift_bound(0.1, 0.2) ** 2, 0.000490191813209),
    "shift .5": (distortion.belief_shift_bound(0.5, 0.1) ** 2, 0.00738123110503),
    "shift, free of xi": (distortion.belief_shift_bound(2, 0.25), math.sqrt(0.25 * LOG_2)),
    "shift of nothing": (distortion.belief_shift_bound(math.inf, 0.0), 0.0),
    "TV": (distortion.total_variation_distance(FAIR, [0.9, 0.1]), 0.4),
    "TV of 3": (distortion.total_variation_distance([0.2, 0.3, 0.5], [0.1, 0.6, 0.3]), 0.3),
    "bias gap .5": (distortion.bias_gap_bound(0.5, 0.1), 0.1),
    "bias gap 1": (distortion.bias_gap_bound(1, 0.25), 0.5),
    "utility bound": (distortion.utility_loss_tv_bound(2, 0.1), 0.4),
    "utility bound, scaled": (distortion.utility_loss_tv_bound(1, 0.25, scale=2), 0.5),
    "variance gap": (distortion.variance_gap_bound(0.3, 1, 0.1), -0.2),
    "lower leakage": (
        distortion.privacy_leakage_lower_bound([0.3, 0.2], 0.1, [0.5, 0.1]),
        (0.24464931046, 0.188929862092),
    ),
    "upper leakage": (
        distortion.privacy_leakage_upper_bound([0.3, 0.2], 0.1, [0.5, 0.1]),
        (0.35535068954, 0.211070137908),
    ),
    "least distortion": (
        distortion.min_distortion_for_budget(0.3, [0.28, 0.1], [0.1, 0.5]),
        (0.180666222645, 0.232790682748),
    ),
    "least distortion, any xi": (distortion.min_distortion_for_budget(0.3, 0.1, math.inf), 0.0577078016356),
    "no distortion needed": (distortion.min_distortion_for_budget(0.2, 0.25, 0.0), 0.0),
    "LDP": (
        distortion.privacy_leakage_bound_from_ldp([0.1, 0.5, 1, 2]),
        (0.01767490794515, 0.08804479486347, 0.1740685554049, 0.3330826799336),
    ),
    "LDP, inverse": (
        distortion.ldp_epsilon_for_leakage([0.1, 0.3, 0.5]),
        (0.5685384598422, 1.779948111589, 3.285268738975),
    ),
    "LDP, ends": (distortion.ldp_epsilon_for_leakage([0.0, math.sqrt(LOG_2)]), (0.0, math.inf)),
    "update": (distortion.sampled_update_mean(1, [1, 2, 3], 0.2, noise=0.1), -0.1),
    "update of vectors": (distortion.sampled_update_mean(0, GRADIENTS, 0.3), (0, -1.05)),
    "variance": (distortion.sampled_update_variance([1, 2, 3], 0.2), 2.24),
    "variance of 4 rounds": (distortion.sampled_update_variance([1, 2, 3], 0.2, num_rounds=4), 0.56),
    "variance of vectors": (distortion.sampled_update_variance(GRADIENTS, 0.3), 2.3625),
    "variance of vectors, 4": (distortion.sampled_update_variance(GRADIENTS, 0.3, num_rounds=4), 0.590625),
    "variance of vectors, 10": (distortion.sampled_update_variance(GRADIENTS, 0.3, num_rounds=10), 0.23625),
    "batch mean": (
        distortion.batch_mean_gradient_variance(GRADIENTS, 0.3),
        (1.36889311094, 0.501579155152, 0.2401),
    ),
    "batch factor": (distortion.batch_mean_gradient_variance([1.0] * 50, 0.1).factor, 0.232437275387),
    "normalised": (distortion.normalised_gradient_variance(GRADIENTS, 0.3), 1.640625),
    "trade-off": (
        distortion.tradeoff_upper_bound([0.2, 0.5], [0.1, 0.5], [0.1, 0.05]),
        (0.222140275816, 0.585914091423),
    ),
    "weight": (distortion.nfl_utility_weight([1, 2], [0.5, 0.1], [0.1, 0.5]), (0.44280551632034, 34.3656365691809)),
    "ratio": (distortion.distortion_ratio([0.1, 0.2, 0.3], 0.2), 1),
    "ratio of 2": (distortion.distortion_ratio([0.05, 0.05], 0.1), 0.5),
    "near optimal": (distortion.max_near_optimal_gap([0, 0.1, 0.5], [0.1, 0.2, 0.7], 0.5), 0.1),
    "near optimal, more": (distortion.max_near_optimal_gap([0, 0.1, 0.5], [0.1, 0.2, 0.7], 0.7), 0.5),
    "near optimal, all": (distortion.max_near_optimal_gap([0, 0.1], [0.1, 0.4 + 0.5], 1.0), 0.1),
    "average": (distortion.aggregate([[1, 2], [3, 6]]), (2, 4)),
    "weighted average": (distortion.aggregate([[1, 2], [3, 6]], [0.25, 0.75]), (2.5, 5)),
    "KL": (distortion.kl_divergence([0.5, 0.5, 0.0], [0.25, 0.25, 0.5]), LOG_2),
    "KL, no end": (distortion.kl_divergence(FAIR, [1, 0]), math.inf),
    "bias": (distortion.bias_norm([3, 4], 0), 5),
    "bounded": (distortion.bounded_function_gap(2, 0.25), 0.5),
}


@pytest.mark.parametrize("case", VALUES)
def test_values(case: str) -> None:
    """Every formula has the specification's value, to the digits given."""
    value, expected = VALUES[case]
    np.testing.assert_allclose(np.asarray(value, dtype=float), np.asarray(expected, dtype=float), rtol=REL, atol=1e-15)

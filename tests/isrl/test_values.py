"""Inter-silo privacy: values of the specification, cases that published/test_paper_formulas does not draw, and what is refused."""

import math

import numpy as np
import pytest

import hockeystick as hs
import refused_calls
import silo_arguments
import value_tables
from hockeystick import isrl, published

VALUES = """
isrl_to_central(1.0, 1e-5) -> (1.0, 1e-5)
isrl_to_central(0.3, 0.0) -> (0.3, 0.0)
isrl_to_central([1.0, 0.5], [1e-6, 1e-5]) -> (1.0, 1e-5)
advanced_composition([0.5] * 10, 0.0, 1e-5) -> (10.830742, 1e-5)
parallel_composition([1.0, 0.5], [1e-5, 1e-6]) -> (1.0, 1e-5)
parallel_composition([0.2, 0.2], 0.0) -> (0.2, 0.0)
tv_transfer(0.0, 0.0, 0.1) -> (0.0, 0.2)
shuffle_amplification(0.01, 1e-12, num_silos=10_000, num_records=100, slack=1e-6) -> (0.0025788357, 6.3931017e-06)
shuffle_amplification_composed(0.005, 1e-15, num_silos=10_000, num_records=100, rounds=50)
    -> (0.049688399, 2.6445259e-07)
shuffle_amplification_composed(0.1, 1e-15, num_silos=50_000, num_records=10, rounds=20) -> (0.38384031, 6.9909182e-08)
shuffled_mb_sgd_sigma(**MANY).noise_std -> 154.05277
shuffled_mb_sgd_sigma(**MANY).round.epsilon -> 1.796436e-3
shuffled_mb_sgd_sigma(**MANY).local -> (0.088584698, 8.4992552e-15)
shuffled_mb_sgd_sigma(**MANY | {"rounds": 2_000_000}).noise_std -> 2434.3506
shuffled_mb_sgd_sigma(**MANY | {"rounds": 2_000_000}).local.epsilon -> 0.0058902621
shuffled_mb_sgd_sigma(**MANY | {"num_records": 1}).noise_std -> 1550.9167
randomized_response_keep_prob(1.0, 2) -> 0.73105858
randomized_response_keep_prob(2.0, 10) -> 0.45085306
calibrate_binomial_b(epsilon=1.0, delta=1e-6, num_messages=1000, levels=32) -> 99
calibrate_binomial_b(epsilon=0.5, delta=1e-5, num_messages=500, levels=23) -> 282
heterogeneity([[2.0 - 1.0], [2.0 - 3.0]]) -> (1.0, 1.0)
heterogeneity([[1.0], [1.0]]).around_mean -> 0.0
risk_lower_bound(**setting(LOWER, (0, 1, 10_000, 1, 1, 100, 1))) -> 0.1
relative_rmse([1, 2, 3], [1, 2, 4], mean=2) -> 0.70710678
relative_rmse([1, 2, 3], [1, 2, 3], mean=2) -> 0.0
averaging_weights(strong_convexity=0.0, learning_rate=0.5, rounds=3) @ [0.0, 0.5, 0.75] -> 0.41666667
averaging_weights(strong_convexity=1.0, learning_rate=0.9, rounds=100_000)[-2:] -> [0.09, 0.9]
"""
ROUNDED = """
multistage_schedule(**setting(STAGES, (1.0, 0.1, 1.0, 1.0, 2000)))[0] -> (1707, 12887.572)
multistage_schedule(**setting(STAGES, (10.0, 0.1, 2.0, 5.0, 20_000)))[2] -> (5462, 131874.6)
mb_sgd_rounds(**setting(ROUNDS, (1, 2, 25, 1, 1000, 1, 10))) -> 25316.228
mb_sgd_rounds(**setting(ROUNDS, (1, 2, 25, 1, 1000, 1, 10), strong_convexity=0.1)) -> 25000
mb_sgd_rounds(**setting(ROUNDS, (10, 1, 10, 1, 500, 0.05, 50), strong_convexity=0.1)) -> 965.66275
uniform_stability(**setting(STABILITY, (1, 10**9, 0.1, 1000, 10), smoothness=1, strong_convexity=0.1))
    -> 4 / (0.1 * 9999)
step_size_stich(**setting(STICH, (0.5, 1, 50, 0, 0.25))) -> 0.25
noisy_gradient_variance(**setting(GRADIENT, (1, 10, 20, 2, 20, 10, 0.5))) -> 0.13
erm_rounds(**setting(ERM, (None, None, 1, 25, 1, 1000, 10, 1e-5, 100, 25))) -> 465.9906
acsa_bound(**{"rounds": 10, "distance_squared": 10, "variance": 0.01, "smoothness": 1}) -> 0.38364
"""  # risk bounds, step sizes, batch sizes and rounds, some of which are given with five digits


L, BETA, N, M, d, EPS, LOG, PHI, MU, T = 1.5, 3.0, 2000, 10, 50, 0.5, math.log(1e6), 0.7, 0.3, 4e-4
SILO = {"lipschitz": L, "num_records": N, "silos_per_round": M, "dimension": d, "epsilon": EPS, "delta": 1e-6}
SHUFFLED = {
    "smoothness": 1e-6, "diameter": 1.0, "lipschitz": 1.0, "silos_per_round": 100, "num_silos": 100, "num_records": 10,
    "epsilon": 0.1, "dimension": 2,
}  # fmt: skip
NAMES = {
    **vars(silo_arguments), **vars(isrl), **vars(math), "L": L, "BETA": BETA, "N": N, "M": M, "d": d, "EPS": EPS, "LOG": LOG,
    "PHI": PHI, "MU": MU, "T": T, "ROOT": math.sqrt(BETA / MU), "published": published, "SILO": SILO,
    "SOME": {**SILO, "smoothness": BETA, "gradient_std": PHI, "num_silos": 40}, "SHUFFLED": SHUFFLED,
    "UNEQUAL": {
        "lipschitz": 2.0, "diameter": 3.0, "silos_per_round": 2.4, "num_records": 500, "dimension": 7, "effective_noise": T
    },
    "MANY": {
        "num_records": 10, "num_silos": 10_000, "silos_per_round": 10_000, "rounds": 10_000, "lipschitz": 1.0, "epsilon": 1.0,
        "delta": 1e-6,
    },
}  # fmt: skip
FORMULAS = """
accelerated_parameters(rounds=10, distance_squared=1.0, variance=0.01, smoothness=3.0)
    -> (6.0, 0.1 / sqrt(10), 6.0 + 2 * 0.1 / sqrt(10))
acsa_bound(rounds=10, distance_squared=10.0, variance=1.0, smoothness=1.0, strong_convexity=1.0)
    -> 2 * sqrt(22) * 10 / (10 * 11) + 2 / 11
shuffle_rounds(**SHUFFLED) -> 1000
published.shuffle_rounds(**SHUFFLED) -> 100
shuffle_rounds(**SHUFFLED | {"smoothness": 40.0, "strong_convexity": 0.5}) -> 640 * log(40 * 0.5 * 100**2 / 2)
unequal_silos_step(**UNEQUAL, smoothness=1.0, rounds=300)
    -> min(1.0, 3 / (2 * sqrt(300)) * min(sqrt(1200 / 300), 1, sqrt(1 / (7 * 300 * T))))
unequal_silos_step(**UNEQUAL, smoothness=50.0, rounds=300) -> 1 / 50
unequal_silos_rounds(**UNEQUAL, smoothness=5.0) -> 7.5 * min(sqrt(1200), 1 / sqrt(7 * T)) + min(1200, 1 / (7 * T))
published.unequal_silos_rounds(**UNEQUAL, smoothness=5.0) -> 7.5 * sqrt(7 * T) + min(1200, 1 / (7 * T))
unequal_silos_rounds(**UNEQUAL, smoothness=5.0, strong_convexity=0.1) -> 100 * log(5 * 0.1 * 9 / (4 * 7 * T)) + 1200
smoothing_parameter(**SILO, diameter=2.0, problem="empirical", strong_convexity=MU) -> MU * M * (EPS * N) ** 2 / (d * LOG)
harmless_heterogeneity(**SOME, strong_convexity=MU)
    -> sqrt(39 / 30 * ROOT * (PHI**2 / N + ROOT * L**2 * d * LOG / (EPS * N) ** 2))
harmless_heterogeneity(**SOME, strong_convexity=MU, shuffled=True)
    -> sqrt(39 / 30 * ROOT * (PHI**2 / N + ROOT * L**2 * d * LOG / ((EPS * N) ** 2 * M)))
harmless_heterogeneity(**SOME | {"num_silos": 10}, diameter=2.0) -> inf
"""  # Theorems 2.1 to H.1 and Remark E.1


@pytest.mark.parametrize(("call", "expected"), value_tables.rows(VALUES + ROUNDED[1:] + FORMULAS[1:]))
def test_values(call: str, expected: str) -> None:
    """Every formula has its value, to the digits given; rates are flagged as such."""
    value_tables.check(call, expected, NAMES, 1e-5 if call in ROUNDED else 1e-6)


MESSAGES = {
    "lipschitz": 1.0, "num_records": 10, "num_silos": 1000, "silos_per_round": 1000, "rounds": 10, "epsilon": 1.0,
    "delta": 1e-6,
}  # fmt: skip
NAMES_OF_REFUSED = NAMES | {
    "np": np,
    "MESSAGES": MESSAGES,
    "VECTORS": {
        "num_messages": 100, "levels": 4, "noise_bits": 10, "probability": 0.25, "dimension": 2, "delta": 1e-6
    },
    "BITS": {"epsilon": 1.0, "delta": 1e-4, "num_messages": 50, "levels": 5},
    "MB": {"lipschitz": 1.0, "num_records": 1000, "batch_size": 10, "rounds": 5, "epsilon": 1.0, "delta": 1e-5},
    "SILOS": {"lipschitz": 1.0, "rounds": 1, "epsilons": 1.0, "deltas": 1e-5},
    "SUM": {"lipschitz": 1.0, "levels": 2, "noise_bits": 1, "probability": 0.5, "rng": np.random.default_rng(1)},
}  # fmt: skip
REFUSED = r"""
advanced_composition([0.1, 0.2], [1e-8] * 3, 1e-6) -> as long as the others
per_round_budget(30.0, 1e-5, 50) -> epsilon must be at most 2 ln\(2/delta\)
shuffle_amplification(0.01, 1e-8, num_silos=300, num_records=100, slack=3e-4) -> epsilon = 0.01, largest = 0.00755888
shuffle_amplification_composed(0.1, 0.01, num_silos=100, num_records=10, rounds=2) -> delta must be below
clone_bound(0.01, 1000, 1e-4) -> probability must be at least 16
shuffled_mb_sgd_sigma(**MESSAGES | {"silos_per_round": 20}) -> for the shuffler to help
calibrate_binomial_b(**BITS | {"probability": 0.5}) -> probability must lie in \(0, 1/2\)
calibrate_binomial_b(**BITS | {"delta": 0.5}) -> delta must lie in
calibrate_binomial_b(**BITS | {"levels": 10**8}) -> levels must be at most what
shuffle_vector_sum([[2.0]], **SUM) -> the norm of vectors must be at most lipschitz
shuffle_vector_sum([1.0], **SUM) -> vectors must have the shape
harmonic_participation({2: 0.5, 6: 0.5}, 5) -> at most num_silos
noisy_mb_sgd_sigma(**MB | {"batch_size": 2000}) -> batch_size must be at most num_records
silo_noise_sigmas(**SILOS, num_records=[10, 20], batch_sizes=[10, 20, 30]) -> as long as the others
harmonic_participation({2: 0.5, 3: 0.4}, 5) -> must sum to 1
harmonic_participation({0: 1.0}, 5) -> participation must be an integer
reweighted_constants([0.5, 0.4], lipschitz=1.0, smoothness=1.0) -> weights must sum to 1
reweighted_constants([1.0, 0.0], lipschitz=1.0, strong_convexity=0.1, smoothness=1.0) -> weights must be positive
balanced_batch_sizes([1000, 501], 7) -> the same share of its records
balanced_batch_sizes([1000, 500], 501) -> at most the smallest silo
heterogeneity([1.0, 2.0]) -> gradients must have the shape
sampled_mean_variance([[1.0], [-1.0]], 3) -> sample_size must be an integer in
uniform_stability(**setting(STABILITY, (1, 100, 2.0, 1000, 10)), smoothness=1)
    -> learning_rate must be at most 1/smoothness
uniform_stability(**setting(STABILITY, (1, 1, 0.1, 1, 1)), smoothness=1, strong_convexity=0.5) -> must exceed 1
mb_sgd_empirical_bound(**setting(EMPIRICAL, (2, 2, 50, 10, 1, 25, 1)), strong_convexity=0.5)
    -> learning_rate must be below
noisy_gradient_variance(**setting(GRADIENT, (1, 10, 30, 2, 20, 10, 0.5))) -> silos_per_round must be at most num_silos
step_size_stich(**setting(STICH, (0.1, 4, 500, 1, 11))) -> max_step must be at most
averaging_weights(strong_convexity=1.0, learning_rate=1.0, rounds=3) -> learning_rate must be below
averaging_weights(strong_convexity=1.0, learning_rate=0.1, rounds=10**9) -> memory
multistage_schedule(smoothness=1.0, strong_convexity=0.1, gradient_std=1.0, initial_gap=1.0, rounds=100)
    -> rounds must be at least 1707
one_pass_batch_size_sc(**setting(BATCH_SC, (10, 1, 0.1, 1e-6, 1, 25, 1, 10, 1e-5, 1))) -> initial_gap must be larger
erm_rounds(**setting(ERM, (1, None, 1, 10, 0.5, 2000, 50, 1e-6, 2000, 10)))
    -> diameter must be given where smoothness is given
erm_rounds(**setting(ERM_SC, (1, 1, None, 10, 0.5, 2000, 1, 50, 1e-6, 2000, 10))) -> initial_gap must be given
risk_lower_bound(**setting(LOWER, (1, 2, 25, 1000, 1, 10, 6.0))) -> epsilon must be at most sqrt\(num_silos\)
risk_lower_bound(**setting(LOWER, (1, 2, 25, 1000, 1, 10, 1.0)), compositionality=0.0)
    -> compositionality must be positive
moreau_envelope(abs, lambda w, _: w[:0], [0.1], 1.0) -> prox must return
vector_sum_epsilon(**VECTORS | {"noise_bits": 10**9}) -> num_messages times noise_bits must be at most
vector_sum_epsilon(**VECTORS | {"rounds": 0}) -> rounds must be
relative_rmse([2, 2], [1, 2], mean=2) -> must not all equal the mean
relative_rmse([2, 3], [1], mean=2) -> as long as targets
risk_lower_bound(**setting(LOWER, (1, 2, 25, 1000, 1, 10, 0.5)), notion="central", matched=True)
    -> matched must be False
risk_lower_bound(**setting(LOWER, (1, 2, 25, 1000, 1, 10, 0.5)), strong_convexity=0.4, matched=True)
    -> matched must be False
group_privacy(True, 1e-8, 2) -> TypeError
noisy_mb_sgd_sigma(**MB | {"rounds": 5.0}) -> TypeError
shuffle_vector_sum([[1.0]], lipschitz=1.0, levels=2, noise_bits=1, probability=0.5, rng=np.random) -> TypeError
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call: str, reason: str) -> None:
    """What is outside its domain is refused with a reason; wrong types are told from wrong values."""
    refused_calls.check(call, reason, NAMES_OF_REFUSED)


def test_a_slack_of_one_is_refused():
    """A delta that leaves the shuffler a slack of 1 is refused, after it was doubted."""
    with (
        pytest.warns(hs.ImplausibleSettingWarning, match="delta is at least"),
        pytest.raises(ValueError, match="to help"),
    ):
        isrl.shuffled_mb_sgd_sigma(**MESSAGES | {"num_records": 10**6, "rounds": 1, "delta": 0.5})

"""Printed formulas: what is outside the printed domain is refused with a reason."""

import numpy as np
import pytest

import federations
import refused_calls
from hockeystick import published

STEPS = {"local_steps": 5, "learning_rate": 0.1}
NAMES = {
    **vars(published),
    **vars(federations),
    "np": np,
    "STEPS": STEPS,
    "DATA": {**STEPS, "num_clients": 20, "clip_norm": 2.0},
    "STABILITY": {"lipschitz": 2, "rounds": 50, "learning_rate": 0.01, "num_records": 500},
}
REFUSED = r"""
noisy_mb_sgd_sigma(lipschitz=1, num_records=1000, rounds=50, epsilon=30, delta=1e-5) -> at most 2 ln\(2/delta\)
min_batch_size(num_records=1, rounds=1, epsilon=24.0, delta=1e-5) -> a batch within the silo
one_pass_sigma(lipschitz=1, batch_size=10, epsilon=93.0, delta=1e-5) -> at most 8 ln\(1/delta\)
uniform_stability(**STABILITY, silos_per_round=1, smoothness=1, strong_convexity=0.5)
    -> silos_per_round and num_records must exceed 1
shuffle_composed_delta(0.2, 1e-15, num_silos=9, num_records=10, rounds=1) -> 1/num_records
shuffle_composed_delta(0.1, 0.01, num_silos=9, num_records=10, rounds=1) -> 1/.14 num_silos
silo_xi(num_records=[1000, 500, 2000], epsilons=[1.0, 0.5, 2.0], deltas=[1e-5, 1e-5], rounds=50) -> as long as the others
shuffle_amplification(0.01, 1e-8, num_silos=300, num_records=100, slack=3e-4) -> 0.00755888
privacy_leakage_upper_bound(0.1, 0.5, 0.5) -> C_2 total_variation must be at most
noise_variance_for_budget(0.31, 0.3, 1.0, 1) -> less than .01 above budget
sampling_probability(0.308, 0.3, 0.1, 5.0) -> at most 1/4, not 0.4
fedavg_model_sensitivity(0, smoothness=1.0, constant=1.0, **STEPS) -> constant must be given
fedavg_data_sensitivity(0, schedule="cyclic", **DATA) -> constant must be given
fedprox_model_sensitivity(smoothness=2.0, prox=2.0) -> prox must be above smoothness
compared_noise_std("li2020", epsilon=1.0, delta=0.1, rounds=1) -> work must be one of
compared_noise_std("wei2020", epsilon=1.0, delta=0.1, rounds=3, num_clients=10)
    -> rounds must be at least sqrt\(num_clients\) exposures
compared_rdp("sun2024", 1.0, noise_std=1.0, rounds=1) -> order must be finite and above 1
fedavg_gdp(**FEDAVG | {"schedule": "cyclic"}) -> ^c\b.*None
fedavg_gdp(**FEDAVG | {"schedule": "continuous"}) -> ^z\b.*None
fedavg_gdp(**FEDAVG | {"schedule": "constant", "c": 1.0}) -> ^c\b.*1\.0
fedavg_gdp(**FEDAVG | {"schedule": "cyclic", "c": 1.0, "z": 1.0}) -> ^z\b.*1\.0
fedavg_gdp(**FEDAVG | {"schedule": "cyclic", "c": 0.0}) -> ^c\b.*0\.0
fedavg_gdp(**FEDAVG | {"schedule": "sine"}) -> ^schedule\b.*sine
fedavg_gdp(**FEDAVG | {"diameter": 1.0}) -> ^diameter\b.*1\.0
fedprox_gdp(**FEDPROX | {"prox": 1.5}) -> prox.*1\.5
fedprox_gdp(**FEDPROX | {"learning_rate": 2.0}) -> learning_rate.*2\.0
shuffle_vector_sum([[0.1]], lipschitz=1.0, levels=2, noise_bits=1, probability=0.5, rng=7) -> TypeError: rng must be a
run_near_optimal_utility_fl([np.ones], [0.0], rounds=1, budget=0.3, unprotected=0.3, variance=1.0, utility_constant=1.0,
    learning_rate=1.0, rng=np.random) -> TypeError: rng must be a numpy.random.Generator
fedprox_gdp(**FEDPROX | {"diameter": 1.0}) -> diameter.*1\.0
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call: str, reason: str) -> None:
    """A bad value is named with its argument, the open constants included, before any warning."""
    refused_calls.check(call, reason, NAMES)

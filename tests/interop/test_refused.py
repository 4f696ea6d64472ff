"""Adapters: what is unknown to them or outside its domain is refused with a reason."""

import math
import types

import pytest

import hockeystick as hs
import refused_calls
from hockeystick.interop import flower, pfl, prv, riskcal

CONFIG = flower.PrivacyConfig(1e-5, 1000, "add-or-remove-one", "poisson", max_epsilon=2.0)
NAMES = {
    "hs": hs,
    "math": math,
    "flower": flower,
    "pfl": pfl,
    "prv": prv,
    "riskcal": riskcal,
    "named": lambda name, **attributes: types.new_class(name, (types.SimpleNamespace,))(**attributes),
    "STEP": hs.PoissonSampled(hs.Gaussian(1.0), 0.01),
    "PFL": {"num_compositions": 10, "sampling_probability": 0.1, "mechanism": "gaussian", "noise_parameter": 1.0},
}
REFUSED = r"""
prv.PRVAccountant(object()).compute_epsilon(1e-5, None) -> TypeError: prvs must be mechanisms
prv.PRVAccountant(named("GaussianMechanism", mu=1.0, sensitivity=2.0)).compute_epsilon(1e-5, None)
    -> TypeError: prvs must be
prv.PRVAccountant([STEP]).compute_epsilon(1e-5, [1, 2]) -> must have 1 counts, not 2
prv.PRVAccountant([STEP]).compute_epsilon(1e-5, [-1]) -> count must be an integer
prv.PRVAccountant(named("GaussianMechanism", mu=-1.0)).compute_epsilon(1e-5, None) -> noise_multiplier must be positive
riskcal.get_bayes_risk(hs.Accountant(), 1.5) -> prior must lie in
riskcal.find_noise_multiplier_for_advantage(1.1, 0.01, 10) -> advantage must
riskcal.find_noise_multiplier_for_err_rates(0.0, 0.5, 0.01, 10) -> alpha must lie in
riskcal.find_noise_multiplier_for_err_rates(0.5, 0.5, 0.01, 10) -> beta must lie in
riskcal.get_beta_for_dpsgd(-1.0, 0.01, 10, 0.5) -> noise_multiplier must be positive
riskcal.get_advantage_for_dpsgd(math.inf, 0.01, 10) -> noise_multiplier must be positive
pfl.PrivacyAccountant(**PFL | {"noise_parameter": None}) -> at most one of
pfl.PrivacyAccountant(**PFL | {"epsilon": 0.1, "delta": 1e-5}) -> noise_parameter must be large enough for epsilon=0.1
pfl.PrivacyAccountant(**PFL | {"mechanism": "skellam", "delta": 1e-5}) -> mechanism must be one of
pfl.PrivacyAccountant(**PFL | {"noise_scale": 0.0, "delta": 1e-5}) -> noise_scale must lie in
pfl.PrivacyAccountant(**PFL | {"noise_parameter": -1.0, "delta": 1e-5}) -> noise_multiplier must be positive
flower.Accountant(flower.PrivacyConfig(1.0, 1000, "add-or-remove-one", "poisson")) -> target_delta must lie in
flower.Accountant(flower.PrivacyConfig(1e-5, 0, "add-or-remove-one", "poisson")) -> population_size must be an integer
flower.Accountant(flower.PrivacyConfig(1e-5, 1000, "replace", "poisson")) -> neighboring_relation must be one of
flower.Accountant(flower.PrivacyConfig(1e-5, 1000, "replace-one", "shuffled")) -> sampling_method must be one of
flower.Accountant(flower.PrivacyConfig(1e-5, 1000, "add-or-remove-one", "without-replacement")) -> no proven bound
flower.Accountant(flower.PrivacyConfig(1e-5, 1000, "add-or-remove-one", "poisson", float("nan")))
    -> max_epsilon must be positive
rounds.compose(flower.GaussianPrivacyEvent(0.0, 10, 1000)) -> noise_multiplier must be positive
rounds.compose(flower.GaussianPrivacyEvent(1.0, 0, 1000)) -> sample_size must be an integer
rounds.compose(flower.GaussianPrivacyEvent(1.0, 1001, 1000)) -> sample_size must be at most population_size
rounds.compose(flower.GaussianPrivacyEvent(1.0, 10, 999)) -> population_size must be that of the configuration
rounds.load_state_dict(rounds.state_dict() | {"schema_version": 2}) -> schema_version of state must be 1, not 2
rounds.load_state_dict(rounds.state_dict() | {"backend": "dp-accounting-rdp"}) -> backend of state must be
rounds.load_state_dict(rounds.state_dict() | {"config": {}}) -> config of state must be
rounds.load_state_dict(rounds.state_dict() | {"compositions": [{"event": {}, "count": 1}]})
    -> compositions of state must be
rounds.load_state_dict(rounds.state_dict() | {"compositions": [{"event": {"noise_multiplier": 1.0, "sample_size": 1, "population_size": 9}, "count": 1}]})
    -> population
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """What is refused says why, and an accountant of rounds has those that it had."""
    rounds = flower.Accountant(CONFIG)
    rounds.compose(flower.GaussianPrivacyEvent(1.0, 10, 1000))
    before = rounds.state_dict()
    refused_calls.check(call, reason, NAMES | {"rounds": rounds})
    assert rounds.state_dict() == before

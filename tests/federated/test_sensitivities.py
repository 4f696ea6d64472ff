"""Model and data sensitivity of a round, against their definitions in many digits, runs of two models, and the printed bounds."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
import theorems
from federations import FEDAVG, FEDPROX, SCHEDULES
from hockeystick import federated

LOCAL = {"rounds": 4, "local_steps": 7, "learning_rate": 0.3}
STEPS = st.lists(st.floats(1e-12, 0.5), min_size=1, max_size=12)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_step_sizes(schedule: str) -> None:
    """They are the four formulas, step by step."""
    found = federated.step_sizes(schedule=schedule, **LOCAL)
    expected = [[float(eta) for eta in theorems.steps(schedule, 0.3, t, 7)] for t in range(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@given(STEPS, st.sampled_from([0.0, 1e-9, 0.7, 1.9, 1.9999999]), st.sampled_from([None, 2.0]))
def test_any_steps_are_rounded_up(steps: list[float], smoothness: float, prox: float | None) -> None:
    """The exact recursions on the very doubles are never above, whatever the order of the steps."""
    pull = 0 if prox is None else mp.mpf(prox)
    with mp.workdps(60):
        model, data = mp.mpf(1), mp.mpf(0)
        for eta in map(mp.mpf, steps):
            model = (1 - eta * (pull - mp.mpf(smoothness))) * model + eta * pull
            data = (1 - eta * pull) * data + eta
        eta_of_round = (model - 1) / mp.mpf(smoothness) if smoothness > 0 else mp.fsum(map(mp.mpf, steps))
    arguments = {} if prox is None else {"prox": prox}
    assert 1 <= federated.model_sensitivity(steps, smoothness=smoothness, **arguments) / model < 1 + 1e-13
    drift = federated.data_sensitivity(steps, num_clients=3, clip_norm=1.0, **arguments)
    assert 1 <= drift * 3 / (2 * data) < 1 + 1e-13
    if prox is None:
        accumulated = federated.accumulated_step_size(steps, smoothness=smoothness)
        assert 1 <= accumulated / eta_of_round < 1 + 1e-13


def test_attained_by_quadratic_losses() -> None:
    """A concave quadratic moves two models apart by exactly rho, two linear losses one model by exactly gamma."""
    steps, prox = [0.3, 0.1, 0.2], 2.0
    for pull in (0.0, prox):
        one, other, up, down = 0.0, 1.0, 0.0, 0.0
        for eta in steps:
            one, other = (w - eta * (-1.5 * w + pull * (w - start)) for w, start in ((one, 0.0), (other, 1.0)))
            up, down = up - eta * (-2.0 + pull * up), down - eta * (2.0 + pull * down)
        arguments = {"prox": prox} if pull else {}
        assert federated.model_sensitivity(steps, smoothness=1.5, **arguments) == pytest.approx(other - one, rel=1e-14)
        gamma = federated.data_sensitivity(steps, num_clients=4, clip_norm=2.0, **arguments)
        assert gamma == pytest.approx((up - down) / 4, rel=1e-14)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("diameter", [None, 0.2])
def test_they_give_the_certified_parameter(schedule: str, diameter: float | None) -> None:
    """Shifted interpolation of the two is what fedavg_gdp and fedprox_gdp return."""
    steps = federated.step_sizes(rounds=12, local_steps=5, learning_rate=0.1, schedule=schedule)
    for function, arguments in ((federated.fedavg_gdp, FEDAVG), (federated.fedprox_gdp, FEDPROX)):
        pull = {"prox": arguments["prox"]} if "prox" in arguments else {}
        rho = federated.model_sensitivity(steps, smoothness=1.5, **pull)
        gamma = federated.data_sensitivity(steps, num_clients=20, clip_norm=2.0, **pull)
        least = hs.shifted_interpolation(rho, gamma, diameter=diameter).value
        mu = function(**arguments, schedule=schedule, diameter=diameter)
        assert mu == pytest.approx(math.sqrt(20 * least) / 0.5, rel=1e-12)


def test_extremes_stay_above_the_truth() -> None:
    """What underflows is rounded up, what overflows is infinite, no step is no drift."""
    tiny = federated.data_sensitivity([1e-200], num_clients=1, clip_norm=1e-200)
    assert 0 < tiny < 1e-320
    assert federated.data_sensitivity([0.0, 0.0], num_clients=1, clip_norm=1.0) == 0
    assert federated.data_sensitivity([0.1], num_clients=1, clip_norm=math.inf) == math.inf
    assert federated.model_sensitivity([1e200, 1e200], smoothness=1e200) == math.inf
    assert federated.model_sensitivity([[0.1, 0.2]], smoothness=0.0).tolist() == [1.0]

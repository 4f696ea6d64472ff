"""Noisy-FedAvg and Noisy-FedProx by naive sums, their closed forms, and what raises them."""

import math

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
import theorems
from federations import FEDAVG, FEDPROX, SCHEDULES, gdp
from hockeystick import federated

CHANGES: dict[str, list[dict[str, float]]] = {
    "fedavg": [
        {}, {"rounds": 1}, {"rounds": 2, "local_steps": 1}, {"local_steps": 30}, {"smoothness": 0.0}, {"smoothness": 1e-3}, {"smoothness": 60.0},
        {"num_clients": 1, "noise_std": 3.0}, {"learning_rate": 1e-4}, {"rounds": 40, "learning_rate": 1.0},
    ],
    "fedprox": [
        {}, {"rounds": 1}, {"local_steps": 1}, {"local_steps": 200}, {"smoothness": 0.0}, {"smoothness": 1.999999}, {"learning_rate": 0.5},
        {"learning_rate": 1e-4}, {"prox": 10.0}, {"rounds": 60},
    ],
}  # fmt: skip


@pytest.mark.share(4)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("diameter", [None, 0.05, 1.0])
@pytest.mark.parametrize("function", CHANGES)
def test_against_the_definitions(function: str, schedule: str, diameter: float | None) -> None:
    """rho_t and gamma_t by naive products, sums and recursions, then the optimum at 40 digits; also at learning_rate = 1/prox."""
    for change in CHANGES[function]:
        arguments = (FEDAVG if function == "fedavg" else FEDPROX) | {"schedule": schedule} | change
        reference = gdp(function, **arguments, diameter=diameter)
        computed = getattr(federated, f"{function}_gdp")(**arguments, diameter=diameter)
        assert math.isclose(computed, reference, rel_tol=1e-12), (change, computed, mp.nstr(reference, 20))


@pytest.mark.parametrize("function", ["fedavg", "fedprox"])
def test_delta_and_epsilon(function: str) -> None:
    """The deltas and epsilons are those of the Gaussian-DP parameter."""
    good = FEDAVG if function == "fedavg" else FEDPROX
    for extra in ({}, {"diameter": 0.3}, {"schedule": "continuous"}, {"schedule": "cyclic"}):
        mu = getattr(federated, f"{function}_gdp")(**good, **extra)
        for eps in (0.0, 1.0, 30.0):
            assert getattr(federated, f"{function}_delta")(eps, **good, **extra) == hs.gdp_delta(mu, eps)
        for delta in (1e-100, 1e-5, 0.5):
            assert getattr(federated, f"{function}_epsilon")(delta, **good, **extra) == hs.gdp_epsilon(mu, delta)


def test_constant_schedule_is_plain_composition() -> None:
    """Without a diameter constant and cyclic steps cost sqrt(T) rounds' worth, whatever the smoothness."""
    for schedule, total in (("constant", 0.5), ("cyclic", 0.1 * sum(1 / k for k in range(1, 6)))):
        one = 2 * 2.0 * total / (math.sqrt(20) * 0.5)
        for smoothness in (0.0, 1e-8, 1.0, 1e6):
            arguments = FEDAVG | {"schedule": schedule, "smoothness": smoothness, "rounds": 10**9}
            np.testing.assert_allclose(federated.fedavg_gdp(**arguments), one * math.sqrt(1e9), rtol=1e-13)


def test_diameter_bounds_every_number_of_rounds() -> None:
    """With a projection the parameter stops growing; an infinite diameter is none."""
    grid = FEDAVG | {"smoothness": 0.01}
    values = [federated.fedavg_gdp(**(grid | {"rounds": t}), diameter=0.5) for t in (10, 10**3, 10**6, 10**9)]
    assert values[1] == values[2] == values[3]
    assert federated.fedavg_gdp(**grid, diameter=np.inf) == federated.fedavg_gdp(**grid)


@pytest.mark.share(3)
@pytest.mark.parametrize("schedule", ["stagewise", "continuous"])
@pytest.mark.parametrize("rate", [1e-9, 1e-4, 0.5])
def test_fedprox_of_many_rounds(schedule: str, rate: float) -> None:
    """Without smoothness equal shifts are optimal: mu is the sum of gamma_t over sqrt(T), here of 3,000 rounds in many digits."""
    rounds, prox = 3_000, mp.mpf(2)
    with mp.workdps(30):
        total = mp.mpf(0)
        for t in range(rounds):
            kept = mp.fprod(1 - eta * prox for eta in theorems.steps(schedule, rate, t, 3))
            total += 2 * mp.mpf(2.0) / (20 * prox) * (1 - kept)
        expected = mp.sqrt(20) / mp.mpf(0.5) * total / mp.sqrt(rounds)
    arguments = FEDPROX | {"rounds": rounds, "local_steps": 3, "smoothness": 0.0, "learning_rate": rate}
    assert math.isclose(federated.fedprox_gdp(**arguments, schedule=schedule), expected, rel_tol=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_fedprox_is_never_below_linear_losses(schedule: str) -> None:
    """Linear losses, which every smoothness bounds, move the last model by the sum of gamma_t under noise of T rounds."""
    for rounds in (1, 2, 10, 200):
        steps = federated.step_sizes(rounds=rounds, local_steps=5, learning_rate=0.1, schedule=schedule)
        gamma = (1 - np.prod(1 - 2.0 * steps, axis=1)) * 2 * 2.0 / (20 * 2.0)
        true = math.sqrt(20) / 0.5 * gamma.sum() / math.sqrt(rounds)
        for smoothness in (0.0, 1e-6, 0.5, 1.99):
            arguments = FEDPROX | {"rounds": rounds, "smoothness": smoothness, "schedule": schedule}
            mu = federated.fedprox_gdp(**arguments)
            assert mu >= true * (1 - 1e-13)
            printed = 2 * 2.0 / (math.sqrt(20) * 2.0 * 0.5)  # one round of Table 3's 2V/(m prox)
            assert mu <= printed * math.sqrt(rounds) * (1 + 1e-13)


SIGNS = {"rounds": 1, "local_steps": 1, "clip_norm": 1, "noise_std": -1, "num_clients": -1, "smoothness": 1}
# More local steps shrink later rounds' continuous steps; more rounds of fading steps add more noise than signal.
NOT_MONOTONE = {("continuous", "local_steps"), ("continuous", "rounds"), ("stagewise", "rounds")}
MONOTONE = [
    (schedule, name, diameter)
    for schedule in SCHEDULES
    for name in SIGNS
    for diameter in (None, 0.2)
    # the diameter counts in units of the sensitivity, which clients and norm change
    if (schedule, name) not in NOT_MONOTONE and not (diameter and name in ("num_clients", "clip_norm"))
]


@pytest.mark.parametrize(("schedule", "name", "diameter"), MONOTONE)
def test_monotone(schedule: str, name: str, diameter: float | None) -> None:
    """More rounds, steps, clipping norm, smoothness: never more private; more noise, more clients: never less."""
    counts = name in ("rounds", "local_steps", "num_clients")
    values = np.arange(1, 30) if counts else FEDAVG[name] * np.linspace(0.01, 4, 30)
    mu = federated.fedavg_gdp(**(FEDAVG | {name: values, "schedule": schedule}), diameter=diameter)[:: SIGNS[name]]
    assert np.all(mu[1:] >= mu[:-1] * (1 - 1e-12))

"""The refutation of Theorems 12 (a), (b), (d) and 15 of Sun, Shen and Tao: exact counterexamples and an attack.

One client's only sample has the linear loss +V e.w or -V e.w: its gradient has norm V, so that clipping at V does nothing, it is
0-smooth, hence L-smooth for every L, and the last model is N(-+T d/2 e, T sigma^2/m), d being one round's sensitivity. The exact
Gaussian-DP parameter is sqrt(T) d sqrt(m)/sigma.
"""

import math
import warnings

import numpy as np
import pytest

from hockeystick import federated, published

FACTORS = (1.001, 1.05, 1.5, 4.0, 16.0)  # rho = (1 + mu L)^K
ROUNDS = (2, 3, 5, 10, 20, 50, 1000)


def federation(**changes: object) -> dict[str, object]:
    """Return the arguments of a federation of ten clients, with changes."""
    return {"num_clients": 10, "clip_norm": 1.0, "noise_std": 3.0, "smoothness": 1.0} | changes


@pytest.fixture(autouse=True)
def _quiet() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", published.UnsoundBoundWarning)
        yield


def last_model(rounds: int, sensitivity: float, num_clients: int, noise_std: float) -> float:
    """Return the exact Gaussian-DP parameter of the linear losses by running mean and variance through the rounds."""
    gap = variance = 0.0
    for _ in range(rounds):
        gap, variance = gap + sensitivity, variance + noise_std**2 / num_clients
    return gap / math.sqrt(variance)


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("local_steps", [1, 5])
def test_constant_steps(rounds: int, factor: float, local_steps: int) -> None:
    """Theorem 12 (a): for every T >= 2 and rho > 1 the printed bound is below the exact parameter, which is certified."""
    arguments = federation(
        rounds=rounds, local_steps=local_steps, smoothness=(factor ** (1 / local_steps) - 1) / 0.1, learning_rate=0.1
    )
    true = last_model(rounds, 2 * 0.1 * 1.0 * local_steps / 10, 10, 3.0)
    np.testing.assert_allclose(federated.fedavg_gdp(**arguments), true, rtol=1e-11)
    assert published.fedavg_gdp(**arguments) < true * (1 - 1e-9)
    # the two agree where nothing is claimed
    once = arguments | {"rounds": 1}
    np.testing.assert_allclose(published.fedavg_gdp(**once), last_model(1, 0.02 * local_steps, 10, 3.0), rtol=1e-12)


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("learning_rate", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("local_steps", [1, 10, 100])
def test_cyclic_steps(rounds: int, learning_rate: float, local_steps: int) -> None:
    """Theorem 12 (b), with the most generous constant the paper allows, 1.543: violated for enough rounds, certified exact."""
    arguments = federation(
        rounds=rounds, local_steps=local_steps, smoothness=2.0, learning_rate=learning_rate, schedule="cyclic"
    )
    harmonic = sum(1 / k for k in range(1, local_steps + 1))
    true = last_model(rounds, 2 * learning_rate * harmonic / 10, 10, 3.0)
    np.testing.assert_allclose(federated.fedavg_gdp(**arguments), true, rtol=1e-11)
    least = harmonic / math.log(local_steps + 1)  # the smallest c for which the printed sum is right
    assert 1 < least < 1.543
    assert published.fedavg_gdp(**arguments, c=least) < true * max(1.0, 1 / learning_rate) * (1 - 1e-9)
    if rounds >= 50:
        assert published.fedavg_gdp(**arguments, c=1.543) < true


def test_continuous_steps() -> None:
    """Theorem 12 (d) with z = 1.5, mu = 1, K = 100 fails at T = 1 by the factor H_100/1.5 = 3.46."""
    arguments = federation(rounds=1, local_steps=100, learning_rate=1.0, schedule="continuous")
    harmonic = sum(1 / k for k in range(1, 101))
    true = last_model(1, 2 * harmonic / 10, 10, 3.0)
    np.testing.assert_allclose(federated.fedavg_gdp(**arguments), true, rtol=1e-12)
    np.testing.assert_allclose(true / published.fedavg_gdp(**arguments, z=1.5), harmonic / 1.5, rtol=1e-12)
    assert round(harmonic / 1.5, 2) == 3.46
    # z = mu H_K is enough, for any number of rounds
    for rounds in (1, 2, 30, 1000):
        cell = arguments | {"rounds": rounds}
        assert federated.fedavg_gdp(**cell) <= published.fedavg_gdp(**cell, z=harmonic) * (1 + 1e-12)


@pytest.mark.parametrize(("prox", "smoothness"), [(2.0, 1.0), (1.2, 1.0), (10.0, 1.0)])
@pytest.mark.parametrize(("local_steps", "step"), [(50, 0.2), (200, 0.2), (5, 0.9), (1, 1.0)])
def test_fedprox(prox: float, smoothness: float, local_steps: int, step: float) -> None:
    """Theorem 15: linear losses lose sqrt(T) (1 - (1 - eta alpha)^K) units, the printed bound converges below it."""
    arguments = federation(
        local_steps=local_steps, noise_std=1.0, smoothness=smoothness, learning_rate=step / prox, prox=prox
    )
    sensitivity = 2 / (10 * prox) * (1 - (1 - step) ** local_steps)
    for rounds in ROUNDS:
        true = last_model(rounds, sensitivity, 10, 1.0)
        np.testing.assert_allclose(federated.fedprox_gdp(**arguments, rounds=rounds), true, rtol=1e-11)
        if rounds >= 2:
            assert published.fedprox_gdp(**arguments, rounds=rounds) < true
    np.testing.assert_allclose(published.fedprox_gdp(**arguments, rounds=1), 2 / (math.sqrt(10) * prox), rtol=1e-12)


def test_fedprox_step_above_one_over_prox() -> None:
    """The printed condition eta < 1/(alpha - L) lets one step of eta = 0.9, alpha = 2, L = 1 through: off by 1.8 at T = K = 1."""
    arguments = federation(rounds=1, local_steps=1, noise_std=1.0, learning_rate=0.9, prox=2.0)
    true = last_model(1, 2 * 0.9 / 10, 10, 1.0)
    np.testing.assert_allclose(true / published.fedprox_gdp(**arguments), 1.8, rtol=1e-12)
    with pytest.raises(ValueError, match=r"learning_rate.*1/prox"):
        federated.fedprox_gdp(**arguments)


def test_clipping_destroys_contraction() -> None:
    """A convex step with a clipped gradient moves two points apart by a factor of nearly sqrt 2: rho = 1 may not be claimed for it."""
    points = np.array([[0.71, 0.0071], [0.7101, 0.0072]])
    gradients = points * [1.0, 100.0]
    clipped = gradients / np.maximum(1.0, np.linalg.norm(gradients, axis=1, keepdims=True))
    before, after = (np.linalg.norm(x[1] - x[0]) for x in (points, points - 2 / 100 * clipped))
    assert after > 1.4 * before


@pytest.mark.parametrize("local_steps", [1, 5])
@pytest.mark.parametrize("rounds", [1, 2, 10, 1000])
def test_stage_wise_steps(rounds: int, local_steps: int) -> None:
    """Theorem 12 (c) is above the certified parameter for any smoothness; linear losses attain it in the first round, where (19) prints a strict sign, and in no later one."""
    arguments = federation(rounds=rounds, local_steps=local_steps, learning_rate=0.1, schedule="stagewise")
    gap = sum(2 * 0.1 / (t + 1) * local_steps / 10 for t in range(rounds))
    true = gap / math.sqrt(rounds * 3.0**2 / 10)
    printed = published.fedavg_gdp(**arguments)
    for smoothness in (0.0, 0.1, 3.0, 100.0):
        certified = federated.fedavg_gdp(**arguments | {"smoothness": smoothness})
        assert true * (1 - 1e-12) <= certified <= printed * (1 + 1e-12)
    if rounds == 1:
        np.testing.assert_allclose(printed, true, rtol=1e-12)
    else:
        assert true < printed * (1 - 1e-3)

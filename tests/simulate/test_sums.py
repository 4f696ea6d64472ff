"""What models leak where silos' noisy gradients are added up: closed forms, the exact law of linear losses, and an attack."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("numba")

from hockeystick import simulate

ROUNDS = 5
SETTING: dict[str, Any] = {"learning_rate": 0.5, "clip_norm": 1.0, "records": simulate.EveryRound()}


def silos(vector: float) -> simulate.Problem:
    """Return four silos of two records with linear losses; the first record has this vector, the others none."""
    return simulate.Problem("linear", np.array([[vector]] + [[0.0]] * 7), sizes=[2] * 4)


def delta_of_shift(mu: float, epsilon: float) -> float:
    """Return the delta of two normal laws that are mu deviations apart."""
    return float(stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize(
    ("noise", "clients", "variance"),
    [
        (0.7, simulate.EveryRound(), 4 * 0.49),
        ((0.3, 0.9, 0.5, 0.7), simulate.EveryRound(), 0.09 + 0.81 + 0.25 + 0.49),
        ((0.3, 0.9, 0.5, 0.7), simulate.FixedSize(2), 0.09 + 0.25),
        ((0.3, 0.9, 0.5, 0.7), simulate.Poisson(0.5), 0.09),
    ],
)
def test_closed_form(noise: Any, clients: simulate.Participation, variance: float) -> None:
    """Full batches of two: all models are normal laws 2 sqrt(T)/(2 s) deviations apart, s^2 the least sum of variances."""
    algorithm = simulate.NoisyMinibatchSGD(noise_std=noise, clients=clients, **SETTING)
    mu = math.sqrt(ROUNDS / variance)
    guarantee = algorithm.guarantee(silos(1.0), rounds=ROUNDS, released="every_model")
    for delta in (1e-2, 1e-5):
        epsilon = guarantee.epsilon(ROUNDS, delta)
        assert delta_of_shift(mu, epsilon) <= delta * (1 + 1e-12)
        assert delta_of_shift(mu, epsilon - 1e-6) > delta
        assert algorithm.guarantee(silos(1.0), rounds=ROUNDS, released="last_model").epsilon(ROUNDS, delta) == epsilon
        messages = algorithm.guarantee(silos(1.0), rounds=ROUNDS, released="messages").epsilon(ROUNDS, delta)
        assert messages >= epsilon
        assert isinstance(clients, simulate.Poisson) or messages > epsilon
        assert epsilon == min(guarantee.bounds(ROUNDS, delta).values())


def test_batches_keep_their_sampler() -> None:
    """Batches of one of two records: not above full batches' noise of the same message, and Poisson batches keep their adjacency and divisor."""
    one = SETTING | {"records": simulate.FixedSize(1), "noise_std": 0.7}
    guarantee = simulate.NoisyMinibatchSGD(**one).guarantee(silos(1.0), rounds=ROUNDS, released="every_model")
    wide = simulate.NoisyMinibatchSGD(**(one | {"noise_std": 1.4})).guarantee(silos(1.0), rounds=ROUNDS)
    assert guarantee.epsilon(ROUNDS, 1e-5) == pytest.approx(wide.epsilon(ROUNDS, 1e-5), rel=1e-9)
    assert guarantee.epsilon(ROUNDS, 1e-5) >= wide.epsilon(ROUNDS, 1e-5)
    poisson = simulate.NoisyMinibatchSGD(**(one | {"records": simulate.Poisson(0.5)}))
    assert poisson.guarantee(silos(1.0), rounds=ROUNDS, released="every_model").adjacency == "replace"
    public = simulate.NoisyMinibatchSGD(**(one | {"records": simulate.Poisson(1.0, expected_batch_size=4)}))
    guarantee = public.guarantee(silos(1.0), rounds=ROUNDS, released="every_model")
    mu = 1.0 / 4 / (2 * 0.7) * math.sqrt(ROUNDS)  # one gradient, divided by four, in the noise of four messages
    assert guarantee.adjacency == "add_or_remove"
    assert delta_of_shift(mu, guarantee.epsilon(ROUNDS, 1e-5)) == pytest.approx(1e-5, rel=1e-6)


def test_accelerated() -> None:
    """The accelerated method's models are functions of the same sums."""
    setting: dict[str, Any] = {"scale": 2.0, "clip_norm": 1.0, "noise_std": 0.7, "records": simulate.EveryRound()}
    guarantee = simulate.AcceleratedMinibatchSGD(**setting).guarantee(silos(1.0), rounds=ROUNDS, released="every_model")
    plain = simulate.NoisyMinibatchSGD(noise_std=0.7, **SETTING)
    other = plain.guarantee(silos(1.0), rounds=ROUNDS, released="every_model")
    assert guarantee.epsilon(ROUNDS, 1e-5) == other.epsilon(ROUNDS, 1e-5)


def attack(num_runs: int) -> None:
    """Tell two problems apart by the last iterate of linear losses: two normal laws, as far apart as is certified."""
    algorithm = simulate.NoisyMinibatchSGD(noise_std=0.7, **SETTING)
    ends = [
        simulate.run(algorithm, silos(sign), rounds=ROUNDS, seed=seed, num_runs=num_runs).last_iterates[:, 0]
        for sign, seed in ((1.0, 1), (-1.0, 2))
    ]
    deviation, shift = 0.5 * 0.7 * math.sqrt(ROUNDS / 4), 0.5 * ROUNDS / 8
    for models, sign in zip(ends, (-1.0, 1.0), strict=True):
        assert stats.kstest((models - sign * shift) / deviation, "norm").pvalue > 1e-3
    guarantee = algorithm.guarantee(silos(1.0), rounds=ROUNDS, released="every_model")
    for delta in (0.3, 0.1, 0.03):
        epsilon = guarantee.epsilon(ROUNDS, delta)
        allowed = delta + 5 * math.sqrt((1 + math.exp(2 * epsilon)) / (4 * num_runs))
        for threshold in np.linspace(-1.5, 1.5, 31):
            p, q = (np.mean(models < threshold) for models in ends)
            assert p - math.exp(epsilon) * q <= allowed
            assert (1 - q) - math.exp(epsilon) * (1 - p) <= allowed


def test_attack_stays_below() -> None:
    """A few thousand runs."""
    attack(3000)


@pytest.mark.slow
def test_attack_stays_below_with_many_runs() -> None:
    """Twenty thousand runs, as the acceptance asks."""
    attack(20_000)

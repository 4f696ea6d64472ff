"""Estimates of b-min-separated batches, against sums over all patterns, exact compositions, quadrature and certified bounds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.correlated_noise import (
    conditional_composition,
    estimate_balls_in_bins_delta,
    estimate_min_separation_delta,
    square_root_coefficients,
)
from hockeystick.correlated_noise.estimated_separation import log_ratio

SURE = 1 - 1e-9


def patterns(steps: int, separation: int, rate: float, first: np.ndarray) -> dict[tuple[int, ...], float]:
    """Return the probability of every pattern of steps, from all outcomes of all coins; the record may be in a random step first."""
    found: dict[tuple[int, ...], float] = {}
    for (start, weight), *coins in itertools.product(enumerate(first), *[(0, 1)] * steps):
        chance = weight * math.prod(rate if coin else 1 - rate for coin in coins)
        free, steps_in = start, []
        for step, coin in enumerate(coins):
            if coin and step >= free:
                steps_in.append(step)
                free = step + separation
        found[tuple(steps_in)] = found.get(tuple(steps_in), 0.0) + chance
    return found


@pytest.mark.parametrize(
    ("steps", "separation", "bands"), [(1, 1, 1), (6, 1, 1), (7, 2, 2), (9, 3, 3), (8, 4, 2), (5, 9, 9)]
)
@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("warm_start", [False, True])
def test_ratio_is_the_mean_over_patterns(
    steps: int, separation: int, bands: int, rate: float, warm_start: bool
) -> None:
    """One pass gives what all 2^steps outcomes of the coins give."""
    rng = np.random.default_rng(steps)
    first = rng.dirichlet(np.ones(separation)) if warm_start else np.ones(1)
    column = rng.uniform(0.1, 1.0, bands)[:steps]
    outcomes = rng.normal(0.3, 1.5, (steps, 5))
    expected = np.zeros(5)
    for steps_in, chance in patterns(steps, separation, rate, first).items():
        mean = np.zeros(steps)
        for step in steps_in:
            mean[step : step + bands] += column[: steps - step]
        expected += chance * np.exp(mean @ outcomes - mean @ mean / 2)
    assert np.exp(log_ratio(outcomes, column, separation, rate, first)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.share(2)
@pytest.mark.parametrize(("rate", "noise"), [(0.1, 1.5), (0.5, 4.0), (1.0, 6.0)])
def test_poisson_samples(rate: float, noise: float) -> None:
    """Without bands and separation it is DP-SGD, whose delta is known."""
    known = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), rate), 20)
    for eps in (0.0, 0.3, 1.0):
        found = estimate_min_separation_delta(
            [1.0],
            num_steps=20,
            separation=1,
            sampling_rate=rate,
            noise_multiplier=noise,
            eps=eps,
            confidence=SURE,
            seed=3,
        )
        assert found.lower <= known.delta(eps) <= found.upper


@pytest.mark.parametrize(("rate", "noise", "second"), [(0.3, 0.8, 0.0), (0.5, 1.0, 0.7), (0.1, 2.0, 0.4)])
def test_two_steps_by_quadrature(rate: float, noise: float, second: float) -> None:
    """Two steps of which a record is in one at most: an integral in the plane."""
    x = np.linspace(-10.0, 12.0, 1800)
    cell, a, b = (x[1] - x[0]) ** 2, 1.0 / noise, second / noise
    first, last = x[:, None], x[None, :]
    without = np.exp(-(first**2 + last**2) / 2) / (2 * math.pi)
    tilt = rate * np.exp(a * first + b * last - (a * a + b * b) / 2) + (1 - rate) * rate * np.exp(a * last - a * a / 2)
    record = without * ((1 - rate) ** 2 + tilt)
    for eps in (0.0, 0.2, 0.6):
        e = math.exp(eps)
        truth = max(float(np.maximum(p - e * q, 0).sum() * cell) for p, q in ((record, without), (without, record)))
        found = estimate_min_separation_delta(
            [1.0, second],
            num_steps=2,
            separation=2,
            sampling_rate=rate,
            noise_multiplier=noise,
            eps=eps,
            confidence=SURE,
            seed=4,
        )
        assert found.lower <= truth * (1 + 1e-6)
        assert truth * (1 - 1e-6) <= found.upper


@pytest.mark.share(3)
@pytest.mark.parametrize("bands", [1, 2, 4])
@pytest.mark.parametrize(("rate", "noise"), [(0.01, 4.0), (0.05, 4.0), (0.05, 12.0)])
def test_certified_bounds_are_above(bands: int, rate: float, noise: float) -> None:
    """What is certified for records that ignore coins is never below what samples say, and more separation leaks less."""
    c = square_root_coefficients(bands)
    setting = {"num_steps": 60, "sampling_rate": rate, "noise_multiplier": noise}
    bound = conditional_composition(c, **setting, failure=1e-8)
    for eps in (0.05, 0.4):
        near, far = (
            estimate_min_separation_delta(c, **setting, separation=b, eps=eps, samples=20_000, confidence=SURE, seed=5)
            for b in (bands, 6 * bands)
        )
        assert far.lower <= near.upper
        assert near.lower <= bound.delta(eps)


def test_a_record_that_must_be_in_every_bth_step() -> None:
    """At rate 1 it is in steps 0, b, 2b, ...: one bin of a fixed order, a Gaussian release."""
    found = estimate_min_separation_delta(
        [1.0, 0.5],
        num_steps=10,
        separation=5,
        sampling_rate=1.0,
        noise_multiplier=2.0,
        eps=0.5,
        confidence=SURE,
        seed=6,
    )
    known = hs.Accountant().compose(hs.Gaussian(2.0 / math.sqrt(2.5))).delta(0.5)
    assert found.lower <= known <= found.upper


GOOD = {
    "strategy": [1.0, 0.5],
    "num_steps": 4,
    "separation": 2,
    "sampling_rate": 0.5,
    "noise_multiplier": 1.0,
    "eps": 0.1,
    "seed": 1,
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"separation": 1}, r"bands of strategy must be at most separation \(1\), not 2"),
        ({"separation": 0}, r"separation must be"),
        ({"strategy": [[1.0, 0.0], [0.0, 1.0]]}, r"strategy must"),
        ({"num_steps": 0}, r"num_steps must be"),
        ({"sampling_rate": 1.5}, r"sampling_rate must"),
        ({"noise_multiplier": 0.0}, r"noise_multiplier must"),
        ({"eps": -1.0}, r"eps must"),
        ({"samples": 1}, r"samples must"),
        ({"confidence": 1.0}, r"confidence must"),
    ],
)
def test_bad_input(changed: dict[str, object], message: str) -> None:
    """Every argument is named, with its domain; both estimates check alike."""
    with pytest.raises(ValueError, match=message):
        estimate_min_separation_delta(**(GOOD | changed))
    if not {"strategy", "separation", "sampling_rate", "num_steps"} & set(changed):
        setting = {"num_steps": 4, "bins": 2, "noise_multiplier": 1.0, "eps": 0.1, "seed": 1}
        with pytest.raises(ValueError, match=message):
            estimate_balls_in_bins_delta([1.0, 0.5], **(setting | changed))


def test_too_many_steps_are_refused() -> None:
    """By name, before memory is asked for."""
    with pytest.raises(ValueError, match="num_steps must be at most the largest supported"):
        estimate_min_separation_delta(
            [1.0],
            num_steps=2**40,
            separation=1,
            sampling_rate=0.1,
            noise_multiplier=1.0,
            eps=0.0,
            samples=2,
            seed=1,
        )

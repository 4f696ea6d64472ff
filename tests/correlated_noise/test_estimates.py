"""Estimates of b-min-separated batches, against sums over all patterns, exact compositions, quadrature and certified bounds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.correlated_noise import (
    conditional_composition,
    estimate_min_separation_delta,
    square_root_coefficients,
)
from hockeystick.correlated_noise.estimates import log_ratio

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


@pytest.mark.parametrize(("rate", "noise"), [(0.1, 1.5), (0.5, 4.0), (1.0, 6.0)])
def test_poisson_samples(rate: float, noise: float) -> None:
    """Without bands and separation it is DP-SGD, whose delta is known."""
    known = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), rate), 20)
    setting = {"num_steps": 20, "separation": 1, "sampling_rate": rate, "noise_multiplier": noise}
    for eps in (0.0, 0.3, 1.0):
        found = estimate_min_separation_delta([1.0], **setting, eps=eps, confidence=SURE, seed=3)
        assert found.lower <= known.delta(eps) <= found.upper


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

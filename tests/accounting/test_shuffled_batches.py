"""Shuffled batches against a sum over outputs, simulated shuffles and the events of the paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

import hockeystick as hs
from hockeystick.accounting.shuffled_outputs import SumOfOutputs


def events(noise, num_batches, eps):
    """Return the largest lower bound of delta by an event that the largest output exceeds a number, as printed."""
    cuts = np.linspace(1 - 6 * noise, 2 + 20 * noise, 20_001)
    p, q = (
        -np.expm1(log_ndtr((cuts - moved) / noise) + (num_batches - 1) * log_ndtr(cuts / noise)) for moved in (2.0, 1.0)
    )
    return float(np.max(p - math.exp(eps) * q))


@pytest.mark.parametrize(("noise", "num_batches"), [(0.4, 10), (0.5, 1000), (1.0, 1000), (3.0, 50)])
@pytest.mark.parametrize("eps", [0.5, 2.0, 6.0])
def test_lower_end_is_not_below_the_printed_one(noise, num_batches, eps):
    """Cells of the largest output know at least what one event knows, up to their width."""
    bracket = hs.shuffled_batches_delta(eps, noise_multiplier=noise, num_batches=num_batches)
    assert events(noise, num_batches, eps) * 0.99 <= bracket.lower <= bracket.upper
    assert bracket.upper == pytest.approx(float(hs.theta(eps, 1 / noise)), rel=1e-9)
    assert bracket.status == "certified"


@pytest.mark.parametrize("noise", [0.5, 1.5])
@pytest.mark.parametrize("eps", [0.0, 0.8, 2.0])
def test_both_pairs_of_two_batches_lie_above_the_lower_end(noise, eps):
    """Delta of the two attained pairs, by a sum over both outputs, is at least the lower end, and at most the upper one."""
    r = 1 / noise
    x = np.linspace(-9.0, 9.0 + 2 * r, 1_801)

    def mixture(moved):
        one, other = (np.exp(-((x - m) ** 2) / 2) for m in (moved, 0.0))
        return (np.outer(one, other) + np.outer(other, one)) / 2 * ((x[1] - x[0]) ** 2 / (2 * math.pi))

    deltas = []
    for p, q in ((mixture(2 * r), mixture(r)), (mixture(r), mixture(0.0))):
        deltas += [float(np.maximum(a - math.exp(eps) * b, 0).sum()) for a, b in ((p, q), (q, p))]
    bracket = hs.shuffled_batches_delta(eps, noise_multiplier=noise, num_batches=2)
    assert 0.5 * max(deltas) <= bracket.lower <= max(deltas) * (1 + 1e-4)
    assert max(deltas) <= bracket.upper * (1 + 1e-4)


@pytest.mark.parametrize("noise", [0.5, 1.5, 4.0])
@pytest.mark.parametrize("num_batches", [2, 3])
def test_sums_of_outputs_know_nearly_all(noise, num_batches):
    """The pair of the sum lies below the outputs' own, by a sum over all of them, and within 4 % of it at its first order."""
    r = 1 / noise
    points, coarse = {2: (1_501, 1e-4), 3: (221, 1e-3)}[num_batches]
    x = np.linspace(-7.0, 7.0 + 2 * r, points)
    grids = np.meshgrid(*[x] * num_batches, sparse=True)
    base = (x[1] - x[0]) ** num_batches / (2 * math.pi) ** (num_batches / 2)
    base = base * np.exp(-0.5 * sum(g * g for g in grids))
    p, q = (base * sum(np.exp(m * g - m * m / 2) for g in grids) / num_batches for m in (2 * r, r))
    pair = SumOfOutputs(noise, num_batches)
    for eps in (0.0, 0.1, 0.5, 1.5):
        exact = max(float(np.maximum(a - math.exp(eps) * b, 0.0).sum()) for a, b in ((p, q), (q, p)))
        found = hs.Accountant().compose(pair).delta_bracket(eps).lower
        assert found <= exact * (1 + coarse) + 1e-12
        if eps == 0:
            assert found >= 0.96 * exact


def test_two_epochs_of_the_review():
    """At noise 2, 50 batches, two epochs and eps = 0 the example's delta, by simulated likelihood ratios, is attained."""
    r, runs = 0.5, 200_000
    rng = np.random.default_rng(3)
    ratio = np.ones(runs)
    for _ in range(2):
        x = rng.standard_normal((runs, 50))
        x[:, 0] += 2 * r
        ratio *= np.exp(2 * r * (x - r)).sum(1) / np.exp(r * (x - r / 2)).sum(1)
    loss = np.maximum(1 - 1 / ratio, 0.0)
    found = hs.shuffled_batches_delta(0.0, noise_multiplier=2.0, num_batches=50, epochs=2)
    assert found.lower >= 0.0636
    assert abs(found.lower - loss.mean()) < 5 * loss.std() / math.sqrt(runs)


def test_simulated_shuffles_attain_the_lower_end():
    """Records are shuffled into batches of three, with and without one of them: its event is no rarer than promised."""
    noise, batches, size, eps, runs = 0.5, 5, 3, 1.0, 100_000
    rng = np.random.default_rng(11)
    largest = []
    for mine in (1.0, 0.0):
        records = np.full((runs, batches * size), -1.0)
        records[:, 0] = mine
        sums = rng.permuted(records, axis=1).reshape(runs, batches, size).sum(2)
        largest.append((sums + noise * rng.standard_normal(sums.shape)).max(1) + size)
    cut = 1.5
    truth = [1 - ndtr((cut - moved) / noise) * ndtr(cut / noise) ** (batches - 1) for moved in (2.0, 1.0)]
    for values, probability in zip(largest, truth, strict=True):
        assert abs((values > cut).mean() - probability) < 5 * math.sqrt(0.25 / runs)
    attained = truth[0] - math.exp(eps) * truth[1]
    assert hs.shuffled_batches_delta(eps, noise_multiplier=noise, num_batches=batches).lower >= 0.99 * attained


def test_epochs_and_inverse():
    """Both ends grow with the epochs; epsilon is the inverse of delta; one batch is a Gaussian step."""
    few, many = (hs.shuffled_batches_epsilon(1e-5, noise_multiplier=1.0, num_batches=200, epochs=e) for e in (1, 5))
    assert few.lower < many.lower < many.upper
    assert few.lower <= few.upper < many.upper
    back = hs.shuffled_batches_delta(few.lower, noise_multiplier=1.0, num_batches=200)
    assert back.lower == pytest.approx(1e-5, rel=1e-2)
    single = hs.shuffled_batches_epsilon(1e-5, noise_multiplier=2.0, num_batches=1, epochs=3)
    assert single.lower == pytest.approx(single.upper, rel=1e-9)
    assert single.upper == hs.Accountant().compose(hs.Gaussian(2.0), 3).epsilon(1e-5)


def test_may_leak_more_than_poisson_samples():
    """At little noise the lower end lies far above the certified number of Poisson samples of the same rate."""
    poisson = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 1e-3), 1000).epsilon(1e-5)
    assert hs.shuffled_batches_epsilon(1e-5, noise_multiplier=1.0, num_batches=1000).lower > 10 * poisson


BAD = [
    (ValueError, "eps must be non-negative", lambda: hs.shuffled_batches_delta(-1, noise_multiplier=1, num_batches=2)),
    (ValueError, "delta must lie in", lambda: hs.shuffled_batches_epsilon(1, noise_multiplier=1, num_batches=2)),
    (ValueError, "noise_multiplier must", lambda: hs.shuffled_batches_delta(1, noise_multiplier=0, num_batches=2)),
    (TypeError, "num_batches must", lambda: hs.shuffled_batches_delta(1, noise_multiplier=1, num_batches=2.5)),
    (
        ValueError,
        "num_batches must be at most",
        lambda: hs.shuffled_batches_delta(1, noise_multiplier=1, num_batches=10**7),
    ),
    (ValueError, "epochs must", lambda: hs.shuffled_batches_delta(1, noise_multiplier=1, num_batches=2, epochs=0)),
]


@pytest.mark.parametrize(("error", "message", "make"), BAD)
def test_bad_arguments(error, message, make):
    """A wrong argument raises, and names itself, its value and its domain."""
    with pytest.raises(error, match=message):
        make()

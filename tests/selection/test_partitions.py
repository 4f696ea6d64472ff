"""Partition selection against its recursion, all sizes of groups, and the counts that are shown."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
from enumeration import either
from hockeystick.selection import OptimalPartitions, ThresholdedPartitions

SETTINGS = [(1.0, 1e-5), (0.1, 1e-3), (3.0, 1e-8), (0.5, 0.2), (2.0, 0.6), (0.02, 1e-6), (10.0, 1e-10), (1.0, 1e-100)]


def recursion(epsilon, delta):
    """Return the probabilities of groups of 0, 1, ... users up to the first that is always shown, to forty digits."""
    shown, grow = [mp.mpf(0)], mp.exp(mp.mpf(epsilon))
    delta = mp.mpf(delta)
    while shown[-1] < 1 and len(shown) < 20_000:
        shown.append(min(grow * shown[-1] + delta, 1 - (1 - shown[-1] - delta) / grow, mp.mpf(1)))
    return shown


def bernoulli(p, q, gamma):
    """Return the hockey-stick divergence of two coins."""
    return max(p - gamma * q, 0) + max((1 - p) - gamma * (1 - q), 0)


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
def test_optimal(epsilon, delta):
    """The curve is the largest over all sizes of groups and both directions, to rounding; (epsilon, delta) as promised; and closed forms are the recursion."""
    step = OptimalPartitions(epsilon, delta)
    ledger = hs.Accountant().compose(step)
    with mp.workdps(130):
        shown = recursion(epsilon, delta)
        for share in (0.0, 0.1, 0.3, 0.5, 0.8, 0.97, 1.0, 1.3):
            eps = share * epsilon
            gamma = mp.exp(mp.mpf(eps))
            exact = max(max(bernoulli(b, a, gamma), bernoulli(a, b, gamma)) for a, b in itertools.pairwise(shown))
            found = ledger.delta(eps)
            assert exact <= found * (1 + mp.mpf("1e-25"))
            assert found <= exact * (1 + 1e-9) + 5e-12
        assert delta * (1 - 1e-12) <= ledger.delta(epsilon * (1 + 1e-12)) <= delta * (1 + 1e-6) + 5e-12
        for n in sorted({0, *range(0, len(shown), max(len(shown) // 40, 1)), len(shown) - 1}):
            found = step.keep_probability(n)
            assert found == pytest.approx(float(shown[n]), rel=1e-11)
            assert 1 - found == pytest.approx(float(1 - shown[n]), rel=1e-9, abs=1e-15)
        assert step.keep_probability(10**9) == pytest.approx(1.0, abs=1e-15)


def test_a_user_of_two_groups():
    """A user of two groups is in two steps, whose composition is the accountant's."""
    once, twice = (OptimalPartitions(1.0, 0.01, partitions=count) for count in (1, 2))
    eps = [0.0, 0.5, 1.0, 2.0]
    assert (hs.Accountant().compose(twice).delta(eps) == hs.Accountant().compose(once, 2).delta(eps)).all()


def thresholded(noise):
    """Return the distribution function of a noisy count less the number of users."""
    scale = noise.noise_multiplier
    if isinstance(noise, hs.Gaussian):
        return lambda x: mp.ncdf(x / scale)
    return lambda x: mp.exp(x / scale) / 2 if x < 0 else 1 - mp.exp(-x / scale) / 2


@pytest.mark.parametrize(
    ("noise", "threshold"),
    [
        (hs.Laplace(2.0), 25.0),
        (hs.Laplace(0.5), 6.3),
        (hs.Gaussian(3.0), 15.0),
        (hs.Gaussian(1.0), 1.4),
        (hs.Laplace(1.0), 0.2),
        (hs.Gaussian(20.0), 90.0),
    ],
    ids=repr,
)
def test_thresholds(noise, threshold):
    """What is shown, with or without its noisy count, leaks no more than the curve, for groups of all sizes."""
    step = ThresholdedPartitions(noise, threshold)
    ledger = hs.Accountant().compose(step)
    with mp.workdps(40):
        law = thresholded(noise)
        mp_threshold = mp.mpf(threshold)
        kept = [mp.mpf(0)] + [1 - law(mp_threshold - n) for n in range(1, int(threshold) + 12)]
        for n in range(len(kept)):
            assert step.keep_probability(n) == pytest.approx(float(kept[n]), rel=1e-12)
        counted = {}
        for n in (1, max(int(threshold) - 1, 1), int(threshold) + 2):  # counts are shown from the threshold up
            edges = [mp_threshold + noise.noise_multiplier * k / mp.mpf(8) for k in range(-1, 120)]
            for m in (n, n + 1):
                table = [law(x - m) for x in edges]
                counted[n, m] = np.array([float(table[0]), *np.diff(table).astype(float)])
        for share in (0.0, 0.3, 0.7, 1.0, 1.5, 3.0):
            eps = share / noise.noise_multiplier
            bound, gamma = ledger.delta(eps), mp.exp(mp.mpf(eps))
            for a, b in itertools.pairwise(kept):
                assert max(bernoulli(b, a, gamma), bernoulli(a, b, gamma)) <= bound
            for n in {n for n, _ in counted}:
                low, high = counted[n, n], counted[n, n + 1]
                assert either(high, low, eps) <= bound + 1e-15
        alone = kept[1]
        assert alone <= mp.mpf(ledger.delta(math.inf)) <= alone * (1 + mp.mpf("1e-9"))


def test_the_larger_and_not_the_sum():
    """Delta at infinity is that of a user alone; at epsilon of the noise it is not above it."""
    step = ThresholdedPartitions(hs.Laplace(2.0), 25.0)
    ledger = hs.Accountant().compose(step)
    assert ledger.delta(0.5 * (1 + 1e-9)) == pytest.approx(step.keep_probability(1), rel=1e-6)


def test_optimal_at_small_deltas():
    """The total variation distance is not below that of the recurrence, whose power of e^epsilon has an exponent in the hundreds."""
    rng = np.random.default_rng(5)
    for epsilon, digits in zip(rng.uniform(0.3, 30.0, 200), rng.uniform(100.0, 200.0, 200), strict=True):
        step = OptimalPartitions(float(epsilon), float(10.0**-digits))
        with mp.workdps(260):
            shown = recursion(step.epsilon, step.delta)
            exact = max(after - before for before, after in itertools.pairwise(shown))
            assert exact <= step.profile().remove[0] <= exact * (1 + mp.mpf("1e-11"))

"""One round of updates and counts is one Gaussian release: the split of its noise, in exact arithmetic and on data."""

import math
from fractions import Fraction

import numpy as np
import pytest

import hockeystick as hs
import refused_calls


def holds(noise_multiplier, count_noise, updates):
    """Say whether the joint vector's squared distance, in exact arithmetic, is at most that of the noise multiplier."""
    z, count, split = map(Fraction, (noise_multiplier, count_noise, updates))
    return 1 / split**2 + 1 / (2 * count) ** 2 <= 1 / z**2


def settings(cases=2000):
    """Yield noise multipliers and count noises: ordinary, near the pole, far from it, and near the ends of the doubles."""
    rng = np.random.default_rng(22)
    for _ in range(cases):
        z = float(10.0 ** rng.uniform(-3, 3))
        yield z, z * float(rng.uniform(0.51, 20.0))
        yield z, math.nextafter(z / 2, math.inf) * (1.0 + float(2.0 ** -rng.integers(1, 53)))
        yield z, z * float(10.0 ** rng.uniform(5, 200))
    for z in (5e-324, 1e-310, 2.0**-1022, 1e-200, 1e200, 1e307):
        yield z, z
        yield z, 1.7e308


def test_split_is_the_smallest_safe_double():
    """The number returned keeps the promise of the round; the double below it does not."""
    for z, count_noise in settings():
        updates = hs.training.adaptive_clipping_noise(z, count_noise)
        assert holds(z, count_noise, updates), (z, count_noise)
        assert not holds(z, count_noise, math.nextafter(updates, 0.0)), (z, count_noise)


def test_a_count_without_influence_costs_one_unit_at_most():
    """With huge noise of the count the updates need theirs alone, rounded up; never less."""
    assert hs.training.adaptive_clipping_noise(1.3, 1e300) == math.nextafter(1.3, 2.0)


def releases(vectors, clip_norm):
    """Return the means of both releases of a round, before noise: the sum of clipped vectors over C, and the count."""
    norms = np.linalg.norm(vectors, axis=1)
    factors = np.minimum(1.0, clip_norm / np.maximum(norms, 1e-300))
    return (vectors * factors[:, None]).sum(axis=0) / clip_norm, float(np.sum((norms <= clip_norm) - 0.5))


@pytest.mark.parametrize(("z", "count_noise"), [(1.0, 0.55), (1.0, 1.0), (0.7, 7.0)])
def test_distances_of_neighbours_given_the_same_past(z, count_noise):
    """Whatever the clip norm: 1/z where a record is added, 2/z where one is replaced; both are nearly attained."""
    rng = np.random.default_rng(3)
    split = hs.training.adaptive_clipping_noise(z, count_noise)

    def distance(one, other, clip_norm):
        (sum_one, count_one), (sum_other, count_other) = releases(one, clip_norm), releases(other, clip_norm)
        return math.hypot(np.linalg.norm(sum_one - sum_other) / split, (count_one - count_other) / count_noise)

    for _ in range(300):
        data = rng.normal(size=(8, 3)) * 10.0 ** rng.uniform(-2, 2, size=(8, 1))
        replaced = np.vstack([rng.normal(size=(1, 3)) * 10.0 ** rng.uniform(-2, 2), data[1:]])
        clip_norm = float(10.0 ** rng.uniform(-3, 3))
        assert distance(data, data[1:], clip_norm) <= (1 + 1e-9) / z
        assert distance(data, replaced, clip_norm) <= (2 + 1e-9) / z
    zeroed = np.vstack([np.zeros((1, 3)), data[1:]])  # counted as an update below every clip norm
    assert distance(data, zeroed, 1e-9) > (1 + 1e-9) / z
    assert distance(data, zeroed, 1e-9) <= (2 + 1e-9) / z
    at_norm, beyond = np.array([[2.0, 0.0, 0.0]]), np.array([[-2.0001, 0.0, 0.0]])
    assert distance(at_norm, at_norm[:0], 2.0) == pytest.approx(1 / z, rel=1e-12)
    assert distance(at_norm, beyond, 2.0) == pytest.approx(2 / z, rel=1e-12)


REFUSED = r"""
noise(1.0, 0.0) -> count_noise must be positive and finite, not 0.0
noise(1.0, math.inf) -> count_noise must be positive and finite, not inf
noise(1.0, True) -> TypeError: count_noise must be a real number, not True
noise(1.0, 0.5) -> count_noise must be above half the noise_multiplier \(1\.0\), not 0\.5
noise(1.7e+308, math.nextafter(8.5e+307, math.inf)) -> count_noise .* beyond the doubles
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """What is outside its domain is named with its value, and wrong types are told from wrong values."""
    refused_calls.check(call, reason, {"noise": hs.training.adaptive_clipping_noise, "math": math})

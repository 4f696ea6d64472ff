"""Groups of records: the mechanisms of a group against closed forms and enumeration, and group privacy for the others."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

import hockeystick as hs
from enumeration import either, exponential, permute_and_flip, renyi

EPS = (0.01, 0.3, 1.0, 3.0)
SIZES = (2, 3, 10)


def group(step, size, *, count=1, adjacency="add_or_remove"):
    """Return the accountant of a group."""
    return hs.group_accountant(hs.Accountant(adjacency).compose(step, count), size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("adjacency", "factor"), [("add_or_remove", 1), ("replace", 2)])
def test_noise_is_moved_further(size, adjacency, factor):
    """Gaussian and Laplace noise have their closed forms at k times the distance; discrete noise its sum over all integers."""
    integers = np.arange(-3000, 3001)
    for noise in (0.7, 3.0, 10.0):
        shift = factor * size / noise
        step = hs.Gaussian(noise)
        for eps in EPS:
            exact = hs.gdp_delta(math.sqrt(3) * shift, eps)
            assert (
                exact * (1 - 1e-12) <= group(step, size, count=3, adjacency=adjacency).delta(eps) <= exact * (1 + 1e-9)
            )
            exact = hs.laplace_theta(eps, shift)
            assert exact * (1 - 1e-12) <= group(hs.Laplace(noise), size, adjacency=adjacency).delta(eps)
            assert group(hs.Laplace(noise), size, adjacency=adjacency).delta(eps) <= exact * (1 + 1e-9) + 1e-12
        for discrete, exponents in (
            (hs.DiscreteGaussian(noise, 2), -(integers**2) / (2 * noise**2)),
            (hs.DiscreteLaplace(1 / noise, 2), -np.abs(integers) / noise),
        ):
            law = exponential(exponents)
            for eps in EPS:
                exact = either(np.roll(law, 2 * factor * size), law, eps)
                found = group(discrete, size, adjacency=adjacency).delta(eps)
                assert exact * (1 - 1e-9) - 1e-15 <= found <= exact * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_choices_by_scores(seed):
    """An exponential mechanism and permute-and-flip whose scores moved k times leak at most what the group's mechanism says."""
    rng = np.random.default_rng(seed)
    epsilon, size = float(rng.uniform(0.05, 1.0)), int(rng.choice(SIZES))
    scores = rng.normal(0, 3, 4)
    moved = scores + rng.choice([-size, 0, size], 4) * rng.uniform(0, 1, 4)  # by at most 1 for each record
    laws = [exponential(epsilon * s / 2) for s in (scores, moved)]
    flips = [permute_and_flip(epsilon * s / 2) for s in (scores, moved)]
    for step, (p, q) in ((hs.ExponentialMechanism(epsilon), laws), (hs.PermuteAndFlip(epsilon), flips)):
        for eps in EPS:
            assert either(p, q, eps) <= group(step, size).delta(eps) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("seed", range(40))
def test_chains_of_concentrated_laws(seed):
    """Ends of random chains of laws, neighbours of which are (xi, rho)-concentrated, have at most the divergences of a group."""
    rng = np.random.default_rng(seed)
    size, outcomes = int(rng.choice([2, 3, 5])), int(rng.integers(2, 5))
    steps = rng.normal(0, rng.choice([0.05, 0.3, 1.0]), (size, outcomes)) + rng.normal(0, 0.5, outcomes) * rng.choice(
        [0, 1]
    )
    logs = np.cumsum(np.vstack([rng.normal(0, 1, outcomes), steps]), axis=0)
    laws = np.exp(logs - logsumexp(logs, axis=1)[:, np.newaxis])
    orders = np.concatenate([1 + np.geomspace(1e-4, 1, 60), np.geomspace(2, 1e4, 400)])
    pairs = [(p, q) for a, b in itertools.pairwise(laws) for p, q in ((a, b), (b, a))]
    largest = np.max([renyi(p, q, orders) for p, q in pairs], axis=0)
    xi = float(rng.choice([0.0, 0.4])) * largest.max()
    rho = max(float(((largest - xi) / orders).max()), 0.0) * (1 + 1e-4)
    bound = group(hs.ZeroConcentratedDP(rho, xi), size)
    for order in (1.01, 1.5, 2.0, 5.0, 40.0):
        for p, q in ((laws[0], laws[-1]), (laws[-1], laws[0])):
            assert renyi(p, q, np.array([order]))[0] <= bound.rdp(order)


def test_samples_are_mixtures():
    """Gaussian noise on samples has the mixture of the group; what is composed or selected of it is made of such."""
    step, mixture = hs.PoissonSampled(hs.Gaussian(2.0), 0.1), hs.MixtureOfGaussians.of_group(2.0, 3, 0.1)
    assert dict(group(step, 3, count=7).ledger) == {mixture: 7}
    assert dict(group(hs.Composed([(step, 2), (hs.Laplace(3.0), 1)]), 3).ledger) == {
        hs.Composed([(mixture, 2), (hs.Laplace(1.0), 1)]): 1
    }
    assert dict(group(hs.PrivateSelection(step, 5, 3.0), 3).ledger) == {hs.PrivateSelection(mixture, 5, 3.0): 1}
    assert dict(group(hs.PoissonSampled(hs.Gaussian(3.0), 1.0), 3).ledger) == {hs.Gaussian(1.0): 1}
    assert group(hs.PoissonSampled(hs.Laplace(3.0), 0.0), 3).delta(0.0) == 0.0
    assert dict(group(step, 1).ledger) == {step: 1}


MIXED = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(3.0), 0.02), 100).compose(hs.Laplace(40.0), 5)


def test_the_smaller_is_taken():
    """Epsilon is that of the group's mechanisms where they are known, which group privacy exceeds, and group privacy's elsewhere."""
    for size in SIZES:
        exact = hs.group_accountant(MIXED, size).epsilon(1e-6)
        assert hs.group_epsilon(MIXED, size, 1e-6) == exact
        other = hs.Accountant().compose(hs.PoissonSampled(hs.Laplace(5.0), 0.02), 20)
        chained = hs.group_epsilon(other, size, 1e-6)
        one = chained / size
        grown = other.delta(one) * math.expm1(size * one) / math.expm1(one)
        assert grown <= 1e-6 * (1 + 1e-6)
        assert chained > other.epsilon(1e-6)
    assert hs.group_epsilon(MIXED, 1, 1e-6) == MIXED.epsilon(1e-6)
    assert hs.group_epsilon(hs.Accountant().compose(hs.Laplace(2.0)), 4, 0.0) == pytest.approx(2.0)
    assert hs.group_epsilon(hs.Accountant().compose(hs.Gaussian(2.0)), 4, 0.0) == math.inf
    response = hs.Accountant("replace").compose(hs.RandomizedResponse(0.5, 2))
    assert hs.group_epsilon(response, 4, 0.0) == pytest.approx(4 * math.log(3), rel=1e-9)

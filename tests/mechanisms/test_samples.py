"""Samples of the records by enumeration: no small data set leaks more than the upper end, and one attains the lower end, or it is 0."""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binom, dlaplace, laplace

import hockeystick as hs
from enumeration import bracket, either, encloses, ends, fixed, hockey_stick, nested, noisy_sum, poisson, truncated
from hockeystick.mechanisms.base import ADJACENCIES


def noise_of(kind, scale):
    """Return noise of a scale, its distribution function, and edges of cells that a sum of few records stays in."""
    edges = np.linspace(-4 - 20 * scale, 4 + 20 * scale, 1_501)
    return {
        "gaussian": (hs.Gaussian(scale), lambda x: ndtr(x / scale), edges),
        "laplace": (hs.Laplace(scale), lambda x: laplace.cdf(x / scale), edges),
        "integers": (hs.DiscreteLaplace(1 / scale), lambda x: dlaplace.cdf(x, 1 / scale), np.arange(-60.5, 61.0)),
    }[kind]


class Setting(NamedTuple):
    """Noise, how many records there are, the rate of a Poisson sample, and the size of a batch, or the most that is kept."""

    noise: hs.Mechanism
    number: int
    rate: float
    size: int


def truncating(s, *, zeroed_out=False):
    """Return noise on truncated samples."""
    return hs.TruncatedPoissonSampled(s.noise, s.number, s.rate, s.size, zeroed_out)


def truncated_of(values, s):
    """Return truncated samples of the values."""
    return truncated(values, s.rate, s.size)


def in_a_sample(values, s, rate):
    """Return truncated samples of Poisson samples."""
    return nested(poisson(values, rate), lambda sample: truncated_of(sample, s))


SAMPLERS = {  # the mechanism of a setting, and the samples of some values
    "Poisson": (lambda s: hs.PoissonSampled(s.noise, s.rate), lambda values, s: poisson(values, s.rate)),
    "fixed size": (
        lambda s: hs.FixedSizeSampled(s.noise, s.number, s.size, replacement=False),
        lambda values, s: fixed(values, s.size),
    ),
    "with replacement": (
        lambda s: hs.FixedSizeSampled(s.noise, s.number, s.size, replacement=True),
        lambda values, s: fixed(values, s.size, replacement=True),
    ),
    "truncated": (truncating, truncated_of),
    "zeroed out": (lambda s: truncating(s, zeroed_out=True), truncated_of),
    "half of zeroed out": (
        lambda s: hs.PoissonSampled(truncating(s, zeroed_out=True), 0.5),
        lambda values, s: in_a_sample(values, s, 0.5),
    ),
    "truncated in a sample": (
        lambda s: hs.PoissonSampled(truncating(s), 0.8),
        lambda values, s: in_a_sample(values, s, 0.8),
    ),
    "sample of a batch": (
        lambda s: hs.FixedSizeSampled(hs.PoissonSampled(s.noise, s.rate), s.number, s.size, replacement=False),
        lambda values, s: nested(fixed(values, s.size), lambda batch: poisson(batch, s.rate)),
    ),
}
VALUES = (-1.0, -0.5, 0.0, 0.5, 1.0)  # what a record contributes to a sum
RANDOM = [
    *(("Poisson", noise) for noise in ("gaussian", "laplace", "integers")),
    *itertools.product(("fixed size", "with replacement"), ("gaussian", "laplace")),
    *((sampler, "gaussian") for sampler in ("truncated", "zeroed out", "half of zeroed out", "sample of a batch")),
]


@pytest.mark.parametrize(("sampler", "noise"), RANDOM)
@given(
    scale=st.floats(0.4, 3.0),
    rate=st.floats(0.05, 0.95),
    size=st.integers(1, 3),
    others=st.lists(st.sampled_from(VALUES), min_size=3, max_size=4),
    records=st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES)),
    unused=st.integers(0, 20),
    eps=st.floats(0.0, 4.0),
)
def test_no_data_set_leaks_more(sampler, noise, scale, rate, size, others, records, unused, eps):  # noqa: PLR0917
    """Whatever a few records contribute, all directions of both adjacencies stay below, however many the data set may have."""
    base, cdf, edges = noise_of(noise, scale)
    make, samples = SAMPLERS[sampler]
    if noise == "integers":
        others, records = np.sign(others).tolist(), np.sign(records).tolist()
    number = len(others) + 1 + unused * (sampler == "truncated" or "zeroed" in sampler)
    setting = Setting(base, number, rate, size)
    step = make(setting)
    absent = [*others, 0.0] if "zeroed" in sampler else others
    mine, instead, without = (
        noisy_sum(samples(values, setting), edges, cdf)
        for values in ([*others, records[0]], [*others, records[1]], absent)
    )
    assert hockey_stick(mine, without, eps) <= ends(step, eps)[1] + 1e-12
    assert hockey_stick(without, mine, eps) <= ends(step, eps, forward=False)[1] + 1e-12
    assert hockey_stick(mine, instead, eps) <= ends(step, eps, "replace")[1] + 1e-12


EDGES = np.linspace(-12.0, 12.0, 3001)
COARSE = 1e-4  # merging outcomes into the cells between edges lowers a divergence


def attained(samples, num_others, adjacency, eps):
    """Return the largest divergence over all data sets of the values, under Gaussian noise."""
    largest, law = 0.0, functools.cache(lambda values: noisy_sum(samples(values), EDGES, ndtr))
    for others in itertools.combinations_with_replacement(VALUES, num_others):
        laws = [law(tuple(sorted((*others, value)))) for value in VALUES]
        pairs = itertools.combinations(laws, 2) if adjacency == "replace" else ((one, law(others)) for one in laws)
        largest = max(largest, *(either(*pair, eps) for pair in pairs))
    return largest


SMALL = [  # sampler, number of records, rate, size, and whether some data set attains the lower end
    *(("truncated", *case, False) for case in ((4, 0.9, 1), (4, 0.5, 2), (3, 0.7, 3), (3, 0.3, 1))),
    ("truncated in a sample", 4, 0.9, 1, False),
    ("sample of a batch", 3, 0.5, 2, False),
    ("fixed size", 3, 1.0, 2, True),
    ("fixed size", 4, 1.0, 3, True),
    ("with replacement", 4, 1.0, 3, True),
]


@pytest.mark.share(6, by_day=2)
@pytest.mark.parametrize(("sampler", "number", "rate", "size", "is_attained"), SMALL)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_data_set_attains_the_lower_end(sampler, number, rate, size, is_attained, adjacency):  # noqa: PLR0917
    """No lower end is above what enumeration of data sets attains, no upper one below, and none is called exact where it is not."""
    make, samples = SAMPLERS[sampler]
    setting = Setting(hs.Gaussian(1.0), number, rate, size)
    step = make(setting)
    for eps in (0.0, 0.5, 1.0, 2.0):
        found = bracket(step, eps, adjacency=adjacency)
        truth = attained(lambda values: samples(values, setting), number - 1, adjacency, eps)
        encloses(found, truth, slack=COARSE)
        if is_attained and (adjacency, sampler) != (
            "replace",
            "with replacement",
        ):  # whose step need not attain its curve
            assert found.lower == pytest.approx(truth, rel=COARSE)
        if sampler == "truncated":
            assert found.lower > 0.0
            assert (found.method == "exact formula of one step") == (size >= number)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("size", "rate", "most"), [(1000, 0.01, 20), (50, 0.5, 20), (10**12, 0.5, 10**9), (4, 0.9, 1)])
def test_rate_among_silent_records(size, rate, most, adjacency):
    """Where the others contribute nothing, a truncated sample is a Poisson sample of a rate that is summed here."""
    k = np.arange(min(size, 1000) + 1)  # beyond, a full batch, but for a probability below e^-1000
    kept = most / size if size > 1000 else float(np.minimum(k, most) @ binom.pmf(k, size, rate)) / size
    found = bracket(truncating(Setting(hs.Gaussian(1.0), size, rate, most)), 0.5, adjacency=adjacency).lower
    exact = bracket(hs.PoissonSampled(hs.Gaussian(1.0), kept), 0.5, adjacency=adjacency)
    assert exact.lower * (1 - 1e-9) <= found <= exact.upper * (1 + 1e-12)


CHANGED = {"add_or_remove": [], "replace": [-1.0], "zeroed out": [0.0]}  # in the place of a record that contributes 1
TWO_STEPS = [
    *itertools.product(("add_or_remove", "replace"), (0.7, 2.0), [(3, 0.3, 2), (4, 0.1, 1), (5, 0.4, 4), (5, 0.9, 2)]),
    *itertools.product(["zeroed out"], (0.4, 1.0), [(3, 0.3, 2), (4, 0.1, 1), (5, 0.4, 4), (4, 0.9, 2)]),
]


@pytest.mark.share(8, by_day=2)
@pytest.mark.parametrize(("change", "noise", "sample"), TWO_STEPS)
def test_no_two_truncated_steps_leak_more(change, noise, sample):
    """Two steps on one data set, or on two of opposite contributions, stay below the bracket, in either direction."""
    others, rate, most = sample
    step = truncating(Setting(hs.Gaussian(noise), others + 1, rate, most), zeroed_out=change == "zeroed out")
    edges, steps = np.linspace(-7 - 8 * noise, 7 + 8 * noise, 300), []
    for value in (-1.0, 0.0, 1.0):
        p, q = (
            noisy_sum(truncated([value] * others + mine, rate, most), edges, lambda x: ndtr(x / noise))
            for mine in ([1.0], CHANGED[change])
        )
        steps += [(p, q), (q, p)]
    adjacency = "replace" if change == "replace" else "add_or_remove"
    upper = {eps: bracket(step, eps, 2, adjacency).upper for eps in (0.0, 0.3, 1.0, 2.0)}
    for (p1, q1), (p2, q2) in itertools.combinations_with_replacement(steps, 2):
        p, q = np.outer(p1, p2), np.outer(q1, q2)
        assert all(either(p, q, eps) <= most * (1 + 1e-9) + 1e-12 for eps, most in upper.items())


@given(
    scale=st.floats(0.5, 3.0),
    others=st.lists(st.sampled_from(VALUES), min_size=3, max_size=3),
    mine=st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES)),
    eps=st.floats(0.0, 3.0),
)
def test_groups_in_batches(scale, others, mine, eps):
    """Two records of one user come and go: never above the bound, which opposite records attain."""
    step = hs.MixtureOfGaussians.of_group_in_batch(scale, 2, 5, 3)
    edges = np.linspace(-10 - 9 * scale, 10 + 9 * scale, 4_001)

    def laws(values, own):
        return [noisy_sum(fixed(v, 3), edges, lambda x: ndtr(x / scale)) for v in ([*values, *own], values)]

    for forward in (True, False):
        upper, order = ends(step, eps, forward=forward)[1], slice(None, None, 1 if forward else -1)
        assert hockey_stick(*laws(others, mine)[order], eps) <= upper + 1e-12
        assert hockey_stick(*laws([-1.0] * 3, [1.0, 1.0])[order], eps) >= upper - 1e-4


def test_several_releases_of_a_sample():
    """Two noisy integers of one sample, a record replaced: the pair of one number need not be attained."""
    rate, parameter, k = 0.6, 0.8, np.arange(-80, 81)
    step = hs.PoissonSampled(hs.Composed([(hs.DiscreteLaplace(parameter), 2)]), rate)
    moved = {a: dlaplace.pmf(k - a, parameter) for a in (-1, 0, 1)}
    without = np.outer(moved[0], moved[0])
    laws = [(1 - rate) * without + rate * np.outer(moved[a], moved[b]) for a, b in itertools.product(moved, repeat=2)]
    for eps in (0.0, 0.5, 1.0, 2.0):
        truth = max(either(*pair, eps) for pair in itertools.combinations(laws, 2))
        encloses(bracket(step, eps, adjacency="replace"), truth, slack=1e-9)


def test_allocation_of_a_sample():
    """One of two steps for every sampled record, a record replaced."""
    rate, cells = 0.5, np.linspace(-9.0, 10.0, 500)

    def law(value):
        moved, still = (np.diff(ndtr(cells - mean)) for mean in (value, 0.0))
        both = np.outer(moved, still)
        return (1 - rate) * np.outer(still, still) + rate * 0.5 * (both + both.T)

    step = hs.PoissonSampled(hs.RandomAllocation(hs.Gaussian(1.0), 2), rate)
    laws = [law(value) for value in VALUES]
    for eps in (0.0, 0.5, 1.0):
        truth = max(either(*pair, eps) for pair in itertools.combinations(laws, 2))
        assert bracket(step, eps, adjacency="replace").lower <= truth * (1 + 1e-3)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("kind", [hs.PermuteAndFlip, hs.ExponentialMechanism])
def test_choices(kind, epsilon):
    """Two candidates that change places attain the lower end, composed too."""
    likelier = 1 - 0.5 * math.exp(-epsilon / 2) if kind is hs.PermuteAndFlip else 1 / (1 + math.exp(-epsilon / 2))
    p, q = np.array([likelier, 1 - likelier]), np.array([1 - likelier, likelier])
    for eps in (0.0, 0.3 * epsilon, 0.8 * epsilon):
        assert bracket(kind(epsilon), eps).lower == pytest.approx(hockey_stick(p, q, eps), rel=1e-9, abs=1e-12)
        twice = hockey_stick(np.outer(p, p), np.outer(q, q), eps)
        assert bracket(kind(epsilon), eps, 2).lower <= twice * (1 + 1e-9)


def test_mixture_that_nearly_always_moves():
    """A sensitivity of 0 that is rarely chosen is neither lost for a lower end nor kept for an upper one."""
    step = hs.MixtureOfGaussians(1.0, [0.0, 1.0], [1e-17, 1.0])
    (below, _), (above, _) = (step._pairs("add_or_remove", upper=upper)[0] for upper in (False, True))
    assert below.parameters == [1.0 - 2.0**-53]
    assert above.is_gaussian

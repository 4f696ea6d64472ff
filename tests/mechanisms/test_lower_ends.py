"""A lower end is attained by some data set, or 0: small algorithms by enumeration of data sets and of what is drawn."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import hockeystick as hs

VALUES = (-1.0, -0.5, 0.0, 0.5, 1.0)  # what a record contributes to a sum
EPSILONS = (0.0, 0.5, 1.0, 2.0)
EDGES = np.linspace(-12.0, 12.0, 3001)
COARSE = 1 + 1e-4  # merging outcomes into the cells between edges lowers a divergence


def divergence(p, q, eps):
    """Return the larger hockey-stick divergence of both orders."""
    return max(float(np.maximum(a - math.exp(eps) * b, 0.0).sum()) for a, b in ((p, q), (q, p)))


def noisy(sums, noise=1.0):
    """Return the law of a noisy sum on the cells, from the probabilities of the sum."""
    return sum(share * np.diff(ndtr((EDGES - value) / noise)) for value, share in sums.items())


def subsets(values, rate):
    """Yield Poisson samples with their probabilities."""
    for chosen in itertools.product((False, True), repeat=len(values)):
        taken = tuple(value for value, is_in in zip(values, chosen, strict=True) if is_in)
        yield taken, rate ** len(taken) * (1.0 - rate) ** (len(values) - len(taken))


def truncated(values, rate, most):
    """Return the law of the sum of a truncated Poisson sample."""
    sums: dict[float, float] = {}
    for sample, share in subsets(values, rate):
        kept = list(itertools.combinations(sample, min(len(sample), most)))
        for batch in kept:
            sums[sum(batch)] = sums.get(sum(batch), 0.0) + share / len(kept)
    return sums


def of_batch(values, size, rate):
    """Return the law of the sum of a Poisson sample of a batch of fixed size."""
    sums: dict[float, float] = {}
    batches = list(itertools.combinations(values, size))
    for batch in batches:
        for sample, share in subsets(batch, rate):
            sums[sum(sample)] = sums.get(sum(sample), 0.0) + share / len(batches)
    return sums


def attained(algorithm, num_others, adjacency, eps):
    """Return the largest divergence over all data sets of the values."""
    largest = 0.0
    for others in itertools.combinations_with_replacement(VALUES, num_others):
        laws = [noisy(algorithm((*others, value))) for value in VALUES]
        if adjacency == "add_or_remove":
            without = noisy(algorithm(others))
            largest = max(largest, *(divergence(law, without, eps) for law in laws))
        else:
            largest = max(largest, *(divergence(*pair, eps) for pair in itertools.combinations(laws, 2)))
    return largest


def lower_end(mechanism, adjacency, eps, count=1):
    """Return the certified lower end of delta."""
    return hs.Accountant(adjacency).compose(mechanism, count).delta_bracket(eps).lower


@pytest.mark.share(3)
@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
@pytest.mark.parametrize(("size", "rate", "most"), [(4, 0.9, 1), (4, 0.5, 2), (3, 0.7, 3), (3, 0.3, 1)])
def test_truncated_poisson(size, rate, most, adjacency):
    """No lower end is above what enumeration of data sets attains, and none says that it is exact where it is not."""
    step = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), size, rate, most)
    for eps in EPSILONS:
        found = hs.Accountant(adjacency).compose(step).delta_bracket(eps)
        truth = attained(lambda values: truncated(values, rate, most), size - 1, adjacency, eps)
        assert found.lower <= truth * COARSE
        assert truth <= found.upper * COARSE
        assert found.lower > 0.0
        assert (found.method == "exact formula of one step") == (most >= size)


def test_truncated_poisson_of_the_review():
    """A batch of one of four records, nearly all sampled: at most 0.07997 is attained."""
    step = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 4, 0.9, 1)
    assert lower_end(step, "add_or_remove", 1.0) <= 0.0799724


@pytest.mark.parametrize(("size", "rate", "most"), [(1000, 0.01, 20), (50, 0.5, 20), (10**12, 0.5, 10**9), (7, 1.0, 3)])
def test_rate_among_silent_records(size, rate, most):
    """Where the others contribute nothing, a truncated sample is a Poisson sample of a rate that is summed here."""
    if size <= 1000:
        k = np.arange(size + 1)
        exact = float(np.minimum(k, most) @ binom.pmf(k, size, rate)) / size
    else:
        exact = most / size  # a full batch, but for a probability below e^-1000
    step = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), size, rate, most)
    bracket = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), exact)).delta_bracket(0.5)
    assert bracket.lower * (1 - 1e-9) <= lower_end(step, "add_or_remove", 0.5) <= bracket.upper * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_samples_of_samples(adjacency):
    """A Poisson sample of a truncated one, and a Poisson sample of a batch of fixed size."""

    def twice(values):
        sums: dict[float, float] = {}
        for sample, share in subsets(values, 0.8):
            for value, inner in truncated(sample, 0.9, 1).items():
                sums[value] = sums.get(value, 0.0) + share * inner
        return sums

    nested = hs.PoissonSampled(hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 4, 0.9, 1), 0.8)
    batch = hs.FixedSizeSampled(hs.PoissonSampled(hs.Gaussian(1.0), 0.5), 3, 2, replacement=False)
    for eps in EPSILONS:
        assert lower_end(nested, adjacency, eps) <= attained(twice, 3, adjacency, eps) * COARSE
        truth = attained(lambda values: of_batch(values, 2, 0.5), 2, adjacency, eps)
        assert lower_end(batch, adjacency, eps) <= truth * COARSE


@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_batches_of_fixed_size(adjacency):
    """A batch of two of three records attains the lower end, where the others are all alike."""
    step = hs.FixedSizeSampled(hs.Gaussian(1.0), 3, 2, replacement=False)
    for eps in EPSILONS:
        truth = attained(lambda values: of_batch(values, 2, 1.0), 2, adjacency, eps)
        assert lower_end(step, adjacency, eps) == pytest.approx(truth, rel=1e-4)


def geometric(parameter, moves, reach=80):
    """Return the law of two-sided geometric noise on the integers, moved."""
    k = np.arange(-reach, reach + 1)
    law = math.tanh(parameter / 2) * np.exp(-parameter * np.abs(k - moves))
    return law / law.sum()


def test_several_releases_of_a_sample():
    """Two noisy integers of one sample, a record replaced: the pair of one number need not be attained."""
    rate, parameter = 0.6, 0.8
    step = hs.PoissonSampled(hs.Composed([(hs.DiscreteLaplace(parameter), 2)]), rate)
    without = np.outer(geometric(parameter, 0), geometric(parameter, 0))
    laws = [
        (1 - rate) * without + rate * np.outer(geometric(parameter, a), geometric(parameter, b))
        for a, b in itertools.product((-1, 0, 1), repeat=2)
    ]
    for eps in EPSILONS:
        truth = max(divergence(*pair, eps) for pair in itertools.combinations(laws, 2))
        found = hs.Accountant("replace").compose(step).delta_bracket(eps)
        assert found.lower <= truth * (1 + 1e-9)
        assert truth <= found.upper * (1 + 1e-9)


def test_allocation_of_a_sample():
    """One of two steps for every sampled record, a record replaced."""
    rate, shift = 0.5, 1.0
    cells = np.linspace(-9.0, 10.0, 500)

    def normal(mean):
        return np.diff(ndtr(cells - mean))

    def law(value):
        moved = np.outer(normal(value * shift), normal(0.0))
        return (1 - rate) * np.outer(normal(0.0), normal(0.0)) + rate * 0.5 * (moved + moved.T)

    step = hs.PoissonSampled(hs.RandomAllocation(hs.Gaussian(1.0 / shift), 2), rate)
    laws = [law(value) for value in VALUES]
    for eps in (0.0, 0.5, 1.0):
        truth = max(divergence(*pair, eps) for pair in itertools.combinations(laws, 2))
        assert lower_end(step, "replace", eps) <= truth * (1 + 1e-3)


def permute_and_flip(epsilon, scores):
    """Return the law over two candidates."""
    accept = [math.exp(0.5 * epsilon * (score - max(scores))) for score in scores]
    first = 0.5 * accept[0] + 0.5 * (1.0 - accept[1]) * accept[0]
    return np.array([first, 1.0 - first])


def exponential(epsilon, scores):
    """Return the law over two candidates."""
    weights = np.exp(0.5 * epsilon * np.array(scores))
    return weights / weights.sum()


@pytest.mark.parametrize(
    ("kind", "law"),
    [(hs.PermuteAndFlip, permute_and_flip), (hs.ExponentialMechanism, exponential)],
    ids=["permute-and-flip", "exponential"],
)
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 4.0])
def test_choices(kind, law, epsilon):
    """Two candidates that change places attain the lower end, composed too."""
    p, q = law(epsilon, [0.5, -0.5]), law(epsilon, [-0.5, 0.5])
    for eps in (0.0, 0.3 * epsilon, 0.8 * epsilon):
        truth, twice = divergence(p, q, eps), divergence(np.outer(p, p), np.outer(q, q), eps)
        assert lower_end(kind(epsilon), "add_or_remove", eps) == pytest.approx(truth, rel=1e-9, abs=1e-12)
        assert lower_end(kind(epsilon), "add_or_remove", eps, 2) <= twice * (1 + 1e-9)


def test_mixture_that_nearly_always_moves():
    """A sensitivity of 0 that is rarely chosen is neither lost for a lower end nor kept for an upper one."""
    step = hs.MixtureOfGaussians(1.0, [0.0, 1.0], [1e-17, 1.0])
    (below, _), (above, _) = (step._pairs("add_or_remove", upper=upper)[0] for upper in (False, True))
    assert below.parameters == [1.0 - 2.0**-53]
    assert above.is_gaussian


@pytest.mark.parametrize("mechanism", [hs.ZeroConcentratedDP(0.1), hs.RenyiDP([2.0], [0.1]), hs.Shuffled(1.0, 100)])
def test_bounds_alone(mechanism):
    """Where only bounds are known, and nothing that attains them, the lower end is 0."""
    assert lower_end(mechanism, "replace", 0.1) == 0.0

"""For every mechanism the laws of two adjacent data sets, written down from its definition: what is certainly leaked.

A mechanism that dominates an algorithm is not attained by it unless someone shows data. A new mechanism needs a witness here, or no lower end.
"""

import itertools
import math
from functools import reduce, singledispatch
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom, laplace, logistic, norm, skellam

import hockeystick as hs
from enumeration import hockey_stick
from hockeystick import selection

EDGES = np.linspace(-12.0, 12.0, 3001)
INTEGERS = np.arange(-400, 401)


class Laws(NamedTuple):
    """Laws of an output: of data without the record, with one that contributes 1, and with one that contributes -1."""

    zero: np.ndarray
    plus: np.ndarray
    minus: np.ndarray


@singledispatch
def witness(mechanism, adjacency):
    """Return the laws of two adjacent data sets, or None where no lower end is claimed."""
    del mechanism, adjacency


# By how much two candidates' noisy scores differ: the tail, and its unit in units of the parameter.
CHOICES = {
    hs.ExponentialMechanism: (logistic.sf, lambda m: m.epsilon),
    hs.PermuteAndFlip: (laplace.sf, lambda m: m.epsilon),
    selection.LaplaceNoisyMaximum: (lambda x: np.where(x < 0, 1 - wins(-x), wins(x)), lambda m: 2 / m.noise_multiplier),
    selection.GaussianNoisyMaximum: (norm.sf, lambda m: math.sqrt(2) / m.noise_multiplier),
}


def wins(x):
    """Return the probability that a score wins with Laplace noise of scale 1 which is lower by x >= 0."""
    return 0.5 * (1 + 0.5 * np.abs(x)) * np.exp(-np.abs(x))


def witnesses(mechanism, adjacency):
    """Return the laws of several pairs of data sets, or of the one witness; none where no lower end is claimed."""
    if type(mechanism) not in CHOICES:
        laws = witness(mechanism, adjacency)
        return [] if laws is None else [laws]
    tail, moved = CHOICES[type(mechanism)][0], CHOICES[type(mechanism)][1](mechanism)
    gaps = np.linspace(-0.5 * moved, 25.0, 400)
    return [tuple(np.array([tail(x), tail(-x)]) for x in (gap, gap + moved)) for gap in gaps]


def of_noise(law):
    """Return the laws of a sum with noise, whose law at a shift this is."""
    return Laws(law(0.0), law(1.0), law(-1.0))


def sampled(laws, rate):
    """Return the laws of a Poisson sample."""
    return Laws(laws.zero, *((1 - rate) * laws.zero + rate * law for law in (laws.plus, laws.minus)))


def geometric_like(shift, log_weight):
    """Return the law of noise on the integers, moved."""
    weights = np.exp(log_weight(np.abs(INTEGERS - shift)))
    return weights / weights.sum()


def of_sum(laws, adjacency):
    """Return the pair of a record that contributes all it can."""
    return (laws.plus, laws.minus) if adjacency == "replace" else (laws.plus, laws.zero)


NOISES = {
    hs.Gaussian: lambda m: lambda s: np.diff(ndtr(EDGES - s / m.noise_multiplier)),
    hs.Laplace: lambda m: lambda s: np.diff(laplace.cdf(EDGES * m.noise_multiplier, s, m.noise_multiplier)),
    hs.TruncatedLaplace: lambda m: (
        lambda s: (
            np.diff(np.clip(laplace.cdf(np.clip(EDGES * 2.5 - s, -m.reach, m.reach), 0, m.noise_multiplier), 0, 1))
            / (laplace.cdf(m.reach, 0, m.noise_multiplier) - laplace.cdf(-m.reach, 0, m.noise_multiplier))
        )
    ),
    hs.DiscreteGaussian: lambda m: lambda s: geometric_like(s * m.sensitivity, lambda k: -k * k / (2 * m.noise_std**2)),
    hs.DiscreteLaplace: lambda m: lambda s: geometric_like(s * m.sensitivity, lambda k: -k * m.inverse_scale),
}


def merged(law):
    """Return fewer outcomes, for products of laws."""
    return np.add.reduceat(law, np.arange(0, len(law), 20))


def of_vector(mechanism, adjacency, law):
    """Return the pair of one coordinate of a vector of integers that moves as far as its norm allows."""
    moved = math.isqrt(int((2.0 if adjacency == "replace" else 1.0) ** 2 * mechanism.sensitivity**2))
    return np.roll(law, moved), law


@witness.register
def _(mechanism: hs.DiscreteGaussianVector, adjacency):
    """Two coordinates move as far as the norm allows: (9, 3) for one of 9.5."""
    law = geometric_like(0, lambda k: -k * k / (2 * mechanism.noise_std**2))
    first, second = of_vector(mechanism, adjacency, law)
    square = int((2.0 if adjacency == "replace" else 1.0) ** 2 * mechanism.sensitivity**2)
    other = np.roll(law, math.isqrt(square - math.isqrt(square) ** 2))
    return (
        (first, second) if mechanism.dimension == 1 else (np.outer(first, other).ravel(), np.outer(second, law).ravel())
    )


@witness.register
def _(mechanism: hs.Skellam, adjacency):
    """As many coordinates as the norm allows move by 1 each, seen by their sum: small moves leak more than a large one."""
    half = mechanism.noise_variance / 2
    if mechanism.dimension == 1:
        return of_vector(mechanism, adjacency, skellam.pmf(INTEGERS, half, half))
    moved = int(mechanism.sensitivity**2)
    law = skellam.pmf(INTEGERS, moved * half, moved * half)
    return np.roll(law, moved * (2 if adjacency == "replace" else 1)), law


@witness.register
def _(mechanism: hs.DistributedDiscreteGaussian, adjacency):
    one = geometric_like(0, lambda k: -k * k / (2 * mechanism.noise_std**2))[350:451]
    return of_vector(
        mechanism,
        adjacency,
        reduce(lambda a, b: np.convolve(a, b)[50:-50], [one] * mechanism.num_clients, np.eye(801)[400]),
    )


def laws_of(mechanism):
    """Return the laws of noise on a sum, or of a Poisson sample of one."""
    if isinstance(mechanism, hs.PoissonSampled):
        return sampled(laws_of(mechanism.mechanism), mechanism.sampling_rate)
    return of_noise(NOISES[type(mechanism)](mechanism))


for kind in NOISES:
    witness.register(kind, lambda m, adjacency: of_sum(laws_of(m), adjacency))


@witness.register
def _(mechanism: hs.PoissonSampled, adjacency):
    """Replace a record of several releases, or of a pair, by one that contributes nothing."""
    if isinstance(mechanism.mechanism, (hs.Discrete, hs.Composed)):
        p, q = witness(mechanism.mechanism, "add_or_remove")
        return (1 - mechanism.sampling_rate) * q + mechanism.sampling_rate * p, q
    return of_sum(laws_of(mechanism), adjacency)


@witness.register
def _(mechanism: hs.FixedSizeSampled, adjacency):
    """All other records contribute -1, so that a drawn one that contributes 1 moves the sum by 2 a copy."""
    del adjacency
    n, size = mechanism.num_records, mechanism.batch_size
    if not mechanism.replacement:
        p, q = witness(mechanism.mechanism, "replace")
        return size / n * p + (1 - size / n) * q, q
    law, draws = NOISES[type(mechanism.mechanism)](mechanism.mechanism), binom.pmf(np.arange(size + 1), size, 1 / n)
    return sum(share * law(2.0 * copies) for copies, share in enumerate(draws)), law(0.0)


@witness.register
def _(mechanism: hs.TruncatedPoissonSampled, adjacency):
    """All other records contribute nothing: a Poisson sample of the rate at which the record is kept."""
    k, rate = np.arange(mechanism.num_records), mechanism.sampling_rate
    others = binom.pmf(k, mechanism.num_records - 1, rate)
    kept = float(rate * np.minimum(1.0, mechanism.max_batch_size / (k + 1)) @ others)
    return of_sum(sampled(laws_of(mechanism.mechanism), kept), adjacency)


@witness.register
def _(mechanism: hs.MixtureOfGaussians, adjacency):
    del adjacency
    law = NOISES[hs.Gaussian](mechanism)
    return sum(p * law(s) for s, p in zip(mechanism.sensitivities, mechanism.probabilities, strict=True)), law(0.0)


@witness.register
def _(mechanism: hs.RandomAllocation, adjacency):
    """Of a few steps: all places of the record, in so many dimensions."""
    one = [merged(law) for law in laws_of(mechanism.mechanism)]
    places = list(itertools.combinations(range(mechanism.steps), mechanism.num_selected))
    whole = [
        sum(reduce(np.multiply.outer, [law if t in at else one[0] for t in range(mechanism.steps)]) for at in places)
        for law in one
    ]
    return of_sum(Laws(*(law.ravel() / len(places) for law in whole)), adjacency)


@witness.register
def _(mechanism: hs.Composed, adjacency):
    pairs = [witness(step, adjacency) for step, count in mechanism.steps for _ in range(count)]
    coarse = [[merged(law) for law in pair] for pair in pairs]
    return tuple(reduce(np.multiply.outer, laws).ravel() for laws in zip(*coarse, strict=True))


@witness.register
def _(mechanism: hs.RandomizedResponse, adjacency):
    del adjacency
    noise, buckets = mechanism.noise_probability, mechanism.num_buckets
    p = np.full(buckets, noise / buckets) + (1 - noise) * (np.arange(buckets) == 0)
    return p, np.roll(p, 1)


@witness.register
def _(mechanism: hs.Shuffled, adjacency):
    """Count the reports of two records in 3-ary randomised response, all others of which hold the third value."""
    del adjacency
    n, likelier = mechanism.num_users - 1, math.exp(mechanism.epsilon0)
    share, seen = 1 / (likelier + 2), np.arange(mechanism.num_users + 1)
    first = binom.pmf(seen, n, share)[:, None]
    others = first * binom.pmf(seen, np.maximum(n - seen, 0)[:, None], share / (1 - share))
    laws = [
        share * (w * np.roll(others, 1, 0) + v * np.roll(others, 1, 1) + others)
        for w, v in ((likelier, 1), (1, likelier))
    ]
    return laws[0].ravel(), laws[1].ravel()


@witness.register(selection.AboveThreshold)
@witness.register(selection.GaussianAboveThreshold)
def _(mechanism, adjacency):
    """One query that is half a sensitivity above the threshold, or below it."""
    del adjacency
    law = norm if isinstance(mechanism, selection.GaussianAboveThreshold) else laplace
    noises = mechanism.threshold_noise_multiplier, mechanism.query_noise_multiplier
    z, width = np.linspace(-40.0 * noises[0], 40.0 * noises[0], 400_001, retstep=True)
    above = float(np.sum(law.pdf(z, scale=noises[0]) * law.sf(z - 0.5, scale=noises[1])) * width)
    return np.array([above, 1 - above]), np.array([1 - above, above])


@witness.register(selection.OptimalPartitions)
@witness.register(selection.ThresholdedPartitions)
def _(mechanism, adjacency):
    """Show groups that one user alone is in as defined, and none where that user is missing."""
    del adjacency
    optimal = isinstance(mechanism, selection.OptimalPartitions)
    law = norm if not optimal and isinstance(mechanism.mechanism, hs.Gaussian) else laplace
    noise = 1.0 if optimal else mechanism.mechanism.noise_multiplier
    alone = mechanism.delta if optimal else law.sf(mechanism.threshold, loc=1.0, scale=noise)
    shown = 1 - (1 - alone) ** mechanism.partitions
    return np.array([shown, 1 - shown]), np.array([0.0, 1.0])


@witness.register
def _(mechanism: hs.Dominating, adjacency):
    return None if mechanism.attained is None else witness(mechanism.attained, adjacency)


@witness.register
def _(mechanism: hs.Staircase, adjacency):
    """Sensitivity 1: the density falls by e^-epsilon with each whole number, at `inner` of the way (Geng and Viswanath 2014)."""
    del adjacency
    cells = np.arange(-40.0, 40.0, 0.001) + 0.0005

    def law(shift):
        x = np.abs(cells - shift)
        steps = np.floor(x) + (x - np.floor(x) >= mechanism.inner)
        weights = np.exp(-mechanism.epsilon * steps)
        return weights / weights.sum()

    return of_sum(of_noise(law), "add_or_remove")


@witness.register
def _(mechanism: hs.ApproximateDP, adjacency):
    """Randomised response that shows everything with probability delta (Kairouz, Oh and Viswanath 2015)."""
    del adjacency
    kept = (1 - mechanism.delta) / (1 + math.exp(mechanism.epsilon))
    law = np.array([mechanism.delta, kept * math.exp(mechanism.epsilon), kept, 0.0])
    return law, law[::-1]


@witness.register
def _(mechanism: hs.Discrete, adjacency):
    del adjacency
    return np.array(mechanism.p), np.array(mechanism.q)


@witness.register
def _(mechanism: hs.DiscretePairs, adjacency):
    """Give the outcomes of both pairs, so that either order leaks as much as its own."""
    pairs = (mechanism.remove, mechanism.add)
    return max((witness(pair, adjacency) for pair in pairs), key=lambda pair: hockey_stick(*pair, 0.0))


@witness.register(hs.PrivacyProfile)
@witness.register(hs.TradeOff)
def _(mechanism, adjacency):
    """Allow all: these are the caller's own numbers, and the lower end is that of an algorithm which leaks all that they allow."""
    del mechanism, adjacency
    return np.array([1.0, 0.0]), np.array([0.0, 1.0])

"""Samples of the records by enumeration: no small data set leaks more than the upper end, and one attains the lower end, or it is 0; pairs, groups, and formulas by their authors."""

import functools
import itertools
import math
from typing import NamedTuple

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binom, dlaplace, hypergeom, laplace

import effort
import enumeration
import high_precision as exact
import hockeystick as hs
from enumeration import (
    bracket,
    either,
    encloses,
    ends,
    fixed,
    hockey_stick,
    noisy_sum,
    poisson,
    truncated,
    two_candidates,
)
from hockeystick import _core
from hockeystick._numeric.binomial import group_in_batch
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
    return enumeration.nested(poisson(values, rate), lambda sample: truncated_of(sample, s))


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
        lambda values, s: enumeration.nested(fixed(values, s.size), lambda batch: poisson(batch, s.rate)),
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


CELLS = np.linspace(-12.0, 12.0, 3001)
COARSE = 1e-4  # merging outcomes into the cells between edges lowers a divergence


def attained(samples, num_others, adjacency, eps):
    """Return the largest divergence over all data sets of the values, under Gaussian noise."""
    largest, law = 0.0, functools.cache(lambda values: noisy_sum(samples(values), CELLS, ndtr))
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
def test_groups_that_are_drawn(scale, others, mine, eps):
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
    """Two candidates attain the lower end, composed too."""
    pairs, least = two_candidates(epsilon), 0.6
    if kind is hs.PermuteAndFlip:  # by Laplace noise on the difference of their scores
        gaps = np.append(np.linspace(-epsilon, epsilon, 2001), np.linspace(epsilon, 12.0, 2001))
        sides = [laplace.cdf(np.stack([-x, x])) for x in (gaps, gaps + epsilon)]
        pairs, least = list(zip(sides[0].T, sides[1].T, strict=True)), 0.99
    for eps in (0.0, 0.3 * epsilon, 0.8 * epsilon):
        once = max(hockey_stick(p, q, eps) for p, q in pairs)
        twice = max(hockey_stick(np.outer(p, p), np.outer(q, q), eps) for p, q in pairs)
        assert once * least - 1e-12 <= bracket(kind(epsilon), eps).lower <= once * (1 + 1e-4) + 1e-12
        assert bracket(kind(epsilon), eps, 2).lower <= twice * (1 + 1e-4) + 1e-12


def test_mixture_that_nearly_always_moves():
    """A sensitivity of 0 that is rarely chosen is neither lost for a lower end nor kept for an upper one."""
    step = hs.MixtureOfGaussians(1.0, [0.0, 1.0], [1e-17, 1.0])
    (below, _), (above, _) = (step._pairs("add_or_remove", upper=upper)[0] for upper in (False, True))
    assert below.parameters == [1.0 - 2.0**-53]
    assert above.is_gaussian


GAUSSIAN = hs.Gaussian(2.0)


@pytest.mark.parametrize("eps", [0.1, 0.7, 2.0])
@pytest.mark.parametrize(
    ("base", "cdf", "edges", "slack", "wide"),
    [
        (hs.DiscreteLaplace(0.5), lambda x: dlaplace.cdf(x, 0.5), np.arange(-150.5, 151.0), 1e-9, 1e-9),
        (hs.Laplace(2.0), lambda x: laplace.cdf(x / 2.0), np.linspace(-80, 80, 320_001), 1e-6, 1e-2),
    ],
    ids=["integers", "laplace"],
)
def test_replaced_records_attain_the_pair(base, cdf, edges, slack, wide, eps):  # noqa: PLR0917
    """Without other records, opposite contributions leak exactly the pair: on the integers, and Laplace noise within its grid."""
    laws = [noisy_sum(poisson([x], 0.3), edges, cdf) for x in (1, -1)]
    found = bracket(hs.PoissonSampled(base, 0.3), eps, adjacency="replace")
    encloses(found, hockey_stick(*laws, eps), slack, 1e-12, wide)


@pytest.mark.parametrize("engine", ["auto", "pld"])
@pytest.mark.parametrize(
    ("rate", "noise", "steps", "delta", "dominating", "attained"),
    [(0.05, 2.0, 100, 1e-5, 1.1983, 1.0972), (0.2, 4.0, 50, 1e-6, 1.7172, 1.6652)],
)
def test_published_values(rate, noise, steps, delta, dominating, attained, engine):  # noqa: PLR0917
    """Without replacement, one record replaced, or added or removed: epsilon of an independent derivation."""
    batch = hs.FixedSizeSampled(hs.Gaussian(2.0 * noise), 1000, round(1000 * rate), replacement=False)
    for adjacency, epsilon in (("replace", dominating), ("add_or_remove", attained)):
        found = hs.Accountant(adjacency, engine).compose(batch, steps).epsilon_bracket(delta)
        assert epsilon - 6e-5 <= found.upper <= epsilon + 2e-3
        assert adjacency == "replace" or found.lower <= epsilon + 6e-5


def test_batches_of_one():
    """They are the same with replacement and without."""
    once = [hs.FixedSizeSampled(GAUSSIAN, 50, 1, replacement)._pairs("replace") for replacement in (False, True)]
    assert once[0] == once[1]


def of_one_step(n, size, noise, eps, *, told=True):
    """Return two bounds of delta of a record replaced in draws with replacement, at 50 digits, eps >= 0.

    Theorem 10 of Balle, Barthe and Gaboardi 2018, term by term, where the number of copies is told; and
    E_{gamma (1 - q)} of the mixture against the noise, as the other output is at least the noise's with probability 1 - q.
    """
    with mp.workdps(50):
        drawn = 1 - (1 - mp.mpf(1) / n) ** size
        shares = [mp.binomial(size, m) * mp.mpf(n - 1) ** (size - m) / mp.mpf(n) ** size for m in range(size + 1)]
        shifts = [2 * m / mp.mpf(noise) for m in range(size + 1)]
        if told:
            inner = mp.log1p(mp.expm1(eps) / drawn)
            return mp.fsum(p * exact.theta(inner, r) for p, r in zip(shares[1:], shifts[1:], strict=True))
        odds = mp.exp(eps) * (1 - drawn)
        low, high = mp.mpf(-60), 60 + shifts[-1]
        for _ in range(160):
            x = (low + high) / 2
            ratio = mp.fsum(p * mp.exp(r * x - r * r / 2) for p, r in zip(shares, shifts, strict=True))
            low, high = (x, high) if ratio < odds else (low, x)
        return mp.fsum(p * exact.q(x - r) for p, r in zip(shares, shifts, strict=True)) - odds * exact.q(x)


LARGE = [0.0, 1e-3, 0.03, 0.3, 1.0, 5.0, 20.0, 40.0, 60.0, 150.0]


def test_large_losses_of_one_batch():
    """One step encloses the theorem however large the loss: what errs by a multiple of e^eps are the negative losses."""
    noise, deltas = 2.0, []
    account = hs.Accountant("replace").compose(hs.FixedSizeSampled(hs.Gaussian(noise), 1000, 180, replacement=False))
    for eps in LARGE:
        with mp.workdps(50):
            truth = mp.mpf(180) / 1000 * exact.theta(mp.log1p(mp.expm1(eps) * 1000 / 180), 2 / mp.mpf(noise))
        found = account.delta_bracket(eps)
        encloses(found, truth)
        assert found.upper <= truth * (1 + mp.mpf(1e-6)) + mp.mpf(1e-300)
        deltas.append(found.upper)
    assert sorted(deltas, reverse=True) == deltas


@pytest.mark.share(12, by_day=3)
@pytest.mark.parametrize("eps", LARGE)
@pytest.mark.parametrize(("n", "size", "noise"), [(1000, 180, 2.0), (50, 20, 3.0), (10000, 64, 0.8)])
def test_copies_are_told_only_where_that_is_sharp(n, size, noise, eps):
    """With replacement, one record replaced, one step: the smaller of two theorems, but near the chord between them."""
    found = hs.Accountant("replace").compose(hs.FixedSizeSampled(hs.Gaussian(noise), n, size, True)).delta_bracket(eps)
    told, hidden = (of_one_step(n, size, noise, eps, told=told) for told in (True, False))
    removed = of_one_step(n, size, noise, float(mp.log(mp.exp(eps) / (1 - mp.mpf(1) / n) ** size)), told=False)
    near_chord, tiny = mp.mpf(1e-3), mp.mpf(1e-300)
    assert removed * (1 - mp.mpf(1e-9)) <= found.upper <= told * (1 + mp.mpf(1e-6)) + tiny
    assert found.upper >= min(told, hidden) * (1 - mp.mpf(1e-9))  # the chord is at none of these losses
    if eps < 150:  # beyond, copies of a share of 1e-30 are gathered
        assert found.upper <= hidden * (1 + near_chord)
        assert found.lower == pytest.approx(float(removed), rel=1e-6)  # attained, where the other record moves no sum


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("n", "size", "noise", "steps", "delta"),
    [(56, 414, 1.8, 1, 1e-13), (2991, 14, 0.135, 1, 2e-13), (69, 20, 0.121, 1, 1e-12), (2991, 14, 0.135, 3, 1e-11)],
)
def test_losses_beyond_the_largest_double(n, size, noise, steps, delta):
    """With replacement, losses of 700 to 11,000: a replaced record leaks at least as much as one that is removed, where others are all alike."""
    step = hs.FixedSizeSampled(hs.Gaussian(noise), n, size, replacement=True)
    replaced, removed = (hs.Accountant(adjacency).compose(step, steps) for adjacency in ("replace", "add_or_remove"))
    lower = removed.epsilon_bracket(delta).lower
    assert 700 < lower <= replaced.epsilon(delta) <= 1.1 * lower
    assert replaced.delta(lower) >= removed.delta_bracket(lower).lower > 0.9 * delta


def planar_losses(shares, noise, turn):
    """Return losses and masses on a grid, of copies that move a sum by u or v, of the norm 2 and `turn` in (0, 1], u - v = (2, 0)."""
    copies = np.arange(len(shares))
    u, v = ((2 - turn) * copies / noise, -turn * copies / noise)
    beside = np.sqrt(4 - (2 - turn) ** 2) * copies / noise
    x, y = (np.arange(low - 8, high + 8, 0.05) for low, high in ((v[-1], u[-1]), (0.0, beside[-1])))
    bell = lambda at, means: np.exp(-0.5 * (at[None, :] - means[:, None]) ** 2)
    p, q = ((shares[:, None] * bell(x, means)).T @ bell(y, beside) for means in (u, v))
    return np.log(p / q).ravel(), (p / p.sum()).ravel()


@pytest.mark.parametrize("turn", [0.0, 0.05, 0.2, 1.0])
def test_copies_that_show_in_another_direction(turn):
    """With replacement, 20 steps: records whose copies also move the sum sideways, which half tells their number, leak less than the upper end."""
    n, size, noise, steps, eps = 200, 20, 1.0, 20, 4.0
    shares = binom.pmf(np.arange(6), size, 1 / n)
    losses, masses = planar_losses(shares / shares.sum(), noise, turn)
    step, width = 2.0**-8, 2**18
    places = np.floor(losses / step)  # down; negative sums wrap to the upper half, and are dropped
    kept = np.abs(losses) < 25  # so that no sum reaches it
    once = np.bincount(places[kept].astype(int) % width, weights=masses[kept], minlength=width)
    total = np.fft.irfft(np.fft.rfft(once) ** steps, width)[: width // 2]
    sums = step * np.arange(width // 2)
    delta = -float(total @ np.expm1(np.minimum(eps - sums, 0.0)))
    found = (
        hs.Accountant("replace")
        .compose(hs.FixedSizeSampled(hs.Gaussian(noise), n, size, True), steps)
        .delta_bracket(eps)
    )
    assert 0.07 < delta <= found.upper
    assert turn > 0 or delta == pytest.approx(found.lower, rel=0.03)


@pytest.mark.parametrize(
    ("draws", "dataset"), [(1, 10), (2, 10), (5, 4), (50, 1000), (10**6, 10**6), (3000, 100), (10**9, 10**10)]
)
def test_copies(draws, dataset):
    """Shares of copies are binomial, raised for upper ends and lowered for lower ones, beyond any doubt of rounding."""
    noise = [(_core.gaussian(1.0), 1.0)]
    up, down = (_core.fixed_size_steps(noise, dataset, draws, True, False, upper) for upper in (True, False))
    numbers_and_shares = [np.split(np.array(pair.base.parameters), 2) for pair in (down, up)]
    law = binom(draws, 1 / dataset)
    assert down.parameters[0] <= 1 - law.pmf(0) * (1 - 1e-12)
    assert up.parameters[0] >= (1 - law.pmf(0)) * (1 - 1e-12)
    for least in (2, 3, 5, 40):
        truth = law.sf(least - 1) / (1 - law.pmf(0))
        tails = [math.fsum(shares[numbers >= least]) for numbers, shares in numbers_and_shares]
        assert tails[0] <= truth * (1 + 1e-7) + 1e-290
        assert truth * (1 - 1e-7) <= tails[1] + 1e-290
        assert tails[1] - tails[0] <= 1e-6 * truth + 1e-25
    numbers, shares = numbers_and_shares[1]
    assert math.fsum(shares) == pytest.approx(1.0, abs=1e-12)
    assert max(numbers) <= draws


@pytest.mark.parametrize(
    ("group", "dataset", "batch"), [(1, 10, 3), (4, 100, 20), (10, 1000, 990), (30, 40, 5), (1000, 10**6, 10**4)]
)
def test_how_many_of_a_group_are_drawn(group, dataset, batch):
    """How many of a group are drawn is hypergeometric."""
    found = group_in_batch(group, dataset, batch)
    assert found == pytest.approx(hypergeom.pmf(np.arange(group + 1), dataset, group, batch), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("eps", [0.0, 0.2, 1.0])
def test_fixed_size_of_budgets(eps):
    """A batch of an (epsilon, delta) mechanism: log(1 + q (e^epsilon - 1)) and q delta, one record replaced."""
    step = hs.FixedSizeSampled(hs.ApproximateDP(1.0, 1e-4), 100, 5, replacement=False)
    epsilon, delta = hs.isrl.subsampling_amplification(1.0, 1e-4, 0.05)
    accountant = hs.Accountant("replace").compose(step)
    assert accountant.delta(float(epsilon) * (1 + 1e-12)) == pytest.approx(float(delta), rel=1e-6)
    inner = math.log1p(math.expm1(eps) / 0.05)
    whole = hs.Accountant("replace").compose(hs.ApproximateDP(1.0, 1e-4))
    assert accountant.delta(eps) == pytest.approx(0.05 * whole.delta(inner), rel=1e-9)


def test_lower_end_of_batches_is_attained():
    """Two steps on data whose other records are all alike: the lower end is their delta, and no more than the best attack."""
    step = hs.FixedSizeSampled(hs.Gaussian(2.0), 10, 3, replacement=False)
    found = hs.Accountant("replace").compose(step, 2).delta_bracket(0.0)
    alike = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.3), 2)  # N(2/2) with probability 0.3
    assert found.lower == pytest.approx(alike.explain(epsilon=0.0).directions["remove"].lower, rel=1e-3)
    assert found.lower <= 0.17801 <= found.upper  # attained by steps chosen adaptively


STEP = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 0.05, 18)


def divergence(kept, moved, shift, gamma):
    """Return E_gamma of kept N(0, 1) + moved N(shift, 1) against N(0, 1), by the point where their ratio is gamma."""
    if gamma <= kept or moved == 0:
        return max(kept + moved - gamma, 0.0)
    cut = math.log((gamma - kept) / moved) / shift + shift / 2
    return (kept - gamma) * ndtr(-cut) + moved * ndtr(shift - cut)


def rows_where_it_comes(others, rate, most):
    """Return (weight, kept, moved) of the lemma's labels: fewer others than leave one place, one place, none."""
    law, everybody = binom(others, rate), binom(others + 1, rate)
    last, full = float(law.pmf(most - 1)), float(law.sf(most - 1))
    extra = float(everybody.sf(most)) * most / (others + 1)
    rows = [(float(law.cdf(most - 2)), 1 - rate, rate)]
    rows += [(last, 1 - rate, rate + extra / last)] if last > 0 else []
    return rows + ([(full, 1 - extra / full, 0.0)] if full > 0 else [])


def rows_where_it_is_zeroed_out(others, rate, most):
    """Return the same of the labels where a record is zeroed out: fewer others than leave one place, one place, none."""
    law = binom(others, rate)
    last, full = float(law.pmf(most - 1)), float(law.sf(most - 1))
    extra = float(binom(others + 1, rate).sf(most)) * most / (others + 1)
    rows = [(float(law.cdf(most - 2)), rate), (full - extra, 0.0)]
    rows += [(last + extra, (rate * last + extra) / (last + extra))] if last + extra > 0 else []
    return [(weight, 1 - moved, moved) for weight, moved in rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("zeroed_out", "rows_by_number", "largest_shift", "least"),
    [(False, rows_where_it_comes, 4, 2000), (True, rows_where_it_is_zeroed_out, 6, 10_000)],
)
def test_every_smaller_data_set_leaks_less(zeroed_out, rows_by_number, largest_shift, least):
    """The pair lies above the labelled one of every number of other records, at every gamma."""
    rng = np.random.default_rng(6 if zeroed_out else 5)
    compared = 0
    for _ in range(effort.at_night(80, by_day=30)):
        others, rate, shift = int(rng.integers(2, 60)), rng.uniform(0.01, 0.9), rng.uniform(0.3, largest_shift)
        most = int(rng.integers(1, others + 1))
        step = hs.TruncatedPoissonSampled(hs.Gaussian(1 / shift), others + 1, rate, most, zeroed_out=zeroed_out)
        pair = step._pair("add_or_remove")
        if not zeroed_out and (len(pair.parameters) < 6 or pair.parameters[2] == 0):  # the pair of a displaced record
            continue
        numbers = [rows_by_number(number, rate, most) for number in range(1, others + 1)]
        for gamma in np.concatenate([np.exp(rng.uniform(-2, 4, 4)), 1 - rate * rng.uniform(0, 1, 3)]):
            eps = math.log(gamma)
            found = pair.one_step(gamma >= 1, False, abs(eps))[1]
            if gamma < 1:  # the curve is that of the reverse direction
                found = 1 - gamma + gamma * found
            for rows in numbers:
                shown = sum(weight * divergence(*row, shift, gamma) for weight, *row in rows)
                assert shown <= found * (1 + 1e-9) + 1e-12
                compared += 1
    assert compared > effort.at_night(least, by_day=least // 4)


def test_state():
    """A state holds the word; one of an older version, without it, is of a record that comes or goes."""
    step = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.05, 9, zeroed_out=True)
    accountant = hs.Accountant().compose(step, 3)
    state = accountant.state_dict()
    assert hs.Accountant.from_state_dict(state).ledger == accountant.ledger
    del state["steps"][0]["mechanism"]["zeroed_out"]
    older = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.05, 9)
    assert hs.Accountant.from_state_dict(state).ledger == {older: 3}


def test_two_steps_are_an_integral():
    """Two steps are the mean of one step's curve over the losses of the other, label by label."""
    eps = 1.0
    rate, last, excess, swapped = STEP._pair("add_or_remove").parameters[1:5]
    assert swapped == 0
    rows = [
        (1 - last * (1 + excess), 1 - rate, rate),
        (last, 1 - rate, rate * (1 + excess)),
        (last * excess, 1 - rate, 0.0),
    ]
    x, density = enumeration.normal_law(-12, 13, 10_001)
    exact = 0.0
    for weight, kept, moved in rows:
        ratio = kept + moved * np.exp(x - 0.5)
        for other, *row in rows:
            curve = np.array([divergence(*row, 1.0, math.exp(eps) / r) for r in ratio])
            exact += weight * other * np.sum(density * ratio * curve)
    found = enumeration.directions(STEP, eps, 2)[0]
    encloses(found, exact, slack=1e-6)
    assert found.upper <= exact * (1 + 1e-2)


@pytest.mark.parametrize("zeroed_out", [False, True])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    ("noise", "sample", "question"),
    [(1.0, (1000, 0.01, 20), (100, 1e-5, 1.02)), (2.5, (137, 0.0147, 6), (150, 1e-10, 1.06))],
)
def test_truncation_that_is_rare_costs_little(noise, sample, question, zeroed_out, adjacency):
    """A sample of 0.3 or 1.6 % truncations is close to a Poisson sample; by a shift of two sensitivities it is 2.37, or twice as large."""
    (steps, delta, more), plain = question, hs.Gaussian(noise)
    step = hs.TruncatedPoissonSampled(plain, *sample, zeroed_out)
    found = hs.Accountant(adjacency).compose(step, steps).epsilon_bracket(delta)
    whole = hs.Accountant(adjacency).compose(hs.PoissonSampled(plain, sample[1]), steps).epsilon(delta)
    assert found.lower <= whole * (1 + 3e-3) <= found.upper * (1 + 4e-3) <= more * whole


@pytest.mark.parametrize("zeroed_out", [False, True])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_large_batches_are_poisson_samples(zeroed_out, adjacency):
    """A batch for everybody is Poisson sampling; smaller ones leak more and more; nobody sampled leaks nothing."""

    def step(rate, most):
        return hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, rate, most, zeroed_out)

    assert step(0.05, 200)._pair(adjacency) == hs.PoissonSampled(hs.Gaussian(1.0), 0.05)._pair(adjacency)
    same = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 0.05, 12)._pair(adjacency) == step(0.05, 12)._pair(
        adjacency
    )
    assert same == (adjacency == "replace" or not zeroed_out)  # a record replaced leaks what it did
    bounds = [hs.Accountant(adjacency).compose(step(0.05, most), 20).epsilon(1e-5) for most in (200, 25, 18, 12)]
    assert all(low <= high * (1 + 1e-3) for low, high in itertools.pairwise(bounds))
    assert bounds[0] < bounds[2] < bounds[3]
    assert bracket(step(0.0, 1), 0.0, 20, adjacency).upper == 0
    if not zeroed_out:  # all are sampled, and one of them is kept
        assert bracket(step(1.0, 1), 1.0, 1, adjacency).upper == pytest.approx(float(hs.theta(1.0, 2)), rel=1e-11)


TAILS = [
    (1, 0.5, 1),
    (2000, 0.5, 10),
    (10, 0.3, 10),
    (50, 0.5, 20),
    (999, 0.01, 20),
    (1000, 1e-7, 900),
    (10**5, 1e-3, 150),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("trials", "rate", "least"), TAILS)
def test_binomial_tails(trials, rate, least):
    """Never below the sum, and close to it; below the doubles at least 1e-300."""
    with mp.workdps(60):
        p, last = mp.mpf(rate), min(trials, least + 2000)
        terms = (mp.binomial(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(least, last + 1))
        truth = mp.fsum(terms)
        found = _core.binomial_upper_tail(trials, rate, least)
        assert truth <= found <= max(truth * (1 + mp.mpf("1e-6")), mp.mpf("1.0001e-300"))


def test_binomial_tail_where_all_is_likely():
    """Far below the mean, and for numbers beyond what logarithms of factorials resolve, the bound is one; at the ends exact."""
    assert _core.binomial_upper_tail(10**6, 0.5, 10) == 1
    assert _core.binomial_upper_tail(2**53, 0.5, 2**52) == 1
    assert _core.binomial_upper_tail(5, 0.5, 6) == _core.binomial_upper_tail(5, 0.0, 1) == 0
    assert _core.binomial_upper_tail(5, 1.0, 5) == 1


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_rates_whose_product_underflows(adjacency):
    """A sample of a truncated sample that is all but empty has a bracket, of which the lower end is 0."""
    found = bracket(hs.PoissonSampled(STEP, 1e-323), 0.1, adjacency=adjacency)
    assert found.lower == 0.0 < found.upper < 1e-300

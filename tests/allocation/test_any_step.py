"""Random allocation of steps that are not Gaussian: all outcomes in fractions, integrals, steps without a lower end."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
from enumeration import directions, encloses

PAIRS = {  # p and q in sixteenths; they sum to 1 in doubles, too
    "response": ([12, 4], [4, 12]),
    "three": ([5, 3, 8], [2, 8, 6]),
    "revealing": ([8, 4, 4], [8, 8, 0]),
    "hidden": ([8, 8, 0], [4, 8, 4]),
    "both": ([1, 9, 6, 0], [0, 5, 9, 2]),
    "equal": ([8, 8], [8, 8]),
}
EPSILONS = (0.0, 0.1, 0.3, 0.7, 1.2)


def fractions(numbers):
    """Return sixteenths as fractions."""
    return [Fraction(number, 16) for number in numbers]


def outcomes(p, q, num_steps, num_selected):
    """Return the probabilities of all t-tuples with the record and without it, those of equal counts added up."""
    subsets = list(itertools.combinations(range(num_steps), num_selected))
    found = []
    for counts in itertools.combinations_with_replacement(range(len(p)), num_steps):
        orders = math.factorial(num_steps)
        for times in Counter(counts).values():
            orders //= math.factorial(times)
        without = math.prod((q[i] for i in counts), start=Fraction(1))
        one = (
            math.prod((p[i] if j in subset else q[i] for j, i in enumerate(counts)), start=Fraction(1))
            for subset in subsets
        )
        found.append((orders * sum(one, Fraction(0)) / len(subsets), orders * without))
    return found


def deltas(laws, eps):
    """Return delta when a record is removed and when it is added, for e^eps as the double that it is."""
    level = Fraction(math.exp(eps))
    removed = sum((max(p - level * q, Fraction(0)) for p, q in laws), Fraction(0))
    return removed, sum((max(q - level * p, Fraction(0)) for p, q in laws), Fraction(0))


def discrete(p, q):
    """Return the mechanism of sixteenths."""
    return hs.Discrete([x / 16 for x in p], [x / 16 for x in q])


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("num_steps", "num_selected"), [(1, 1), (2, 1), (3, 1), (4, 1), (6, 1), (3, 2), (4, 2), (5, 3), (4, 4)]
)
@pytest.mark.parametrize("name", PAIRS)
def test_few_steps_are_enclosed(name, num_steps, num_selected):
    """The ends enclose the sum over all outcomes and subsets; those of one step to eleven digits, on the right side of it."""
    p, q = PAIRS[name]
    laws = outcomes(fractions(p), fractions(q), num_steps, num_selected)
    mechanism = hs.RandomAllocation(discrete(p, q), num_steps, num_selected)
    for eps in EPSILONS:
        for found, truth in zip(directions(mechanism, eps), deltas(laws, eps), strict=True):
            encloses(found, truth, slack=0 if num_selected == 1 else Fraction(1, 10**12))
            if num_selected == 1 < num_steps:
                assert found.upper - found.lower <= 1e-11 * found.upper + 1e-14


WEIGHTS = st.lists(st.integers(0, 40), min_size=2, max_size=4)


@given(p=WEIGHTS, q=WEIGHTS, num_steps=st.integers(2, 5), eps=st.floats(0.0, 3.0))
@settings(max_examples=60)
def test_random_pairs_are_enclosed(p, q, num_steps, eps):
    """Random pairs, outcomes that one law lacks among them."""
    size = min(len(p), len(q))
    p, q = p[:size], q[:size]
    if sum(p) == 0 or sum(q) == 0:
        return
    laws = outcomes([Fraction(x, sum(p)) for x in p], [Fraction(x, sum(q)) for x in q], num_steps, 1)
    mechanism = hs.RandomAllocation(hs.Discrete([x / sum(p) for x in p], [x / sum(q) for x in q]), num_steps)
    for found, truth in zip(directions(mechanism, eps), deltas(laws, eps), strict=True):
        encloses(found, truth)
        assert found.upper - found.lower <= 1e-9


@pytest.mark.share(2)
@pytest.mark.parametrize("num_steps", [4, 5])
def test_grids_enclose_many_outcomes(num_steps):
    """A pair of too many outcomes for counts goes to a grid: the ends enclose the sum over outcomes, closely."""
    size = {4: 18, 5: 13}[num_steps]
    p = [Fraction(3 * j + 1, sum(3 * i + 1 for i in range(size))) for j in range(size)]
    q = [Fraction((size - j) ** 2, sum((size - i) ** 2 for i in range(size))) for j in range(size)]
    laws = outcomes(p, q, num_steps, 1)
    mechanism = hs.RandomAllocation(hs.Discrete([float(x) for x in p], [float(x) for x in q]), num_steps)
    for eps in EPSILONS:
        for found, truth in zip(directions(mechanism, eps), deltas(laws, eps), strict=True):
            encloses(found, truth, wide=0.02)


@pytest.mark.parametrize("num_steps", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_many_steps_of_two_outcomes(num_steps):
    """On a grid, and in closed form: the number of outcomes of one kind is binomial."""
    mechanism = hs.RandomAllocation(hs.Discrete([0.75, 0.25], [0.25, 0.75]), num_steps)
    scale, middle, reach = 1 / math.sqrt(num_steps), num_steps // 4, int(12 * math.sqrt(num_steps))
    with mp.workdps(30):
        levels = {share * scale: mp.exp(share * scale) for share in (0.2, 1.0, 4.0, 8.0)}
        removed, added = dict.fromkeys(levels, 0), dict.fromkeys(levels, 0)
        for n in range(max(middle - reach, 0), middle + reach):
            rest, ways = num_steps - n, mp.loggamma(num_steps + 1) - mp.loggamma(n + 1)
            mass = mp.exp(ways - mp.loggamma(rest + 1) + n * mp.log(0.25) + rest * mp.log(0.75))
            ratio = (3 * n + mp.mpf(rest) / 3) / num_steps
            for eps, level in levels.items():
                removed[eps] += mass * max(ratio - level, 0)
                added[eps] += mass * max(1 - level * ratio, 0)
        for eps in levels:
            for found, truth in zip(directions(mechanism, eps), (removed[eps], added[eps]), strict=True):
                encloses(found, truth)
                assert math.log(found.upper / found.lower) <= 4e-3 * max(1.0, -math.log(truth))


def laplace_call(level, shift):
    """Return E (X - level)_+ of one ratio of Laplace noise, from its delta."""
    inside = 1 - np.exp((np.log(np.maximum(level, 1e-300)) - shift) / 2)
    return np.where(level <= math.exp(-shift), 1 - level, np.where(level >= math.exp(shift), 0.0, inside))


def laplace_law(shift, kinks):
    """Return values and masses that integrate functions with these kinks over one ratio: two atoms, and panels between."""
    inside = [kink for kink in kinks if -shift < kink < shift]
    edges = np.unique(np.concatenate([np.linspace(-shift, shift, 9), inside]))
    at, weight = np.polynomial.legendre.leggauss(24)
    half = np.diff(edges)[:, np.newaxis] / 2
    loss = edges[:-1, np.newaxis] + half * (1 + at)
    mass = half * weight * np.exp(-(loss + shift) / 2) / 4  # loss 2y - r has y with density e^{-y}/2
    values = np.concatenate([[math.exp(-shift)], np.exp(loss).ravel(), [math.exp(shift)]])
    return values, np.concatenate([[0.5], mass.ravel(), [math.exp(-shift) / 2]])


def laplace_of_two(level, shift):
    """Return E (X + X' - level)_+."""
    kinks = [math.log(level - end) for end in (math.exp(-shift), math.exp(shift)) if level > end]
    values, masses = laplace_law(shift, kinks)
    return float(masses @ laplace_call(level - values, shift)) if level > 0 else 2 - level


def laplace_of_three(level, shift):
    """Return E (X + X' + X'' - level)_+."""
    ends_of_two = [2 * math.exp(-shift), 2 * math.exp(shift), math.exp(-shift) + math.exp(shift)]
    values, masses = laplace_law(shift, [math.log(level - end) for end in ends_of_two if level > end])
    return float(sum(m * laplace_of_two(level - v, shift) for v, m in zip(values, masses, strict=True)))


@pytest.mark.share(8)
@pytest.mark.parametrize("noise", [0.4, 1.0, 3.0, 20.0])
@pytest.mark.parametrize(("num_steps", "call"), [(2, laplace_of_two), (3, laplace_of_three)])
def test_laplace_agrees_with_integrals(noise, num_steps, call):
    """Laplace noise at two and three steps, both directions, up to its largest loss."""
    shift = 1 / noise
    mechanism = hs.RandomAllocation(hs.Laplace(noise), num_steps)
    for eps in (0.0, 0.15 * shift, 0.4 * shift, 0.7 * shift):
        level = math.exp(eps)
        removed = call(num_steps * level, shift) / num_steps
        added = level * call(num_steps / level, shift) / num_steps + 1 - level
        for found, truth in zip(directions(mechanism, eps), (removed, added), strict=True):
            encloses(found, truth, 1e-9, 1e-12, 0.02)


def test_what_reveals_stays():
    """A step that reveals the record with some probability reveals it as often: one step is the record's."""
    for num_steps in (2, 50, 1_000):
        step = hs.RandomAllocation(hs.ApproximateDP(0.1, 1e-3), num_steps)
        bracket = hs.Accountant().compose(step).delta_bracket(5.0)
        assert 0.99e-3 <= bracket.lower <= 1e-3 <= bracket.upper <= 1.01e-3


@pytest.mark.parametrize(("num_steps", "num_selected"), [(10, 1), (300, 1), (40, 5)])
def test_gaussian_noise_by_both_ways(num_steps, num_selected):
    """Two Gaussian releases as one step are a Gaussian release of less noise: the brackets of both overlap."""
    by_ratios = hs.RandomAllocation(
        hs.Composed([(hs.Gaussian(2.0), 1), (hs.Gaussian(1.5), 1)]), num_steps, num_selected
    )
    own = hs.RandomAllocation(hs.Gaussian(1.2), num_steps, num_selected)
    for eps in (0.0, 0.2, 1.0):
        for one, other in zip(directions(by_ratios, eps), directions(own, eps), strict=True):
            assert one.lower <= other.upper
            assert other.lower <= one.upper
            assert one.upper <= 1.02 * other.upper + 1e-60


@given(kind=st.sampled_from([hs.Laplace, hs.Gaussian]), noise=st.floats(0.25, 1000.0), num_steps=st.integers(2, 60))
@settings(max_examples=15)
def test_more_steps_leak_less(kind, noise, num_steps):
    """Means of more ratios are smaller in convex order, and less than one release leaks."""
    few, many = (hs.RandomAllocation(kind(noise), steps) for steps in (num_steps, 2 * num_steps))
    theta, more, slack = (hs.laplace_theta, 1.02, 1e-12) if kind is hs.Laplace else (hs.theta, 1 + 1e-3, 1e-140)
    for eps in (0.0, 0.3 / noise, 0.8 / noise, *([1.5 / noise] if kind is hs.Gaussian else [])):
        for larger, smaller in zip(directions(few, eps), directions(many, eps), strict=True):
            assert smaller.lower <= larger.upper
            assert larger.lower <= larger.upper <= theta(eps, 1 / noise) * more + slack


def test_renyi_divergences_are_at_most_those_of_one_release():
    """A mixture has no larger Renyi divergence than its parts; bounded ratios make it far smaller."""
    one, allocated = (hs.Accountant().compose(m) for m in (hs.Laplace(1.0), hs.RandomAllocation(hs.Laplace(1.0), 100)))
    for order in (1.5, 2.0, 8.0, 64.0):
        assert allocated.rdp(order) <= one.rdp(order) * (1 + 1e-9)
    assert allocated.rdp(2.0) < 0.05 * one.rdp(2.0)
    second = math.log1p((laplace_square(1.0) - 1) / 100)
    assert second <= allocated.rdp(2.0) <= 1.02 * second


def laplace_square(shift):
    """Return E X^2 of one ratio of Laplace noise: e^{D_2}, by its closed form."""
    return 2 / 3 * math.exp(shift) + 1 / 3 * math.exp(-2 * shift)


@pytest.mark.parametrize("num_steps", [2, 3, 5])
@pytest.mark.parametrize("faint", [1e-167, 1e-140, 1e-80])
@pytest.mark.parametrize("likely", [0.6, 1e-9])
@pytest.mark.parametrize("reverse", [False, True])
def test_faint_outcomes_of_much_weight(num_steps, faint, likely, reverse):
    """Both ends enclose the sum over outcomes where what is likely under one law is fainter than a grid resolves."""
    order = slice(None, None, -1 if reverse else 1)
    mechanism = hs.RandomAllocation(hs.Discrete(*([1 - likely, likely], [1.0, faint])[order]), num_steps)
    exact = [[1 - Fraction(x), Fraction(x)] for x in (likely, faint)][order]
    laws = outcomes(*exact, num_steps, 1)
    for eps in (0.0, 0.3, 1.2, 40.0):
        for found, truth in zip(directions(mechanism, eps), deltas(laws, eps), strict=True):
            encloses(found, truth, slack=Fraction(1, 10**12))


@pytest.mark.parametrize(("num_steps", "num_selected", "count"), [(2, 1, 2), (3, 2, 1), (4, 2, 1), (3, 2, 5)])
@pytest.mark.parametrize("eps", [0.0, 1e-3, 1.0])
def test_nothing_but_infinite_losses(num_steps, num_selected, count, eps):
    """Steps that tell all have a delta of 1, though no loss is finite for a grid to begin at."""
    told = hs.RandomAllocation(hs.Discrete([1.0, 0.0], [0.0, 1.0]), num_steps, num_selected)
    found = hs.Accountant().compose(told, count).delta_bracket(eps)
    assert 1.0 - 1e-9 <= found.lower <= found.upper == 1.0

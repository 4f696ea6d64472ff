"""The sparse vector technique against the laws of its answers, all sequences enumerated and the threshold's noise integrated."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtr

import hockeystick as hs
from enumeration import either
from hockeystick.selection import AboveThreshold, GaussianAboveThreshold

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def laplace_tail(x, scale):
    """Return P(Laplace noise >= x)."""
    z = np.asarray(x) / scale
    return np.where(z > 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z)))


def laws(queries, threshold_noise, query_noise, hits, *, gaussian=False):
    """Return the probability of every sequence of answers, with the threshold at 0: what begins with "above" is first."""
    far = (9.0 if gaussian else 38.0) * threshold_noise
    kinks = sorted({-far, far, 0.0, *(float(x) for x in queries if abs(x) < far)})
    edges = np.unique(np.concatenate([np.linspace(a, b, 25) for a, b in itertools.pairwise(kinks)]))
    half = 0.5 * np.diff(edges)
    z = (edges[:-1, None] + half[:, None] * (1 + NODES)).ravel()
    weight = (half[:, None] * WEIGHTS).ravel()
    if gaussian:
        weight *= np.exp(-0.5 * (z / threshold_noise) ** 2) / (threshold_noise * math.sqrt(2 * math.pi))
        above = [ndtr((x - z) / query_noise) for x in queries]
    else:
        weight *= np.exp(-np.abs(z) / threshold_noise) / (2 * threshold_noise)
        above = [laplace_tail(z - x, query_noise) for x in queries]

    def go(asked, left, density):
        if left == 0 or asked == len(queries):
            return [float(density.sum())]
        share = above[asked]
        return go(asked + 1, left - 1, density * share) + go(asked + 1, left, density * (1 - share))

    found = np.array(go(0, hits, weight))
    assert found.sum() == pytest.approx(1.0, abs=1e-9)
    return found


def neighbours(rng, size, monotone):
    """Return the answers of queries on two data sets; among them the move that is worst for each pattern of answers."""
    queries = rng.normal(size=size) * rng.choice([0.3, 2.0, 6.0])
    moves = rng.choice([-1.0, 1.0], size=size) if rng.random() < 0.7 else rng.uniform(-1, 1, size=size)
    if monotone:
        moves = np.abs(moves) * rng.choice([0.0, 1.0], size=size) * rng.choice([-1.0, 1.0])
    return queries, queries + moves


LAPLACE = [(1.0, 2.0, 1), (0.5, 0.7, 1), (3.0, 1.0, 1), (2.0, 4.0, 2), (1.0, 9.0, 3)]  # noise, and the answers above
GAUSSIAN = [(*noise, size) for noise in ((1.0, 2.0), (3.0, 2.0), (2.0, 8.0), (0.6, 5.0)) for size in (1, 2, 4, 8)]


@pytest.mark.share(2)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(
    ("kind", "arguments"), [(AboveThreshold, a) for a in LAPLACE] + [(GaussianAboveThreshold, a) for a in GAUSSIAN]
)
def test_no_queries_leak_more(kind, arguments, monotone):
    """No two data sets of queries that differ by one each leak more than the bound, at any epsilon."""
    step, gaussian, rng = kind(*arguments, monotone), kind is GaussianAboveThreshold, np.random.default_rng(7)
    ledger, hits = hs.Accountant().compose(step), getattr(step, "hits", 1)
    whole = 1 / step.threshold_noise_multiplier + hits * (1 if monotone else 2) / step.query_noise_multiplier
    assert gaussian or ledger.epsilon(0.0) == pytest.approx(whole, rel=1e-12)
    bounds = {share * whole: ledger.delta(share * whole) for share in (0.0, 0.3, 0.6, 0.9, 1.0)}
    for _ in range(15):
        size = step.num_queries if gaussian else int(rng.integers(1, 6))
        p, q = (
            laws(x, step.threshold_noise_multiplier, step.query_noise_multiplier, hits, gaussian=gaussian)
            for x in neighbours(rng, size, monotone)
        )
        for eps, bound in bounds.items():
            assert either(p, q, eps) <= bound + 1e-10


def test_gaussian_limits():
    """It grows with the queries, but as the logarithm; without noise on queries' side it is the threshold's noise alone."""
    epsilons = [
        hs.Accountant().compose(GaussianAboveThreshold(10.0, 20.0, k)).epsilon(1e-6) for k in (1, 100, 10**4, 10**8)
    ]
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] < 1.6 * epsilons[1]
    quiet = hs.Accountant().compose(GaussianAboveThreshold(2.0, 1e7, 10**15))
    for eps in (0.0, 0.5, 1.0):
        exact = float(hs.theta(eps, 0.5))
        assert exact <= quiet.delta(eps) <= exact * (1 + 2e-3) + 1e-4


@pytest.mark.parametrize("quiet", [1e6, 1e9, 1e12])
def test_a_threshold_with_much_more_noise(quiet):
    """Where the threshold hardly tells anything, the curve is that of the queries, and a rounding of epsilon does not lower it."""
    step = AboveThreshold(quiet, 2.0, monotone=True)
    ledger = hs.Accountant().compose(step)
    for eps in (0.5, math.nextafter(0.5, 0.0)):  # a corner of the bound: no chord is below it
        with mp.workdps(40):
            rest = mp.mpf(eps) - mp.mpf("0.5")
            exact = -mp.expm1(rest) - mp.exp(rest) * mp.expm1(min((-rest - 1 / mp.mpf(quiet)) / 2, 0))
            pure = -mp.expm1(rest - 1 / mp.mpf(quiet)) / (1 + mp.exp(mp.mpf("-0.5") - 1 / mp.mpf(quiet)))
        assert ledger.delta(eps) >= min(exact, pure)


def test_hits_must_be_paid_for():
    """Noise that does not grow with the number of answers above leaks more than one hit says (Lyu, Su and Li 2017, Algorithm 6)."""
    one = hs.Accountant().compose(AboveThreshold(1.0, 2.0))
    p, q = laws([0.0] * 5 + [1.0] * 5, 1.0, 2.0, 5), laws([1.0] * 5 + [0.0] * 5, 1.0, 2.0, 5)
    found = np.abs(np.log(p / q)).max()
    assert found > 1.2 * one.epsilon(0.0)
    assert found <= hs.Accountant().compose(AboveThreshold(1.0, 2.0, hits=5)).epsilon(0.0)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("noises", [(1.0, 1.0), (1.0, 1.00001), (3.0, 3.1), (20.0, 0.3), (0.02, 5.0)])
def test_lower_end_is_that_of_one_query(noises, gaussian):
    """In 20 digits: one query on either side of the threshold is told apart by as much as the lower end says, or just more."""
    step = GaussianAboveThreshold(*noises, 5) if gaussian else AboveThreshold(*noises)
    found = hs.Accountant("replace").compose(step).delta_bracket(0.0).lower
    with mp.workdps(20):
        a, b = map(mp.mpf, noises)
        if gaussian:
            truth = mp.erf(mp.mpf(0.5) / mp.sqrt(2 * (a**2 + b**2)))
        else:
            within = lambda y: mp.exp(-abs(y) / b) / (2 * b)
            above = lambda x: mp.exp(-x / a) / 2 if x > 0 else 1 - mp.exp(x / a) / 2
            edges = [
                -mp.inf,
                -30 * (a + b) - 1,
                -30 * b - 1,
                -30 * a - 0.6,
                -b - 0.7,
                -a - 0.8,
                -mp.mpf(0.5),
                0,
                a,
                b + 0.1,
                30 * (a + b) + 1,
                mp.inf,
            ]
            truth = 2 * mp.quad(lambda y: within(y) * above(-(y + mp.mpf(0.5))), sorted(edges)) - 1
        assert found <= truth
        assert found >= truth * (1 - mp.mpf("1e-4")) - mp.mpf("1e-14")

"""Trade-off functions as input: against exact pairs, closed forms and enumerated compositions, and what is refused."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
from enumeration import bracket, encloses, ends
from high_precision import theta


def by_tests(p, q, *, symmetric=True):
    """Return the mechanism whose trade-off function is that of tests of q (without) against p (with), by Neyman and Pearson."""
    order = sorted(range(len(p)), key=lambda i: -math.inf if q[i] == 0 else -p[i] / q[i])
    corners = [(Fraction(0), Fraction(1))]
    for i in order:
        x, y = corners[-1][0] + q[i], corners[-1][1] - p[i]
        if q[i] == 0:
            corners[-1] = x, y
        else:
            corners.append((x, y))
    kept = [corner for k, corner in enumerate(corners) if k == 0 or corners[k - 1][1] > 0]
    return hs.TradeOff([float(x) for x, _ in kept], [float(y) for _, y in kept], symmetric)


def hockey_stick(p, q, eps):
    """Return sum max(p - e^eps q, 0) to thirty digits."""
    with mp.workdps(30):
        exact = [[mp.mpf(x.numerator) / x.denominator for x in law] for law in (p, q)]
        return mp.fsum(max(x - mp.exp(eps) * y, 0) for x, y in zip(*exact, strict=True))


# Masses of which all sums are doubles, so that the polygon is given exactly.
LAWS = st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 2**20)), min_size=2, max_size=7).filter(
    lambda pairs: all(sum(law) > 0 for law in zip(*pairs, strict=True))
)


def laws(pairs):
    """Return two laws whose masses are multiples of 2^-24."""
    found = []
    for law in zip(*pairs, strict=True):
        masses = [Fraction(round(Fraction(x, sum(law)) * 2**24), 2**24) for x in law]
        masses[int(np.argmax(masses))] += 1 - sum(masses)
        found.append(masses)
    return found


@given(pairs=LAWS, eps=st.floats(0.0, 5.0))
def test_a_pair_by_its_trade_off_function(pairs, eps):
    """The polygon of a discrete pair has its delta in both orders: never less, and no more than rounding."""
    p, q = laws(pairs)
    step = by_tests(p, q, symmetric=False)
    for forward, exact in ((True, hockey_stick(p, q, eps)), (False, hockey_stick(q, p, eps))):
        found = ends(step, eps, forward=forward)
        encloses(found, exact)
        assert found[1] <= exact * (1 + 1e-9) + 1e-13


@settings(max_examples=60)
@given(pairs=LAWS, eps=st.floats(0.0, 5.0))
def test_both_orders_at_once(pairs, eps):
    """A function that bounds both orders has its own delta and that of its inverse, whichever is smaller."""
    p, q = laws(pairs)
    step = by_tests(p, q)
    least = min(hockey_stick(p, q, eps), hockey_stick(q, p, eps))
    _, upper = ends(step, eps)
    assert upper <= least * (1 + 1e-9) + 1e-13
    both = [x / 2 for x in (*p, *q)], [x / 2 for x in (*q, *p)]  # symmetric: at or above the larger polygon
    again = by_tests(*both)
    exact = hockey_stick(*both, eps)
    assert exact <= ends(again, eps)[1] <= exact * (1 + 1e-9) + 1e-13


@pytest.mark.parametrize("eps", [0.0, 0.3, 1.0, 2.5])
def test_two_steps(eps):
    """Two steps have at least the delta of the product of a pair with itself, by enumeration."""
    p, q = laws([(7, 1), (3, 3), (1, 5), (0, 1)])
    step = by_tests(p, q, symmetric=False)
    p2, q2 = ([a * b for a, b in itertools.product(law, law)] for law in (p, q))
    encloses(bracket(step, eps, 2), max(hockey_stick(p2, q2, eps), hockey_stick(q2, p2, eps)), wide=1e-3)


@pytest.mark.share(6, by_day=2)
@pytest.mark.parametrize("mu", [0.5, 1e-3, 0.05, 1.0, 3.0, 6.0])
def test_tangents_of_a_gaussian(mu):
    """Fourteen epsilons: the tangents never have less than the Gaussian delta, and nearly the same where doubles can tell."""
    step = hs.TradeOff.from_function(lambda rate: float(hs.gdp_trade_off(mu, rate)))
    for eps in np.linspace(0.0, 4.0 * mu + mu**2, 14):
        truth = theta(eps, mu)
        found = ends(step, float(eps))[1]
        assert truth <= found <= truth * (1 + 2e-3) + 1e-13


@pytest.mark.share(3)
@pytest.mark.parametrize("epsilon", [0.7, 0.01, 3.0])
def test_pure_and_laplace(epsilon):
    """A polygon is found whole between the points asked, and Laplace noise has its closed form."""
    pure = hs.TradeOff.from_function(lambda x: max(1 - math.exp(epsilon) * x, math.exp(-epsilon) * (1 - x)))
    laplace = hs.TradeOff.from_function(
        lambda x: (
            1 - math.exp(epsilon) * x
            if x < math.exp(-epsilon) / 2
            else (math.exp(-epsilon) / (4 * x) if x < 0.5 else math.exp(-epsilon) * (1 - x))
        )
    )
    for share in np.linspace(0.0, 1.1, 23):
        eps = float(share * epsilon)
        exact = max(-math.expm1(eps - epsilon) / (1 + math.exp(-epsilon)), 0.0)
        found = ends(pure, eps)[1]
        assert exact * (1 - 1e-15) <= found <= exact * (1 + 1e-6) + 1e-11
        exact = max(-math.expm1(0.5 * (eps - epsilon)), 0.0)
        found = ends(laplace, eps)[1]
        assert exact * (1 - 1e-15) <= found <= exact * (1 + 1e-2) + 1e-11


@given(
    mu=st.floats(0.05, 4.0),
    rates=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12, unique=True),
    eps=st.floats(0.0, 4.0),
)
def test_points_alone(mu, rates, eps):
    """Whatever the points of a Gaussian trade-off function that are known, its delta is not above the bound."""
    rates = sorted(rates)
    step = hs.TradeOff.from_points(rates, hs.gdp_trade_off(mu, np.array(rates)) * (1 - 1e-13))
    assert theta(eps, mu) <= ends(step, eps)[1]


def test_edges():
    """Nothing told apart, everything told apart, and slopes beyond e^600."""
    nothing = hs.Accountant().compose(hs.TradeOff([0.0, 1.0], [1.0, 0.0]), 100)
    assert nothing.delta(0.0) == 0.0
    assert hs.Accountant().compose(hs.TradeOff([0.0], [0.0])).delta(1.0) == 1.0
    steep = hs.TradeOff([0.0, 1e-300, 1.0], [1.0, 0.5, 0.0], symmetric=False)
    assert hs.Accountant().compose(steep).delta(math.inf) >= 0.5

"""The probability that a step reveals the data set, factored out: (epsilon, delta) at its edges."""

import math
import random
from fractions import Fraction

import mpmath as mp
import pytest

import hockeystick as hs


def composed(*steps):
    """Return an accountant of (epsilon, delta) steps, and of mechanisms."""
    accountant = hs.Accountant()
    for step in steps:
        accountant.compose(hs.ApproximateDP(*step) if isinstance(step, tuple) else step)
    return accountant


def test_nothing_is_exactly_nothing():
    """A no-op has delta 0 at every epsilon, epsilon 0 at every delta, alone, composed and beside others."""
    nothing = hs.ApproximateDP(0.0, 0.0)
    assert hs.Accountant().compose(nothing, 10**6).delta_bracket(0.0) == (0.0, 0.0, "nothing composed", "certified")
    assert composed((0.0, 0.0)).epsilon(0.0) == 0.0
    gaussian = hs.Accountant().compose(hs.Gaussian(1.0))
    assert composed((0.0, 0.0), hs.Gaussian(1.0)).delta(0.5) == gaussian.delta(0.5)


@pytest.mark.parametrize("epsilon", [1.0, 0.1, 7.3, 600.0])
def test_pure(epsilon):
    """At its own epsilon a pure mechanism has delta exactly 0, and at delta 0 exactly its epsilon."""
    assert composed((epsilon, 0.0)).delta(epsilon) == 0.0
    assert composed((epsilon, 0.0)).delta(math.nextafter(epsilon, 0.0)) > 0.0
    assert composed((epsilon, 0.0)).epsilon(0.0) == epsilon
    assert hs.Accountant().compose(hs.ApproximateDP(epsilon, 0.0), 4).epsilon(0.0) == 4 * epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (0.3, 1e-6), (2.0, 1e-300), (5.0, 0.999), (0.0, 0.25)])
def test_one_step(epsilon, delta):
    """A step's own delta gives its own epsilon, and the next smaller double gives infinity."""
    one = composed((epsilon, delta))
    assert one.epsilon(delta) == epsilon
    assert one.epsilon(math.nextafter(delta, 0.0)) == math.inf
    assert one.delta(epsilon) == delta
    assert one.delta(math.inf) == delta


def test_the_comparison_is_exact():
    """For random steps epsilon is finite exactly where the exact mass of infinite loss is at most delta."""
    generator = random.Random(1)
    for _ in range(300):
        steps = [
            (generator.choice([0.5, 1.0]), 10.0 ** generator.uniform(-12, -0.5)) for _ in range(generator.randint(1, 6))
        ]
        mass = 1 - math.prod(1 - Fraction(delta) for _, delta in steps)
        accountant = composed(*steps)
        nearest = float(mass)
        for delta in (math.nextafter(nearest, 0.0), nearest, math.nextafter(nearest, 1.0)):
            assert (accountant.epsilon(delta) < math.inf) == (Fraction(delta) >= mass)
        assert Fraction(accountant.delta(math.inf)) >= mass
        assert accountant.delta(math.inf) - nearest <= math.ulp(nearest)
        pure = sum(epsilon for epsilon, _ in steps)
        found = accountant.epsilon_bracket(accountant.delta(math.inf))
        assert pure * (1 - 1e-14) <= found.lower <= found.upper == pure


@pytest.mark.parametrize("count", [3, 1000, 2**40])
def test_many_steps(count):
    """The mass of many equal steps, against sixty digits."""
    delta = 0.3 / count
    steps = hs.Accountant().compose(hs.ApproximateDP(1.0 / count, delta), count)
    with mp.workdps(60):
        mass = -mp.expm1(count * mp.log1p(-mp.mpf(delta)))
        found = steps.delta(math.inf)
        assert mass <= found <= mass * (1 + mp.mpf(3e-16))
    assert steps.epsilon(found) < math.inf
    assert steps.epsilon(math.nextafter(found, 0.0)) == math.inf


def test_gaussian_beside_a_reveal():
    """The closed form of one Gaussian step, and of the mass that is factored out; the review's numbers."""
    mixed = composed((0.0, 0.01), hs.Gaussian(1.0))
    assert mixed.epsilon(0.02) == pytest.approx(2.313692, abs=1e-6)
    for eps in (0.0, 1.0, 5.0):
        truth = 0.01 + 0.99 * hs.gdp_delta(1.0, eps)
        found = mixed.delta_bracket(eps)
        assert found.lower <= truth * (1 + 1e-15)
        assert truth * (1 - 1e-15) <= found.upper <= truth * (1 + 1e-11)
    assert mixed.epsilon(0.005) == math.inf
    assert composed((0.1, 1e-6), hs.Gaussian(2.0)).epsilon(1.5e-6) <= 2.37228


def test_never_below_the_exact_delta():
    """Compositions of (epsilon, delta) steps against all their outcomes, in sixty digits."""
    generator = random.Random(2)
    with mp.workdps(60):
        for _ in range(30):
            steps = [(generator.uniform(0, 2), 10.0 ** generator.uniform(-20, -1)) for _ in range(3)]
            accountant = composed(*steps)
            eps = generator.uniform(0, sum(step[0] for step in steps))
            kept = mp.fprod(1 - mp.mpf(delta) for _, delta in steps)
            pure = mp.mpf(0)
            for signs in range(8):
                loss, mass = mp.mpf(0), mp.mpf(1)
                for i, (epsilon, _) in enumerate(steps):
                    sign = 1 if signs >> i & 1 else -1
                    loss += sign * mp.mpf(epsilon)
                    mass /= 1 + mp.exp(-sign * mp.mpf(epsilon))
                pure += mass * max(0, -mp.expm1(mp.mpf(eps) - loss))
            truth = 1 - kept + kept * pure
            found = accountant.delta_bracket(eps)
            assert found.lower <= truth <= found.upper
            assert found.upper <= truth * (1 + mp.mpf(2e-3))
            if truth < 1:
                assert accountant.epsilon(found.upper) <= eps * (1 + 1e-2) + 1e-6


def test_always_revealed():
    """A step that always reveals has delta 1 and no epsilon."""
    assert composed((1.0, 1.0), hs.Gaussian(1.0)).delta_bracket(3.0)[:2] == (1.0, 1.0)
    assert composed((1.0, 1.0)).epsilon(0.5) == math.inf


@pytest.mark.parametrize("count", [2, 7])
@pytest.mark.parametrize("eps", [7.0, math.inf])
def test_denormal_masses(count, eps):
    """What is revealed with a probability of a few denormals is bracketed."""
    bracket = hs.Accountant().compose(hs.ApproximateDP(1.0, 5e-324), count).delta_bracket(eps)
    assert bracket.lower <= count * 5e-324 <= bracket.upper


def test_counts_of_equal_remainders():
    """Steps that differ in delta alone are the same pair where nothing is revealed; both counts stand."""
    steps = (
        hs.Accountant().compose(hs.ApproximateDP(1e-17, 1e-17), 2**53).compose(hs.ApproximateDP(1e-17, 2e-17), 2**53)
    )
    assert 0.0 < steps.delta_bracket(1.0).upper <= 1.0

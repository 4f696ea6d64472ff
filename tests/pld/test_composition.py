"""Certified compositions: closed forms, enumeration and high precision lie inside every bracket."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
import pairs
import sampled_gaussian
from distributions import compose
from enumeration import either, encloses, product
from sampled_gaussian import Cell


@pytest.mark.parametrize("steps", [1, 7, 100, 10_000, 1_000_000])
@pytest.mark.parametrize("mu", [1e-6, 0.05, 1.0, 5.0, 1e3])
def test_gaussian_closed_form(mu, steps):
    """T Gaussians are one: the closed form lies in the bracket from delta = 1/3 down to 1e-250."""
    pld = compose(hs.Gaussian(math.sqrt(steps) / mu), steps)
    for depth in [0.3, 1.0, 4.0, 15.0, 33.0]:
        eps = max(depth * mu + mu * mu / 2, 0.0)
        exact = hs.theta(eps, mu)
        bracket = pld.delta_bracket(eps)
        encloses(bracket, exact, 1e-11)
        if steps <= 100 and exact > 1e-200:
            assert bracket.upper - bracket.lower <= 1.001e-3 * bracket.upper
        encloses(pld.epsilon_bracket(exact), eps, off=1e-10 * (eps + 1e-3))


@pytest.mark.share(3)
@pytest.mark.parametrize(("case", "index"), list(itertools.product("ABC", range(10))))
def test_dpsgd_reference(case, index):
    """An independent computation of DP-SGD at every delta down to 1e-30 lies in the bracket."""
    noise, rate, steps = sampled_gaussian.NAMED[case]
    delta, exact = sampled_gaussian.DELTAS[index], sampled_gaussian.BY_FFT[case][index]
    bracket = compose(hs.PoissonSampled(hs.Gaussian(noise), rate), steps).epsilon_bracket(delta)
    encloses(bracket, exact, off=2e-6)
    assert bracket.upper - bracket.lower <= 2e-3 * bracket.upper


def test_bounded_loss():
    """Beyond the largest loss delta is 0, and epsilon at delta = 0 is the largest loss."""
    pld = compose(hs.Laplace(2.0), 10)
    assert pld.delta_bracket(5.1)[:2] == (0.0, 0.0)
    lower, upper = pld.epsilon_bracket(0.0)[:2]
    assert 5.0 - 1e-12 <= lower <= 5.0 <= upper <= 5.0 + 1e-12
    assert compose(hs.Gaussian(1.0)).epsilon_bracket(0.0)[:2] == (math.inf, math.inf)
    assert compose(hs.Gaussian(1.0)).delta_bracket(math.inf)[:2] == (0.0, 0.0)


weights = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=4).filter(
    lambda w: sum(a for a, _ in w) > 0 and sum(b for _, b in w) > 0
)


@given(first=weights, second=weights, eps=st.floats(0, 4))
def test_discrete_by_enumeration(first, second, eps):
    """Any two discrete pairs, zeros included, composed 3 + 2 times agree with enumeration."""
    pairs = []
    for w in (first, second):
        p, q = np.array([a for a, _ in w], float), np.array([b for _, b in w], float)
        pairs.append((p / p.sum(), q / q.sum()))
    one, two = (compose(hs.Discrete(*pair), count) for pair, count in zip(pairs, (3, 2), strict=True))
    exact = either(*(product(*[a] * 3, *[b] * 2) for a, b in zip(*pairs, strict=True)), eps)
    encloses(one.compose(two).delta_bracket(eps), exact, off=1e-13)


def binomial_delta(high, low, steps, eps, *, infinite, step_eps):
    """Return delta of T two-outcome steps of loss +-step_eps, plus an infinite one (Kairouz, Oh and Viswanath)."""
    mp.mp.dps = 40
    total = mp.mpf(0)
    for k in range(steps + 1):
        loss = mp.mpf(step_eps) * (2 * k - steps)
        if loss > eps:
            total += mp.binomial(steps, k) * mp.mpf(high) ** k * mp.mpf(low) ** (steps - k) * (1 - mp.exp(eps - loss))
    return float(1 - (1 - mp.mpf(infinite)) ** steps + total)


@pytest.mark.parametrize("steps", [1, 3, 50, 400])
@pytest.mark.parametrize("infinite", [0.0, 1e-9])
def test_approximate_dp_closed_form(steps, infinite):
    """Composed (epsilon, delta)-DP has the binomial closed form, to 1e-3 of delta at every depth."""
    pld = compose(hs.ApproximateDP(0.1, infinite), steps)
    high = (1 - infinite) / (1 + math.exp(-0.1))
    for share in [0.0, 0.1, 0.37, 0.8, 0.99]:
        eps = share * 0.1 * steps
        exact = binomial_delta(high, 1 - infinite - high, steps, eps, infinite=infinite, step_eps=0.1)
        bracket = pld.delta_bracket(eps)
        encloses(bracket, exact, 1e-12)
        assert bracket.upper - bracket.lower <= 1.001e-3 * bracket.upper


def test_randomized_response():
    """Binary randomised response composes as a binomial."""
    step = hs.RandomizedResponse(0.5, 2)  # 3/4 against 1/4
    exact = binomial_delta(0.75, 0.25, 20, 3.0, infinite=0.0, step_eps=math.log(3.0))
    encloses(compose(step, 20, adjacency="replace").delta_bracket(3.0), exact, off=1e-13)
    p, q = np.array([0.625, 0.125, 0.25]), np.array([0.125, 0.625, 0.25])
    bracket = compose(hs.RandomizedResponse(0.5, 4), 5, adjacency="replace").delta_bracket(1.0)
    encloses(bracket, either(product(*[p] * 5), product(*[q] * 5), 1.0), off=1e-14)


@pytest.mark.share(8, by_day=2)
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize(
    ("noise", "rate", "eps"), [(1.0, 0.01, 0.05), (0.7, 0.3, 0.6), (4.0, 1e-3, 0.9), (1.0, 1e-4, 6)]
)
def test_two_sampled_steps_against_quadrature(noise, rate, eps, forward):
    """Two steps of the sampled Gaussian agree with quadrature, where one large loss rules (the last two) as elsewhere."""
    with mp.workdps(30):
        exact = sampled_gaussian.few_steps(Cell(noise, rate, 2, forward, eps))
    found = pairs.pld_bracket(pairs.sampled_gaussians(noise, rate, 2), forward, False, eps, 0.0, 1e-3)
    encloses(found, exact, mp.mpf(10) ** -9)
    if exact > 0:
        assert found[1] <= found[0] * 1.01


@pytest.mark.parametrize(
    ("noise", "rate", "eps"), [(1.0, 0.01, 0.05), (4.0, 1e-5, 1e-3), (0.5, 1e-3, 40.0), (30.0, 0.9, 1.0)]
)
def test_one_step_is_exact(noise, rate, eps):
    """One sampled step is its closed form to 1e-7, and epsilon its root."""
    pld = compose(hs.PoissonSampled(hs.Gaussian(noise), rate))
    with mp.workdps(60):
        exact = float(sampled_gaussian.few_steps(Cell(noise, rate, 1, True, eps)))
    bracket = pld.delta_bracket(eps)
    encloses(bracket, exact, 1e-13)
    assert bracket.upper <= bracket.lower * (1 + 1e-7)
    encloses(pld.epsilon_bracket(exact), eps, 1e-12)


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", range(4))
def test_mass_at_infinity_of_many_outcomes(seed):
    """Beyond every finite loss delta is the mass of infinite losses: a sum of many terms, whose rounding both ends hold."""
    p = np.random.default_rng(seed).uniform(size=100_000)
    p *= 0.1 / p.sum()
    infinite = sum(map(Fraction, p.tolist()))
    pair = [*p.tolist(), 1.0 - float(infinite), *np.zeros(p.size).tolist(), 1.0]
    lower, upper, *_ = pairs.pld_bracket([("discrete", pair, 1.0, 2.0)], True, False, 50.0, 0.0, 1e-3)  # twice
    assert Fraction(lower) <= 1 - (1 - infinite) ** 2 <= Fraction(upper)
    assert upper - lower <= 1e-9 * upper


@pytest.mark.share(2)
@pytest.mark.parametrize("engine", ["auto", "pld"])
def test_two_steps_whose_small_losses_do_not_reach_epsilon(engine):
    """Where a large loss is split off, and no sum of the others reaches epsilon, both ends meet; delta was 2.5e-5 for 1.4e-13."""
    base = hs.Composed([(hs.Gaussian(5.0), 2), (hs.Laplace(10.0), 1)])
    step = hs.FixedSizeSampled(base, 100, 1, replacement=False)
    twice = hs.Accountant(engine=engine).compose(step, 2)
    before = math.inf
    for eps in (0.3, 0.35, 0.37, 0.38, 0.4, 0.5, 0.7):
        found = twice.delta_bracket(eps)
        assert found.lower <= found.upper <= min(before, 1.02 * found.lower)
        before = found.upper
    assert twice.epsilon(1e-12) <= 0.346  # delta(0.346) <= 1e-12


def test_two_rare_losses_are_a_sum_over_outcomes():
    """Two steps of seven small losses and a rare large one: 64 outcomes."""
    small = np.linspace(-0.03, 0.03, 7)
    for rare, large in itertools.product((1e-4, 1e-8, 1e-13), (0.5, 0.9)):
        p, q = np.exp(small) / 7, np.full(7, (1 - rare) / 7)
        p, q = np.append(p * (1 - rare * math.exp(large)) / p.sum(), rare * math.exp(large)), np.append(q, rare)
        twice = hs.Accountant(engine="pld").compose(hs.Discrete(p, q), 2)
        for eps in (0.2, 0.4):
            sums = [np.outer(x, x) - math.exp(eps) * np.outer(y, y) for x, y in ((p, q), (q, p))]
            exact = max(float(np.sum(np.maximum(each, 0.0))) for each in sums)
            encloses(twice.delta_bracket(eps), exact, 1e-9)
            assert twice.delta(eps) <= 1.01 * exact

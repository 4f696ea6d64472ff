"""One step: masses accurate in either tail, exact formulas in high precision between certified ends, and ends that are close."""

import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import high_precision as exact
from enumeration import encloses
from pairs import pair

mp.mp.dps = 60


def gaussian_cdf(x):
    """Return P(N(0,1) <= x) at 60 digits in either tail."""
    return mp.erfc(-x / mp.sqrt(2)) / 2


def laplace_cdf(x):
    """Return P(Laplace <= x)."""
    return mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2


def exact_masses(cdf, shift, outcome, rate, forward, eps):  # noqa: PLR0917
    """Return p_below, p_above, q_below, q_above of the sampled pair, from the outcome of a loss of the unsampled one."""
    rate, eps, shift = mp.mpf(rate), mp.mpf(eps), mp.mpf(shift)
    inner = 1 + mp.expm1(eps if forward else -eps) / rate  # forward {x <= cut} is {L <= eps}, else the loss falls in x
    x = outcome(mp.log(inner), shift) if inner > 0 else -mp.inf
    base, shifted, base_up, shifted_up = cdf(x), cdf(x - shift), cdf(-x), cdf(shift - x)
    mixed, mixed_up = (1 - rate) * base + rate * shifted, (1 - rate) * base_up + rate * shifted_up
    return (mixed, mixed_up, base, base_up) if forward else (base_up, base, mixed_up, mixed)


def gaussian_outcome(loss, shift):
    """Return the outcome at which N(shift, 1) against N(0, 1) has a loss."""
    return loss / shift + shift / 2


def laplace_outcome(loss, shift):
    """Return the same for Laplace noise, between 0 and the shift."""
    return (loss + shift) / 2


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("rate", [1.0, 0.5, 0.01, 1e-5])
@pytest.mark.parametrize("shift", [0.02, 1.0, 3.0])
def test_gaussian_against_quadrature_free_tails(shift, rate, forward):
    """Masses and delta of the (sampled) Gaussian agree with 60 digits, in tails down to 1e-250."""
    step = pair("gaussian", [shift], rate)
    for eps in [-3.0, -0.3, -1e-3, 0.0, 1e-4, 0.004, 0.1, 1.0, 5.0, 20.0]:
        masses = exact_masses(gaussian_cdf, shift, gaussian_outcome, rate, forward, eps)
        for value, truth in zip(step.masses(forward, eps)[:4], masses, strict=True):
            if truth < mp.mpf("1e-250"):
                assert value < 1e-249
                continue
            # the cut is right to a few ulps of eps, which l(eps) may magnify next to log(1 - q)
            inner = 1 + mp.expm1(eps if forward else -eps) / rate
            blur = float(1 + abs(mp.log(truth)) * (1 + 1 / (shift * max(rate, 0.01) * max(float(inner), 1e-3))))
            assert value == pytest.approx(float(truth), rel=1e-14 * blur)
        delta = masses[1] - mp.exp(eps) * masses[3]
        if delta > mp.mpf("1e-250"):
            blur = 1 + abs(math.log(delta)) / (shift * max(rate, 0.01))
            assert step.delta(forward, eps) == pytest.approx(float(delta), rel=2e-13 * blur)
        else:
            assert step.delta(forward, eps) < 1e-249


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("shift", [0.1, 1.0, 4.0])
def test_laplace_against_distribution_functions(shift, rate, forward):
    """Masses and delta of the (sampled) Laplace agree with 60 digits inside the support, and end with it."""
    step = pair("laplace", [shift], rate)
    low, high = -step.limits(not forward)[1], step.limits(forward)[1]  # the largest loss of either direction
    for share in [0.05, 0.3, 0.5, 0.8, 0.99]:
        eps = low + share * (high - low)
        masses = exact_masses(laplace_cdf, shift, laplace_outcome, rate, forward, eps)
        assert step.masses(forward, eps)[:4] == pytest.approx([float(x) for x in masses], rel=1e-12)
        delta = float(masses[1] - mp.exp(eps) * masses[3])
        assert step.delta(forward, eps) == pytest.approx(delta, rel=1e-11, abs=1e-16)
    assert step.delta(forward, high * (1 + 1e-12)) == pytest.approx(0.0, abs=1e-11)
    assert step.masses(forward, high * (1 + 1e-12))[:4] == (1.0, 0.0, 1.0, 0.0)
    assert step.masses(forward, low * (1 + 1e-12))[0] == pytest.approx(0.0, abs=1e-300)


@pytest.mark.parametrize("forward", [True, False])
def test_sampled_discrete_is_the_mixture(forward):
    """Poisson sampling of a pair with infinite losses equals the discrete pair of mixtures."""
    p, q, rate = [0.5, 0.3, 0.2, 0.0], [0.1, 0.3, 0.0, 0.6], 0.25
    mixed = [(1 - rate) * b + rate * a for a, b in zip(p, q, strict=True)]
    sampled, direct = pair("discrete", [*p, *q], rate), pair("discrete", [*mixed, *q])
    for eps in [-2.0, -0.25, 0.0, 0.1, 0.25, 0.287, 0.5, 2.0]:
        assert sampled.delta(forward, eps) == pytest.approx(direct.delta(forward, eps), rel=1e-13, abs=1e-16)
        assert sampled.masses(forward, eps) == pytest.approx(direct.masses(forward, eps), rel=1e-13, abs=1e-16)


def test_fixed_size_is_the_larger_poisson_curve():
    """The fixed-size curve is the maximum of the two Poisson directions, and its own reverse."""
    batch, sampled = pair("fixed_size_gaussian", [1.0, 0.1]), pair("gaussian", [1.0], 0.1)
    for eps in [-2.0, -0.5, -0.05, 0.0, 0.05, 0.5, 2.0]:
        fixed = batch.delta(True, eps)
        both = [sampled.delta(forward, eps) for forward in (True, False)]
        assert fixed == pytest.approx(max(both), rel=1e-13)
        assert fixed == pytest.approx(-math.expm1(eps) + math.exp(eps) * batch.delta(True, -eps), rel=1e-9)


def ends(kind, parameters, rate, *, forward=True, eps=None, delta=None):
    """Return both ends of delta at eps, or of epsilon at delta."""
    value = eps if delta is None else delta
    return pair(kind, parameters, rate).one_step(forward, delta is not None, value)


def assert_encloses(bracket, truth, width):
    """Check that the truth lies between the ends, which are close in the logarithm."""
    encloses(bracket, truth)
    if truth > 1e-300:
        assert bracket[1] - bracket[0] <= width * (1 + abs(mp.log(truth))) * truth


@pytest.mark.parametrize("shift", [1e-4, 0.1, 1.0, 7.0, 300.0])
def test_gaussian(shift):
    """The exact theta lies inside, from delta near 1 to 1e-300."""
    for depth in [-8.0, -1.0, 0.0, 1.0, 8.0, 36.0]:
        eps = max(shift * (depth + shift / 2), 0.0)
        truth = exact.theta(eps, shift)
        bracket = ends("gaussian", [shift], 1.0, eps=eps)
        assert_encloses(bracket, truth, 1e-12)
        if bracket[0] > 1e-300 and eps > 0:
            found = ends("gaussian", [shift], 1.0, delta=bracket[1])
            assert found[0] <= eps * (1 + 1e-15)
            assert exact.theta(found[1], shift) <= mp.mpf(bracket[1])
            assert exact.theta(found[0], shift) >= mp.mpf(bracket[1])


@settings(max_examples=100)
@given(shift=st.floats(0.02, 20), log_rate=st.floats(-14, -1e-3), position=st.floats(0, 1), forward=st.booleans())
def test_sampled_gaussian(shift, log_rate, position, forward):
    """Both directions of a sampled Gaussian enclose the difference of their exact tails."""
    rate = math.exp(log_rate)
    # The add direction ends at -log(1 - rate); the other one goes on.
    eps = position * (5.0 + shift * shift if forward else -math.log1p(-rate) * 1.01)
    with mp.workdps(80):
        _, p_above, _, q_above = exact_masses(gaussian_cdf, shift, gaussian_outcome, rate, forward, eps)
        truth = p_above - mp.exp(mp.mpf(eps)) * q_above
        bracket = ends("gaussian", [shift], rate, forward=forward, eps=eps)
        encloses(bracket, truth)
        if truth > 1e-250 and (forward or position < 0.9):
            assert bracket[1] - bracket[0] <= 1e-10 * (1 + abs(mp.log(truth))) * truth


weights = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=2, max_size=5).filter(
    lambda w: sum(a for a, _ in w) > 0 and sum(b for _, b in w) > 0
)


@given(weights=weights, eps=st.floats(0, 5), rate=st.floats(0.01, 1.0), forward=st.booleans())
def test_discrete(weights, eps, rate, forward):
    """Pairs of discrete distributions, sampled or not, enclose the sum of their positive parts."""
    total = [sum(w[i] for w in weights) for i in (0, 1)]
    p, q = ([w[i] / total[i] for w in weights] for i in (0, 1))
    with mp.workdps(50):
        rest = [(mp.mpf(b), (1 - mp.mpf(rate)) * b + mp.mpf(rate) * a) for a, b in zip(p, q, strict=True)]
        outcomes = [(mixed, plain) if forward else (plain, mixed) for plain, mixed in rest]
        # The doubles p and q are the distributions up to rounding, which 1e-15 allows for.
        truth = sum(max(a - mp.exp(eps) * b, 0) for a, b in outcomes)
        bracket = ends("discrete", [*p, *q], rate, forward=forward, eps=eps)
        slack = 1e-15 * len(p) * math.exp(eps)
        assert bracket[0] - slack <= truth <= bracket[1] + slack


def test_mass_of_infinite_loss():
    """At delta equal to the mass of infinite loss epsilon is the largest finite loss, below it infinite."""
    small = math.exp(-1.0)
    law = [1e-6, (1 - 1e-6) / (1 + small), (1 - 1e-6) * small / (1 + small), 0.0]
    masses = [*law, *law[::-1]]
    low, high = ends("discrete", masses, 1.0, delta=1e-6)
    assert low <= 1.0 <= high <= 1.0 + 1e-12
    assert ends("discrete", masses, 1.0, delta=0.9e-6) == (math.inf, math.inf)
    assert ends("discrete", masses, 1.0, eps=math.inf) == (1e-6, 1e-6)

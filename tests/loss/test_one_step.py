"""One step between certified ends: exact formulas in high precision lie inside, and the ends are close."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import high_precision as exact
import pairs
from enumeration import encloses


def ends(kind, parameters, rate, *, forward=True, eps=None, delta=None):
    """Return both ends of delta at eps, or of epsilon at delta."""
    value = eps if delta is None else delta
    return pairs.one_step_bracket(kind, parameters, rate, forward, delta is not None, value)


def sampled_gaussian_delta(shift, rate, eps, *, forward):
    """Return delta of a sampled Gaussian from its tails, in the precision in force."""
    shift, rate, eps = mp.mpf(shift), mp.mpf(rate), mp.mpf(eps)
    sign = 1 if forward else -1
    # e^{sign L} = 1 - rate + rate e^{shift x - shift^2/2} crosses e^eps at x.
    ratio = (mp.exp(sign * eps) - 1) / rate + 1
    if ratio <= 0:
        return mp.mpf(0) if not forward else 1 - mp.exp(eps)
    x = mp.log(ratio) / shift + shift / 2
    tail = lambda mean: mp.erfc(sign * (x - mean) / mp.sqrt(2)) / 2  # beyond x, on the side of large losses
    mixed, plain = (1 - rate) * tail(0) + rate * tail(shift), tail(0)
    return mixed - mp.exp(eps) * plain if forward else plain - mp.exp(eps) * mixed


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
@given(
    shift=st.floats(0.02, 20),
    log_rate=st.floats(-14, -1e-3),
    position=st.floats(0, 1),
    forward=st.booleans(),
)
def test_sampled_gaussian(shift, log_rate, position, forward):
    """Both directions of a sampled Gaussian enclose the difference of their exact tails."""
    rate = math.exp(log_rate)
    # The add direction ends at -log(1 - rate); the other one goes on.
    eps = position * (5.0 + shift * shift if forward else -math.log1p(-rate) * 1.01)
    with mp.workdps(80):
        truth = sampled_gaussian_delta(shift, rate, eps, forward=forward)
        bracket = ends("gaussian", [shift], rate, forward=forward, eps=eps)
        encloses(bracket, truth)
        if truth > 1e-250 and (forward or position < 0.9):
            assert bracket[1] - bracket[0] <= 1e-10 * (1 + abs(mp.log(truth))) * truth


def test_laplace():
    """Laplace noise: 1 - e^{(eps - r)/2}, exactly 0 beyond r, and epsilon at delta = 0 is r."""
    for shift in [0.01, 1.0, 30.0]:
        for share in [0.0, 0.3, 0.999999]:
            truth = -mp.expm1((mp.mpf(share * shift) - shift) / 2)
            assert_encloses(ends("laplace", [shift], 1.0, eps=share * shift), truth, 1e-8)
        assert ends("laplace", [shift], 1.0, eps=shift * (1 + 1e-14)) == (0.0, 0.0)
        low, high = ends("laplace", [shift], 1.0, delta=0.0)
        assert low <= shift <= high <= shift * (1 + 1e-14)


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
        pairs = [(mixed, plain) if forward else (plain, mixed) for plain, mixed in rest]
        # The doubles p and q are the distributions up to rounding, which 1e-15 allows for.
        truth = sum(max(a - mp.exp(eps) * b, 0) for a, b in pairs)
        bracket = ends("discrete", [*p, *q], rate, forward=forward, eps=eps)
        slack = 1e-15 * len(p) * math.exp(eps)
        assert bracket[0] - slack <= truth <= bracket[1] + slack


def test_mass_of_infinite_loss():
    """At delta equal to the mass of infinite loss epsilon is the largest finite loss, below it infinite."""
    small = math.exp(-1.0)
    pair = [1e-6, (1 - 1e-6) / (1 + small), (1 - 1e-6) * small / (1 + small), 0.0]
    masses = [*pair, *pair[::-1]]
    low, high = ends("discrete", masses, 1.0, delta=1e-6)
    assert low <= 1.0 <= high <= 1.0 + 1e-12
    assert ends("discrete", masses, 1.0, delta=0.9e-6) == (math.inf, math.inf)
    assert ends("discrete", masses, 1.0, eps=math.inf) == (1e-6, 1e-6)

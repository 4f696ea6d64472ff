"""Queries of a composition agree with each other, in any order and grouping; wrong arguments are refused."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
import refused_calls
from distributions import compose
from enumeration import encloses

MIXED = [
    hs.Gaussian(3.0),
    hs.Laplace(5.0),
    hs.PoissonSampled(hs.Gaussian(0.8), 0.05),
    hs.PoissonSampled(hs.Laplace(1.0), 0.1),
    hs.ApproximateDP(0.1, 1e-10),
]


def overlap(one, other):
    """Say whether two brackets of one number have a point in common."""
    return one.lower <= other.upper and other.lower <= one.upper


def test_order_and_grouping_do_not_matter():
    """Any order and any grouping of the same steps gives brackets of the same number."""
    steps = [compose(mechanism) for mechanism in MIXED]
    forwards = steps[0]
    for step in steps[1:]:
        forwards = forwards.compose(step)
    backwards = steps[-1]
    for step in steps[-2::-1]:
        backwards = backwards.compose(step)
    for delta in [1e-3, 1e-8]:
        assert overlap(forwards.epsilon_bracket(delta), backwards.epsilon_bracket(delta))
    one_by_one = compose(MIXED[2])
    for _ in range(29):
        one_by_one = one_by_one.compose(compose(MIXED[2]))
    assert one_by_one.epsilon_bracket(1e-6) == compose(MIXED[2], 30).epsilon_bracket(1e-6)


@settings(max_examples=12)
@given(noise=st.floats(0.5, 5), rate=st.floats(1e-3, 1.0), steps=st.integers(1, 500), log_delta=st.floats(-60, -1))
def test_queries_agree(noise, rate, steps, log_delta):
    """Delta at the upper end of epsilon(delta) is not above delta, and at the lower end not below it."""
    delta = math.exp(log_delta)
    pld = compose(hs.PoissonSampled(hs.Gaussian(noise), rate), steps)
    bracket = pld.epsilon_bracket(delta)
    assert pld.delta_bracket(bracket.upper).lower <= delta * (1 + 1e-12)
    if bracket.lower > 0:
        assert pld.delta_bracket(bracket.lower).upper >= delta * (1 - 1e-12)


def test_given_interval():
    """A given interval is used; one too fine for memory is refused with what to change."""
    coarse = compose(hs.Gaussian(10.0), 100, interval=0.05).delta_bracket(1.0)
    encloses(coarse, hs.theta(1.0, 1.0))
    assert coarse.status == "certified"
    assert "0.05" in coarse.method
    with pytest.raises(ValueError, match=r"interval=.*coarser"):
        compose(hs.Gaussian(1.0), interval=1e-9).delta_bracket(1.0)


NAMES = {"hs": hs, "math": math, "compose": compose}
REFUSED = r"""
hs.PrivacyLossDistribution.from_mechanism(1.0) -> TypeError: mechanism must be
compose(hs.Gaussian(1.0), interval=0.0) -> interval must be positive
compose(hs.Gaussian(1.0), adjacency="remove") -> adjacency must be one of
compose(hs.PoissonSampled(hs.ApproximateDP(1.0, 0.0), 0.1), adjacency="replace") -> not supported
compose(hs.RandomizedResponse(0.5, 3)) -> not supported
compose(hs.FixedSizeSampled(hs.Gaussian(1.0), 9, 9, replacement=False)) -> not supported
compose(hs.Gaussian(1.0), -1) -> count must be an integer in \[0,
compose(hs.Gaussian(1.0), 1.5) -> TypeError: count
compose(hs.Gaussian(1.0), True) -> TypeError: count
compose(hs.Gaussian(1.0), 2**53).self_compose(2) -> count
compose(hs.Gaussian(1.0)).compose(hs.Gaussian(1.0)) -> TypeError: other must be
compose(hs.Gaussian(1.0)).compose(compose(hs.Gaussian(1.0), adjacency="replace")) -> adjacency=
compose(hs.Gaussian(1.0)).compose(compose(hs.Gaussian(1.0), interval=0.1)) -> interval=
compose(hs.Gaussian(1.0)).delta_bracket(-0.1) -> epsilon must be non-negative
compose(hs.Gaussian(1.0)).delta_bracket(math.nan) -> epsilon must
compose(hs.Gaussian(1.0)).epsilon_bracket(1.0) -> delta must lie in
compose(hs.Gaussian(1.0)).epsilon_bracket("1e-5") -> TypeError: delta must be a real number
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """A query names the argument, its value and its domain."""
    refused_calls.check(call, reason, NAMES)

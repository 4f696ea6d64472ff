"""Gaussian noise on a Poisson sample of which one record is replaced: the pair, that it dominates, and its compositions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

import hockeystick as hs
from enumeration import encloses
from pairs import pair
from slow_values import committed

noises, rates = st.floats(0.3, 8.0), st.floats(1e-6, 0.999)


def one_step(noise, rate, eps, forward=True):
    """Return the bracket of delta of one step."""
    return pair("replaced_gaussian", [1 / noise, rate]).one_step(forward, False, eps)


@pytest.mark.parametrize("noise", [0.4, 1.0, 5.0])
@pytest.mark.parametrize("rate", [1e-4, 0.1, 0.9])
@pytest.mark.parametrize("eps", [-1.0, 0.0, 1e-3, 0.5, 4.0])
def test_one_step_agrees_with_four_hundred_digits(noise, rate, eps):
    """Delta of the pair, relatively accurate in the tail."""
    found = one_step(noise, rate, eps)
    encloses(found, committed("replaced_gaussian_delta", noise, rate, eps), slack=1e-14)
    assert found[1] - found[0] <= 1e-7 * found[1] + 1e-300


@given(noise=noises, rate=rates, first=st.floats(-1, 1), second=st.floats(-1, 1), eps=st.floats(-3, 6))
def test_no_two_records_are_told_apart_better(noise, rate, first, second, eps):
    """Whatever the records' contributions in [-1, 1], the divergence of their mixtures is at most the pair's."""

    def density(x, mean):
        normal = [math.exp(-0.5 * (x - m) ** 2) / math.sqrt(2 * math.pi) for m in (0.0, mean / noise)]
        return (1 - rate) * normal[0] + rate * normal[1]

    reach = 9 + 1 / noise
    divergence = quad(
        lambda x: max(density(x, first) - math.exp(eps) * density(x, second), 0.0),
        -reach,
        reach,
        limit=400,
        epsabs=1e-11,
    )[0]
    assert divergence <= one_step(noise, rate, eps)[1] + 1e-9


@given(noise=noises, rate=rates, eps=st.floats(0.0, 6.0))
def test_between_the_closed_forms(noise, rate, eps):
    """At most rate times a Gaussian of shift 2/noise at rate 1, at least the removal of a record; reflection is exact."""
    upper = one_step(noise, rate, eps)[1]
    assert upper <= float(hs.theta(eps, 2 / noise)) * (1 + 1e-11) + 1e-300
    removed = pair("gaussian", [1 / noise], rate).one_step(True, False, eps)[0]
    assert upper >= removed
    assert one_step(noise, rate, eps, forward=False) == one_step(noise, rate, eps)
    mirrored = -math.expm1(-eps) + math.exp(-eps) * upper  # delta(-eps), by P and Q exchanged
    assert one_step(noise, rate, -eps)[1] == pytest.approx(mirrored, rel=1e-9)


@pytest.mark.share(6, by_day=2)
@pytest.mark.parametrize("rate", [1e-3, 1e-6, 0.5])
@pytest.mark.parametrize(
    "sampled",
    [
        lambda noise, rate: hs.PoissonSampled(hs.Gaussian(noise), rate),
        lambda noise, rate: hs.FixedSizeSampled(hs.Gaussian(noise), 10**6, round(10**6 * rate), replacement=False),
    ],
    ids=["poisson", "fixed size"],
)
def test_below_the_doubles_sampling_still_helps(rate, sampled):
    """Where a grid has no digits, delta is at most that of all records without sampling, and the sum of total variations."""
    for noise, eps in ((50.0, 1.0), (50.0, 5.0), (1000.0, 0.5)):
        found = hs.Accountant("replace").compose(sampled(noise, rate), 50).delta_bracket(eps)
        assert found.lower <= found.upper <= float(hs.theta(eps, 2 * math.sqrt(50) / noise)) * (1 + 1e-9) + 4e-322
    for noise, eps in ((0.02, 1.0), (0.02, 1000.0)):
        found = hs.Accountant("replace").compose(sampled(noise, rate), 50).delta_bracket(eps)
        assert found.upper <= min(50 * rate, 1.0) * (1 + 1e-9)

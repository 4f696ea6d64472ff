"""Filters and odometers of zero-concentrated differential privacy: adversaries stay within the guarantee, failures included."""

import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs


@settings(max_examples=12)
@given(st.floats(-6, 3), st.floats(-4, 3), st.floats(-200, -0.3), st.sampled_from([0.0, 1e-3, 2.0]))
def test_odometer_in_closed_form(log10_rho, log10_spent, log10_delta, xi):
    """At what it says the mean of the supermartingales over the half-normal law, by quadrature, is 1/delta, to rounding."""
    delta, rho, spent = 10.0**log10_delta, 10.0**log10_rho, 10.0**log10_spent
    found = hs.ZeroConcentratedOdometer(delta=delta, rho=rho).spend(hs.ZeroConcentratedDP(spent, xi)).epsilon
    with mp.workdps(40):
        square = -mp.log(mp.mpf(delta)) / mp.mpf(rho)
        z, c = mp.mpf(found) - xi - spent, spent + 1 / (2 * square)
        top, width = max(z / (2 * c), 0), 1 / mp.sqrt(c)
        nodes = sorted({mp.mpf(0), *(max(top + k * width, mp.mpf(0)) for k in (-12, -4, -1, 0, 1, 4, 12))})
        mean = mp.sqrt(2 / (mp.pi * square)) * mp.quad(lambda u: mp.exp(u * z - c * u * u + mp.log(delta)), nodes)
        assert 1 - mp.mpf(10) ** -12 <= mean
        assert mp.log(mean) <= mp.mpf(10) ** -9 * (1 - mp.log(delta))


def test_filter_loses_nothing_against_the_conversion():
    """What the filter lets through has the epsilon of its rho, and `of_epsilon` is the inverse."""
    for epsilon, delta, noise in ((1.0, 1e-5, 50.0), (8.0, 1e-9, 20.0), (0.1, 1e-200, 2e5)):
        budget = hs.ZeroConcentratedFilter.of_epsilon(epsilon, delta)
        assert epsilon * (1 - 1e-9) < budget.epsilon(delta) <= epsilon
        count = budget.remaining(hs.Gaussian(noise))
        assert count == int(budget.rho * 2 * noise**2 * (1 + 1e-13))
        assert hs.zcdp_epsilon((count + 1) / (2 * noise**2), delta) > epsilon
    budget = hs.ZeroConcentratedFilter.of_epsilon(1.0, 1e-5, xi=0.2, failure=5e-6)
    assert (budget.xi, budget.delta) == (0.2, 5e-6)
    assert 1.0 - 1e-9 < budget.epsilon(1e-5) <= 1.0
    assert budget.epsilon(5e-6) == math.inf


@pytest.mark.parametrize("failure", [0.0, 1e-8])
def test_order_of_costs(failure):
    """An accountant of steps fixed in advance says less than the filter that they fill; the odometer says more than the former."""
    step = hs.ZeroConcentratedDP(1e-3, delta=failure / 100)
    budget = hs.ZeroConcentratedFilter(0.1, delta=failure * (1 + 1e-12))
    assert budget.remaining(step) == 100
    fixed = hs.Accountant().compose(step, 100).epsilon(1e-6)
    odometer = hs.ZeroConcentratedOdometer(delta=1e-6, rho=0.1, failure=failure * (1 + 1e-12)).spend(step, 100).epsilon
    assert budget.epsilon(1e-6) <= fixed * (1 + 1e-9) < odometer * (1 + 1e-9) < 1.5 * fixed
    assert odometer < hs.RenyiOdometer(delta=1e-6).spend(hs.Gaussian(math.sqrt(5.0))).epsilon


def test_bookkeeping():
    """Each of the three budgets is one by itself."""
    budget = hs.ZeroConcentratedFilter(0.5, xi=0.1, delta=1e-6)
    assert budget.remaining(hs.ZeroConcentratedDP(0.1)) == 5
    assert budget.remaining(hs.ZeroConcentratedDP(0.1, 0.05)) == 2
    assert budget.remaining(hs.ZeroConcentratedDP(0.1, delta=3e-7)) == 3
    assert budget.remaining(hs.ApproximateDP(0.1, 2e-7)) == 5
    assert budget.remaining(hs.ApproximateDP(0.1, 0.1)) == 0
    assert budget.remaining(hs.ExponentialMechanism(0.2)) == 100
    assert budget.remaining(hs.Gaussian(1e300)) == 2**53
    budget.spend(hs.ZeroConcentratedDP(0.125, 0.0625))
    assert budget.would_exceed(hs.ZeroConcentratedDP(0.125, 0.0625))
    assert (budget.rho, budget.xi, budget.delta) == (0.5, 0.1, 1e-6)
    assert "rho 0.125 of 0.5, xi 0.0625 of 0.1, delta 0 of 1e-06 in 1 steps" in repr(budget)
    odometer = hs.ZeroConcentratedOdometer(delta=1e-5, rho=0.2, failure=1e-6).spend(hs.ApproximateDP(0.1, 4e-7), 2)
    assert (odometer.rho, odometer.failure) == (0.2, 1e-6)
    assert odometer.would_exceed(hs.ApproximateDP(0.1, 4e-7), epsilon=1e300)
    assert odometer.spend(hs.ApproximateDP(0.1, 4e-7)).epsilon == math.inf
    assert hs.ZeroConcentratedOdometer(delta=0.1).epsilon == 0.0
    assert hs.ZeroConcentratedOdometer(delta=0.1).spend(hs.Gaussian(1e300)).epsilon > 0.0
    assert hs.ZeroConcentratedOdometer(delta=0.1).spend(hs.ZeroConcentratedDP(0.0, 0.3)).epsilon >= 0.3

"""Conversions of zCDP: the least bound over all orders, never below it, and above what Gaussian noise leaks."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs

inf = math.inf


def log_delta(rho, eps, order):
    """Return Proposition 12 at an order, as it is printed."""
    a = mp.mpf(order)
    return (a - 1) * (a * rho - eps) - mp.log(a - 1) + a * mp.log(1 - 1 / a)


def least(rho, eps):
    """Return the least log delta over the orders, by golden section in log(order - 1)."""
    ratio = (mp.sqrt(5) - 1) / 2
    low, high = mp.mpf(-60), mp.mpf(120)
    for _ in range(80):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if log_delta(rho, eps, 1 + mp.exp(left)) < log_delta(rho, eps, 1 + mp.exp(right)):
            high = right
        else:
            low = left
    return log_delta(rho, eps, 1 + mp.exp((low + high) / 2))


POWERS = st.floats(-8, 3).map(lambda x: 10.0**x)


@given(POWERS, st.floats(-4, 3).map(lambda x: 10.0**x), st.one_of(st.just(0.0), POWERS), st.floats(-300, -0.01))
def test_the_least_bound_over_all_orders(rho, eps, xi, log10_delta):
    """Delta is the least over all orders, rounded up by little, and epsilon its inverse; xi is taken from epsilon before."""
    delta = 10.0**log10_delta
    found, epsilon = hs.zcdp_delta(rho, eps, xi=xi), hs.zcdp_epsilon(rho, delta, xi=xi)
    with mp.workdps(60):
        truth = min(mp.mpf(0), least(mp.mpf(rho), mp.mpf(eps) - mp.mpf(xi)))
        if truth < -740:
            assert 0 < found < 1e-300
        else:
            assert truth <= mp.log(found) * (1 - mp.mpf(2) ** -60)
            assert mp.log(found) <= truth + mp.mpf(10) ** -9 * (1 + abs(truth))
        assert least(mp.mpf(rho), mp.mpf(epsilon) - mp.mpf(xi)) <= mp.log(delta)
        if epsilon > 0:
            below = mp.mpf(epsilon) * (1 - mp.mpf(10) ** -9) - mp.mpf(xi)
            assert least(mp.mpf(rho), below) > mp.log(delta) - 1e-9
    assert hs.zcdp_epsilon(0.0, delta, xi=xi) <= xi * (1 + 1e-12)
    assert hs.zcdp_delta(rho, eps, xi=inf) == 1.0


def test_ends():
    """No divergence gives delta 0, and no bound on it none; delta 0 needs an infinite epsilon; grids broadcast."""
    assert hs.zcdp_delta([0.0, inf, 1.0, 0.0], [0.0, 1.0, inf, inf]).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert hs.zcdp_epsilon([0.0, 1.0, inf, 0.0], [0.0, 0.0, 0.5, 0.5]).tolist() == [0.0, inf, inf, 0.0]
    assert hs.zcdp_epsilon(1e-9, 0.9) == 0.0
    assert hs.zcdp_delta(1e9, 1.0) == 1.0
    assert hs.zcdp_delta(np.ones((3, 1)), np.ones(4)).shape == (3, 4)
    assert isinstance(hs.zcdp_delta(0.5, 1.0), float)


STEPS = {
    "Gaussian": (hs.Gaussian(2.0), 1 / 8, 1 / 2),
    "discrete Gaussian": (hs.DiscreteGaussian(4.0, 2), 1 / 8, 1 / 2),
    "Laplace": (hs.Laplace(2.0), 1 / 8, 1 / 2),
    "sampled Laplace": (hs.PoissonSampled(hs.Laplace(1.0), 0.1), math.log1p(0.1 * math.expm1(1)) ** 2 / 2, None),
    "response": (hs.RandomizedResponse(0.5, 2), None, math.log(3) ** 2 / 2),
    "nothing": (hs.PoissonSampled(hs.Gaussian(1.0), 0.0), 0.0, 0.0),
}


@pytest.mark.parametrize("name", STEPS)
def test_rho_by_hand(name):
    """Noise has half its squared distance, a bounded loss half its square; steps add up; divergences stay below order times rho."""
    step, *rhos = STEPS[name]
    for adjacency, rho in zip(("add_or_remove", "replace"), rhos, strict=True):
        if rho is None:
            continue
        accountant = hs.Accountant(adjacency).compose(step, 3).compose(hs.ApproximateDP(0.2, 0.0), 2)
        found = hs.zcdp_rho(accountant)
        assert found == pytest.approx(3 * rho + 2 * 0.02, rel=1e-9)
        orders = np.geomspace(1.0001, 1e4, 50)
        if "discrete" not in name and "sampled" not in name:
            assert np.all(accountant.rdp(orders) <= orders * found)
        assert accountant.delta(2.0) <= hs.zcdp_delta(found, 2.0)
    assert hs.zcdp_rho(hs.Accountant()) == 0.0

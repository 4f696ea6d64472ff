"""Conversions of Gaussian DP against mpmath, each other and the meaning of their names."""

import hypothesis
import hypothesis.strategies as st
import mpmath as mp
import numpy as np
import pytest

import high_precision as exact
import hockeystick as hs
from theorems import log_close

MU = np.array([1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0])
inf = np.inf


@pytest.mark.parametrize("mu", MU)
@pytest.mark.parametrize("eps", [-3.0, -1e-6, 0.0, 1e-6, 0.1, 1.0, 10.0, 300.0])
def test_delta(mu: float, eps: float) -> None:
    """gdp_delta is theta with the arguments exchanged, to theta's accuracy."""
    assert log_close(hs.gdp_delta(mu, eps), exact.theta(eps, mu), 4e-14)
    rtol = 4e-14 * (1 - hs.log_theta(eps, mu))
    # a positive delta is never the 0 of pure privacy
    np.testing.assert_allclose(hs.gdp_delta(mu, eps), max(hs.theta(eps, mu), 5e-324), rtol=rtol)
    assert hs.gdp_delta(0.0, max(eps, 0.0)) == hs.gdp_delta(mu, np.inf) == 0


@pytest.mark.parametrize("mu", MU)
@pytest.mark.parametrize("fpr", [1e-300, 1e-20, 0.01, 0.3, 0.5, 0.9, 1 - 1e-10])
def test_trade_off(mu: float, fpr: float) -> None:
    """G_mu(fpr) = Phi(Phi^{-1}(1 - fpr) - mu), relatively accurate in its own tail too."""
    with mp.workdps(50):
        reference = exact.q(mp.mpf(mu) - exact.q_inv(fpr))
        assert log_close(hs.gdp_trade_off(mu, fpr), reference, 1e-13)


@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, 17.5])
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_rdp(mu: float, order: float) -> None:
    """The Renyi divergence of N(mu, 1) from N(0, 1)."""
    assert hs.gdp_rdp(mu, order) == pytest.approx(order * mu**2 / 2, rel=1e-15)


def test_limits() -> None:
    """Mu = 0 is perfect privacy, mu = inf none; delta = 0 costs an infinite epsilon unless mu is 0."""
    assert hs.gdp_delta(0.0, 0.0) == 0
    assert hs.gdp_delta(inf, inf) == 1
    assert hs.gdp_delta(1.0, inf) == 0
    assert hs.gdp_epsilon(0.0, 0.0) == 0
    assert hs.gdp_epsilon(0.0, 1e-300) == 0
    assert hs.gdp_epsilon(1.0, 0.0) == inf
    assert hs.gdp_epsilon(inf, 0.5) == inf
    assert hs.gdp_epsilon(1.0, 1.0) == 0
    assert hs.gdp_epsilon(inf, 1.0) == 0
    np.testing.assert_allclose(hs.gdp_trade_off(0.0, [0.0, 0.2, 0.7, 1.0]), [1.0, 0.8, 0.3, 0.0], rtol=1e-15)
    assert hs.gdp_trade_off([1.0, 1.0, inf, inf], [0.0, 1.0, 0.0, 0.3]).tolist()[:2] == [1.0, 0.0]
    assert hs.gdp_trade_off(inf, 0.3) == 0
    assert hs.gdp_rdp([0.0, inf], 2.0).tolist() == [0.0, inf]
    assert hs.gdp_advantage([0.0, inf]).tolist() == [0.0, 1.0]


@hypothesis.given(st.floats(1e-6, 30), st.floats(1e-6, 30), st.floats(0, 50), st.floats(1e-200, 0.9))
def test_monotone_in_mu(x: float, y: float, eps: float, delta: float) -> None:
    """Less noise is never more private: delta, epsilon and advantage rise with mu, the trade-off falls."""
    low, high = sorted((x, y))
    before = hs.gdp_delta(low, eps)
    assert hs.gdp_delta(high, eps) >= before * (1 - 1e-12)
    assert hs.gdp_epsilon(high, delta) >= hs.gdp_epsilon(low, delta) * (1 - 1e-11)
    assert hs.gdp_advantage(high) >= hs.gdp_advantage(low) * (1 - 1e-14)
    assert hs.gdp_trade_off(high, delta) <= hs.gdp_trade_off(low, delta) * (1 + 1e-11) + 1e-300


def test_advantage_to_the_last_digits() -> None:
    """From tiny to huge distances, on both sides of where its two formulas meet."""
    mu = np.concatenate([np.geomspace(1e-300, 40.0, 400), np.linspace(1.9, 2.1, 101), [5e-324, 1e300]])
    with mp.workdps(50):
        truth = np.array([float(mp.erf(mp.mpf(m) / (2 * mp.sqrt(2)))) for m in mu])
    np.testing.assert_allclose(hs.gdp_advantage(mu), truth, rtol=8e-16, atol=5e-324)
    assert hs.gdp_advantage(mu) == pytest.approx(hs.gdp_delta(mu, 0.0), rel=1e-15)

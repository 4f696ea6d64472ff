"""The inverses over arrays: every element is the root, whatever its neighbours are and wherever in memory they lie."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import high_precision as exact
import hockeystick as hs
from measure_accuracy import backward_errors

inf, nan = np.inf, np.nan


def cells(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances from 1e-12 to 1e6, and deltas in the tails, in the middle and near one."""
    delta = np.concatenate(
        [np.exp(rng.uniform(np.log(1e-300), 0, n)), rng.uniform(0, 1, n), 1 - np.exp(rng.uniform(np.log(2e-16), -1, n))]
    )
    return np.exp(rng.uniform(np.log(1e-12), np.log(1e6), delta.size)), delta


@pytest.mark.parametrize("function", [hs.gaussian_epsilon, hs.theta_inverse, hs.gdp_epsilon])
def test_elements_are_independent(function) -> None:
    """Alone, among others, in another order, strided or broadcast: the bits are the same."""
    x, delta = cells(np.random.default_rng(1), 700)
    together = function(x, delta)
    some = slice(None, None, 7)
    alone = np.array([function(a, b) for a, b in zip(x[some], delta[some], strict=True)])
    np.testing.assert_array_equal(together[some], alone)
    order = np.random.default_rng(2).permutation(x.size)
    np.testing.assert_array_equal(function(x[order], delta[order]), together[order])
    np.testing.assert_array_equal(function(x[::-3], delta[::-3]), together[::-3])
    np.testing.assert_array_equal(function(x[:, None], delta[:5])[:5].diagonal(), together[:5])


def test_gdp_epsilon_is_a_root_or_zero() -> None:
    """gdp_epsilon keeps its promise: log delta to 1e-12, or 0 exactly where delta(0) is no larger than delta."""
    mu, delta = cells(np.random.default_rng(3), 60)
    mu = np.minimum(mu, 1e3)  # beyond, doubles near mu^2/2 cannot resolve delta
    eps = hs.gdp_epsilon(mu, delta)
    positive = eps > 0
    errors = backward_errors(eps[positive], mu[positive], delta[positive])
    assert np.all(errors <= np.where(delta[positive] <= 0.5, 1e-12, 1e-10))
    for m, d in zip(mu[~positive], delta[~positive], strict=True):
        assert exact.theta(0.0, m) <= mp.mpf(d) * (1 + mp.mpf("1e-12"))


def test_signs_at_the_threshold() -> None:
    """At delta = theta(0, mu), a few ulp to either side, epsilon is tiny or 0, and right to delta's last digits."""
    mu = np.exp(np.random.default_rng(4).uniform(np.log(1e-9), np.log(10), 20))
    at_zero = np.array([float(exact.theta(0.0, m)) for m in mu])
    for ulps in (-3, -1, 0, 1, 3):
        delta = at_zero + ulps * np.spacing(at_zero)
        for function in (hs.gdp_epsilon, hs.gaussian_epsilon):
            eps = function(mu, delta)
            at_eps = np.array([float(exact.theta(float(e), m)) for e, m in zip(eps, mu, strict=True)])
            zero = (eps == 0) & (ulps >= -1)
            assert np.all(zero | (np.abs(at_eps / delta - 1) <= 1e-12))


def test_limits_among_ordinary_elements() -> None:
    """Ends of the domains give their limits, and their neighbours keep their values."""
    x = np.array([1.0, 0.0, 1.0, inf, 1.0, 1e-320, 1.0, nan, 1e200, 1.0, 1.0, -1.0, 1.0])
    delta = np.array([1e-5, 0.1, 0.0, 0.1, 1.0, 1e-3, nan, 0.1, 0.1, -1.0, 1.5, 0.1, 1e-5])
    with np.errstate(invalid="ignore"):
        eps, r = hs.gaussian_epsilon(x, delta), hs.theta_inverse(x, delta)
    assert eps[0] == eps[12] == hs.gaussian_epsilon(1.0, 1e-5)
    np.testing.assert_array_equal(eps[[1, 2, 3, 4]], [np.log1p(-0.1), inf, inf, -inf])
    np.testing.assert_array_equal(np.isnan(eps), np.isin(np.arange(13), [6, 7, 9, 10, 11]))
    assert r[2] == 0
    assert r[4] == inf
    assert r[0] == r[12] == hs.theta_inverse(1.0, 1e-5)
    assert np.isnan(r[[3, 6, 7, 9, 10]]).all()

"""theta_inverse and gaussian_epsilon, judged by the exact theta at what they return; over arrays, whatever neighbours and memory are."""

import mpmath as mp
import numpy as np
import pytest

import effort
import high_precision as exact
import hockeystick as hs
import tables
from measure_accuracy import backward_errors

inf = np.inf
COUNTS = pytest.mark.parametrize("count", [8, pytest.param(effort.at_night(150, by_day=40), marks=pytest.mark.slow)])


def assert_inverse(eps: np.ndarray, r: np.ndarray, delta: np.ndarray) -> None:
    """Assert log theta = log delta to 1e-12 up to one half, 1 - theta = 1 - delta to 1e-10 above."""
    excess = backward_errors(eps, r, delta) / np.where(delta <= 0.5, 1e-12, 1e-10)
    worst = int(np.argmax(excess))
    assert excess[worst] <= 1, f"eps={eps[worst]!r} r={r[worst]!r} delta={delta[worst]!r}: {excess[worst]:.3g} times"


def probabilities(rng: np.random.Generator, n: int) -> np.ndarray:
    """Tails down to 1e-300, the middle, and up to the last doubles below one."""
    return np.concatenate(
        [np.exp(rng.uniform(np.log(1e-300), 0, n)), rng.uniform(0, 1, n), 1 - np.exp(rng.uniform(np.log(2e-16), -1, n))]
    )


def test_gaussian_epsilon_table() -> None:
    """The same pairs, solved for eps."""
    table = tables.load("theta_inverse")
    r, delta = table.high[::12], table.arguments[1][::12]
    assert_inverse(hs.gaussian_epsilon(r, delta), r, delta)


@COUNTS
def test_theta_inverse_everywhere(count: int) -> None:
    """Any eps with any delta above max(0, 1 - e^eps)."""
    rng = np.random.default_rng(1)
    delta = probabilities(rng, count)
    magnitude = np.exp(rng.uniform(np.log(1e-12), np.log(700), delta.size))
    assert_inverse(magnitude, hs.theta_inverse(magnitude, delta), delta)
    eps = -np.minimum(magnitude, -np.log1p(-delta) * rng.uniform(0, 0.999, delta.size))
    assert_inverse(eps, hs.theta_inverse(eps, delta), delta)
    assert_inverse(np.zeros_like(delta), hs.theta_inverse(0.0, delta), delta)


def test_theta_inverse_just_above_its_floor() -> None:
    """At eps < 0 with delta close to 1 - e^eps the complement still counts: delta - floor must not be formed."""
    eps = -np.array([5.0, 14.1, 20.0, 25.0, 30.0, 34.0])
    above = np.exp(eps)[:, None] * (1 - np.array([0.02, 0.1, 0.3, 0.45, 0.49]))  # wanted 1 - delta
    delta = (1 - above).ravel()
    eps = eps.repeat(5)
    keep = delta > -np.expm1(eps)  # the rounded floor itself means r = 0
    eps = eps[keep]
    assert_inverse(eps, hs.theta_inverse(eps, delta[keep]), delta[keep])


@COUNTS
def test_gaussian_epsilon_everywhere(count: int) -> None:
    """Any r with any delta: deep tails, and delta far above theta(0, r), where eps is negative."""
    rng = np.random.default_rng(2)
    delta = probabilities(rng, count)
    r = np.exp(rng.uniform(np.log(1e-12), np.log(1e3), delta.size))
    assert_inverse(hs.gaussian_epsilon(r, delta), r, delta)


def test_gaussian_epsilon_at_large_distance() -> None:
    """Up to r = 1e4 eps is the root to two units in its last place, though delta can no longer resolve it."""
    for r, delta in ((1e4, 1e-300), (1e4, 1e-5), (1e4, 0.5), (1e4, 0.999), (3e3, 0.1)):
        eps = float(hs.gaussian_epsilon(r, delta))
        ulp = 2 * np.spacing(eps)
        assert exact.theta(eps + ulp, r) <= delta <= exact.theta(eps - ulp, r)


@pytest.mark.parametrize(
    ("r", "delta"),
    [(1.311905017119471e-10, 0.15990187087857066), (1.7e-252, 0.29), (1958488504412269.2, 1.3843928033204052e-68)],
)
def test_gaussian_epsilon_where_steps_are_below_rounding(r: float, delta: float) -> None:
    """The iteration ends although the step it would like is far below the spacing of eps."""
    eps = hs.gaussian_epsilon(r, delta)
    if r < 1:
        np.testing.assert_allclose(eps, np.log1p(-delta), rtol=1e-9)  # theta(eps, 0) = 1 - e^eps
    else:
        np.testing.assert_allclose(eps, r * r / 2, rtol=1e-12)


def test_sign_of_gaussian_epsilon() -> None:
    """Eps is negative exactly when delta exceeds theta(0, r) = 1 - 2 Q(r/2)."""
    r = np.logspace(-8, 1, 50)
    at_zero = np.array([float(exact.theta(0.0, x)) for x in r])
    assert np.all(hs.gaussian_epsilon(r, at_zero * (1 + 1e-12)) < 0)
    assert np.all(hs.gaussian_epsilon(r, at_zero * (1 - 1e-12)) > 0)


@pytest.mark.parametrize(
    ("function", "first", "delta", "expected"),
    [
        *((hs.theta_inverse, eps, 0.0, 0.0) for eps in (0.0, 3.0, inf)),
        *((hs.theta_inverse, eps, 1.0, inf) for eps in (0.0, 700.0, -1.0, -40.0, -700.0, inf)),  # 1 - e^-40 rounds to 1
        *((hs.gaussian_epsilon, r, 0.0, eps) for r, eps in ((1.0, inf), (0.0, 0.0))),
        *((hs.gaussian_epsilon, r, 1.0, -inf) for r in (0.0, 1.0)),
        *((hs.gaussian_epsilon, r, 0.5, eps) for r, eps in ((inf, inf), (0.0, -np.log(2)))),
    ],
)
def test_limits(function: np.ufunc, first: float, delta: float, expected: float) -> None:
    """Delta = 0 needs no distance, delta = 1 an infinite one; epsilon is the smallest with theta <= delta; quietly."""
    with np.errstate(all="raise"):
        np.testing.assert_allclose(function(first, delta), expected, rtol=1e-15)


def test_theta_inverse_is_finite_below_one() -> None:
    """Infinity is the answer at delta = 1 only."""
    eps = np.concatenate([-np.logspace(-300, 1.5, 40), [0.0], np.logspace(-300, 2.8, 40)])
    with np.errstate(invalid="ignore"):
        assert not np.isinf(hs.theta_inverse(eps, 1 - 2.0**-53)).any()


inf, nan = np.inf, np.nan


def cells(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances from 1e-12 to 1e6, and deltas in the tails, in the middle and near one."""
    delta = probabilities(rng, n)
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
    assert_inverse(eps[positive], mu[positive], delta[positive])
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

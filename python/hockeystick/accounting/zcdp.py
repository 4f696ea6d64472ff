"""Zero-concentrated differential privacy: a Renyi divergence of at most xi plus rho times the order, at every order.

At any order a > 1 (Canonne, Kamath and Steinke 2020, Proposition 12, with divergence xi + a rho)

    log delta = (a - 1)(a rho + xi - eps) + (a - 1) log(1 - 1/a) - log a,

convex in a, and least where eps - xi = (2a - 1) rho + log(1 - 1/a); there log delta = -(a - 1)^2 rho - log a. Every order gives a
valid bound, so that only the last evaluation has to be rounded up, not the search for the best order.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import DELTA, Array, Checks, OnError, Result
from hockeystick._checks.arguments import arrays
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import SHORT_SUM, SHORT_SUM_UP
from hockeystick.accounting.accountant import Accountant, require_accountant
from hockeystick.mechanisms.base import Adjacency, Mechanism, plain
from hockeystick.mechanisms.renyi_bounded import RenyiMechanism, ZeroConcentratedDP

__all__ = ["zcdp_delta", "zcdp_epsilon", "zcdp_rho"]

SMALLEST, LARGEST = -50.0, 400.0  # of log(a - 1)
FAR = 1e100  # a larger epsilon gets the delta of this one, which is larger; products with this one do not overflow
SMALLEST_DISTANCE = 1e-150  # whose square is a normal double


def zcdp_delta(
    rho: ArrayLike,
    epsilon: ArrayLike,
    *,
    xi: ArrayLike = 0.0,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a certified upper bound of delta(epsilon) of every mechanism with zero-concentrated differential privacy.

    Parameters
    ----------
    rho : array_like
        Parameter of zero-concentrated differential privacy, >= 0; infinity means no privacy. A mu-GDP mechanism has mu^2/2.
    epsilon : array_like
        Non-negative; infinity is legal.
    xi : array_like
        What the divergences of all orders have in common, >= 0; infinity means no privacy.
    num_threads : int, optional
        One is used.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        The least bound over all orders, rounded up, of the broadcast shape. A mechanism's own accountant is tighter.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Bun and Steinke 2016 for zCDP; Canonne, Kamath and Steinke 2020, Proposition 12:
    :math:`\delta = \inf_{a > 1} e^{(a-1)(a\rho+\xi-\epsilon)} (1 - 1/a)^a / (a - 1)`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.format_upper(hs.accounting.zcdp_delta(0.5, 4.0), ".2e"), hs.format_upper(hs.gdp_delta(1.0, 4.0), ".2e"))
    1.96e-04 4.72e-05
    """
    grid = Checks(num_threads, on_error)
    return grid.map(_delta, *arrays(locals(), grid).values())


def zcdp_epsilon(
    rho: ArrayLike,
    delta: ArrayLike,
    *,
    xi: ArrayLike = 0.0,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    """Return a certified epsilon >= 0 at which every mechanism with zero-concentrated differential privacy is (epsilon, delta)-DP.

    Parameters
    ----------
    rho : array_like
        Parameter of zero-concentrated differential privacy, >= 0; infinity means no privacy. A mu-GDP mechanism has mu^2/2.
    delta : array_like
        In [0, 1).
    xi : array_like
        What the divergences of all orders have in common, >= 0; infinity means no privacy.
    num_threads : int, optional
        One is used.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        The least bound over all orders, rounded up, of the broadcast shape; infinity where delta is 0 and rho is not. A
        mechanism's own accountant is tighter.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The inverse of `zcdp_delta`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.format_upper(hs.accounting.zcdp_epsilon(0.5, 1e-5), ".2f"), hs.format_upper(hs.gdp_epsilon(1.0, 1e-5), ".2f"))
    4.73 4.38
    """
    grid = Checks(num_threads, on_error)
    return grid.map(_epsilon, *arrays(locals(), grid, delta=DELTA).values())


def zcdp_rho(accountant: Accountant) -> float:
    """Return a rho for which everything composed is rho-zCDP.

    Parameters
    ----------
    accountant : Accountant
        With Gaussian or discrete Gaussian noise that is not sampled, and mechanisms whose privacy loss is bounded.

    Returns
    -------
    float
        The sum over the steps, rounded up. It is not the least rho except for Gaussian noise and exponential mechanisms, and `accountant` itself has a smaller
        epsilon than `zcdp_epsilon` makes of it.

    Raises
    ------
    ValueError
        If a mechanism is of neither kind: sampled Gaussian noise, among others, is rho-zCDP for no useful rho.

    Notes
    -----
    Bun and Steinke 2016: Gaussian noise at distance r, Proposition 1.6, has r^2/2; epsilon-DP, Proposition 1.4, epsilon^2/2; and they
    add up. Canonne, Kamath and Steinke 2020, Theorem 4, for discrete Gaussian noise; Cesar and Rogers 2021 for the exponential
    mechanism, epsilon^2/8.

    Examples
    --------
    >>> import hockeystick as hs
    >>> composed = hs.Accountant().compose(hs.Gaussian(5.0), 100).compose(hs.Laplace(2.0))
    >>> print(hs.format_upper(hs.accounting.zcdp_rho(composed), ".3f"))
    2.126
    """
    require_accountant("accountant", accountant)
    composed = dict(accountant.ledger)  # once: it is what was composed up to now
    unknown, rho = [step for step in composed if step._added_failure() > 0.0], 0.0
    for step, count in plain(composed).items():
        cost = concentrated_cost(step, accountant.adjacency)
        if cost is None or cost.xi > 0.0 or cost.delta > 0.0:
            unknown.append(step)
        else:
            rho += count * cost.rho
    if unknown:
        raise ValueError(f"accountant must hold what is rho-zCDP, which is not known of {shown(unknown[0])}")
    return rho * (1 + (len(plain(composed)) + 4) * SHORT_SUM)


def concentrated_cost(mechanism: Mechanism, adjacency: Adjacency) -> ZeroConcentratedDP | None:
    """Return the zero-concentrated differential privacy of a step, with rounding of at most SHORT_SUM, or None if none is known.

    An (epsilon, delta)-DP step is pure epsilon-DP but for a failure of probability delta: Kairouz, Oh and Viswanath 2015, and Bun and
    Steinke 2016, Lemma 8.8.
    """
    failure, holding = mechanism._mixed_failure()
    if isinstance(holding, ZeroConcentratedDP):
        return ZeroConcentratedDP(holding.rho, holding.xi, failure)
    if failure == 1.0 or (failure > 0.0 and not holding._has_pair):
        return None
    rho = math.nan
    if isinstance(holding, RenyiMechanism):
        known = holding._concentration(adjacency)
        rho = math.nan if known is None else known
    elif holding._has_pair:
        rho = math.fsum(count * _half_square(pair.concentrated_shift) for pair, count in holding._pairs(adjacency))
    if math.isnan(rho):
        rho = _half_square(float(Accountant(adjacency).compose(holding).epsilon(0.0)))
    return ZeroConcentratedDP(rho, 0.0, failure) if math.isfinite(rho) else None


def _half_square(distance: float) -> float:
    """Return half the square, of a larger distance where squares underflow; NaN stays."""
    return 0.0 if distance == 0.0 else 0.5 * max(distance, SMALLEST_DISTANCE) ** 2


def _delta(cells: list[Array], _threads: int) -> Array:
    rho, eps, xi = cells
    with np.errstate(all="ignore"):  # cells at the ends are set below
        excess = xi - np.minimum(eps, FAR)
        x = _order_less_one(lambda x: (2 * x + 1) * rho + excess - np.log1p(1 / x))
        parts = np.stack([x * rho * (x + 1), x * excess, -x * np.log1p(1 / x), -np.log1p(x)])
        delta = np.minimum(1.0, np.nextafter(np.exp(_sum_up(parts)) * SHORT_SUM_UP, 1.0))  # not 0 by underflow
        delta = np.where((np.isinf(rho) | np.isinf(xi)) & (eps >= 0), 1.0, delta)
        delta = np.where((eps == np.inf) | ((rho == 0) & (xi == 0)), 0.0, delta)
    return np.where((rho >= 0) & (xi >= 0) & (eps >= 0), delta, np.nan)


def _epsilon(cells: list[Array], _threads: int) -> Array:
    rho, delta, xi = cells
    with np.errstate(all="ignore"):
        depth = -np.log(delta)
        x = _order_less_one(lambda x: x * rho * x + np.log1p(x) - depth)
        parts = np.stack([(x + 1) * rho, xi, -np.log1p(1 / x), depth / x, -np.log1p(x) / x])
        epsilon = np.maximum(0.0, _sum_up(parts))
        epsilon = np.where((delta == 0) | np.isinf(rho), np.inf, epsilon)
        epsilon = np.where((rho == 0) & (xi == 0), 0.0, epsilon)
    return np.where((rho >= 0) & (xi >= 0) & (delta >= 0) & (delta < 1), epsilon, np.nan)


def _order_less_one(rising: Callable[[Array], Array]) -> Array:
    """Return about the root of a rising function of a - 1, by bisection of its logarithm."""
    low = np.full_like(rising(np.float64(1.0)), SMALLEST)  # type: ignore[arg-type]
    high = np.full_like(low, LARGEST)
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = rising(np.exp(middle)) > 0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.exp(low)


def _sum_up(parts: Array) -> Array:
    """Return the sum over the first axis, above its rounding."""
    upper: Array = parts.sum(axis=0) + SHORT_SUM * np.abs(parts).sum(axis=0)
    return upper

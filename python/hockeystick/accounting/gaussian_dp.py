"""Gaussian differential privacy: exact conversions of the parameter mu.

A mechanism is mu-GDP if telling two adjacent data sets apart from its output is no easier than telling
N(0, 1) from N(mu, 1) (Dong, Roth and Su 2022). The Gaussian mechanism with noise multiplier z composed
T times is exactly mu-GDP with mu = sqrt(T)/z.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import ChecksOnNaN, OnError, Result

__all__ = ["gdp_advantage", "gdp_delta", "gdp_epsilon", "gdp_rdp", "gdp_trade_off"]


def gdp_delta(
    mu: ArrayLike, epsilon: ArrayLike, *, num_threads: int | None = None, on_error: OnError = "raise"
) -> Result:
    r"""Return the exact delta(epsilon) of mu-GDP.

    Parameters
    ----------
    mu : array_like
        Gaussian-DP parameter, >= 0; infinity means no privacy.
    epsilon : array_like
        The point at which delta is evaluated, any real number or infinity; natural logarithms.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        delta, of the broadcast shape. Exact up to rounding: relative error 2e-14 (1 + abs(log delta)).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Dong, Roth and Su 2022, Corollary 2.13: :math:`\delta = Q(\epsilon/\mu - \mu/2) - e^\epsilon Q(\epsilon/\mu + \mu/2)`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.format_upper(hs.gdp_delta(1.0, 1.0), ".10f"))
    0.1269367376
    """
    grid = ChecksOnNaN(num_threads, on_error)
    mu = grid.non_negative_or_infinite("mu", mu)
    epsilon = grid.number("epsilon", epsilon)
    return grid.map(core.gdp_delta, mu, epsilon)


def gdp_epsilon(
    mu: ArrayLike, delta: ArrayLike, *, num_threads: int | None = None, on_error: OnError = "raise"
) -> Result:
    """Return the smallest epsilon >= 0 for which mu-GDP is (epsilon, delta)-DP.

    Parameters
    ----------
    mu : array_like
        Gaussian-DP parameter, >= 0; infinity means no privacy.
    delta : array_like
        Target delta in [0, 1].
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        epsilon, of the broadcast shape; infinity where delta = 0 and mu > 0. Exact up to rounding:
        log delta(epsilon) equals log delta to 1e-12 relative.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The root of `gdp_delta`, or 0 where that is negative. `gaussian_epsilon` returns the root itself.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.format_upper(hs.gdp_epsilon(1.0, 1e-5), ".6f"))
    4.377179
    """
    grid = ChecksOnNaN(num_threads, on_error)
    mu = grid.non_negative_or_infinite("mu", mu)
    delta = grid.probability("delta", delta)
    return grid.map(core.gdp_epsilon, mu, delta)


def gdp_trade_off(
    mu: ArrayLike, fpr: ArrayLike, *, num_threads: int | None = None, on_error: OnError = "raise"
) -> Result:
    r"""Return the trade-off function G_mu: the smallest false-negative rate at a false-positive rate.

    Parameters
    ----------
    mu : array_like
        Gaussian-DP parameter, >= 0; infinity means no privacy.
    fpr : array_like
        False-positive rate in [0, 1].
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        False-negative rate of the best test, of the broadcast shape; exact up to rounding.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Dong, Roth and Su 2022, Eq. 6: :math:`G_\mu(\alpha) = \Phi(\Phi^{-1}(1 - \alpha) - \mu)`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.format_lower(hs.gdp_trade_off(1.0, 0.05), ".4f"))
    0.7404
    """
    grid = ChecksOnNaN(num_threads, on_error)
    mu = grid.non_negative_or_infinite("mu", mu)
    fpr = grid.probability("fpr", fpr)
    return grid.map(core.gdp_trade_off, mu, fpr)


def gdp_rdp(mu: ArrayLike, order: ArrayLike, *, num_threads: int | None = None, on_error: OnError = "raise") -> Result:
    """Return the Renyi divergence bound of mu-GDP at an order.

    Parameters
    ----------
    mu : array_like
        Gaussian-DP parameter, >= 0; infinity means no privacy.
    order : array_like
        Renyi order, positive and finite; 1 is the Kullback-Leibler divergence.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Renyi divergence order mu^2/2 in nats, of the broadcast shape; exact.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Mironov 2017, Corollary 3. There is no way back: a Renyi curve that lies below this one does not imply mu-GDP.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.gdp_rdp(0.5, 8.0))
    1.0
    """
    grid = ChecksOnNaN(num_threads, on_error)
    mu = grid.non_negative_or_infinite("mu", mu)
    order = grid.positive("order", order)
    return grid.map(core.gdp_rdp, mu, order)


def gdp_advantage(mu: ArrayLike, *, num_threads: int | None = None, on_error: OnError = "raise") -> Result:
    """Return the largest membership advantage (true-positive minus false-positive rate) under mu-GDP.

    Parameters
    ----------
    mu : array_like
        Gaussian-DP parameter, >= 0; infinity means no privacy.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        The total variation distance theta(0, mu) = delta(0); exact up to rounding.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.format_upper(hs.gdp_advantage(1.0), ".10f"))
    0.3829249226
    """
    grid = ChecksOnNaN(num_threads, on_error)
    mu = grid.non_negative_or_infinite("mu", mu)
    return grid.map(core.gdp_advantage, mu)

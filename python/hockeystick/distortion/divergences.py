"""Distances of distributions: discrete ones, and a Gaussian from itself with more noise. Natural logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, broadcast, pmf
from hockeystick._numeric.search import largest_within
from hockeystick.distortion.domains import LOG_2, checked

__all__ = [
    "chi_squared_divergence",
    "gaussian_tv_isotropic",
    "hockey_stick_divergence",
    "jensen_shannon_distance",
    "jensen_shannon_divergence",
    "kl_divergence",
    "noise_variance_for_tv",
    "total_variation_distance",
]


def pair(first: str, p: ArrayLike, second: str, q: ArrayLike) -> tuple[Array, Array]:
    """Check two distributions over the same outcomes, which are the last axis."""
    left, right = pmf(first, p), pmf(second, q)
    if left.shape[-1] != right.shape[-1]:
        raise ValueError(
            f"{second} must have as many outcomes as {first}, not the shapes {right.shape} and {left.shape}"
        )
    left, right = broadcast(left, right)
    return left, right


def log_ratio(p: Array, q: Array) -> Array:
    """Return log(p/q), also where the ratio is beyond the doubles; NaN where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = p / q
        return np.where(np.isinf(ratio), np.log(p) - np.log(q), np.log(ratio))


def total_variation_distance(p: ArrayLike, q: ArrayLike) -> Result:
    """Return the total variation distance of two discrete distributions.

    Parameters
    ----------
    p, q : array_like of shape (..., k)
        Probabilities, which sum to 1 within 1e-9 along the last axis.

    Returns
    -------
    ndarray or float
        Half the sum of absolute differences, in [0, 1]; of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes differ.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.total_variation_distance([0.5, 0.5], [0.9, 0.1]):.1f}")
    0.4
    """
    p, q = pair("p", p, "q", q)
    return (np.abs(p - q).sum(axis=-1) / 2.0)[()]


def kl_divergence(p: ArrayLike, q: ArrayLike) -> Result:
    """Return the Kullback-Leibler divergence of p from q.

    Parameters
    ----------
    p, q : array_like of shape (..., k)
        Probabilities, which sum to 1 within 1e-9 along the last axis.

    Returns
    -------
    ndarray or float
        The sum of p log(p/q) in nats, infinite where q = 0 < p; of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes differ.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.kl_divergence([0.5, 0.5], [0.9, 0.1]):.6f}")
    0.510826
    """
    p, q = pair("p", p, "q", q)
    with np.errstate(invalid="ignore"):
        terms = np.where(p > 0, p * log_ratio(p, q), 0.0)
    return terms.sum(axis=-1)[()]


def chi_squared_divergence(p: ArrayLike, q: ArrayLike) -> Result:
    """Return the chi-squared divergence of p from q.

    Parameters
    ----------
    p, q : array_like of shape (..., k)
        Probabilities, which sum to 1 within 1e-9 along the last axis.

    Returns
    -------
    ndarray or float
        The sum of (p - q)^2/q, infinite where q = 0 < p; of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes differ.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.chi_squared_divergence([0.5, 0.5], [0.9, 0.1]):.6f}")
    1.777778
    """
    p, q = pair("p", p, "q", q)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        terms = np.where(p == q, 0.0, np.abs(p - q) * (np.abs(p - q) / q))
    return terms.sum(axis=-1)[()]


def hockey_stick_divergence(p: ArrayLike, q: ArrayLike, epsilon: ArrayLike) -> Result:
    """Return the hockey-stick divergence of p from q.

    Parameters
    ----------
    p, q : array_like of shape (..., k)
        Probabilities, which sum to 1 within 1e-9 along the last axis.
    epsilon : array_like
        Logarithm of gamma, >= 0; 0 gives the total variation distance. Shape (...).

    Returns
    -------
    ndarray or float
        The sum of the positive parts of p - e^epsilon q, in [0, 1]; of shape (...). The formula itself, not rounded up: for a guarantee
        ask `hockeystick.Accountant` for a `hockeystick.mechanisms.Discrete` step.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes differ.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.hockey_stick_divergence([0.9, 0.1], [0.5, 0.5], 0.2):.6f}")
    0.289299
    """
    p, q = pair("p", p, "q", q)
    root = np.exp(np.minimum(STRICT.non_negative_or_infinite("epsilon", epsilon), 1400.0) / 2.0)[..., np.newaxis]
    with np.errstate(over="ignore"):
        return np.maximum(p - root * (root * q), 0.0).sum(axis=-1)[()]


def spread(r: Array) -> Array:
    """Return the divergence of {(1+r)/2, (1-r)/2} from a fair coin, for |r| <= 1.

    r artanh r + log(1 - r^2)/2, without cancellation: for small r as it stands, else by 1 - r, which is exact.
    """
    size = np.abs(r)
    safe = np.where(size < 1, size, 0.0)
    with np.errstate(divide="ignore"):
        log = np.where(safe > 0.5, np.log((1.0 - safe) * (1.0 + safe)), np.log1p(-(safe**2)))
    return np.where(size < 1, safe * np.arctanh(safe) + 0.5 * log, LOG_2)


def jensen_shannon_divergence(p: ArrayLike, q: ArrayLike) -> Result:
    """Return the Jensen-Shannon divergence of two discrete distributions.

    Parameters
    ----------
    p, q : array_like of shape (..., k)
        Probabilities, which sum to 1 within 1e-9 along the last axis.

    Returns
    -------
    ndarray or float
        In nats, in [0, ln 2]; of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes differ.

    Notes
    -----
    The mean divergence of p and q from (p + q)/2, written with r = (p - q)/(p + q), so that p close to q loses no digits. SciPy's
    function of this name returns the square root.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.jensen_shannon_divergence([0.5, 0.5], [0.9, 0.1]):.9f}")
    0.101749225
    """
    p, q = pair("p", p, "q", q)
    total = p + q
    r = (p - q) / np.where(total > 0, total, 1.0)
    return (0.5 * total * spread(r)).sum(axis=-1)[()]


def jensen_shannon_distance(p: ArrayLike, q: ArrayLike) -> Result:
    """Return the square root of the Jensen-Shannon divergence, which is a metric.

    Parameters
    ----------
    p, q : array_like of shape (..., k)
        Probabilities, which sum to 1 within 1e-9 along the last axis.

    Returns
    -------
    ndarray or float
        In [0, sqrt(ln 2)]; of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes differ.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.jensen_shannon_distance([0.5, 0.5], [0.9, 0.1]):.9f}")
    0.318981543
    """
    return np.sqrt(jensen_shannon_divergence(p, q))


MAX_RATIO = 1e300  # of the variances, from where the distance is 1 in doubles


def gaussian_tv_isotropic(variance: ArrayLike, noise_variance: ArrayLike, dimension: ArrayLike) -> Result:
    r"""Return the total variation distance of an isotropic Gaussian from itself with independent noise added.

    Parameters
    ----------
    variance : array_like
        Variance per coordinate without the noise, positive.
    noise_variance : array_like
        Variance per coordinate of the noise, non-negative.
    dimension : array_like
        Number of coordinates d, a positive integer.

    Returns
    -------
    ndarray or float
        Exact up to rounding, about 1e-12 relative; of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    With rho the ratio of the variances, b = 1 + rho and r = d b ln(b)/rho, the densities cross at squared radius r, so that
    the distance is :math:`P(\chi^2_d \le r) - P(\chi^2_d \le r/b)`. In u = ln(squared radius/d) that is the integral of
    :math:`\kappa e^{(d/2)(u - e^u + 1)}` over an interval of length ln b, :math:`\kappa = (d/2)^{d/2}e^{-d/2}/\Gamma(d/2)`:
    so it is computed where the interval is short, and the difference would cancel.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.gaussian_tv_isotropic(1.0, 0.05, 100):.9f}")
    0.136726921
    """
    variance, noise, dimension = checked(locals())
    with np.errstate(over="ignore"):
        ratio = np.minimum(noise / variance, MAX_RATIO)
    return _tv_of_ratio(ratio, dimension)[()]


def _tv_of_ratio(ratio: Array, dimension: Array) -> Array:
    from scipy import special  # noqa: PLC0415 - takes longer to import than everything else here

    half = dimension / 2.0
    log_b = np.log1p(ratio)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        low = np.where(ratio > 0, log_b / ratio, 1.0)  # r/(b d)
        far = special.gammainc(half, half * (low + log_b)) - special.gammainc(half, half * low)
    near = np.minimum(log_b, 1.0 / np.sqrt(half))  # kept where it is all of the interval
    nodes, weights = np.polynomial.legendre.leggauss(12)
    u = (np.log(low) + near / 2.0)[..., np.newaxis] + near[..., np.newaxis] / 2.0 * nodes
    peak = np.exp(half[..., np.newaxis] * (u - np.expm1(u)))
    short = _kappa(half, special) * near / 2.0 * (peak @ weights)
    return np.clip(np.where(log_b <= 1.0 / np.sqrt(half), short, far), 0.0, 1.0)


def _kappa(half: Array, special: Any) -> Array:
    """Return a^a e^-a/Gamma(a), by Stirling's series where the logarithms would cancel."""
    big = np.maximum(half, 20.0)
    series = 1.0 / (12.0 * big) - 1.0 / (360.0 * big**3) + 1.0 / (1260.0 * big**5) - 1.0 / (1680.0 * big**7)
    small = np.minimum(half, 20.0)
    direct = np.exp(small * np.log(small) - small - special.gammaln(small))
    return np.where(half > 20.0, np.sqrt(big / (2.0 * np.pi)) * np.exp(-series), direct)


def noise_variance_for_tv(total_variation: ArrayLike, variance: ArrayLike, dimension: ArrayLike) -> Result:
    """Return the most noise that keeps an isotropic Gaussian within a total variation distance of itself.

    Parameters
    ----------
    total_variation : array_like
        Largest distance, in [0, 1).
    variance : array_like
        Variance per coordinate without the noise, positive.
    dimension : array_like
        Number of coordinates d, a positive integer.

    Returns
    -------
    ndarray or float
        Variance per coordinate of the noise, of the broadcast shape; the inverse of `gaussian_tv_isotropic`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    A distance is no privacy guarantee. Published bounds of the distance (`hockeystick.published.gaussian_tv_bounds`) give 24
    to 28 times as much noise.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.noise_variance_for_tv(0.05, 1.0, 100):.9f}")
    0.017924529
    """
    distance, variance, dimension = checked(locals(), total_variation=(lambda x: (x >= 0) & (x < 1), "lie in [0, 1)"))
    # The distance is at most rho sqrt(d)/(2 sqrt(pi)), so this start is feasible.
    start = np.where(distance > 0, distance, 1.0) * 3.5 / np.sqrt(dimension)
    ratio = largest_within(lambda rho: _tv_of_ratio(rho, dimension), distance, start)
    return np.where(distance > 0, ratio * variance, 0.0)[()]

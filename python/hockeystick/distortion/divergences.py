"""Distances of distributions: discrete ones, and a Gaussian from itself with more noise. Natural logarithms."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, broadcast, pmf

__all__ = [
    "chi_squared_divergence",
    "hockey_stick_divergence",
    "jensen_shannon_distance",
    "jensen_shannon_divergence",
    "kl_divergence",
    "total_variation_distance",
]

LOG_2 = math.log(2.0)


def pair(first: str, p: ArrayLike, second: str, q: ArrayLike) -> tuple[Array, Array]:
    """Check two distributions over the same outcomes, which are the last axis."""
    left, right = pmf(first, p), pmf(second, q)
    if left.shape[-1] != right.shape[-1]:
        msg = f"{second} must have as many outcomes as {first}, not the shapes {right.shape} and {left.shape}"
        raise ValueError(msg)
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


def hockey_stick_divergence(p: ArrayLike, q: ArrayLike, eps: ArrayLike) -> Result:
    """Return the hockey-stick divergence of p from q.

    Parameters
    ----------
    p, q : array_like of shape (..., k)
        Probabilities, which sum to 1 within 1e-9 along the last axis.
    eps : array_like
        Logarithm of gamma, >= 0; 0 gives the total variation distance. Shape (...).

    Returns
    -------
    ndarray or float
        The sum of the positive parts of p - e^eps q, in [0, 1]; of shape (...). The formula itself, not rounded up: for a guarantee
        ask `hockeystick.Accountant` for a `hockeystick.Discrete` step.

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
    root = np.exp(np.minimum(STRICT.non_negative_or_infinite("eps", eps), 1400.0) / 2.0)[..., np.newaxis]
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

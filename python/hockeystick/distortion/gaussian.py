"""The total variation distance of a Gaussian from itself with more noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, broadcast
from hockeystick._numeric.search import largest_within

__all__ = ["gaussian_tv_isotropic", "noise_variance_for_tv"]

MOST_RATIO = 1e300  # of the variances, from where the distance is 1 in doubles


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
    ImportError
        If SciPy is not installed.

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
    variance, noise, dimension = broadcast(
        STRICT.positive("variance", variance),
        STRICT.non_negative("noise_variance", noise_variance),
        STRICT.count("dimension", dimension),
    )
    with np.errstate(over="ignore"):
        ratio = np.minimum(noise / variance, MOST_RATIO)
    return _tv_of_ratio(ratio, dimension)[()]


def _special() -> Any:
    try:
        from scipy import special  # noqa: PLC0415 - needed here only
    except ImportError as error:
        msg = 'the incomplete gamma function needs SciPy: pip install ".[distortion]" in a clone'
        raise ImportError(msg) from error
    return special


def _tv_of_ratio(ratio: Array, dimension: Array) -> Array:
    special = _special()
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
    ImportError
        If SciPy is not installed.

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
    distance, variance, dimension = broadcast(
        STRICT.within("total_variation", total_variation, (lambda x: (x >= 0) & (x < 1), "lie in [0, 1)")),
        STRICT.positive("variance", variance),
        STRICT.count("dimension", dimension),
    )
    # The distance is at most rho sqrt(d)/(2 sqrt(pi)), so this start is feasible.
    start = np.where(distance > 0, distance, 1.0) * 3.5 / np.sqrt(dimension)
    ratio = largest_within(lambda rho: _tv_of_ratio(rho, dimension), distance, start)
    return np.where(distance > 0, ratio * variance, 0.0)[()]

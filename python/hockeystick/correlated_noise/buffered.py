"""Buffered linear Toeplitz strategies, by their parameters."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, at_most, count_scalar, same_length, vector
from hockeystick._numeric.rounding import UNIT

__all__ = ["buffered_coefficients"]


def buffered_coefficients(decays: ArrayLike, scales: ArrayLike, *, num_steps: int) -> Array:
    """Return the coefficients of a buffered linear Toeplitz strategy (BLT).

    Parameters
    ----------
    decays : array_like
        theta_i, by which buffer i is multiplied in each step, in [0, 1]; of shape (buffers,).
    scales : array_like
        omega_i, what is read of buffer i, non-negative and finite; as many, or one number for all.
    num_steps : int
        How many coefficients: the number of steps, at most 2^24.

    Returns
    -------
    ndarray
        Of shape (num_steps,): 1, and for k >= 1 sum_i omega_i theta_i^(k-1), rounded up by some units in the last place (what is below 1e-300 may be
        0, which the margin of a sensitivity pays for). All are non-negative: the sensitivity of larger ones is larger.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024 (arXiv 2404.16706); McMahan, Xu and Zhang 2024 (arXiv 2408.08868). Where scales add up to at
    most 1 the coefficients never rise, and `matrix_sensitivity` is exact for any number of participations.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick import correlated_noise
    >>> coefficients = correlated_noise.buffered_coefficients([0.99, 0.8], [0.1, 0.4], num_steps=1000)
    >>> found = correlated_noise.matrix_sensitivity(
    ...     coefficients, num_steps=1000, participation="min_separation", separation=200
    ... )
    >>> print(hs.format_upper(found.upper, ".4f"), found.method)
    3.5486 largest products by position
    """
    rates = vector("decays", STRICT.probability("decays", decays))
    read = vector("scales", STRICT.non_negative("scales", scales))
    rates, read = same_length(decays=rates, scales=read)
    num_steps = count_scalar("num_steps", num_steps)
    at_most("num_steps", num_steps, "the largest supported", 2.0**24)
    coefficients = np.zeros(num_steps)
    coefficients[0] = 1.0
    with np.errstate(over="ignore"):
        for rate, scale in zip(rates, read, strict=True):
            coefficients[1:] += scale * rate ** np.arange(num_steps - 1, dtype=np.float64)
        coefficients[1:] *= 1.0 + (len(rates) + 8) * UNIT
    if not np.isfinite(coefficients).all():
        msg = f"scales must have a finite sum, not one that overflows, of a largest scale of {read.max()}"
        raise ValueError(msg)
    if math.fsum(read) <= 1.0:  # never rising, and so it stays where rounding up lets one rise
        coefficients = np.maximum.accumulate(coefficients[::-1])[::-1].copy()
    return coefficients

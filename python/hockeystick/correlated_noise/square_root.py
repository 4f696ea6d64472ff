"""The square root of the matrix of prefix sums, and the inverse of it, as coefficients."""

from __future__ import annotations

import numpy as np

from hockeystick._checks import Array, at_most, count_scalar

__all__ = ["inverse_square_root_coefficients", "square_root_coefficients"]


def square_root_coefficients(bands: int) -> Array:
    """Return the first coefficients of the square root of the matrix of prefix sums.

    Parameters
    ----------
    bands : int
        How many, at least 1; as many as there are steps for the root itself, fewer for a banded strategy.

    Returns
    -------
    ndarray
        Of shape (bands,): binomial(2j, j)/4^j, falling.

    Raises
    ------
    ValueError
        If bands is outside its domain.

    Notes
    -----
    Fichtenberger, Henzinger and Upadhyay 2022 (arXiv 2202.11205); banded by Kalinin and Lampert 2024 (arXiv 2405.13763).

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> correlated_noise.square_root_coefficients(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    bands = count_scalar("bands", bands)
    at_most("bands", bands, "the largest supported", 2.0**24)
    places = np.arange(1, bands)
    return np.cumprod(np.concatenate([[1.0], 1.0 - 0.5 / places]))


def inverse_square_root_coefficients(bands: int) -> Array:
    """Return the first coefficients of the inverse of the square root of the matrix of prefix sums.

    Parameters
    ----------
    bands : int
        How many, at least 1: the bands of the inverse of a strategy, for `inverse_sensitivity` and `strategy_of_inverse`.

    Returns
    -------
    ndarray
        Of shape (bands,): 1, and then -binomial(2j, j)/(4^j (2j - 1)).

    Raises
    ------
    ValueError
        If bands is outside its domain.

    Notes
    -----
    The coefficients of (1 - x)^(1/2). Cut off after `bands` they are the inverse of the strategy BISR of Kalinin, McKenna, Upadhyay and Lampert
    2025 (arXiv 2505.12128).

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> correlated_noise.inverse_square_root_coefficients(4).tolist()
    [1.0, -0.5, -0.125, -0.0625]
    """
    root = square_root_coefficients(bands)
    return -root / (2.0 * np.arange(root.size) - 1.0)

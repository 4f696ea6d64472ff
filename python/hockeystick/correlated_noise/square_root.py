"""The square root of the matrix of ones, as coefficients."""

from __future__ import annotations

import numpy as np

from hockeystick._checks import Array, at_most, count_scalar

__all__ = ["square_root_coefficients"]


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

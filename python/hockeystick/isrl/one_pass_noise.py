"""Noise of a single pass over disjoint batches, in which each record is used once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Result, broadcast
from hockeystick.kernels import theta_inverse

__all__ = ["one_pass_sigma"]

MARGIN = 1e-9  # more noise than the closed form, to cover its rounding


def one_pass_sigma(*, lipschitz: ArrayLike, batch_size: ArrayLike, epsilon: ArrayLike, delta: ArrayLike) -> Result:
    """Return the noise of a single pass over disjoint batches that keeps one silo's transcript within a budget.

    Parameters
    ----------
    lipschitz : array_like
        Clip norm of each record's gradient, L, positive.
    batch_size : array_like
        Records in each batch, K; a record is in one batch only.
    epsilon : array_like
        Budget for one record replaced, positive and finite.
    delta : array_like
        Budget, in (0, 1).

    Returns
    -------
    ndarray or float
        Standard deviation per coordinate of the noise on the mean of the batch's gradients, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The analytic Gaussian mechanism (Balle and Wang 2018) of sensitivity 2L/K: no composition, since batches are disjoint.
    Theorem E.1 of Lowy and Razaviyayn 2023 prints up to 2.8 times as much (`hockeystick.published.one_pass_sigma`).

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> print(format_upper(isrl.one_pass_sigma(lipschitz=1.0, batch_size=10, epsilon=1.0, delta=1e-5), ".6f"))
    0.746127
    """
    lipschitz, batch_size, epsilon, delta = broadcast(
        STRICT.positive("lipschitz", lipschitz),
        STRICT.count("batch_size", batch_size),
        STRICT.positive("epsilon", epsilon),
        STRICT.inside("delta", delta),
    )
    sigma = 2.0 * lipschitz / batch_size / theta_inverse(epsilon, delta) * (1.0 + MARGIN)
    return np.nextafter(sigma, np.inf)[()]  # subnormal numbers round by more than the margin

"""How far the silos' gradients are from their mean, and what a round's noisy average misses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import (
    STRICT,
    Result,
)
from hockeystick.isrl.arguments import checked, left_out

__all__ = ["Heterogeneity", "heterogeneity", "noisy_gradient_variance"]


class Heterogeneity(NamedTuple):
    """How far the silos' gradients are from their mean.

    Attributes
    ----------
    around_mean : float or ndarray
        upsilon^2 at this point: (1/N) sum of the squared distances to the mean gradient.
    around_zero : float or ndarray
        (1/N) sum of the squared norms; at the optimum it is upsilon_*^2.
    """

    around_mean: Result
    around_zero: Result


def heterogeneity(gradients: ArrayLike) -> Heterogeneity:
    """Return how far the silos' gradients are from their mean, and from zero, at one point or several.

    Parameters
    ----------
    gradients : array_like of shape (..., N, d)
        Gradient of each silo's objective.

    Returns
    -------
    Heterogeneity
        Of shape (...). The paper's upsilon^2 is the supremum of `around_mean` over the domain: no finite set of points gives it.

    Raises
    ------
    ValueError
        If there are fewer than two axes.

    Notes
    -----
    Section 3 of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print("{:.1f} {:.1f}".format(*isrl.heterogeneity([[1.0], [-1.0]])))
    1.0 1.0
    """
    silos = STRICT.finite("gradients", gradients)
    if silos.ndim < 2 or silos.size == 0:
        msg = f"gradients must have the shape (..., silos, dimension), not {silos.shape}"
        raise ValueError(msg)
    centred = silos - silos.mean(axis=-2, keepdims=True)
    return Heterogeneity(*((np.sum(x**2, axis=-1)).mean(axis=-1)[()] for x in (centred, silos)))


def noisy_gradient_variance(
    *,
    gradient_std: ArrayLike,
    batch_size: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    heterogeneity: ArrayLike,
    dimension: ArrayLike,
    noise_std: ArrayLike,
) -> Result:
    r"""Return the mean squared error of a round's noisy average gradient.

    Parameters
    ----------
    gradient_std : array_like
        Largest root mean square distance phi of a record's gradient to its silo's, >= 0.
    batch_size : array_like
        Records of each silo in a round, K.
    silos_per_round : array_like
        Harmonic mean M of the number of participating silos, in [1, num_silos]; need not be an integer.
    num_silos : array_like
        Number of silos, N.
    heterogeneity : array_like
        Largest root mean square distance upsilon of a silo's gradient to the mean of all, >= 0.
    dimension : array_like
        Number of coordinates, d.
    noise_std : array_like
        Noise of each silo per coordinate, >= 0; `mean_noise_std` if they differ.

    Returns
    -------
    ndarray or float
        :math:`\phi^2/(MK) + \frac{N-M}{N-1}\upsilon^2/M + d\sigma^2/M`, of the broadcast shape; the middle term is 0 for N = 1.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma E.3 of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> variance = isrl.noisy_gradient_variance(
    ...     gradient_std=1.0, batch_size=10, silos_per_round=5, num_silos=20, heterogeneity=2.0, dimension=10, noise_std=0.5
    ... )
    >>> print(f"{variance:.6f}")
    1.151579
    """
    phi, batch, taking_part, silos, upsilon, dimension, sigma = checked(
        gradient_std=gradient_std,
        batch_size=batch_size,
        silos_per_round=silos_per_round,
        num_silos=num_silos,
        heterogeneity=heterogeneity,
        dimension=dimension,
        noise_std=noise_std,
    )
    return ((phi**2 / batch + left_out(taking_part, silos) * upsilon**2 + dimension * sigma**2) / taking_part)[()]

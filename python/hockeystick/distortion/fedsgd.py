"""A round of federated SGD with distorted parameters: step, distort, average."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, non_negative_scalar, pmf, positive_scalar, vector
from hockeystick._checks.shown import shown
from hockeystick.distortion.updates import checked_gradients

__all__ = ["aggregate", "distort_parameters", "fedsgd_local_step"]


def fedsgd_local_step(w: ArrayLike, gradients: ArrayLike, *, learning_rate: float) -> Array:
    """Return a client's parameter after one step on its batch.

    Parameters
    ----------
    w : array_like of shape (d,)
        Parameter before the step.
    gradients : array_like of shape (n, d)
        Gradient of each record of the batch, which is not empty.
    learning_rate : float
        eta, positive.

    Returns
    -------
    ndarray of shape (d,)
        w - eta (mean of gradients).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Zhang, Chen and Yang 2023, Equation 7.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(distortion.fedsgd_local_step([2.0, 2.0], [[1.0, 2.0], [2.0, 1.0]], learning_rate=0.5))
    [1.25 1.25]
    """
    start = vector("w", STRICT.finite("w", w))
    rows = checked_gradients(gradients)
    return np.asarray(start - positive_scalar("learning_rate", learning_rate) * rows.mean(axis=0))


def distort_parameters(w: ArrayLike, noise_variance: float, rng: np.random.Generator) -> Array:
    """Return a parameter with Gaussian noise added.

    Parameters
    ----------
    w : array_like of shape (d,)
        The parameter.
    noise_variance : float
        Variance per coordinate, >= 0.
    rng : numpy.random.Generator
        Source of randomness. Not cryptographic: for experiments.

    Returns
    -------
    ndarray of shape (d,)
        w + N(0, noise_variance I).

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If rng is no generator.

    Notes
    -----
    Zhang, Chen and Yang 2023, Equation 8 and Algorithm 3.

    Examples
    --------
    >>> import numpy as np
    >>> from hockeystick import distortion
    >>> print(distortion.distort_parameters([1.0, 2.0], 0.0, np.random.default_rng(1)))
    [1. 2.]
    """
    start = vector("w", STRICT.finite("w", w))
    noise = non_negative_scalar("noise_variance", noise_variance)
    if not isinstance(rng, np.random.Generator):
        msg = f"rng must be a numpy.random.Generator, as numpy.random.default_rng(seed) makes one, not {shown(rng)}"
        raise TypeError(msg)
    return np.asarray(start + np.sqrt(noise) * rng.standard_normal(start.shape))


def aggregate(parameters: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """Return the average of the clients' parameters.

    Parameters
    ----------
    parameters : array_like of shape (K, d)
        Parameter of each client.
    weights : array_like of shape (K,), optional
        Weights that sum to 1; equal if not given.

    Returns
    -------
    ndarray of shape (d,)
        The average.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes do not match.

    Notes
    -----
    Zhang, Chen and Yang 2023, Equation 9 (equal weights) and Algorithm 1 (shares of the data).

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(distortion.aggregate([[1.0, 2.0], [3.0, 6.0]], [0.25, 0.75]))
    [2.5 5. ]
    """
    rows = STRICT.finite("parameters", parameters)
    if rows.ndim != 2 or rows.size == 0:
        msg = f"parameters must have the shape (clients, dimension) and not be empty, not {rows.shape}"
        raise ValueError(msg)
    if weights is None:
        return np.asarray(rows.mean(axis=0))
    share = pmf("weights", weights)
    if share.shape != rows.shape[:1]:
        msg = f"weights must have one entry for each client, not the shapes {share.shape} and {rows.shape}"
        raise ValueError(msg)
    return np.asarray(share @ rows)

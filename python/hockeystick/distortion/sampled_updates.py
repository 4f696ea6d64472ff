"""Federated SGD with sampled records and distorted parameters: a round's steps, and the moments of updates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import (
    OPEN_PROBABILITY,
    STRICT,
    Array,
    matrix,
    non_negative_scalar,
    pmf,
    positive_scalar,
    random_generator,
    scalar,
    vector,
)
from hockeystick._checks.arguments import scalars
from hockeystick._numeric.binomial import binomial_pmf

__all__ = [
    "BatchMeanVariance",
    "aggregate",
    "batch_mean_gradient_variance",
    "distort_parameters",
    "fedsgd_local_step",
    "normalised_gradient_variance",
    "sampled_update_mean",
    "sampled_update_variance",
]


def checked_gradients(gradients: ArrayLike) -> Array:
    """Return gradients of shape (M, d); a vector holds numbers."""
    rows = STRICT.finite("gradients", gradients)
    return matrix("gradients", rows[:, np.newaxis] if rows.ndim == 1 else rows, "(records, dimension)")


def sampled_update_mean(
    w_previous: ArrayLike,
    gradients: ArrayLike,
    sampling_rate: float,
    *,
    noise: ArrayLike = 0.0,
    learning_rate: float = 1.0,
) -> Array:
    """Return the expectation of a step with the summed gradients of Poisson-sampled records.

    Parameters
    ----------
    w_previous : array_like of shape (d,)
        Parameter before the step; a scalar is repeated.
    gradients : array_like of shape (M, d) or (M,)
        Gradient of each record.
    sampling_rate : float
        Probability p of each record in each of the sampling rounds that are averaged, in (0, 1).
    noise : array_like of shape (d,)
        The distortion, which is given.
    learning_rate : float
        eta, positive.

    Returns
    -------
    ndarray of shape (d,)
        w - eta p (sum of gradients) + noise.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Zhang, Chen and Yang 2023, Lemma 5.9, which has eta = 1.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(distortion.sampled_update_mean(1.0, [1.0, 2.0, 3.0], 0.2, noise=0.1).round(6))
    [-0.1]
    """
    start = STRICT.finite("w_previous", w_previous)
    rows = checked_gradients(gradients)
    p = scalar("sampling_rate", sampling_rate, *OPEN_PROBABILITY)
    added = STRICT.finite("noise", noise)
    return np.asarray(start - positive_scalar("learning_rate", learning_rate) * p * rows.sum(axis=0) + added)


def sampled_update_variance(
    gradients: ArrayLike,
    sampling_rate: float,
    *,
    rounds: int = 1,
    learning_rate: float = 1.0,
    noise_variance: float = 0.0,
) -> float:
    """Return the variance (trace) of a step with the summed gradients of Poisson-sampled records.

    Parameters
    ----------
    gradients : array_like of shape (M, d) or (M,)
        Gradient of each record.
    sampling_rate : float
        Probability p of each record in each sampling round, in (0, 1).
    rounds : int
        Sampling rounds N that are averaged.
    learning_rate : float
        eta, positive.
    noise_variance : float
        Variance per coordinate of independent noise on the parameter, >= 0.

    Returns
    -------
    float
        eta^2 (p (1 - p)/N) (sum of squared norms) + d noise_variance.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Zhang, Chen and Yang 2023, Theorem 5.10, with the 1/N of its proof, which the statement lacks
    (`hockeystick.published.sampled_update_variance`).

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.sampled_update_variance([1.0, 2.0, 3.0], 0.2, rounds=4):.2f}")
    0.56
    """
    rows = checked_gradients(gradients)
    p, number, rate, noise = scalars(locals(), sampling_rate="inside")
    return float(rate**2 * p * (1.0 - p) / number * (rows**2).sum() + rows.shape[1] * noise)


class BatchMeanVariance(NamedTuple):
    """Variance of the mean gradient of a Poisson-sampled batch that is not empty.

    Attributes
    ----------
    variance : float
        Trace of the covariance, given a batch.
    factor : float
        What the sample variance of the gradients is multiplied by, E[(1/n)(1 - n/M) | n >= 1].
    empty : float
        Probability that no record is drawn.
    """

    variance: float
    factor: float
    empty: float


def batch_mean_gradient_variance(
    gradients: ArrayLike, sampling_rate: float, *, learning_rate: float = 1.0
) -> BatchMeanVariance:
    """Return the variance of the mean gradient of a Poisson-sampled batch, given that it is not empty.

    Parameters
    ----------
    gradients : array_like of shape (M, d) or (M,)
        Gradient of each record.
    sampling_rate : float
        Probability p of each record, in (0, 1).
    learning_rate : float
        eta, positive.

    Returns
    -------
    BatchMeanVariance
        Exact; the mean is that of all gradients, whatever p.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The estimator of Algorithm 2 of Zhang, Chen and Yang 2023, to which their Theorem 5.10 does not apply.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> gradients = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [-2.0, 0.5]]
    >>> print(f"{distortion.batch_mean_gradient_variance(gradients, 0.3).variance:.6f}")
    1.368893
    """
    rows = checked_gradients(gradients)
    p = scalar("sampling_rate", sampling_rate, *OPEN_PROBABILITY)
    rate = positive_scalar("learning_rate", learning_rate)
    records = rows.shape[0]
    sizes = np.arange(1, records + 1)
    weights = binomial_pmf(records, p)
    factor = float(weights[1:] @ (1.0 / sizes - 1.0 / records) / weights[1:].sum())
    spread = float(((rows - rows.mean(axis=0)) ** 2).sum()) / max(records - 1, 1)
    return BatchMeanVariance(rate**2 * spread * factor, factor, float(weights[0]))


def normalised_gradient_variance(gradients: ArrayLike, sampling_rate: float, *, learning_rate: float = 1.0) -> float:
    """Return the variance of the summed gradients of a Poisson-sampled batch, divided by its expected size.

    Parameters
    ----------
    gradients : array_like of shape (M, d) or (M,)
        Gradient of each record.
    sampling_rate : float
        Probability p of each record, in (0, 1).
    learning_rate : float
        eta, positive.

    Returns
    -------
    float
        eta^2 (1 - p)/(p M^2) (sum of squared norms): what DP-SGD uses, unbiased for the mean gradient.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> gradients = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [-2.0, 0.5]]
    >>> print(f"{distortion.normalised_gradient_variance(gradients, 0.3):.6f}")
    1.640625
    """
    rows = checked_gradients(gradients)
    scale = rows.shape[0] * scalar("sampling_rate", sampling_rate, *OPEN_PROBABILITY)
    return float(sampled_update_variance(rows, sampling_rate, learning_rate=learning_rate) / scale**2)


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
    random_generator("rng", rng)
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
    rows = matrix("parameters", parameters, "(clients, dimension)")
    if weights is None:
        return np.asarray(rows.mean(axis=0))
    share = pmf("weights", weights)
    if share.shape != rows.shape[:1]:
        raise ValueError(f"weights must have one entry for each client, not the shapes {share.shape} and {rows.shape}")
    return np.asarray(share @ rows)

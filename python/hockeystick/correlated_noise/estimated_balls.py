"""An estimate, by sampling, of the delta of balls-in-bins batches with correlated noise: what `balls_in_bins` bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Array, positive_scalar, seed_scalar
from hockeystick.correlated_noise.balls_in_bins import bin_covariances
from hockeystick.correlated_noise.estimates import DeltaEstimate, Sampling

__all__ = ["estimate_balls_in_bins_delta"]


def estimate_balls_in_bins_delta(
    strategy: ArrayLike,
    *,
    num_steps: int | None = None,
    bins: int,
    noise_multiplier: float,
    eps: float,
    samples: int = 100_000,
    confidence: float = 0.99,
    seed: int,
) -> DeltaEstimate:
    """Estimate the delta of a matrix mechanism with balls-in-bins batches by sampling its likelihood ratio.

    Parameters
    ----------
    strategy : array_like
        C, or its coefficients: see `balls_in_bins`.
    num_steps : int, optional
        With coefficients, and only there: the number of steps.
    bins : int
        As in `balls_in_bins`.
    noise_multiplier : float
        Standard deviation of the entries of z over the clip norm, positive and finite.
    eps : float
        Non-negative and finite, chosen before the samples are seen.
    samples : int
        How many, at least 2; the ends are no nearer to each other than about 5/samples.
    confidence : float
        In (0, 1): the probability with which both ends hold.
    seed : int
        Of `numpy.random.default_rng`, in [0, 2^64).

    Returns
    -------
    DeltaEstimate
        An estimate, with an empirical Bernstein interval (Maurer and Pontil 2009, Theorem 4) in each direction.

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If an argument is of a wrong type.

    Notes
    -----
    The law and the likelihood ratio are those in `hockeystick.correlated_noise.balls_in_bins`, sampled in as many dimensions as there are bins. Where C has
    no negative entry the pair is attained, and this is the delta of the mechanism.

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> setting = {"num_steps": 100, "bins": 20, "noise_multiplier": 4.0}
    >>> found = correlated_noise.estimate_balls_in_bins_delta([1.0, 0.5], **setting, eps=0.5, seed=1)
    >>> bound = correlated_noise.balls_in_bins([1.0, 0.5], **setting).delta(0.5)
    >>> found.lower <= bound
    True
    """
    noise_multiplier = positive_scalar("noise_multiplier", noise_multiplier)
    sampling = Sampling(eps, samples, confidence)
    covariances = bin_covariances(strategy, num_steps, bins, noise_multiplier)
    rng = np.random.default_rng(seed_scalar("seed", seed))
    return sampling.estimate(lambda count, removed: _log_ratios(covariances, count, rng, removed), len(covariances))


def _log_ratios(covariances: Array, count: int, rng: np.random.Generator, removed: bool) -> Array:
    """Return logarithms of likelihood ratios, drawn with the record (its removal is seen) or without it."""
    values, vectors = np.linalg.eigh(covariances)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    bins = len(covariances)
    exponents = rng.standard_normal((count, bins)) @ root.T - 0.5 * np.diag(covariances)
    if removed:
        exponents += covariances[rng.integers(bins, size=count)]
    top = exponents.max(axis=1)
    ratios: Array = top + np.log(np.exp(exponents - top[:, np.newaxis]).mean(axis=1))
    return ratios

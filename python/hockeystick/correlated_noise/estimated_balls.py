"""An estimate, by sampling, of the delta of balls-in-bins batches with correlated noise: what `balls_in_bins` bounds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import OPEN_PROBABILITY, Array, count_scalar, non_negative_scalar, positive_scalar, scalar
from hockeystick.correlated_noise.balls_in_bins import bin_covariances

__all__ = ["DeltaEstimate", "estimate_balls_in_bins_delta"]

AT_ONCE = 2**22  # numbers held in memory


class DeltaEstimate(NamedTuple):
    """A mean over samples, and ends that hold with a stated confidence. Not certified.

    Attributes
    ----------
    mean : float
        Of the direction that has the larger one.
    lower, upper : float
        The truth lies between them with at least the confidence asked for.
    """

    mean: float
    lower: float
    upper: float


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
        Of `numpy.random.default_rng`.

    Returns
    -------
    DeltaEstimate
        An estimate, with an empirical Bernstein interval (Maurer and Pontil 2009, Theorem 4) in each direction.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

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
    eps = non_negative_scalar("eps", eps)
    samples = count_scalar("samples", samples, 2)
    confidence = scalar("confidence", confidence, *OPEN_PROBABILITY)
    covariances = bin_covariances(strategy, num_steps, bins) / noise_multiplier**2
    rng = np.random.default_rng(seed)
    found = [_interval(_sample(covariances, eps, samples, rng, removed), confidence) for removed in (True, False)]
    largest = max(found, key=lambda each: each.mean)
    return DeltaEstimate(largest.mean, max(each.lower for each in found), max(each.upper for each in found))


def _sample(covariances: Array, eps: float, samples: int, rng: np.random.Generator, removed: bool) -> Array:
    """Return draws of (1 - e^eps/L)_+ under the law with the record, or of (1 - e^eps L)_+ under that without it."""
    values, vectors = np.linalg.eigh(covariances)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    means, bins = -0.5 * np.diag(covariances), len(covariances)
    out = np.empty(samples)
    size = max(1, AT_ONCE // bins)
    for first in range(0, samples, size):
        count = min(size, samples - first)
        exponents = rng.standard_normal((count, bins)) @ root.T + means
        if removed:
            exponents += covariances[rng.integers(bins, size=count)]
        top = exponents.max(axis=1)
        log_ratio = top + np.log(np.exp(exponents - top[:, np.newaxis]).mean(axis=1))
        out[first : first + count] = -np.expm1(np.minimum(eps - log_ratio if removed else eps + log_ratio, 0.0))
    return out


def _interval(draws: Array, confidence: float) -> DeltaEstimate:
    """Return the mean of draws from [0, 1] with an interval; there are two directions with two ends each."""
    depth = math.log(2.0 * 4.0 / (1.0 - confidence))
    mean, variance = float(draws.mean()), float(draws.var(ddof=1))
    off = math.sqrt(2.0 * variance * depth / draws.size) + 7.0 * depth / (3.0 * (draws.size - 1))
    return DeltaEstimate(mean, max(0.0, mean - off), min(1.0, mean + off))

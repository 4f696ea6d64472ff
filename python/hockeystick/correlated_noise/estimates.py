"""Estimates of delta, by sampling, of what `balls_in_bins` and `min_separated_poisson` bound. No certificates.

Delta is a mean over samples of a likelihood ratio, with an interval of a stated confidence.

Batches that are b-min-separated. A record throws a coin in every step that it may be in, and sits out the next b - 1 steps after one that it was in. By
`hockeystick.correlated_noise.conditional` the pair of (law of |C| b + z, law of z) dominates, b the steps that it was in. A banded C of at most b bands
has no row in which the record counts twice, so that a step i that it is in multiplies the likelihood ratio by exp(<y, c_i> - |c_i|^2/2), c_i the column in units of the
noise, whatever else it is in. Let L_i be the ratio of what follows for a record that may be in step i:

    L_i = (1 - p) L_{i+1} + p exp(<y, c_i> - |c_i|^2/2) L_{i+b},    L_i = 1 beyond the last step.

L_0 is the ratio of all, in one pass (Dong and Ganesh 2026, arXiv 2602.09338). With a warm start it is the mean of L_j over the step j that the record may be in first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import (
    OPEN_PROBABILITY,
    Array,
    at_most,
    count_scalar,
    non_negative_scalar,
    positive_scalar,
    scalar,
    seed_scalar,
    vector,
)
from hockeystick._checks.arguments import scalars
from hockeystick.correlated_noise.balls_in_bins import bin_covariances, in_noise
from hockeystick.correlated_noise.sensitivity import strategy_array
from hockeystick.correlated_noise.thinning import first_steps

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


class Sampling:
    """At which epsilon delta is estimated, from how many samples, and with which confidence."""

    def __init__(self, eps: float, samples: int, confidence: float) -> None:
        """Check the arguments."""
        self.eps = non_negative_scalar("epsilon", eps)
        self.samples = count_scalar("samples", samples, 2)
        self.confidence = scalar("confidence", confidence, *OPEN_PROBABILITY)

    def estimate(self, log_ratios: Callable[[int, bool], Array], numbers: int) -> DeltaEstimate:
        """Return the larger direction's estimate, from a sampler of logarithms of P/Q for the laws with and without the record.

        The sampler is given how many to draw, and whether from P; `numbers` is how many numbers it holds for one of them.
        """
        with np.errstate(under="ignore"):
            found = [self._interval(self._draws(log_ratios, numbers, removed)) for removed in (True, False)]
        largest = max(found, key=lambda each: each.mean)
        return DeltaEstimate(largest.mean, max(each.lower for each in found), max(each.upper for each in found))

    def _draws(self, log_ratios: Callable[[int, bool], Array], numbers: int, removed: bool) -> Array:
        """Return draws of (1 - e^eps/L)_+ under the law with the record, or of (1 - e^eps L)_+ under that without it."""
        out = np.empty(self.samples)
        size = max(1, AT_ONCE // numbers)
        for first in range(0, self.samples, size):
            count = min(size, self.samples - first)
            ratios = log_ratios(count, removed)
            out[first : first + count] = -np.expm1(np.minimum(self.eps + (-ratios if removed else ratios), 0.0))
        return out

    def _interval(self, draws: Array) -> DeltaEstimate:
        """Return the mean of draws from [0, 1] with an interval; there are two directions with two ends each."""
        depth = math.log(2.0 * 4.0 / (1.0 - self.confidence))
        mean, variance = float(draws.mean()), float(draws.var(ddof=1))
        off = math.sqrt(2.0 * variance * depth / draws.size) + 7.0 * depth / (3.0 * (draws.size - 1))
        return DeltaEstimate(mean, max(0.0, mean - off), min(1.0, mean + off))


def estimate_balls_in_bins_delta(
    strategy: ArrayLike,
    epsilon: float,
    *,
    steps: int | None = None,
    bins: int,
    noise_multiplier: float,
    samples: int = 100_000,
    confidence: float = 0.99,
    seed: int,
) -> DeltaEstimate:
    """Estimate the delta of a matrix mechanism with balls-in-bins batches by sampling its likelihood ratio.

    Parameters
    ----------
    strategy : array_like
        C, or its coefficients: see `balls_in_bins`.
    epsilon : float
        Non-negative and finite, chosen before the samples are seen.
    steps : int, optional
        With coefficients, and only there: the number of steps.
    bins : int
        As in `balls_in_bins`.
    noise_multiplier : float
        Standard deviation of the entries of z over the clip norm, positive and finite.
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
    >>> setting = {"steps": 100, "bins": 20, "noise_multiplier": 4.0}
    >>> found = correlated_noise.estimate_balls_in_bins_delta([1.0, 0.5], **setting, epsilon=0.5, seed=1)
    >>> bound = correlated_noise.balls_in_bins([1.0, 0.5], **setting).delta(0.5)
    >>> found.lower <= bound
    True
    """
    noise_multiplier = positive_scalar("noise_multiplier", noise_multiplier)
    sampling = Sampling(epsilon, samples, confidence)
    covariances = bin_covariances(strategy, steps, bins, noise_multiplier)
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


MAX_STEPS = 2.0**20


def estimate_min_separation_delta(
    strategy: ArrayLike,
    epsilon: float,
    *,
    steps: int,
    separation: int,
    sampling_rate: float,
    noise_multiplier: float,
    warm_start: bool = False,
    samples: int = 100_000,
    confidence: float = 0.99,
    seed: int,
) -> DeltaEstimate:
    """Estimate the delta of a banded matrix mechanism with b-min-separated batches by sampling its likelihood ratio.

    Parameters
    ----------
    strategy : array_like of shape (bands,)
        Coefficients of a lower triangular Toeplitz matrix C, at most `separation` of them. Absolute values count.
    epsilon : float
        Non-negative and finite, chosen before the samples are seen.
    steps : int
        Number of steps, from 1 to 2^20.
    separation : int
        b, at least 1: after a step that it was in, a record sits out the next b - 1. With b = 1 every step draws its own Poisson sample.
    sampling_rate : float
        Probability, in [0, 1], with which a record is in a step that it may be in; by a coin of its own, fresh and secret.
    noise_multiplier : float
        Standard deviation of the entries of z over the clip norm, positive and finite.
    warm_start : bool
        Whether each record starts by sitting out a random number of steps: see `min_separated_poisson`.
    samples : int
        How many, at least 2; the ends are no nearer to each other than about 5/samples.
    confidence : float
        In (0, 1): the probability with which both ends hold.
    seed : int
        Of `numpy.random.default_rng`, in [0, 2^64).

    Returns
    -------
    DeltaEstimate
        An estimate, with an empirical Bernstein interval (Maurer and Pontil 2009, Theorem 4) in each direction; for a record added or removed
        (zeroed out).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or there are more bands than `separation`.
    TypeError
        If an argument is of a wrong type.

    Notes
    -----
    Dong and Ganesh 2026 (arXiv 2602.09338); the law and its ratio are in `hockeystick.correlated_noise.estimates`. `min_separated_poisson` has a certified
    upper bound of the same quantity.

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> setting = {"steps": 50, "separation": 2, "sampling_rate": 0.02, "noise_multiplier": 6.0}
    >>> found = correlated_noise.estimate_min_separation_delta([1.0, 0.5], **setting, epsilon=0.1, seed=1)
    >>> bound = correlated_noise.min_separated_poisson([1.0, 0.5], **setting).delta(0.1)
    >>> found.lower <= bound
    True
    """
    array = vector("strategy", strategy_array(strategy))
    steps, separation, rate, noise_multiplier, warm_start, seed = scalars(locals(), epsilon=None)
    at_most("steps", steps, "the largest supported", MAX_STEPS)
    at_most("bands of strategy", len(array), "separation", separation)
    first = first_steps(rate, separation) if warm_start else np.ones(1)
    sampling = Sampling(epsilon, samples, confidence)
    column = in_noise(np.abs(array[:steps]), noise_multiplier)
    rng = np.random.default_rng(seed)

    def log_ratios(count: int, removed: bool) -> Array:
        outcomes = rng.standard_normal((steps, count))
        if removed:
            _add_record(outcomes, column, separation, rate, first, rng=rng)
        return log_ratio(outcomes, column, separation, rate, first)

    return sampling.estimate(log_ratios, 2 * steps)


def _add_record(
    outcomes: Array, column: Array, separation: int, rate: float, first: Array, *, rng: np.random.Generator
) -> None:
    """Add the columns of the steps that a record is in to outcomes of shape (steps, samples)."""
    steps, samples = outcomes.shape
    free = rng.choice(np.arange(len(first)), size=samples, p=first)  # the first step that the record may be in
    for step in range(steps):
        drawn = np.flatnonzero((free <= step) & (rng.random(samples) < rate))
        free[drawn] = step + separation
        rows = min(len(column), steps - step)
        outcomes[step : step + rows, drawn] += column[:rows, np.newaxis]


def log_ratio(outcomes: Array, column: Array, separation: int, rate: float, first: Array) -> Array:
    """Return the logarithm of the likelihood ratio of outcomes of shape (steps, samples), in units of the noise.

    `first` is the law of the first step that the record may be in, at most `separation` - 1.
    """
    steps, samples = outcomes.shape
    with np.errstate(divide="ignore"):
        stays, goes = np.log1p(-rate), np.log(rate)
    following = np.zeros((separation + 1, samples))  # log L_i, at i modulo b + 1
    for step in range(steps - 1, -1, -1):
        rows = min(len(column), steps - step)
        own = column[:rows] @ outcomes[step : step + rows] - 0.5 * float(column[:rows] @ column[:rows])
        without = stays + following[(step + 1) % (separation + 1)]
        following[step % (separation + 1)] = np.logaddexp(
            without, goes + own + following[(step + separation) % (separation + 1)]
        )
    with np.errstate(divide="ignore"):
        ratio: Array = np.logaddexp.reduce(np.log(first)[:, np.newaxis] + following[: len(first)], axis=0)
    return ratio

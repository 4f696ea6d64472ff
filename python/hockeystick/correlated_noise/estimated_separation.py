"""An estimate, by sampling, of the delta of b-min-separated batches with correlated noise: what `min_separated_poisson` bounds.

A record throws a coin in every step that it may be in, and sits out the next b - 1 steps after one that it was in. By
`hockeystick.correlated_noise.conditional` the pair of (law of |C| b + z, law of z) dominates, b the steps that it was in. A banded C of at most b bands
has no row in which the record counts twice, so that a step i that it is in multiplies the likelihood ratio by exp(<y, c_i> - |c_i|^2/2), c_i the column in units of the
noise, whatever else it is in. Let L_i be the ratio of what follows for a record that may be in step i:

    L_i = (1 - p) L_{i+1} + p exp(<y, c_i> - |c_i|^2/2) L_{i+b},    L_i = 1 beyond the last step.

L_0 is the ratio of all, in one pass (Dong and Ganesh 2026, arXiv 2602.09338). With a warm start it is the mean of L_j over the step j that the record may be in first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import (
    Array,
    at_most,
    boolean_scalar,
    count_scalar,
    positive_scalar,
    probability_scalar,
    seed_scalar,
    vector,
)
from hockeystick.correlated_noise.balls_in_bins import in_noise
from hockeystick.correlated_noise.estimates import DeltaEstimate, Sampling
from hockeystick.correlated_noise.sensitivity import strategy_array
from hockeystick.correlated_noise.thinning import first_steps

__all__ = ["estimate_min_separation_delta"]

MOST_STEPS = 2.0**20


def estimate_min_separation_delta(
    strategy: ArrayLike,
    *,
    num_steps: int,
    separation: int,
    sampling_rate: float,
    noise_multiplier: float,
    eps: float,
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
    num_steps : int
        Number of steps, from 1 to 2^20.
    separation : int
        b, at least 1: after a step that it was in, a record sits out the next b - 1. With b = 1 every step draws its own Poisson sample.
    sampling_rate : float
        Probability, in [0, 1], with which a record is in a step that it may be in; by a coin of its own, fresh and secret.
    noise_multiplier : float
        Standard deviation of the entries of z over the clip norm, positive and finite.
    eps : float
        Non-negative and finite, chosen before the samples are seen.
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
    Dong and Ganesh 2026 (arXiv 2602.09338); the law and its ratio are in `hockeystick.correlated_noise.estimated_separation`. `min_separated_poisson` has a certified
    upper bound of the same quantity.

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> setting = {"num_steps": 50, "separation": 2, "sampling_rate": 0.02, "noise_multiplier": 6.0}
    >>> found = correlated_noise.estimate_min_separation_delta([1.0, 0.5], **setting, eps=0.1, seed=1)
    >>> bound = correlated_noise.min_separated_poisson([1.0, 0.5], **setting).delta(0.1)
    >>> found.lower <= bound
    True
    """
    array, steps = vector("strategy", strategy_array(strategy)), count_scalar("num_steps", num_steps)
    at_most("num_steps", steps, "the largest supported", MOST_STEPS)
    separation = count_scalar("separation", separation)
    at_most("bands of strategy", len(array), "separation", separation)
    rate = probability_scalar("sampling_rate", sampling_rate)
    noise_multiplier = positive_scalar("noise_multiplier", noise_multiplier)
    first = first_steps(rate, separation) if boolean_scalar("warm_start", warm_start) else np.ones(1)
    sampling = Sampling(eps, samples, confidence)
    column = in_noise(np.abs(array[:steps]), noise_multiplier)
    rng = np.random.default_rng(seed_scalar("seed", seed))

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

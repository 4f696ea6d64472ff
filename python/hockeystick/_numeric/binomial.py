"""Binomial and hypergeometric distributions: all masses, or an upper bound of one."""

from __future__ import annotations

import math

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.rounding import FUNCTIONS

LEAST_PROBABILITY = 1e-300  # smaller ones are raised to it, so that none is lost to underflow; that only adds to a loss


def binomial_pmf(trials: int, probability: float) -> Array:
    """Return the probabilities of 0..B, from ratios of neighbours outwards from the mode."""
    k = np.arange(trials, dtype=np.float64)
    ratios = np.log((trials - k) / (k + 1.0)) + math.log(probability / (1.0 - probability))
    mode = min(int((trials + 1) * probability), trials)
    logs = np.concatenate([-np.cumsum(ratios[:mode][::-1])[::-1], [0.0], np.cumsum(ratios[mode:])])
    weights = np.exp(logs)
    return np.asarray(weights / weights.sum())


def log_binomial_pmf(trials: int, rate: float, successes: int) -> float:
    """Return an upper bound of the logarithm of the probability of so many successes, close by the rounding of its terms."""
    if rate in (0.0, 1.0):
        return 0.0 if successes == trials * rate else -math.inf
    terms = [
        math.lgamma(trials + 1.0),
        -math.lgamma(successes + 1.0),
        -math.lgamma(trials - successes + 1.0),
        successes * math.log(rate),
        (trials - successes) * math.log1p(-rate),
    ]
    return math.fsum(terms) + FUNCTIONS * math.fsum(map(abs, terms))


def group_in_batch(group_size: int, dataset_size: int, batch_size: int) -> Array:
    """Return the probabilities that 0, ..., group_size records of a group are drawn, where the others alone would fill the batch."""
    k = np.arange(group_size, dtype=np.float64)
    others = dataset_size - group_size - batch_size + k + 1.0
    with np.errstate(divide="ignore"):  # no more than the batch
        logs = np.log((group_size - k) * np.maximum(batch_size - k, 0.0) / ((k + 1.0) * others))
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    weights = np.exp(sums - sums.max())
    return np.asarray(weights / math.fsum(weights.tolist()))

"""Binomial and hypergeometric distributions: all masses."""

from __future__ import annotations

import math

import numpy as np

from hockeystick._checks import Array

LEAST_PROBABILITY = 1e-300  # smaller ones are raised to it, so that none is lost to underflow; that only adds to a loss


def binomial_pmf(trials: int, probability: float) -> Array:
    """Return the probabilities of 0..B, from ratios of neighbours outwards from the mode."""
    k = np.arange(trials, dtype=np.float64)
    ratios = np.log((trials - k) / (k + 1.0)) + math.log(probability / (1.0 - probability))
    mode = min(int((trials + 1) * probability), trials)
    logs = np.concatenate([-np.cumsum(ratios[:mode][::-1])[::-1], [0.0], np.cumsum(ratios[mode:])])
    weights = np.exp(logs)
    return np.asarray(weights / weights.sum())


def group_in_batch(group_size: int, dataset_size: int, batch_size: int) -> Array:
    """Return the probabilities that 0, ..., group_size records of a group are drawn, where the others alone would fill the batch."""
    k = np.arange(group_size, dtype=np.float64)
    others = dataset_size - group_size - batch_size + k + 1.0
    with np.errstate(divide="ignore"):  # no more than the batch
        logs = np.log((group_size - k) * np.maximum(batch_size - k, 0.0) / ((k + 1.0) * others))
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    weights = np.exp(sums - sums.max())
    return np.asarray(weights / math.fsum(weights.tolist()))

"""The binomial distribution."""

from __future__ import annotations

import math

import numpy as np

from hockeystick._checks import Array


def binomial_pmf(trials: int, probability: float) -> Array:
    """Return the probabilities of 0..B, from ratios of neighbours outwards from the mode."""
    k = np.arange(trials, dtype=np.float64)
    ratios = np.log((trials - k) / (k + 1.0)) + math.log(probability / (1.0 - probability))
    mode = min(int((trials + 1) * probability), trials)
    logs = np.concatenate([-np.cumsum(ratios[:mode][::-1])[::-1], [0.0], np.cumsum(ratios[mode:])])
    weights = np.exp(logs)
    return np.asarray(weights / weights.sum())

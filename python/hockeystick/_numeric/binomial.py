"""The binomial distribution."""

from __future__ import annotations

import math

import numpy as np

from hockeystick._checks import Array

LEAST_PROBABILITY = 1e-300  # of a tail, so that none is lost to underflow
TERMS = 10**4  # of a tail; a geometric series bounds the others


def binomial_pmf(trials: int, probability: float) -> Array:
    """Return the probabilities of 0..B, from ratios of neighbours outwards from the mode."""
    k = np.arange(trials, dtype=np.float64)
    ratios = np.log((trials - k) / (k + 1.0)) + math.log(probability / (1.0 - probability))
    mode = min(int((trials + 1) * probability), trials)
    logs = np.concatenate([-np.cumsum(ratios[:mode][::-1])[::-1], [0.0], np.cumsum(ratios[mode:])])
    weights = np.exp(logs)
    return np.asarray(weights / weights.sum())


def binomial_tail(trials: int, rate: float, least: int) -> float:
    """Return an upper bound of the probability of at least `least` successes, close unless that is near one."""
    if least > trials or rate == 0.0:
        return 0.0
    if rate == 1.0:
        return 1.0
    terms = [
        math.lgamma(trials + 1.0),
        -math.lgamma(least + 1.0),
        -math.lgamma(trials - least + 1.0),
        least * math.log(rate),
        (trials - least) * math.log1p(-rate),
    ]
    error = 2.0**-49 * math.fsum(map(abs, terms))
    j = np.arange(least, min(trials, least + TERMS), dtype=np.float64)
    log_ratios = np.log((trials - j) / (j + 1.0)) + (math.log(rate) - math.log1p(-rate))
    last = math.exp(log_ratios[-1]) if j.size else 0.0
    if last > 1.0 - 1e-5:  # the mean lies far beyond
        return 1.0
    logs = np.concatenate([[0.0], np.cumsum(log_ratios)])  # of each probability over that of `least`
    log_beyond = float(logs[-1]) + math.log(last) - math.log1p(-last) if last > 0.0 else -math.inf
    log_series = float(np.logaddexp.reduce([*logs, log_beyond]))
    log_tail = math.fsum(terms) + error + log_series + 1e-9
    return max(math.exp(min(log_tail, 0.0)), LEAST_PROBABILITY)

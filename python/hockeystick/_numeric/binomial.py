"""Binomial and hypergeometric distributions: all masses, those that are not in the far tails, a tail, a mean, shares of counts."""

from __future__ import annotations

import math

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.rounding import FUNCTIONS, HANDFUL

LEAST_PROBABILITY = 1e-300  # smaller ones are raised to it, so that none is lost to underflow; that only adds to a loss
DEPTH = 80.0  # what a mean leaves out has a probability below 2 e^-80
MOST_TERMS = 10**6  # of a mean, on either side; beyond, its value follows from its law's width
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
    error = FUNCTIONS * math.fsum(map(abs, terms))
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


def binomial_bulk(trials: int, rate: float, depth: float) -> tuple[int, Array]:
    """Return the first of consecutive numbers of successes, and their probabilities given that it is one of them.

    By Bernstein's inequality the others have less than 2 e^-depth; the numbers are symmetric about the middle if rate is 1/2.
    """
    mean = trials * rate
    reach = math.sqrt(2.0 * depth * mean * (1.0 - rate)) + depth
    first, last = max(math.ceil(mean - reach), 0), min(math.floor(mean + reach), trials)
    mode = min(max(int((trials + 1) * rate), first), last)
    k = np.arange(first, last, dtype=np.float64)
    ratios = (trials - k) / (k + 1.0) * (rate / (1.0 - rate)) if rate < 1.0 else np.full(k.size, np.inf)
    below = np.cumprod(1.0 / ratios[: mode - first][::-1])[::-1]
    masses = np.concatenate([below, [1.0], np.cumprod(ratios[mode - first :])])
    return first, np.asarray(masses / math.fsum(masses.tolist()))


def binomial_mean_below(trials: int, rate: float, most: int) -> float:
    """Return a lower bound of the mean of the smaller of `most` and the number of successes, close to it."""
    mean = trials * rate
    if rate in (0.0, 1.0):
        return min(mean, most)
    reach = math.sqrt(2.0 * DEPTH * mean * (1.0 - rate)) + DEPTH
    certain = 1.0 - 2.0 * math.exp(-DEPTH)  # the probability of a number within reach of the mean, by Bernstein
    if reach > MOST_TERMS:
        return certain * min(max(mean * (1.0 - HANDFUL) - reach, 0.0), most)
    first, masses = binomial_bulk(trials, rate, DEPTH)
    smaller = np.minimum(first + np.arange(masses.size, dtype=np.float64), most)
    return certain * math.fsum((smaller * masses).tolist()) * (1.0 - HANDFUL * (masses.size + 64))


def binomial_shares(draws: int, dataset_size: int) -> list[float]:
    """Return how probable 1, 2, ... copies of a record are among independent draws, over 1 copy, down to 1e-300 or the last."""
    shares = [1.0]
    while len(shares) < draws and shares[-1] > LEAST_PROBABILITY:
        m = len(shares)
        shares.append(shares[-1] * ((draws - m) / (m + 1.0)) / (dataset_size - 1.0))
    return shares


def group_in_batch(group_size: int, dataset_size: int, batch_size: int) -> Array:
    """Return the probabilities that 0, ..., group_size records of a group are drawn, where the others alone would fill the batch."""
    k = np.arange(group_size, dtype=np.float64)
    others = dataset_size - group_size - batch_size + k + 1.0
    with np.errstate(divide="ignore"):  # no more than the batch
        logs = np.log((group_size - k) * np.maximum(batch_size - k, 0.0) / ((k + 1.0) * others))
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    weights = np.exp(sums - sums.max())
    return np.asarray(weights / math.fsum(weights.tolist()))

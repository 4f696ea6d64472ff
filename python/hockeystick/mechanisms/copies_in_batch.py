"""How often a record, or how many records of a group, are in a batch of fixed size."""

from __future__ import annotations

import math

import numpy as np

from hockeystick._checks import Array

SAFE = 2.0**-44  # more than the rounding of a hundred products
GATHERED = 1e-30  # shares below this are gathered
LEAST_PROBABILITY = 1e-300  # smaller ones of many records are raised to it, which only adds to the loss


def drawn_copies(draws: int, dataset_size: int, *, upper: bool) -> tuple[list[int], list[float], float]:
    """Return numbers of copies of a record among independent draws, their shares of what has any, and the probability of any.

    More copies leak more: shares are rounded towards more of them for an upper end, towards fewer for a lower one, and so are
    numbers whose shares are tiny. Binomial tails are log-concave: beyond twice a number of share 1e-300 is nothing to tell.
    """
    safe = SAFE if upper else -SAFE
    any_drawn = min(-math.expm1(draws * math.log1p(-1.0 / dataset_size)) * (1.0 + safe), 1.0)
    shares = [1.0]
    while len(shares) < draws and shares[-1] > LEAST_PROBABILITY:
        m = len(shares)
        shares.append(shares[-1] * ((draws - m) / (m + 1.0)) / (dataset_size - 1.0))
    total = math.fsum(shares)
    copies, weights, m = [1], [0.0], 1
    while m < len(shares):
        more = m + 1 if shares[m] > GATHERED * total else min(2 * m, len(shares))
        copies.append(more if upper else m + 1)
        weights.append(math.fsum(shares[m:more]) / total * (1.0 + safe))
        m = more
    if upper and len(shares) < draws:
        copies.append(min(2 * len(shares), draws))
        weights.append(LEAST_PROBABILITY)
    weights[0] = max(1.0 - math.fsum(weights), LEAST_PROBABILITY)
    return copies, weights, any_drawn


def group_in_batch(group_size: int, dataset_size: int, batch_size: int) -> Array:
    """Return the probabilities that 0, ..., group_size records of a group are drawn, where the others alone would fill the batch."""
    k = np.arange(group_size, dtype=np.float64)
    others = dataset_size - group_size - batch_size + k + 1.0
    with np.errstate(divide="ignore"):  # no more than the batch
        logs = np.log((group_size - k) * np.maximum(batch_size - k, 0.0) / ((k + 1.0) * others))
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    weights = np.exp(sums - sums.max())
    return np.asarray(weights / math.fsum(weights.tolist()))

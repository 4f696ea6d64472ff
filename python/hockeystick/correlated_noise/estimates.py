"""Delta as a mean over samples of a likelihood ratio, with an interval of a stated confidence. No certificate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hockeystick._checks import OPEN_PROBABILITY, Array, count_scalar, non_negative_scalar, scalar

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
        self.eps = non_negative_scalar("eps", eps)
        self.samples = count_scalar("samples", samples, 2)
        self.confidence = scalar("confidence", confidence, *OPEN_PROBABILITY)

    def estimate(self, log_ratios: Callable[[int, bool], Array], numbers: int) -> DeltaEstimate:
        """Return the larger direction's estimate, from a sampler of logarithms of P/Q for the laws with and without the record.

        The sampler is given how many to draw, and whether from P; `numbers` is how many numbers it holds for one of them.
        """
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

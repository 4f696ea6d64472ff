"""Guarantees of one model: the last of a run, or that of a uniformly random round. Deltas become epsilons here.

A run may be stopped by a budget, or be recorded before its last round. So a guarantee of a random stop among the planned rounds says
after t of them the larger of two deltas: that of the model after min(stop, t) rounds, and that of a run for which t rounds were planned.

A positive delta that underflows is the smallest double: a delta of 0 would claim pure differential privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Array
from hockeystick._numeric.rounding import GAUSSIAN_TAIL
from hockeystick._numeric.search import SMALLEST, smallest_feasible

__all__ = ["at_random_stop", "by_later_rounds", "last_rounds", "never_zero", "running_sums", "smallest_epsilon"]


def smallest_epsilon(delta_of: Callable[[float], float], delta: float) -> float:
    """Return an epsilon at which delta_of is at most delta, within 1e-9 of the smallest, or infinity."""
    return float(smallest_feasible(lambda eps: delta_of(eps) - delta, most=2.0**19, tolerance=1e-9))


def never_zero(deltas: Array, positive: ArrayLike) -> Array:
    """Return the smallest double in place of the zeros among deltas that are known to be positive."""
    kept: Array = np.where(positive, np.maximum(deltas, SMALLEST), deltas)
    return kept


def running_sums(first: Array, later: Array) -> Array:
    """Return Theorem 2's sum for Gaussian noise after each round, rounded up. A round multiplies the sum by `later` and adds `first`."""
    sums, total = np.empty(first.size), 0.0
    for t, (added, kept) in enumerate(zip(first.tolist(), later.tolist(), strict=True)):
        total = added + kept * total
        sums[t] = total
    return never_zero(sums * (1.0 + GAUSSIAN_TAIL * (64.0 + first.size)), True)


def at_random_stop(deltas: Array, planned: int, suffix: float) -> float:
    """Return the delta of a stop among the last ceil(suffix T) rounds, from the deltas after each of the rounds so far.

    Parameters
    ----------
    deltas : ndarray
        Delta of the model after round 1, ..., t.
    planned : int
        T, at least t.
    suffix : float
        In (0, 1].
    """
    done = deltas.size
    worst = 0.0
    for rounds in {planned, done}:
        stops = np.arange(rounds - last_rounds(suffix, rounds) + 1, rounds + 1)
        reached = deltas[np.minimum(stops, done) - 1]
        worst = max(worst, SMALLEST if reached.any() else 0.0, float(reached.mean()))
    return worst * (1.0 + GAUSSIAN_TAIL)


def by_later_rounds(deltas: Array, planned: int) -> Array:
    """Return the delta at a uniformly random stop for the records that 0, 1, ... rounds follow, from their deltas after these.

    A record with k later rounds shows nothing if the stop is before its own, and what j later rounds leave if j of them are run.
    """
    done, sums = deltas.size, np.cumsum(deltas)
    unfinished = (sums - deltas + (planned - done + 1) * deltas) / planned
    worst: Array = np.maximum(unfinished, sums / done) * (1.0 + GAUSSIAN_TAIL * (64.0 + done))
    return never_zero(worst, sums > 0)


def last_rounds(suffix: float, rounds: int) -> int:
    """Return ceil(suffix rounds), at least 1; a product that is whole but for rounding is not rounded up."""
    return max(1, math.ceil(suffix * rounds * (1.0 - GAUSSIAN_TAIL)))

r"""From delta at all epsilons to what an event's probability can become when one record changes, and to trade-off functions.

Let an output have the law Q without a record's influence and P with it, and let delta hold for both orders. Then every event S has
:math:`P(S) \le s Q(S) + D(s)` for every slope s > 0, where

.. math:: D(s) = \delta(\log s) \text{ for } s \ge 1, \qquad D(s) = 1 - s + s\, \delta(-\log s) \text{ for } s < 1.

The first is the definition of delta. The second is the first for the complement of S and the other order: :math:`Q(S^c) \le P(S^c)/s + \delta(-\log s)`.
D is convex; it is the supremum of P(S) - s Q(S), so that no smaller one would do for the worst pair.

An event of probability q under one law has under its neighbour at most, f being the trade-off function,

.. math:: 1 - f(q) = \min_s\, (D(s) + s q)

(Dong, Roth and Su 2022, Proposition 6). Every line is a bound, so any choice of them is sound. With eps = |log s| these are
:math:`\delta + e^\epsilon q` for s >= 1, and :math:`1 - e^{-\epsilon} (1 - \delta - q)` for s < 1. f and 1 - f are
computed apart, because the smaller of them would lose its digits in a subtraction from 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.rounding import FUNCTIONS, LARGEST_BELOW_ONE

LARGEST_EPSILON = 700.0  # e^eps stays a double
GAIN = 1e-9  # of an event's probability: what lines beyond the farthest could still gain
SMALLEST = 5e-324


@dataclass(frozen=True)
class Curve:
    """Certified upper ends of delta at every epsilon, and of epsilon at every delta, for both orders of P and Q."""

    delta: Callable[[float], float]
    epsilon: Callable[[float], float]


def largest_useful_epsilon(curve: Curve, probability: float) -> float:
    """Return an epsilon beyond which delta, or what is left of it above its limit, is nothing beside a probability."""
    delta = curve.delta(math.inf) + max(GAIN * probability, SMALLEST)
    return min(curve.epsilon(min(delta, LARGEST_BELOW_ONE)), LARGEST_EPSILON)


def one_minus_divergence(curve: Curve, log_slope: float) -> float:
    """Return 1 - D(s) at log s, to a few units."""
    if log_slope >= 0.0:
        return max(1.0 - curve.delta(log_slope), 0.0)
    return math.exp(log_slope) * max(1.0 - curve.delta(-log_slope), 0.0)


START, ROUNDS, MOST = 17, 30, 400  # points at first, refinements, points at most
CHUNK = 500  # rates for which all lines are computed at once


def false_negative_rates(curve: Curve, rates: Array) -> Array:
    """Return f at every probability, rounded down."""
    found = by_rate(false_negative_bounds, refine(curve, rates), rates, lambda lines: lines.max(axis=(0, 2)))
    limit = curve.delta(math.inf)  # the rate at which outcomes possible on one data set alone are seen
    at_zero = max(math.nextafter(1.0 - limit, 0.0), 0.0) if limit > 0.0 else 1.0
    return np.where(rates == 0.0, at_zero, found.reshape(rates.shape))


def true_positive_rates(curve: Curve, rates: Array) -> Array:
    """Return 1 - f at every probability, rounded up."""
    if curve.delta(0.0) == 0.0:
        return rates.copy()  # nothing is told apart, and a line with a margin would say that a little is
    found = by_rate(true_positive_bounds, refine(curve, rates), rates, lambda lines: lines.min(axis=(0, 2)))
    # A relative margin is lost in rounding where numbers are subnormal: one step up more.
    with np.errstate(under="ignore"):
        found = np.minimum(np.maximum(np.nextafter(found.reshape(rates.shape), 2.0), rates), 1.0)
    return np.where(rates == 0.0, curve.delta(math.inf), found)


def by_rate(
    lines: Callable[[Array, Array], Array], table: Array, rates: Array, pick: Callable[[Array], Array]
) -> Array:
    """Return what `pick` takes from the lines of all points, of shape (2, rates, points), for each rate."""
    column = rates.reshape(-1, 1)
    parts = [column[first : first + CHUNK] for first in range(0, rates.size, CHUNK)]
    return np.concatenate([pick(lines(table, part)) for part in parts]) if parts else np.empty(0)


def refine(curve: Curve, rates: Array) -> Array:
    """Return epsilons and their deltas, close together where the best lines of the rates are; of shape (points, 2)."""
    deltas = {0.0: curve.delta(0.0)}
    inner = np.unique(rates[(rates > 0.0) & (rates < 1.0)])
    if inner.size:
        top = largest_useful_epsilon(curve, min(float(inner[0]), 1.0 - float(inner[-1])))
        for eps in np.linspace(0.0, top, START)[1:].tolist():
            deltas[eps] = curve.delta(eps)
        for _ in range(ROUNDS):
            wanted = _between(np.array(sorted(deltas.items())), inner) - {*deltas}
            for eps in sorted(wanted)[: MOST - len(deltas)]:
                deltas[eps] = curve.delta(eps)
    return np.array(sorted(deltas.items()))


def _between(table: Array, rates: Array) -> set[float]:
    """Return the points half-way to both neighbours of each rate's best one."""
    found = by_rate(true_positive_bounds, table, rates, lambda lines: lines.min(axis=0).argmin(axis=1))
    missed = by_rate(false_negative_bounds, table, rates, lambda lines: lines.max(axis=0).argmax(axis=1))
    best, eps = np.where(rates < 0.5, found, missed), table[:, 0]
    near = [eps[np.clip(best + side, 0, eps.size - 1)] for side in (-1, 1)]
    return set(np.ravel([0.5 * (one + eps[best]) for one in near]).tolist())


def true_positive_bounds(table: Array, rates: Array) -> Array:
    """Return both lines of each point, rounded up, for a column of rates: of shape (2, rates, points)."""
    eps, delta = table.T
    with np.errstate(under="ignore"):
        steep = delta + np.exp(eps) * rates  # all terms are positive
        flat = -np.expm1(-eps) + np.exp(-eps) * (delta + rates)
        both: Array = np.minimum(np.stack([steep, flat]) * (1.0 + FUNCTIONS), 1.0)
    return both


def false_negative_bounds(table: Array, rates: Array) -> Array:
    """Return one less both lines of each point, rounded down, in the same shape."""
    eps, delta = table.T
    with np.errstate(under="ignore"):
        growth = np.exp(eps)
        steep = (1.0 - delta) - growth * rates - FUNCTIONS * np.maximum(1.0 - delta, growth * rates)
        flat = (((1.0 - delta) - rates) - FUNCTIONS * np.maximum(1.0 - delta, rates)) / growth
        flat *= np.where(flat > 0.0, 1.0 - FUNCTIONS, 1.0)
    both: Array = np.maximum(np.stack([steep, flat]), 0.0)
    return both

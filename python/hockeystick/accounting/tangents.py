r"""The lines above what an event's probability can become when one record changes, from delta at all epsilons.

Let an output have the law Q without a record's influence and P with it, and let delta hold for both orders. Then every event S has
:math:`P(S) \le s Q(S) + D(s)` for every slope s > 0, where

.. math:: D(s) = \delta(\log s) \text{ for } s \ge 1, \qquad D(s) = 1 - s + s\, \delta(-\log s) \text{ for } s < 1.

The first is the definition of delta. The second is the first for the complement of S and the other order: :math:`Q(S^c) \le P(S^c)/s + \delta(-\log s)`.
D is convex; it is the supremum of P(S) - s Q(S), so that no smaller one would do for the worst pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from hockeystick._numeric.rounding import LARGEST_BELOW_ONE

LARGEST_EPSILON = 700.0  # e^eps stays a double
GAIN = 1e-9  # of an event's probability: what lines beyond the farthest could still gain
SMALLEST = 5e-324


@dataclass(frozen=True)
class Curve:
    """Certified upper ends of delta at every epsilon, and of epsilon at every delta, for both orders of P and Q."""

    delta: Callable[[float], float]
    epsilon: Callable[[float], float]


def farthest(curve: Curve, probability: float) -> float:
    """Return an epsilon beyond which delta, or what is left of it above its limit, is nothing beside a probability."""
    delta = curve.delta(math.inf) + max(GAIN * probability, SMALLEST)
    return min(curve.epsilon(min(delta, LARGEST_BELOW_ONE)), LARGEST_EPSILON)


def lacking(curve: Curve, log_slope: float) -> float:
    """Return 1 - D(s) at log s, to a few units."""
    if log_slope >= 0.0:
        return max(1.0 - curve.delta(log_slope), 0.0)
    return math.exp(log_slope) * max(1.0 - curve.delta(-log_slope), 0.0)

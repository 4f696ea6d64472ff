"""From Renyi divergences to epsilon and delta.

Every order a > 1 gives a valid bound (Canonne, Kamath and Steinke 2020, Proposition 12), with D the divergence of order a:

    log delta <= (a - 1)(D - eps + log(1 - 1/a)) - log a,    epsilon <= D + log(1 - 1/a) - (log delta + log a)/(a - 1).
"""

from __future__ import annotations

import math

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.rounding import LONG_SUM


def least_epsilon(orders: Array, divergences: Array, delta: float) -> tuple[float, float]:
    """Return the least upper bound of epsilon over orders above 1, and its order."""
    if not divergences.any():
        return 0.0, float(orders[0])
    if delta == 0.0:
        return math.inf, float(orders[-1])
    less = orders - 1.0
    parts = [divergences, np.log1p(-1.0 / orders), -np.log(delta) / less, -np.log(orders) / less]
    return _least(np.maximum(_sum_up(parts), 0.0), orders)


def least_delta(orders: Array, divergences: Array, epsilon: float) -> tuple[float, float]:
    """Return the least upper bound of delta over orders above 1, and its order."""
    if not divergences.any():
        return 0.0, float(orders[0])
    if epsilon == math.inf:  # infinite losses may have any probability where no divergence is finite
        return (0.0 if np.isfinite(divergences).any() else 1.0), float(orders[-1])
    less = orders - 1.0
    parts = [less * divergences, -less * epsilon, less * np.log1p(-1.0 / orders), -np.log(orders)]
    with np.errstate(over="ignore"):
        bounds = np.minimum(np.nextafter(np.exp(np.minimum(_sum_up(parts), 1.0)) * (1.0 + LONG_SUM), 1.0), 1.0)
    return _least(bounds, orders)


def _least(bounds: Array, orders: Array) -> tuple[float, float]:
    at = int(np.argmin(bounds))
    return float(bounds[at]), float(orders[at])


def _sum_up(parts: list[Array]) -> Array:
    with np.errstate(invalid="ignore"):
        total = sum(parts) + LONG_SUM * sum(map(np.abs, parts))
    return np.where(np.isnan(total), math.inf, total)  # where a divergence is infinite

"""From Renyi divergences to epsilon and delta.

Every order a > 1 gives a valid bound (Canonne, Kamath and Steinke 2020, Proposition 12), with D the divergence of order a:

    log delta <= (a - 1)(D - eps + log(1 - 1/a)) - log a,    epsilon <= D + log(1 - 1/a) - (log delta + log a)/(a - 1).
"""

from __future__ import annotations

import math

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.rounding import LONG_SUM


def least_bound(orders: Array, divergences: Array, for_epsilon: bool, value: float) -> tuple[float, float]:
    """Return the least upper bound of epsilon at a delta, or of delta at an epsilon, over orders above 1; and its order."""
    if not divergences.any():
        return 0.0, float(orders[0])
    less = orders - 1.0
    if for_epsilon:
        if value == 0.0:
            return math.inf, float(orders[-1])
        parts = [divergences, np.log1p(-1.0 / orders), -np.log(value) / less, -np.log(orders) / less]
        bounds = np.maximum(_sum_up(parts), 0.0)
    else:
        if value == math.inf:
            return 0.0, float(orders[-1])
        parts = [less * divergences, -less * value, less * np.log1p(-1.0 / orders), -np.log(orders)]
        with np.errstate(over="ignore"):
            bounds = np.minimum(np.nextafter(np.exp(np.minimum(_sum_up(parts), 1.0)) * (1.0 + LONG_SUM), 1.0), 1.0)
    at = int(np.argmin(bounds))
    return float(bounds[at]), float(orders[at])


def _sum_up(parts: list[Array]) -> Array:
    with np.errstate(invalid="ignore"):
        total = sum(parts) + LONG_SUM * sum(map(np.abs, parts))
    return np.where(np.isnan(total), math.inf, total)  # where a divergence is infinite

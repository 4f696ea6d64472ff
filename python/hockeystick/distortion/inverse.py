"""The largest argument at which an increasing function stays within a target, for arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hockeystick._checks import Array

HALVINGS = 60  # from a factor of two down to neighbouring doubles


def largest_within(function: Callable[[Array], Array], target: Array, start: Array) -> Array:
    """Return the last argument known to be feasible, from a feasible positive start; infinite where there is no limit."""
    low, high = start.astype(np.float64), 2.0 * start
    while (growing := (function(high) <= target) & (high < np.inf)).any():
        with np.errstate(over="ignore"):
            low, high = np.where(growing, high, low), np.where(growing, 2.0 * high, high)
    for _ in range(HALVINGS):
        middle = low + 0.5 * (high - low)
        good = function(middle) <= target
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return low

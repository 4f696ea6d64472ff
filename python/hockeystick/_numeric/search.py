"""Searches that end on the safe side: of a certificate, of a rule that holds up to a point, and of increasing arrays.

Evaluations of a certificate are few, since each may be a whole composition; the others halve an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array

SMALLEST = 5e-324  # positive double: in place of a delta of 0, of which there is no logarithm
HALVINGS = 60  # from a factor of two down to neighbouring doubles


class Probe(NamedTuple):
    """A point, and how far it is above the target there: feasible where that is not positive."""

    x: float
    excess: float


def narrow(
    excess: Callable[[float], float], good: Probe, bad: Probe, *, tolerance: float = 0.0, whole: bool = False
) -> Probe:
    """Narrow a feasible and an infeasible point to a relative tolerance, or to neighbouring integers (numeric/feasible_search.hpp)."""
    asked = (lambda x: excess(round(x))) if whole else excess
    return Probe(*core.narrow_feasible(asked, *good, *bad, tolerance, whole))


def smallest_feasible(
    excess: Callable[[float], float], *, most: float, tolerance: float, known: Iterable[float] = ()
) -> float:
    """Return a feasible point, within a relative tolerance of the smallest from 0 on; infinity if none is found up to `most`.

    By doubling from 1, then narrowing. Where some points are `known`, whose excess costs nothing, it begins between those.
    """
    probes = [Probe(x, excess(x)) for x in sorted({0.0, *known})]
    good = next((probe for probe in probes if probe.excess <= 0), None) or Probe(1.0, excess(1.0))
    if good.x == 0:
        return 0.0
    bad = max(probe for probe in probes if probe.x < good.x)
    while good.excess > 0:
        if 2 * good.x > most:
            return math.inf
        bad, good = good, Probe(2 * good.x, excess(2 * good.x))
    return narrow(excess, good, bad, tolerance=tolerance).x


def last_whole(excess: Callable[[float], float], most: int) -> int:
    """Return the largest feasible integer in [0, most], of which 0 is taken to be feasible, by doubling, then narrowing."""
    good, x = Probe(0, -math.inf), 1
    while good.x < most:
        probe = Probe(x, excess(x))
        if probe.excess > 0:
            return int(narrow(excess, good, probe, whole=True).x)
        good, x = probe, min(2 * x, most)
    return most


def halve(
    holds: Callable[[float], bool],
    low: float,
    high: float,
    *,
    tolerance: float = 0.0,
    smallest: float = 0.0,
    most: int = 2000,
) -> tuple[float, float]:
    """Return an interval inside [low, high], at whose left end a rule holds and at whose right end it does not.

    It is halved until it is as narrow as `tolerance` times its larger end (in size, or `smallest`), or its ends are neighbours,
    or `most` times. What is given for the ends is not asked.
    """
    for _ in range(most):
        middle = 0.5 * (low + high)
        if high - low <= tolerance * max(abs(low), abs(high), smallest) or not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def last_that_holds(holds: Callable[[float], bool], tolerance: float) -> float:
    """Return the end of the interval [0, end) on which a rule holds, from inside; 0 if it is empty."""
    if not holds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while holds(high):
        low, high = high, 2.0 * high
    return halve(holds, low, high, tolerance=tolerance)[0]


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

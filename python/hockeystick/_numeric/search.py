"""The last feasible point of a monotone certificate, with few evaluations: each may be a whole composition."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple


class Probe(NamedTuple):
    """A point, and how far it is above the target there: feasible where that is not positive."""

    x: float
    excess: float


def narrow(
    excess: Callable[[float], float], good: Probe, bad: Probe, *, tolerance: float = 0.0, whole: bool = False
) -> Probe:
    """Narrow a feasible and an infeasible point to a relative tolerance, or to neighbouring integers.

    Secants through the last two points, moved by less than the tolerance to the side where no point is close yet, and a
    bisection now and then, since a certificate may bend, jump, or be infinite.
    """
    older, last = bad, good
    for iteration in range(200):
        enough = 1.0 if whole else tolerance * max(abs(good.x), abs(bad.x))
        gap = bad.x - good.x
        if abs(gap) <= enough:
            break
        x = _secant(older, last) + math.copysign(0.4 * enough, gap if last.excess <= 0 else -gap)
        if not min(good.x, bad.x) < x < max(good.x, bad.x) or iteration % 4 == 3:
            x = good.x + 0.5 * gap
        if whole:
            x = min(max(round(x), min(good.x, bad.x) + 1), max(good.x, bad.x) - 1)
        if x in (good.x, bad.x):
            break  # neighbouring doubles
        older, last = last, Probe(x, excess(x))
        if last.excess <= 0:
            good = last
        else:
            bad = last
    return good


def _secant(a: Probe, b: Probe) -> float:
    """Return the root of the line through two points, or NaN."""
    rise = b.excess - a.excess
    if not math.isfinite(rise) or rise == 0.0:
        return math.nan
    return b.x - b.excess * (b.x - a.x) / rise


def last_whole(excess: Callable[[float], float], most: int) -> int:
    """Return the largest feasible integer in [0, most], of which 0 is taken to be feasible, by doubling, then narrowing."""
    good, x = Probe(0, -math.inf), 1
    while good.x < most:
        probe = Probe(x, excess(x))
        if probe.excess > 0:
            return int(narrow(excess, good, probe, whole=True).x)
        good, x = probe, min(2 * x, most)
    return most

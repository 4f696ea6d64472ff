"""The most that one record moves the nodes of a binary tree over the steps: of squared counts, the largest sum over nodes.

At level l a node has 2^l steps. Noise is released with nodes that are complete; a prefix sum is made of those at odd places
of their level, counted from 1, and only these need be counted if nothing else is used.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hockeystick._numeric.rounding import DOWN, UNIT
from hockeystick.correlated_noise.matrices import Ends
from hockeystick.correlated_noise.participation import Pattern

MOST_STEPS = 2**22  # some 100 MB


def tree(num_steps: int, pattern: Pattern, *, prefixes_only: bool) -> Ends:
    """Return the sensitivity of tree aggregation."""
    if pattern.most == 1:  # the first step is in the first node of every level
        levels = math.sqrt(num_steps.bit_length())
        return Ends(levels * DOWN, levels * (1 + UNIT), np.zeros(1, np.int64), "levels")
    if num_steps > MOST_STEPS:
        msg = f"num_steps must be at most {MOST_STEPS}, not {num_steps}; use restarts"
        raise ValueError(msg)
    if not pattern.limits(num_steps):
        squares = cyclic_squares(num_steps, pattern.separation, prefixes_only=prefixes_only)
        first = int(squares.argmax())
        lower, steps = int(squares[first]), np.arange(first, num_steps, pattern.separation)
    else:
        steps = pattern.earliest()
        lower = _square(num_steps, steps, prefixes_only=prefixes_only)
    upper = lower if pattern.cyclic else _separated_bound(num_steps, pattern, prefixes_only=prefixes_only)
    method = "all patterns" if pattern.cyclic else "largest counts by level"
    return Ends(math.sqrt(lower) * DOWN, math.sqrt(upper) * (1 + UNIT), steps, method)


def cyclic_squares(num_steps: int, period: int, *, prefixes_only: bool) -> NDArray[np.int64]:
    """Return for each residue the sum of squared counts of the steps that have it modulo the period."""
    squares = np.zeros(min(period, num_steps), np.int64)
    steps = np.arange(num_steps)
    for level in range(num_steps.bit_length()):
        mine = steps[: num_steps >> level << level]
        if prefixes_only:
            mine = mine[(mine >> level) % 2 == 0]
        if 1 << level <= period:  # no node counts a record twice
            squares += np.bincount(mine % period, minlength=squares.size)
        else:
            counts = np.bincount((mine >> level) * period + mine % period, minlength=period)
            counts = np.pad(counts, (0, -len(counts) % period)).reshape(-1, period)
            squares += (counts**2).sum(axis=0)
    return squares


def _square(num_steps: int, steps: NDArray[np.int64], *, prefixes_only: bool) -> int:
    """Return the sum of squared counts of the steps."""
    total = 0
    for level in range(num_steps.bit_length()):
        nodes = steps[steps < num_steps >> level << level] >> level
        if prefixes_only:
            nodes = nodes[nodes % 2 == 0]
        total += int((np.bincount(nodes) ** 2).sum())
    return total


def _separated_bound(num_steps: int, pattern: Pattern, *, prefixes_only: bool) -> int:
    """Return the sum over levels of what full nodes would have.

    A node of w steps counts at most c = ceil(w/separation) of all k participations: squares of numbers up to c with sum k have
    at most the sum of k // c times c^2 and one more.
    """
    total = 0
    for level in range(num_steps.bit_length()):
        most = min(pattern.most, -(-(1 << level) // pattern.separation))
        full, rest = divmod(pattern.most, most)
        nodes = ((num_steps >> level) + 1) // 2 if prefixes_only else num_steps >> level
        total += nodes * most**2 if full >= nodes else full * most**2 + rest**2
    return total

"""Which shard is computed next, and how long the rest will take. Neither moves a number or a border of the table."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hockeystick.sweep.plan.plan import Plan

MAX_PILOTS = 64


class Schedule:
    """The shards that are not there yet: some spread over the table first, then those expected to take longest.

    A shard is expected to take as long as the nearest of the first ones did, near on the axes that a shard does not run
    through. Equal shards keep their order, so that neighbours, which share the values of the first axes, stay together.
    """

    def __init__(self, plan: Plan, missing: Sequence[int]) -> None:
        pilots = min(MAX_PILOTS, -(-len(missing) // 4))
        chosen = {missing[at * len(missing) // pilots] for at in range(pilots)}
        self._plan = plan
        self._pilots = sorted(chosen)
        self._waiting = [*self._pilots, *(index for index in missing if index not in chosen)][::-1]  # the next is last
        self._unfinished = set(missing)
        self._seconds: dict[int, float] = {}  # of the pilots
        self._expected: dict[int, float] = {}  # of the others, once the pilots are measured
        self._measured = 0.0  # in all
        self._left: float | None = None  # expected in all
        self._started = time.monotonic()

    def next(self) -> int | None:
        """Return the shard to compute next, or None if all are under way."""
        return self._waiting.pop() if self._waiting else None

    def finished(self, index: int, seconds: float) -> None:
        """Take note of how long a shard took."""
        self._unfinished.discard(index)
        self._measured += seconds
        if self._left is not None:
            self._left -= self._expected[index]
            return
        self._seconds[index] = seconds
        if self._seconds.keys() >= {*self._pilots}:
            self._sort()

    def seconds_left(self) -> float | None:
        """Return the time that the unfinished shards will take at the speed so far, or None if nothing is finished."""
        if not self._measured:
            return None
        left = self._left  # another thread may ask
        work = len(self._unfinished) * self._measured / len(self._seconds) if left is None else max(0.0, left)
        return (time.monotonic() - self._started) * work / self._measured

    def _sort(self) -> None:
        unfinished = sorted(self._unfinished)
        nearest = _nearest(_positions(self._plan, unfinished), _positions(self._plan, self._pilots))
        self._expected = {
            index: self._seconds[self._pilots[pilot]] for index, pilot in zip(unfinished, nearest, strict=True)
        }
        self._left = sum(self._expected.values())
        self._waiting.sort(key=lambda index: (self._expected[index], -index))


def _positions(plan: Plan, shards: Sequence[int]) -> NDArray[np.float64]:
    """Return where on each axis the middle of each shard is, from 0 to 1; 0 on axes that a shard runs through."""
    middle = np.asarray(shards, np.int64) * plan.shard_rows + plan.shard_rows // 2
    columns = [
        np.minimum(middle, plan.num_cells - 1) // stride % len(axis) / len(axis)
        if stride * len(axis) > plan.shard_rows
        else np.zeros(len(middle))
        for axis, stride in zip(plan.axes, plan.strides, strict=True)
    ]
    return np.stack(columns, axis=1)


def _nearest(points: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return for each point the number of its nearest centre."""
    nearest = np.zeros(len(points), np.intp)
    least = np.full(len(points), np.inf)
    for number, centre in enumerate(centres):
        distance = np.abs(points - centre).sum(axis=1)
        nearer = distance < least
        nearest[nearer], least[nearer] = number, distance[nearer]
    return nearest

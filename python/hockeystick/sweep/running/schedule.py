"""Which shard is computed next, and how long the rest will take. Neither moves a number or a border of the table."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hockeystick.sweep.plan.plan import Plan

MAX_PILOTS = 64
LEAST_PILOTS = 8  # below, all are spread, and none is a neighbour of another
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


class Schedule:
    """The shards that are not there yet: some spread over the table first, then those expected to take longest.

    The first ones are pairs of neighbours. A shard is expected to take as long as the nearest pair did, near on the axes that
    a shard does not run through, but only in the share in which pairs differ by more than chance: neighbours differ by chance
    alone. Without that share the shards expected to be dear, which run next, would take less than expected, those left
    to the end more, and the time left would always be too short. Equal shards keep their order, so that neighbours, which
    share the values of the first axes, stay together.
    """

    def __init__(self, plan: Plan, missing: Sequence[int]) -> None:
        pilots = min(MAX_PILOTS, -(-len(missing) // 4))
        twins = 2 if pilots >= LEAST_PILOTS else 1
        places = pilots // twins
        self._pairs = [
            tuple(missing[at * len(missing) // places : at * len(missing) // places + twins]) for at in range(places)
        ]
        self._pilots = _spread([index for pair in self._pairs for index in pair])
        chosen = {*self._pilots}
        self._plan = plan
        self._waiting = [*self._pilots, *(index for index in missing if index not in chosen)][::-1]  # the next is last
        self._unfinished = set(missing)
        self._seconds: dict[int, float] = {}  # of the pilots
        self._expected: dict[int, float] = {}  # of the others, once the pilots are measured
        self._measured = 0.0  # in all
        self._left: float | None = None  # expected in all
        self._started = time.monotonic()

    def __len__(self) -> int:
        """Return how many shards are not finished."""
        return len(self._unfinished)

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
        middle = _positions(self._plan, [pair[0] for pair in self._pairs])
        expected = _shrunk(np.array([[self._seconds[index] for index in pair] for pair in self._pairs]))
        nearest = _nearest(_positions(self._plan, unfinished), middle)
        self._expected = dict(zip(unfinished, expected[nearest].tolist(), strict=True))
        self._left = sum(self._expected.values())
        self._waiting.sort(key=lambda index: (self._expected[index], -index))


def _shrunk(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of pairs, drawn to the mean of all by the share of their variance that is chance.

    Half of a pair's squared difference is the variance of one time by chance, and half of that the variance of the mean.
    """
    means: NDArray[np.float64] = seconds.mean(axis=1)
    if seconds.shape[1] < 2 or means.var() == 0:
        return means
    chance = np.mean(np.diff(seconds, axis=1) ** 2) / 4
    share = max(0.0, 1.0 - chance / means.var(ddof=1))
    drawn: NDArray[np.float64] = means.mean() + share * (means - means.mean())
    return drawn


def _spread(ordered: list[int]) -> list[int]:
    """Return shards in an order whose every beginning is spread over the table: by multiples of the golden section."""
    places = np.argsort(np.arange(len(ordered)) * GOLDEN % 1.0, kind="stable")
    return [ordered[at] for at in np.argsort(places)]


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

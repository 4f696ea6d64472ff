"""Some cells of a table, on a grid that is a part of the plan's, read in one pass that counts all cells.

A page cannot hold a million rows. It gets whole slices of the table, evenly chosen along each axis, and says which.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hockeystick.sweep.plan.plan import Plan
from hockeystick.sweep.store.folder import open_folder
from hockeystick.sweep.store.parquet_part import Counts, DamagedPartError, count, whole_table
from hockeystick.sweep.store.store import Store, read_manifest
from hockeystick.sweep.view.slices import Drawn, choose_drawn, evenly

MAX_ACROSS = 64  # cells along an axis of a heat map
MAX_ALONG = 1000  # points of a line
MAX_NUMBERS = 300_000  # in a page, where each takes eleven bytes
MAX_TEXTS = 20  # distinct error texts


@dataclass(frozen=True)
class Choice:
    """Which cells a page holds: those of two drawn axes (or one), for each combination of positions of the others."""

    plan: Plan
    x: Drawn
    y: Drawn | None
    slices: dict[int, NDArray[np.intp]]  # axis -> positions, for the axes that are not drawn, in the plan's order

    def points(self, axis: int) -> NDArray[np.intp]:
        """Return the chosen positions of an axis."""
        drawn = {self.x.axis: self.x.points} | ({self.y.axis: self.y.points} if self.y else {})
        return drawn.get(axis, self.slices.get(axis, np.arange(0)))

    @property
    def plane(self) -> int:
        """Return the number of cells of a slice."""
        return len(self.x.points) * (len(self.y.points) if self.y else 1)

    @property
    def num_slices(self) -> int:
        """Return the number of slices."""
        return math.prod(map(len, self.slices.values()))

    def cells(self) -> NDArray[np.int64]:
        """Return the numbers of the cells, slice by slice, in each row by row of y."""
        strides = self.plan.strides
        axes = [*self.slices.items(), *((drawn.axis, drawn.points) for drawn in (self.y, self.x) if drawn)]
        cells = np.zeros(1, dtype=np.int64)
        for axis, points in axes:
            cells = (cells[:, None] + points.astype(np.int64) * strides[axis]).ravel()
        return cells


@dataclass
class Sample:
    """The chosen cells, and what is to be said of the whole table."""

    choice: Choice
    outputs: dict[str, NDArray[np.float64]]  # (slices * plane,), NaN where there is no value
    present: NDArray[np.uint8]  # (slices * plane,), 1 where the cell is there, whether it has a value or not
    counts: Counts
    missing: list[range] = field(default_factory=list)  # runs of cells that are not there
    errors: dict[str, int] = field(default_factory=dict)  # text -> first cell that has it, for the first texts


def choose_cells(plan: Plan, x: str | None, y: str | None, slices: Mapping[str, str] | None) -> Choice:
    """Return which cells a page can hold; an axis that `slices` names is held at one value."""
    first, second, held = choose_drawn(plan, x, y, slices)
    most = MAX_ACROSS if second else MAX_ALONG
    first, second = _thinned(first, most), _thinned(second, most) if second else None
    others = [axis for axis in range(len(plan.axes)) if axis not in (first.axis, second.axis if second else -1)]
    free = [axis for axis in others if axis not in held]
    plane = len(first.points) * (len(second.points) if second else 1)
    length = _common_length([len(plan.axes[axis]) for axis in free], MAX_NUMBERS // (plane * len(plan.outputs)))
    points = {axis: evenly(len(plan.axes[axis]), length) for axis in free}
    points |= {axis: np.array([at], dtype=np.intp) for axis, at in held.items()}
    return Choice(plan, first, second, {axis: points[axis] for axis in others})


def read_sample(out: str | os.PathLike[str], choice: Choice) -> Sample:
    """Read every part once: count all of its cells, keep the chosen ones."""
    plan, cells = choice.plan, choice.cells()
    names = [output.column for output in plan.outputs]
    outputs = {name: np.full(len(cells), np.nan) for name in names}
    sample = Sample(choice, outputs, np.zeros(len(cells), dtype=np.uint8), Counts())
    store, order = Store(open_folder(out), plan, read_manifest(out)), np.argsort(cells, kind="stable")
    borders = np.searchsorted(cells[order], np.arange(plan.num_shards + 1) * plan.shard_rows)
    absent = []
    for index in range(plan.num_shards):
        content = store.content(index)
        try:
            table = None if content is None else whole_table(plan, store.manifest, index, content)
        except DamagedPartError:
            table = None
        if table is None:
            absent.append(index)
            continue
        sample.counts.add(count(table, names))
        _keep(sample, table, order[borders[index] : borders[index + 1]], cells, plan.shard(index).start)
    sample.missing = _runs(plan, absent)
    return sample


def _keep(sample: Sample, table: Any, wanted: NDArray[np.intp], cells: NDArray[np.int64], start: int) -> None:
    rows = cells[wanted] - start
    for name, values in sample.outputs.items():
        values[wanted] = table[name].to_numpy()[rows]
    sample.present[wanted] = 1
    for text in table["error"].unique().to_pylist():
        if text is not None and text not in sample.errors and len(sample.errors) < MAX_TEXTS:
            sample.errors[text] = start + table["error"].index(text).as_py()


def _thinned(drawn: Drawn, most: int) -> Drawn:
    kept = evenly(len(drawn.points), most)
    return Drawn(drawn.axis, drawn.name, drawn.points[kept], drawn.values[kept])


def _common_length(lengths: list[int], most: int) -> int:
    """Return the greatest number of values that each axis may keep, so that at most so many slices are left."""
    length = max(1, min(max(lengths, default=1), most))
    while length > 1 and math.prod(min(other, length) for other in lengths) > most:
        length -= 1
    return length


def _runs(plan: Plan, shards: list[int]) -> list[range]:
    """Return the cells of some shards as as few ranges as possible."""
    runs = []
    for _, group in itertools.groupby(enumerate(shards), key=lambda pair: pair[1] - pair[0]):
        numbers = [shard for _, shard in group]
        runs.append(range(plan.shard(numbers[0]).start, plan.shard(numbers[-1]).stop))
    return runs

"""What is shown of a finished table: in a picture two arguments (or one) drawn, the others in panels or held; in a page some cells.

A page cannot hold a million rows. It gets whole slices of the table, evenly chosen along each axis, read in one pass that counts all
cells, and says which.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hockeystick.sweep.errors import OutputError, require
from hockeystick.sweep.parquet_part import Counts, count
from hockeystick.sweep.plan import Axis, Plan, Values
from hockeystick.sweep.store import Store

MAX_POINTS = 1000  # more along an axis than a picture has pixels
MAX_PANELS = 6
SOME = 3  # panels of an axis that has more values than there is room for
MAX_ACROSS = 64  # cells along an axis of a heat map
MAX_ALONG = 1000  # points of a line
MAX_NUMBERS = 300_000  # in a page, where each takes eleven bytes
MAX_TEXTS = 20  # distinct error texts
SLICE_TOLERANCE = 0.01  # relative: the values of a logspace are not typed in full


@dataclass(frozen=True)
class Drawn:
    """An argument on an axis of the picture."""

    axis: int
    name: str
    points: NDArray[np.intp]  # positions on the plan's axis, by increasing value
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """Which cells are shown: those of two drawn axes (or one), for each combination of positions of the others."""

    plan: Plan
    x: Drawn
    y: Drawn | None  # None for a plan with one numeric axis
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

    def values(self, store: Store, column: str) -> NDArray[np.float64]:
        """Return (slices, y, x) values of an output, (slices, 1, x) without y; NaN where the run has not been yet.

        Only the parts that hold them are read.
        """
        cells = self.cells().reshape(self.num_slices, -1, len(self.x.points))
        values, shards = np.full(cells.shape, np.nan), cells // self.plan.shard_rows
        for shard in np.intersect1d(shards, [*store.sizes()]).tolist():
            here = shards == shard
            values[here] = store.table(shard)[column].to_numpy()[cells[here] - shard * self.plan.shard_rows]
        return values

    @property
    def titles(self) -> list[str]:
        """Return in words where each slice is."""
        spread = {axis: at for axis, at in self.slices.items() if len(at) > 1}
        return [
            ", ".join(point(self.plan.axes[axis], at) for axis, at in zip(spread, combination, strict=True))
            for combination in itertools.product(*(positions.tolist() for positions in spread.values()))
        ]

    @property
    def held(self) -> str:
        """Return in words the arguments that are the same in all slices."""
        return ", ".join(point(self.plan.axes[axis], at[0]) for axis, at in self.slices.items() if len(at) == 1)

    @property
    def chosen(self) -> str:
        """Return in words which axes have slices for some of their values only."""
        return "; ".join(
            f"panels for {len(at)} of the {len(self.plan.axes[axis])} values of {self.plan.axes[axis].name}"
            for axis, at in self.slices.items()
            if 1 < len(at) < len(self.plan.axes[axis])
        )


def choose(plan: Plan, x: str | None = None, y: str | None = None, slices: Mapping[str, str] | None = None) -> Choice:
    """Return what to draw: the two longest numeric axes unless told otherwise; an axis that `slices` names is held at one value.

    Short axes are spread over panels; a long one has some of its values there, or the first alone.
    """
    first, second, shown, free = choose_drawn(plan, x, y, slices)
    for axis in sorted(free, key=lambda axis: len(plan.axes[axis])):
        room, length = MAX_PANELS // math.prod(map(len, shown.values())), len(plan.axes[axis])
        shown[axis] = evenly(length, length if length <= room else min(room, SOME))
    return Choice(plan, first, second, dict(sorted(shown.items())))


def choose_cells(plan: Plan, x: str | None, y: str | None, slices: Mapping[str, str] | None) -> Choice:
    """Return which cells a page can hold: all axes as evenly as there is room for."""
    first, second, shown, free = choose_drawn(plan, x, y, slices)
    most = MAX_ACROSS if second else MAX_ALONG
    first, second = _thinned(first, most), _thinned(second, most) if second else None
    plane = len(first.points) * (len(second.points) if second else 1)
    length = _common_length([len(plan.axes[axis]) for axis in free], MAX_NUMBERS // (plane * len(plan.outputs)))
    shown |= {axis: evenly(len(plan.axes[axis]), length) for axis in free}
    return Choice(plan, first, second, dict(sorted(shown.items())))


def choose_drawn(
    plan: Plan, x: str | None, y: str | None, slices: Mapping[str, str] | None
) -> tuple[Drawn, Drawn | None, dict[int, NDArray[np.intp]], list[int]]:
    """Return the two arguments to draw, the second None if no other is numeric; axis -> the one position of those held; the other axes."""
    held = _held(plan, slices or {})
    drawable = _drawable(plan, held)
    for role, name in (("x", x), ("y", y)):
        rule = f"must be a numeric axis with distinct values that is not held, of {', '.join(plan.columns)}"
        require(not name or name in drawable, f"{role} {rule}, not {name}", ValueError)
    first, second = (drawable[name] if name else None for name in (x, y))
    used = {drawn.axis for drawn in (first, second) if drawn}
    others = {drawn.axis: drawn for drawn in reversed(drawable.values()) if drawn.axis not in used}  # the first of each
    longest = iter(sorted(others.values(), key=lambda drawn: (-len(plan.axes[drawn.axis]), drawn.axis)))
    first = first or next(longest, None)
    second = second or next(longest, None)
    if first is None:
        raise ValueError("axes must have a numeric axis of two values or more that is not held, to be drawn")
    if second and second.axis == first.axis:
        raise ValueError(f"x and y must be on different axes, not {first.name} and {second.name}")
    taken = {first.axis, *held, *([second.axis] if second else [])}
    return first, second, held, [axis for axis in range(len(plan.axes)) if axis not in taken]


def _drawn(axis: int, name: str, values: Values) -> Drawn:
    order = np.argsort(values, kind="stable")
    return _thinned(Drawn(axis, name, order, values[order].astype(np.float64)), MAX_POINTS)


def evenly(length: int, most: int) -> NDArray[np.intp]:
    """Return at most so many positions of an axis, evenly over it, both ends among them."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(np.intp))


def _drawable(plan: Plan, held: Container[int]) -> dict[str, Drawn]:
    """Return the arguments on axes that can be drawn: numbers, none twice, and not held."""
    return {
        name: _drawn(index, name, values)
        for index, axis in enumerate(plan.axes)
        for name, values in axis.columns.items()
        if index not in held and values.dtype.kind != "U" and 1 < len(values) == len(np.unique(values))
    }


def _held(plan: Plan, slices: Mapping[str, str]) -> dict[int, NDArray[np.intp]]:
    """Return axis -> the one position of the arguments that the caller holds."""
    held = {}
    for name, text in slices.items():
        names = ", ".join(plan.columns)
        require(name in plan.columns, f"slice must name an axis, of {names}, not {name}", ValueError)
        axis = next(index for index, axis in enumerate(plan.axes) if name in axis.columns)
        held[axis] = np.array([_position(name, plan.columns[name], text)], dtype=np.intp)
    return held


def _position(name: str, values: Values, text: str) -> int:
    if values.dtype.kind == "U":
        matches = np.flatnonzero(values == text)
        domain = f"one of {', '.join(values)}"
    else:
        try:
            wanted = float(text)
        except ValueError:
            wanted = math.nan
        distance = np.abs(values - wanted)
        matches = np.flatnonzero((distance <= SLICE_TOLERANCE * abs(wanted)) & (distance == distance.min()))
        near = ", ".join(f"{value:g}" for value in np.sort(values[np.argsort(distance, kind="stable")[:3]]))
        domain = f"a value of its axis (nearest are {near})"
    require(len(matches), f"slice {name} must be {domain}, not {text}", ValueError)
    return int(matches[0])


def point(axis: Axis, at: int) -> str:
    """Return in words where a position of an axis is."""
    return ", ".join(
        f"{name} = {values[at] if values.dtype.kind == 'U' else format(values[at], 'g')}"
        for name, values in axis.columns.items()
    )


@dataclass
class Sample:
    """The chosen cells, and what is to be said of the whole table."""

    choice: Choice
    outputs: dict[str, NDArray[np.float64]]  # (slices * plane,), NaN where there is no value
    present: NDArray[np.uint8]  # (slices * plane,), 1 where the cell is there, whether it has a value or not
    counts: Counts
    missing: list[range] = field(default_factory=list)  # runs of cells that are not there
    errors: dict[str, int] = field(default_factory=dict)  # text -> first cell that has it, for the first texts


def read_sample(store: Store, choice: Choice) -> Sample:
    """Read every part once: count all of its cells, keep the chosen ones."""
    plan, cells = choice.plan, choice.cells()
    names = [output.column for output in plan.outputs]
    outputs = {name: np.full(len(cells), np.nan) for name in names}
    sample = Sample(choice, outputs, np.zeros(len(cells), dtype=np.uint8), Counts())
    order = np.argsort(cells, kind="stable")
    borders = np.searchsorted(cells[order], np.arange(plan.num_shards + 1) * plan.shard_rows)
    absent = []
    for index in range(plan.num_shards):
        try:
            table = store.table(index)
        except OutputError:
            absent.append(index)
            continue
        sample.counts.add(count(table, names))
        wanted, start = order[borders[index] : borders[index + 1]], plan.shard(index).start
        for name, values in outputs.items():
            values[wanted] = table[name].to_numpy()[cells[wanted] - start]
        sample.present[wanted] = 1
        for text in table["error"].unique().to_pylist():
            if text is not None and text not in sample.errors and len(sample.errors) < MAX_TEXTS:
                sample.errors[text] = start + table["error"].index(text).as_py()
    sample.missing = _runs(plan, absent)
    return sample


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

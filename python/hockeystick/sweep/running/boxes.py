"""The cells of a shard as boxes of the plan's grid, so that an argument is given along its own axis and not once a cell.

At each axis a range of cells is whole rows, which are one box, and an incomplete row before and after them, which the next axis
splits in turn. Small boxes are put together into one list of cells, since a call costs as much as many cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.sweep.plan.plan import Plan

Column = NDArray[Any]
Rows: TypeAlias = slice | NDArray[np.intp]

SMALL = 8  # a box with less than an eighth of the shard's cells is small


@dataclass(frozen=True, eq=False)
class Box:
    """Cells in the order of their numbers, the last dimension fastest. A list of cells is a box of one dimension."""

    rows: Rows  # of the shard
    dimensions: tuple[dict[str, Column], ...]  # of each, the arguments that move along it
    shape: tuple[int, ...]


def boxes(plan: Plan, cells: range) -> Iterator[Box]:
    """Yield the boxes of consecutive cells; together they are those cells, each once."""
    left: list[NDArray[np.int64]] = []
    for start, box in _split(plan, cells.start, cells.stop):
        size = int(np.prod([part.stop - part.start for part in box]))
        if size * SMALL < len(cells):
            left.append(np.arange(start, start + size))
            continue
        dimensions = tuple(
            {name: values[part] for name, values in zip(axis.names, axis.values, strict=True)}
            for axis, part in zip(plan.axes, box, strict=True)
        )
        shape = tuple(part.stop - part.start for part in box)
        yield Box(slice(start - cells.start, start - cells.start + size), dimensions, shape)
    if left:
        listed = np.concatenate(left)
        yield Box(listed - cells.start, (plan.axis_columns(listed),), listed.shape)


def _split(plan: Plan, start: int, stop: int, *outer: slice) -> Iterator[tuple[int, tuple[slice, ...]]]:
    """Yield first cells and boxes of the cells from `start` to before `stop`, in which the axes of `outer` stand still."""
    if start >= stop:
        return
    stride, length = plan.strides[len(outer)], len(plan.axes[len(outer)])
    first, last = -(-start // stride), stop // stride  # whole rows
    if first < last:
        inner = [slice(0, len(axis)) for axis in plan.axes[len(outer) + 1 :]]
        yield from _split(plan, start, first * stride, *outer, _point((first - 1) % length))
        at = first % length
        yield first * stride, (*outer, slice(at, at + last - first), *inner)
        yield from _split(plan, last * stride, stop, *outer, _point(last % length))
    elif stop <= first * stride:  # within one row
        yield from _split(plan, start, stop, *outer, _point(start // stride % length))
    else:
        yield from _split(plan, start, first * stride, *outer, _point((first - 1) % length))
        yield from _split(plan, first * stride, stop, *outer, _point(first % length))


def _point(at: int) -> slice:
    return slice(at, at + 1)

"""How values lie on the axes and on the colours of a picture, whatever draws it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hockeystick.sweep.plan import Plan
    from hockeystick.sweep.view import Drawn

Array = NDArray[np.float64]

FEW = 8  # so many values along an axis get a tick each
WIDE = 30.0  # a positive range wider than this ratio is drawn on a log scale
DEPTH = 1e-20  # a log scale goes down to this share of the greatest value: a delta of 1e-300 would flatten the rest


class Line(NamedTuple):
    """A named line of a picture, of a formula that is only printed or not."""

    label: str
    values: Array
    printed: bool


@dataclass(frozen=True)
class Scale:
    """An axis of a picture."""

    values: Array  # increasing
    label: str
    log: bool
    ticks: tuple[str, ...] = ()  # texts at the values, where these are few

    def edges(self) -> Array:
        """Return the borders of the cells, half-way between values as the eye sees them."""
        at = np.log(self.values) if self.log else self.values
        middle = (at[1:] + at[:-1]) / 2
        edges = np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
        return np.exp(edges) if self.log else edges


def drawn_scale(plan: Plan, drawn: Drawn, label: str | None = None, ticks: tuple[str, ...] = ()) -> Scale:
    """Return the scale of a drawn argument of a sweep; by default its label has the unit, and the arguments that move with this one."""
    from hockeystick.sweep.functions import unit_of_argument, with_unit  # noqa: PLC0415 - most pictures are not of sweeps

    zipped = [name for name in plan.axes[drawn.axis].columns if name != drawn.name]
    named = with_unit(drawn.name, unit_of_argument(drawn.name)) + (
        f", and with it {', '.join(zipped)}" if zipped else ""
    )
    return Scale(drawn.values, label or named, is_geometric(drawn.values), ticks)


def same_bound(functions: Mapping[str, str], name: str, tables: Mapping[str, Array]) -> Array:
    """Return all values of one bound: certified and as published it has one scale, which shows how far these are apart."""
    last = {column: function.rpartition(".")[2] for column, function in functions.items()}
    return np.concatenate([values.ravel() for other, values in tables.items() if last[other] == last[name]])


def is_wide(values: Array) -> bool:
    """Tell whether values, none negative, span so much that only a log scale shows them; a zero is an underflow."""
    finite = values[np.isfinite(values)]
    positive = finite[finite > 0]
    return bool(len(positive) and finite.min() >= 0 and positive.max() > WIDE * positive.min())


def is_geometric(values: Array) -> bool:
    """Tell whether increasing values are spaced more evenly by ratios than by differences."""
    if values[0] <= 0:
        return False
    ratios, differences = np.diff(np.log(values)), np.diff(values)
    return bool(ratios.std() / ratios.mean() < differences.std() / differences.mean() - 1e-9)


def value_ends(values: Array, log: bool) -> tuple[float, float]:
    """Return the ends of the scale of the values."""
    shown = values[np.isfinite(values) & ((values > 0) | (not log))]
    if not len(shown):
        return (0.5, 1.0) if log else (0.0, 1.0)
    least, greatest = float(shown.min()), float(shown.max())
    return (max(least, DEPTH * greatest), greatest) if log else (least, greatest)

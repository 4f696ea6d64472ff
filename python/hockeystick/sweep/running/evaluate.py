"""One shard of a sweep: from cell numbers to columns."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hockeystick._hidden_states.best import Best
from hockeystick.sweep.plan.functions import Function
from hockeystick.sweep.plan.plan import Output, Plan, Value
from hockeystick.sweep.running.instructions import computing_with

Column = NDArray[Any]

# What a function may raise for a cell. Anything else is a fault of this library and stops the run.
CELL_ERRORS = (ValueError, TypeError, ArithmeticError)


@dataclass
class Shard:
    """The computed part of a table."""

    cells: range
    axes: dict[str, Column]  # (rows,) each
    outputs: dict[str, NDArray[np.float64]]  # (rows,) each
    errors: dict[int, str] = field(default_factory=dict)  # row -> text
    warnings: list[str] = field(default_factory=list)

    def first_error(self) -> tuple[int, str] | None:
        """Return the first cell with an error, and its text."""
        row = min(self.errors, default=None)
        return None if row is None else (self.cells[row], self.errors[row])


def evaluate(plan: Plan, cells: range, num_threads: int | None = None) -> Shard:
    """Compute every output in these cells. A cell out of a function's domain gets NaN and a text."""
    axes = plan.axis_columns(np.arange(cells.start, cells.stop, dtype=np.int64))
    shard = Shard(cells, axes, {})
    with computing_with(plan.instruction_set):
        for output in plan.outputs:
            wanted = output.function.parameters
            varying = {name: column for name, column in axes.items() if name in wanted}
            constant = {name: value for name, value in plan.fixed.items() if name in wanted} | output.arguments
            _Call(output, constant, num_threads, shard).on(varying)
    return shard


class _Call:
    """One output on one shard."""

    def __init__(self, output: Output, constant: dict[str, Value], num_threads: int | None, shard: Shard) -> None:
        self.output = output
        self.constant = constant
        self.num_threads = num_threads
        self.shard = shard
        self.values = np.full(len(shard.cells), np.nan)
        shard.outputs[output.column] = self.values

    def on(self, varying: Mapping[str, Column]) -> None:
        """Compute the column: words select, so one call serves all cells that have the same words."""
        words = {name: column for name, column in varying.items() if column.dtype.kind == "U"}
        numbers = {name: column for name, column in varying.items() if name not in words}
        for chosen, rows in _groups(words, len(self.values)):
            self.on_group({name: column[rows] for name, column in numbers.items()}, chosen, rows)

    def on_group(
        self, numbers: Mapping[str, Column], chosen: Mapping[str, str], rows: slice | NDArray[np.intp]
    ) -> None:
        """Compute the rows at once; where that fails, find the bad rows and ask each for its reason."""
        constant = {**self.constant, **chosen}
        cell_rows = np.arange(len(self.values))[rows]
        try:
            values = self.at_once(numbers, constant, len(cell_rows))
        except CELL_ERRORS:
            values = np.full(len(cell_rows), np.nan)
        for at in np.flatnonzero(np.isnan(values)):
            values[at], text = self.alone({name: column[at] for name, column in numbers.items()}, constant)
            if text:
                self.note(int(cell_rows[at]), text)
        self.values[rows] = values

    def at_once(self, numbers: Mapping[str, Column], constant: Mapping[str, Value], size: int) -> NDArray[np.float64]:
        """Compute all rows by one call, bad cells NaN."""
        function = self.output.function
        shaped = {name: column[:, None] if name in function.per_round else column for name, column in numbers.items()}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:  # as if all cells were good
                values = _call(function, {**constant, **shaped}, self.num_threads, "raise")
            except CELL_ERRORS:
                values = _call(function, {**constant, **shaped}, self.num_threads, "nan")
        self.shard.warnings += sorted({f"{self.output.column}: {w.message}" for w in caught} - {*self.shard.warnings})
        return np.array(np.broadcast_to(values, (size,)), dtype=np.float64)

    def alone(self, numbers: Mapping[str, Any], constant: Mapping[str, Value]) -> tuple[float, str]:
        """Compute one cell, for its error text; some functions refuse the whole array where one cell is good."""
        function = self.output.function
        arguments = {**constant, **{name: value.item() for name, value in numbers.items()}}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = float(_call(function, arguments, self.num_threads, "raise"))
        except CELL_ERRORS as error:
            return np.nan, str(error) or type(error).__name__
        return value, f"outside the domain of {function.name}" if np.isnan(value) else ""

    def note(self, row: int, text: str) -> None:
        """Add the text to those of other outputs of the same cell."""
        before = f"{self.shard.errors[row]}; " if row in self.shard.errors else ""
        self.shard.errors[row] = f"{before}{self.output.column}: {text}"


def _groups(words: Mapping[str, Column], size: int) -> list[tuple[dict[str, str], slice | NDArray[np.intp]]]:
    """Return for each combination of words the rows that have it."""
    if not words:
        return [({}, slice(None))]
    combinations = np.stack(list(words.values()), axis=1)  # (size, words)
    distinct, member = np.unique(combinations, axis=0, return_inverse=True)
    member = member.reshape(size)  # NumPy 2.0 alone keeps the axis
    return [
        (dict(zip(words, map(str, row), strict=True)), np.flatnonzero(member == group))
        for group, row in enumerate(distinct)
    ]


def _call(function: Function, arguments: dict[str, Any], num_threads: int | None, on_error: str) -> Any:
    if function.is_ufunc:
        with np.errstate(all="ignore"):
            return function.call(*(np.asarray(arguments[name], np.float64) for name in function.parameters))
    values = function.call(**arguments, num_threads=num_threads, on_error=on_error)
    return values.delta if isinstance(values, Best) else values

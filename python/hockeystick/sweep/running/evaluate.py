"""One shard of a sweep: from cell numbers to columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import collected
from hockeystick._hidden_states.best import Best
from hockeystick.sweep.plan.functions import Function
from hockeystick.sweep.plan.plan import Output, Plan, Value
from hockeystick.sweep.running.boxes import Box, Column, boxes
from hockeystick.sweep.running.heard import heard
from hockeystick.sweep.running.instructions import computing_with
from hockeystick.sweep.running.reasons import Reasons, reasons_of

# What a function may raise for a cell. Anything else is a fault of this library and stops the run.
CELL_ERRORS = (ValueError, TypeError, ArithmeticError)

Along = Sequence[Mapping[str, Column]]  # of each dimension, the arguments that move along it


@dataclass
class Shard:
    """The computed part of a table."""

    cells: range
    outputs: dict[str, NDArray[np.float64]]  # (rows,) each
    errors: Reasons
    warnings: list[str] = field(default_factory=list)

    def first_error(self) -> tuple[int, str] | None:
        """Return the first cell with an error, and its text."""
        first = self.errors.first()
        return None if first is None else (self.cells[first[0]], first[1])


def evaluate(plan: Plan, cells: range, num_threads: int | None = None) -> Shard:
    """Compute every output in these cells. A cell out of a function's domain gets NaN and a text."""
    shard = Shard(cells, {}, Reasons.none((len(cells),)))
    pieces = [*boxes(plan, cells)]
    with computing_with(plan.instruction_set):
        for output in plan.outputs:
            constant = {name: value for name, value in plan.fixed.items() if name in output.function.parameters}
            call = _Call(output, constant | output.arguments, num_threads, shard)
            for box in pieces:
                call.on(box)
    return shard


class _Call:
    """One output on one shard."""

    def __init__(self, output: Output, constant: dict[str, Value], num_threads: int | None, shard: Shard) -> None:
        self.output = output
        self.function = output.function
        self.constant = constant
        self.num_threads = num_threads
        self.shard = shard
        self.values = np.full(len(shard.cells), np.nan)
        shard.outputs[output.column] = self.values

    def on(self, box: Box) -> None:
        """Compute a box: words select, so one call serves all cells that have the same words."""
        wanted = [{n: c for n, c in along.items() if n in self.function.parameters} for along in box.dimensions]
        values, reasons = np.empty(box.shape), Reasons.none(box.shape)
        for words, numbers, at, shape in _groups(wanted, box.shape):
            values[at], some = self.on_group({**self.constant, **words}, numbers, shape)
            reasons.put(at, some)
        self.values[box.rows] = values.reshape(-1)
        if reasons.texts:
            here = Reasons.none(self.values.shape)
            here.put(box.rows, Reasons(reasons.codes.reshape(-1), reasons.texts))
            self.shard.errors = self.shard.errors.joined(self.output.column, here)

    def on_group(
        self, constant: dict[str, Value], numbers: Along, shape: tuple[int, ...]
    ) -> tuple[NDArray[np.float64], Reasons]:
        """Compute cells with the same words by one call, and say of those without a value why."""
        try:
            with collected() as refusals:
                values = self.at_once({**constant, **self.shaped(numbers)}, shape)
        except CELL_ERRORS as error:
            values, reasons = np.full(shape, np.nan), Reasons.none(shape)
            if self.refuses_all(constant, numbers, _said(error)):
                reasons.say(..., _said(error))
        else:
            reasons = reasons_of(refusals, shape)
            values[reasons.codes >= 0] = np.nan
        unexplained = np.isnan(values) & (reasons.codes < 0)
        if not unexplained.any():
            return values, reasons
        if self.function.is_ufunc:
            reasons.say(unexplained, self.outside())
            return values, reasons
        self.ask(constant, numbers, np.argwhere(unexplained), values, reasons)
        return values, reasons

    def shaped(self, numbers: Along) -> dict[str, Column]:
        """Return arguments in the shape that broadcasts: each along its dimension, before that of rounds if there is one."""
        shaped = {}
        for dimension, along in enumerate(numbers):
            after = len(numbers) - 1 - dimension
            for name, column in along.items():
                rounds = (1,) * (name in self.function.per_round)
                shaped[name] = column.reshape((1,) * dimension + column.shape + (1,) * after + rounds)
        return shaped

    def at_once(self, arguments: Mapping[str, Any], shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Compute all cells by one call, bad cells NaN."""
        with heard() as texts:
            values = _call(self.function, arguments, self.num_threads, "nan")
        told = {f"{self.output.column}: {text}" for text in texts}
        self.shard.warnings += sorted(told - {*self.shard.warnings})
        return np.array(np.broadcast_to(values, shape), dtype=np.float64)

    def refuses_all(self, constant: Mapping[str, Value], numbers: Along, text: str) -> bool:
        """Say whether the constants alone are refused: a call with no cells then says the same."""
        none = {name: column[:0] for along in numbers for name, column in along.items()}
        if not none:
            return True
        try:
            with heard():
                _call(self.function, {**constant, **self.shaped([none])}, self.num_threads, "nan")
        except CELL_ERRORS as error:
            return _said(error) == text
        return False

    def ask(
        self, constant: Mapping[str, Value], numbers: Along, cells: NDArray[np.intp], values: Column, reasons: Reasons
    ) -> None:
        """Compute cells one by one, for their texts; some functions refuse the whole array where one cell is good."""
        known: dict[tuple[Any, ...], tuple[float, str]] = {}
        for at in map(tuple, cells.tolist()):
            arguments = {
                n: column[i].item() for along, i in zip(numbers, at, strict=True) for n, column in along.items()
            }
            key = tuple(arguments.values())
            if key not in known:
                known[key] = self.alone({**constant, **arguments})
            values[at], text = known[key]
            if text:
                reasons.say(at, text)

    def alone(self, arguments: Mapping[str, Any]) -> tuple[float, str]:
        """Compute one cell, and say why it has no value."""
        try:
            with heard():
                value = float(_call(self.function, arguments, self.num_threads, "raise"))
        except CELL_ERRORS as error:
            return np.nan, _said(error)
        return value, self.outside() if np.isnan(value) else ""

    def outside(self) -> str:
        """Return the text for a cell of which nothing more is known."""
        return f"outside the domain of {self.function.name}"


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _groups(
    wanted: Along, shape: tuple[int, ...]
) -> Iterator[tuple[dict[str, str], list[dict[str, Column]], Any, tuple[int, ...]]]:
    """Yield each combination of words with the numbers of its cells, which cells of the box they are, and their shape."""
    parts = [_by_words(along, length) for along, length in zip(wanted, shape, strict=True)]
    for chosen in itertools.product(*parts):
        words = {name: word for some, _ in chosen for name, word in some.items()}
        numbers = [
            {name: column[at] for name, column in along.items() if column.dtype.kind != "U"}
            for along, (_, at) in zip(wanted, chosen, strict=True)
        ]
        if all(len(part) == 1 for part in parts):
            yield words, numbers, ..., shape
            return
        lines = [np.arange(length)[at] for length, (_, at) in zip(shape, chosen, strict=True)]
        yield words, numbers, np.ix_(*lines), tuple(map(len, lines))


def _by_words(along: Mapping[str, Column], length: int) -> list[tuple[dict[str, str], Any]]:
    """Return for each combination of the words along a dimension the places that have it."""
    words = {name: column for name, column in along.items() if column.dtype.kind == "U"}
    if not words:
        return [({}, slice(None))]
    member = np.zeros(length, np.intp)
    for column in words.values():
        distinct, place = np.unique(column, return_inverse=True)
        member = member * len(distinct) + place
    groups = [np.flatnonzero(member == group) for group in np.unique(member)]
    return [({name: str(column[at[0]]) for name, column in words.items()}, at) for at in groups]


def _call(function: Function, arguments: Mapping[str, Any], num_threads: int | None, on_error: str) -> Any:
    if function.is_ufunc:
        with np.errstate(all="ignore"):
            return function.call(*(np.asarray(arguments[name], np.float64) for name in function.parameters))
    values = function.call(**arguments, num_threads=num_threads, on_error=on_error)
    return values.delta if isinstance(values, Best) else values

"""One shard of a sweep: from cell numbers to columns, and for cells that have no value to the reasons.

The cells of a shard are cut into subgrids of the plan's grid, so that an argument is given along its own axis and not once a cell.
At each axis a range of cells is whole rows, which are one subgrid, and an incomplete row before and after them, which the next axis
splits in turn. Small subgrids are put together into one list of cells, since a call costs as much as many cells.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import hockeystick._core as core
from hockeystick._checks import Refusal
from hockeystick._hidden_states.best import Best
from hockeystick.sweep.plan import Output, Plan, Value

# What a function may raise for a cell. Anything else is a fault of this library and stops the run.
CELL_ERRORS = (ValueError, TypeError, ArithmeticError)
SMALL = 8  # a subgrid with less than an eighth of the shard's cells is small

Column = NDArray[Any]
Rows: TypeAlias = slice | NDArray[np.intp]
Along = Sequence[Mapping[str, Column]]  # of each dimension, the arguments that move along it


@dataclass
class Shard:
    """The computed part of a table."""

    cells: range
    outputs: dict[str, NDArray[np.float64]]  # (rows,) each
    errors: CellErrors
    warnings: list[str] = field(default_factory=list)


def evaluate(plan: Plan, cells: range, num_threads: int | None = None) -> Shard:
    """Compute every output in these cells. A cell out of a function's domain gets NaN and a text."""
    shard = Shard(cells, {}, CellErrors.none((len(cells),)))
    pieces = [*subgrids(plan, cells)]
    # A table must not depend on how the caller's thread has NumPy treat overflow and the like.
    with computing_with(plan.instruction_set), np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
        for output in plan.outputs:
            constant = {name: value for name, value in plan.fixed.items() if name in output.function.parameters}
            column = _Column(output, constant | output.arguments, num_threads, shard)
            for piece in pieces:
                column.compute(piece)
    return shard


@contextlib.contextmanager
def computing_with(instruction_set: str) -> Iterator[None]:
    """Have compiled functions use a set of instructions in this thread, the machine's best if it is empty; refuse one that there is not."""
    before = core.use_instruction_set(instruction_set or core.instruction_set)
    try:
        yield
    finally:
        core.use_instruction_set(before)


def check_instruction_set(instruction_set: str) -> None:
    """Refuse, with a ValueError, a set of instructions that this machine has not."""
    with computing_with(instruction_set):
        pass


@dataclass(frozen=True, eq=False)
class Subgrid:
    """Cells in the order of their numbers, the last dimension fastest. A list of cells is a subgrid of one dimension."""

    rows: Rows  # of the shard
    dimensions: tuple[dict[str, Column], ...]  # of each, the arguments that move along it
    shape: tuple[int, ...]


def subgrids(plan: Plan, cells: range) -> Iterator[Subgrid]:
    """Yield the subgrids of consecutive cells; together they are those cells, each once."""
    left: list[NDArray[np.int64]] = []
    for start, places in _split(plan, cells.start, cells.stop):
        shape = tuple(place.stop - place.start for place in places)
        size = int(np.prod(shape))
        if size * SMALL < len(cells):
            left.append(np.arange(start, start + size))
            continue
        dimensions = tuple(
            {name: values[place] for name, values in axis.columns.items()}
            for axis, place in zip(plan.axes, places, strict=True)
        )
        yield Subgrid(slice(start - cells.start, start - cells.start + size), dimensions, shape)
    if left:
        listed = np.concatenate(left)
        yield Subgrid(listed - cells.start, (plan.axis_columns(listed),), listed.shape)


def _split(plan: Plan, start: int, stop: int, *outer: slice) -> Iterator[tuple[int, tuple[slice, ...]]]:
    """Yield first cells and places on the axes of the cells from `start` to before `stop`, in which the axes of `outer` stand still."""
    if start >= stop:
        return
    length, stride = plan.shape[len(outer)], plan.strides[len(outer)]
    first = min(-(-start // stride) * stride, stop)  # cell of the first whole row, or the end
    last = max(stop // stride * stride, first)  # after the last whole row
    at = start // stride % length
    yield from _split(plan, start, first, *outer, slice(at, at + 1))
    if first < last:
        at = first // stride % length
        inner = (slice(0, points) for points in plan.shape[len(outer) + 1 :])
        yield first, (*outer, slice(at, at + (last - first) // stride), *inner)
    at = last // stride % length
    yield from _split(plan, last, stop, *outer, slice(at, at + 1))


class _Column:
    """One output on one shard."""

    def __init__(self, output: Output, constant: dict[str, Value], num_threads: int | None, shard: Shard) -> None:
        self.output = output
        self.function = output.function
        self.constant = constant
        self.num_threads = num_threads
        self.shard = shard
        self.values = np.full(len(shard.cells), np.nan)
        self.outside = f"outside the domain of {self.function.name}"  # for a cell of which nothing more is known
        shard.outputs[output.column] = self.values

    def compute(self, subgrid: Subgrid) -> None:
        """Compute a subgrid: words select, so one call serves all cells that have the same words."""
        wanted = [{n: c for n, c in along.items() if n in self.function.parameters} for along in subgrid.dimensions]
        values, errors = np.empty(subgrid.shape), CellErrors.none(subgrid.shape)
        for words, numbers, at, shape in _groups(wanted, subgrid.shape):
            values[at], some = self.group({**self.constant, **words}, numbers, shape)
            errors.put(at, some.codes, some.texts)
        self.values[subgrid.rows] = values.reshape(-1)
        if errors.texts:
            here = CellErrors.none(self.values.shape)
            here.put(subgrid.rows, errors.codes.reshape(-1), errors.texts)
            self.shard.errors = self.shard.errors.joined(self.output.column, here)

    def group(
        self, constant: dict[str, Value], numbers: Along, shape: tuple[int, ...]
    ) -> tuple[NDArray[np.float64], CellErrors]:
        """Compute cells with the same words by one call, and say of those without a value why."""
        refusals: list[Refusal] = []
        values, said = self.call({**constant, **self.shaped(numbers)}, shape, refusals)
        if said:
            errors = CellErrors.none(shape)
            if self.refuses_all(constant, numbers, said):
                errors.put(..., 0, [said])
        else:
            errors = CellErrors.of(refusals, shape)
            values[errors.codes >= 0] = np.nan
        unexplained = np.isnan(values) & (errors.codes < 0)
        if unexplained.any() and self.function.is_ufunc:
            errors.put(unexplained, 0, [self.outside])
        elif unexplained.any():
            self.one_by_one(constant, numbers, np.argwhere(unexplained), values, errors)
        return values, errors

    def shaped(self, numbers: Along) -> dict[str, Column]:
        """Return arguments in the shape that broadcasts: each along its dimension, before that of rounds if there is one."""
        shaped = {}
        for dimension, along in enumerate(numbers):
            after = len(numbers) - 1 - dimension
            for name, column in along.items():
                rounds = (1,) * (name in self.function.per_round)
                shaped[name] = column.reshape((1,) * dimension + column.shape + (1,) * after + rounds)
        return shaped

    def refuses_all(self, constant: Mapping[str, Value], numbers: Along, said: str) -> bool:
        """Say whether the constants alone are refused: a call with no cells then says the same."""
        none = {name: column[:0] for along in numbers for name, column in along.items()}
        return not none or self.call({**constant, **self.shaped([none])}, (0,), "nan", tell=False)[1] == said

    def one_by_one(
        self, constant: Mapping[str, Value], numbers: Along, cells: NDArray[np.intp], values: Column, errors: CellErrors
    ) -> None:
        """Compute cells alone, for their texts; some functions refuse the whole array where one cell is good."""
        known: dict[tuple[Any, ...], tuple[float, str]] = {}
        for at in map(tuple, cells.tolist()):
            arguments = {
                n: column[i].item() for along, i in zip(numbers, at, strict=True) for n, column in along.items()
            }
            key = tuple(arguments.values())
            if key not in known:
                value, said = self.call({**constant, **arguments}, (), "raise", tell=False)
                known[key] = float(value), said or (self.outside if np.isnan(value) else "")
            values[at], text = known[key]
            if text:
                errors.put(at, 0, [text])

    def call(
        self, arguments: Mapping[str, Any], shape: tuple[int, ...], on_error: Any, *, tell: bool = True
    ) -> tuple[NDArray[np.float64], str]:
        """Call the function, and return its values and what it says if it refuses the arguments: then all values are NaN."""
        try:
            with captured_warnings() as texts:
                values = np.array(np.broadcast_to(self.called(arguments, on_error), shape), dtype=np.float64)
        except CELL_ERRORS as error:
            return np.full(shape, np.nan), str(error) or type(error).__name__
        if tell:
            told = {f"{self.output.column}: {text}" for text in texts}
            self.shard.warnings += sorted(told - {*self.shard.warnings})
        return values, ""

    def called(self, arguments: Mapping[str, Any], on_error: Any) -> Any:
        """Return what the function returns."""
        if self.function.is_ufunc:
            with np.errstate(all="ignore"):
                return self.function.call(*(np.asarray(arguments[n], np.float64) for n in self.function.parameters))
        values = self.function.call(**arguments, num_threads=self.num_threads, on_error=on_error)
        return values.delta if isinstance(values, Best) else values


def _groups(
    wanted: Along, shape: tuple[int, ...]
) -> Iterator[tuple[dict[str, str], list[dict[str, Column]], Any, tuple[int, ...]]]:
    """Yield each combination of words with the numbers of its cells, which cells of the subgrid they are, and their shape."""
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


_LISTENERS = threading.Lock()
_TEXTS: dict[int, list[str]] = {}  # of each thread that is listening
_FILTERS = contextlib.ExitStack()  # restores what was there


@contextlib.contextmanager
def captured_warnings() -> Iterator[list[str]]:
    """Give the texts of this thread's warnings, repeated ones too, and show none of them.

    `warnings.catch_warnings` alone takes those of all threads, and forgets some where two overlap.
    """
    texts: list[str] = []
    if getattr(sys.flags, "context_aware_warnings", False):  # then each thread has filters of its own
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield texts
            texts += [str(warning.message) for warning in caught]
        return
    thread = threading.get_ident()
    with _LISTENERS:
        if not _TEXTS:  # the first thread installs what sorts warnings by thread
            _FILTERS.enter_context(warnings.catch_warnings())
            warnings.simplefilter("always")
            warnings.showwarning = functools.partial(_show, warnings.showwarning)
        _TEXTS[thread] = texts
    try:
        yield texts
    finally:
        with _LISTENERS:
            del _TEXTS[thread]
            if not _TEXTS:  # the last one removes it
                _FILTERS.close()


def _show(others: Any, message: Warning | str, *where: Any, **more: Any) -> None:
    """Keep the text of a warning of a thread that is listening; show that of another as it would have been shown."""
    texts = _TEXTS.get(threading.get_ident())
    if texts is None:
        others(message, *where, **more)
    else:
        texts.append(str(message))


@dataclass(eq=False)
class CellErrors:
    """Why cells of any shape have no value: a text for each distinct reason, and for each cell the number of its text."""

    codes: NDArray[np.int32]  # of each cell: the number of its text, or -1 for none
    texts: list[str]

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> CellErrors:
        """Return the errors of cells that all have values."""
        return cls(np.full(shape, -1, np.int32), [])

    @classmethod
    def of(cls, refusals: Iterable[Refusal], shape: tuple[int, ...]) -> CellErrors:
        """Return of each cell the first refusal, as a call with this cell alone would say it.

        A refusal has the shape of its arguments: where that has one dimension more than the cells, the last is that of rounds.
        """
        errors = cls.none(shape)
        for refusal in refusals:
            some = _texts(refusal)
            codes = some.codes[..., 0] if some.codes.ndim > len(shape) else some.codes
            free = errors.codes < 0
            errors.put(free, np.broadcast_to(codes, shape)[free], some.texts)
        return errors

    def put(self, at: Any, codes: Any, texts: list[str]) -> None:
        """Set the errors of some cells: the numbers of these texts, -1 where there is none."""
        self.codes[at] = np.where(np.less(codes, 0), -1, codes + len(self.texts))
        self.texts += texts

    def joined(self, column: str, others: CellErrors) -> CellErrors:
        """Return these errors with those of an output added to the same cells; no two texts of them are equal."""
        texts = ["", *(f"{column}: {text}" for text in others.texts)]
        pairs = (self.codes.astype(np.int64) + 1) * len(texts) + (others.codes + 1)
        distinct, member = numbered(pairs, (len(self.texts) + 1) * len(texts))
        numbers: dict[str, int] = {"": -1}
        codes = []
        for pair in distinct.tolist():
            before, after = divmod(pair, len(texts))
            said = filter(None, (self.texts[before - 1] if before else "", texts[after]))
            codes.append(numbers.setdefault("; ".join(said), len(numbers) - 1))
        return CellErrors(np.array(codes, np.int32)[member], [text for text in numbers if text])


def _texts(refusal: Refusal) -> CellErrors:
    """Return a text for each distinct combination of refused values, and which of them each element has."""
    errors, bad = CellErrors.none(refusal.good.shape), ~refusal.good
    columns = [np.broadcast_to(array, bad.shape)[bad] for array in refusal.arguments.values()]
    member = np.zeros(len(columns[0]), np.intp)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        combined = member * len(values) + place
        _, first, member = np.unique(combined, return_index=True, return_inverse=True)  # first of each combination
    errors.codes[bad] = member
    chosen = zip(*(column[first].tolist() for column in columns), strict=True)
    errors.texts += [refusal.text(values) for values in chosen]
    return errors


def numbered(values: NDArray[np.int64], bound: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct values, which are from 0 to below `bound`, and of each value its place among them."""
    if bound > 4 * values.size:
        return np.unique(values, return_inverse=True)
    there = np.bincount(values, minlength=bound) > 0  # without sorting
    return np.flatnonzero(there), (np.cumsum(there) - 1)[values]

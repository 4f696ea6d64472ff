"""A sweep plan: checked as a whole before anything runs, then a numbering of its cells.

A plan is data. It names functions of the table in `functions`, and nothing in it is ever executed or imported.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hockeystick.sweep.errors import PlanError
from hockeystick.sweep.plan.axes import Axis, Values, listed, parse_axis, parse_zip, scalar, shorten
from hockeystick.sweep.plan.functions import COSTLY, TRAININGS, Function, UnknownFunctionError, lookup

SHARD_ROWS = 65536  # about 5 MB a shard: large enough for all cores, small enough to lose
COSTLY_SHARD_ROWS = 2048  # about as much work where a cell takes up to milliseconds, and enough shards for a cluster
MAX_SHARD_ROWS = 2**22
MAX_CELLS = 10**12
MAX_SHARDS = 250_000  # files
INSTRUCTION_SETS = ("portable", "v2", "v3", "v4")  # the levels of x86-64, and what runs everywhere
_SECTIONS = ("title", "shard_rows", "instruction_set", "outputs", "fixed", "axes", "zip")
_COLUMN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")  # it becomes the name of a picture, too

Value = int | float | str


@dataclass(frozen=True)
class Output:
    """One computed column."""

    column: str
    function: Function
    arguments: dict[str, Value]  # those that only this output takes


@dataclass(frozen=True, eq=False)
class Plan:
    """A checked plan. Cells are numbered from 0, the last axis fastest."""

    title: str
    shard_rows: int
    outputs: tuple[Output, ...]
    fixed: dict[str, Value]
    axes: tuple[Axis, ...]
    source: dict[str, Any]  # as it was given
    instruction_set: str = ""  # that every machine computes with; if empty, the best of the one that begins

    @property
    def num_cells(self) -> int:
        """Return the number of cells."""
        return math.prod(len(axis) for axis in self.axes)

    @property
    def num_shards(self) -> int:
        """Return the number of shards, of which only the last may be shorter."""
        return -(-self.num_cells // self.shard_rows)

    @property
    def has_trainings(self) -> bool:
        """Return whether a cell is a training."""
        return any(output.function.name in TRAININGS for output in self.outputs)

    @property
    def strides(self) -> tuple[int, ...]:
        """Return for each axis how far apart in cells its neighbouring points are."""
        return tuple(math.prod(len(axis) for axis in self.axes[after:]) for after in range(1, len(self.axes) + 1))

    def shard(self, index: int) -> range:
        """Return the cells of one shard."""
        return range(index * self.shard_rows, min((index + 1) * self.shard_rows, self.num_cells))

    def axis_columns(self, cells: NDArray[np.int64]) -> dict[str, Values]:
        """Return for each argument on an axis its values in these cells."""
        columns = {}
        for axis, stride in zip(self.axes, self.strides, strict=True):
            at = cells // stride % len(axis)
            columns.update({name: values[at] for name, values in zip(axis.names, axis.values, strict=True)})
        return columns

    def axis_names(self) -> list[str]:
        """Return the arguments on axes, in the order of the file."""
        return [name for axis in self.axes for name in axis.names]


def load(plan: str | os.PathLike[str] | Mapping[str, Any]) -> Plan:
    """Return the checked plan of a TOML file or of a mapping with the same content."""
    return parse(plan if isinstance(plan, Mapping) else read(plan))


def read(plan: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a TOML file."""
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 - needed here only
    else:
        try:
            import tomli as tomllib  # noqa: PLC0415
        except ImportError as error:
            message = 'a plan in a file needs tomli on Python 3.10: pip install ".[sweep]" in a clone'
            raise ImportError(message) from error
    try:
        content: dict[str, Any] = tomllib.loads(Path(plan).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        if isinstance(error, RecursionError):
            reason = "it is nested too deeply"
        message = f"plan must be a TOML file, not {os.fspath(plan)}: {reason}"
        raise PlanError(message) from error
    return content


def parse(source: Mapping[str, Any]) -> Plan:
    """Return the checked plan of a mapping."""
    _check_sections(source)
    outputs = tuple(_output(column, given) for column, given in _table(source, "outputs").items())
    fixed = {name: scalar(f"fixed.{name}", value) for name, value in _table(source, "fixed").items()}
    axes = tuple(_axes(source))
    if not outputs or not axes:
        message = f"{'axes' if outputs else 'outputs'} must have at least one entry, not none"
        raise PlanError(message)
    shard_rows = source.get("shard_rows", _shard_rows(outputs, math.prod(map(len, axes))))
    if type(shard_rows) is not int or not 1 <= shard_rows <= MAX_SHARD_ROWS:
        message = f"shard_rows must be an integer between 1 and {MAX_SHARD_ROWS}, not {shorten(shard_rows)}"
        raise PlanError(message)
    plan = Plan(source.get("title", ""), shard_rows, outputs, fixed, axes, dict(source), _instruction_set(source))
    _check_names(plan)
    _check_arguments(plan)
    if plan.num_cells > MAX_CELLS:
        lengths = " x ".join(str(len(axis)) for axis in axes)
        message = f"axes must have at most {MAX_CELLS} cells together, not {lengths} = {plan.num_cells}"
        raise PlanError(message)
    if plan.num_shards > MAX_SHARDS:
        least = -(-plan.num_cells // MAX_SHARDS)
        message = f"shard_rows must be at least {least} for {plan.num_cells} cells, not {shard_rows}"
        raise PlanError(message)
    return plan


def _shard_rows(outputs: tuple[Output, ...], num_cells: int) -> int:
    """Return the rows of a shard where the plan has none: from the plan alone, so that its tables stay comparable."""
    if any(output.function.name in TRAININGS for output in outputs):
        rows = 1  # what is lost by a kill is the training under way
    else:
        rows = COSTLY_SHARD_ROWS if any(output.function.name in COSTLY for output in outputs) else SHARD_ROWS
    while rows * MAX_SHARDS < num_cells and rows < MAX_SHARD_ROWS:
        rows *= 2
    return rows


def _check_sections(source: Mapping[str, Any]) -> None:
    for key in source:
        if key not in _SECTIONS:
            message = f"{key} is unknown; a plan has {', '.join(_SECTIONS)}"
            raise PlanError(message)
    if not isinstance(source.get("title", ""), str):
        message = f"title must be a string, not {shorten(source['title'])}"
        raise PlanError(message)


def _instruction_set(source: Mapping[str, Any]) -> str:
    given = source.get("instruction_set", "")
    if "instruction_set" in source and given not in INSTRUCTION_SETS:
        message = f"instruction_set must be one of {', '.join(INSTRUCTION_SETS)}, not {shorten(given)}"
        raise PlanError(message)
    return str(given)


def _table(source: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    given = source.get(key, {})
    if not isinstance(given, Mapping):
        message = f"{key} must be a table, not {shorten(given)}"
        raise PlanError(message)
    return given


def _axes(source: Mapping[str, Any]) -> Iterator[Axis]:
    """Yield the axes in the order of the file, where `[[zip]]` may stand before or after `[axes]`."""
    for key in source:
        if key == "axes":
            yield from (parse_axis(name, given) for name, given in _table(source, "axes").items())
        if key == "zip":
            if not isinstance(source["zip"], list):
                message = f"zip must be an array of tables, [[zip]], not {shorten(source['zip'])}"
                raise PlanError(message)
            yield from (parse_zip(index, given) for index, given in enumerate(source["zip"]))


def _output(column: str, given: object) -> Output:
    key = f"outputs.{column}"
    if not _COLUMN.fullmatch(column) or column in ("cell", "error"):
        message = f"{key} must be named with letters, digits and underscores, and not cell or error"
        raise PlanError(message)
    entry = {"function": given} if isinstance(given, str) else given
    if not isinstance(entry, Mapping) or not isinstance(entry.get("function"), str):
        message = f"{key} must be a function's name or a table with function, not {shorten(given)}"
        raise PlanError(message)
    for extra in entry.keys() - {"function", "arguments"}:
        message = f"{key}.{extra} is unknown; an output has function and arguments"
        raise PlanError(message)
    try:
        function = lookup(entry["function"])
    except UnknownFunctionError as error:
        message = f"{key} must name a registered function, not {entry['function']!r}; {error}"
        raise PlanError(message) from None
    own = entry.get("arguments", {})
    if not isinstance(own, Mapping):
        message = f"{key}.arguments must be a table, not {shorten(own)}"
        raise PlanError(message)
    arguments = {name: scalar(f"{key}.arguments.{name}", value) for name, value in own.items()}
    return Output(column, function, arguments)


def _check_names(plan: Plan) -> None:
    """Every column has a name of its own."""
    uses = Counter([*plan.axis_names(), *plan.fixed, *(output.column for output in plan.outputs)])
    for name, count in uses.items():
        if count > 1:
            message = f"{name} must be used once in outputs, fixed, axes and zip, not {count} times"
            raise PlanError(message)


def _check_arguments(plan: Plan) -> None:
    """Every output gets what it needs, and everything given is needed by some output."""
    shared = {name: values for axis in plan.axes for name, values in zip(axis.names, axis.values, strict=True)}
    shared.update({name: listed(f"fixed.{name}", [value]) for name, value in plan.fixed.items()})
    for output in plan.outputs:
        _check_output(output, shared)
    taken = {name: output.function for output in plan.outputs for name in output.function.parameters}
    for name, values in shared.items():
        key = _where(plan, name)
        if name not in taken:
            message = f"{key} is not an argument of any output; they take {', '.join(sorted(taken))}"
            raise PlanError(message)
        _check_kind(key, name, values, taken[name])


def _where(plan: Plan, name: str) -> str:
    """Return the key under which a shared argument stands in the file."""
    zips = [axis for axis in plan.axes if axis.spacing == "zip"]
    found = [f"zip[{index}]" for index, axis in enumerate(zips) if name in axis.names]
    return f"{found[0] if found else 'fixed' if name in plan.fixed else 'axes'}.{name}"


def _check_output(output: Output, shared: Mapping[str, Values]) -> None:
    function = output.function
    for name, value in output.arguments.items():
        key = f"outputs.{output.column}.arguments.{name}"
        if name not in function.parameters:
            message = f"{key} is not an argument of {function.name}, which takes {', '.join(function.parameters)}"
            raise PlanError(message)
        if name in shared:
            message = f"{key} must be given once, not also in fixed, axes or zip"
            raise PlanError(message)
        _check_kind(key, name, listed(key, [value]), function)
    for name in function.required:
        if name not in shared and name not in output.arguments:
            message = (
                f"outputs.{output.column} = {function.name} needs {name}, in axes, zip, fixed or its own arguments"
            )
            raise PlanError(message)


def _check_kind(key: str, name: str, values: Values, function: Function) -> None:
    """Words where the argument is a word, numbers elsewhere, and integers where it counts something."""
    if name in function.choices:
        wrong = [value for value in values.tolist() if value not in function.choices[name]]
        domain = f"one of {', '.join(function.choices[name])}"
    elif name in function.integers and values.dtype.kind == "f":
        wrong = values[values != np.rint(values)][:1].tolist()
        domain = "an integer"
    else:
        wrong = values.tolist()[:1] if values.dtype.kind == "U" else []
        domain = "a number"
    if wrong:
        message = f"{key} must be {domain}, not {shorten(wrong[0])}"
        raise PlanError(message)

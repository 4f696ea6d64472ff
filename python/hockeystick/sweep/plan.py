"""A sweep plan: checked as a whole before anything runs, then a numbering of its cells; its axes, and its shares.

A plan is data. It names functions of the table in `functions`, and nothing in it is ever executed or imported.

A share is what one job of several computes that know nothing of each other. A plan's cost varies along its axes, so a block of
neighbouring parts would leave one job with all that is dear. A share has every n-th part instead, and begins each round of n parts
one place further on: where n divides the parts along an axis, plain steps of n would meet the same values of that axis in every round.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks.shown import shown
from hockeystick._files import read_toml
from hockeystick.sweep.errors import OutputError, PlanError, must, require
from hockeystick.sweep.functions import Function, lookup, registered

# By the cost of a plan's functions. Cheap: about 5 MB a shard, large enough for all cores, small enough to lose. Costly: about as
# much work in a shard, and enough shards for a cluster. Training: whoever kills a run loses only the training under way.
SHARD_ROWS = {"cheap": 65536, "costly": 2048, "training": 1}
MAX_SHARD_ROWS = 2**22
MAX_CELLS = 10**12
MAX_SHARDS = 250_000  # files
INSTRUCTION_SETS = ("portable", "v3", "v4")  # two levels of x86-64, and what runs everywhere
_SECTIONS = ("title", "shard_rows", "instruction_set", "outputs", "fixed", "axes", "zip")
_COLUMN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")  # it becomes the name of a picture, too

Value = int | float | str


@dataclass(frozen=True)
class Output:
    """One computed column."""

    column: str
    function: Function
    arguments: dict[str, Value]  # those that only this output takes


def costs(outputs: Iterable[Output]) -> set[str]:
    """Return the classes of cost of the functions: cheap, costly or training."""
    return {registered(output.function.name).cost for output in outputs}


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

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Return the lengths of the axes."""
        return tuple(map(len, self.axes))

    @cached_property
    def num_cells(self) -> int:
        """Return the number of cells."""
        return math.prod(self.shape)

    @cached_property
    def num_shards(self) -> int:
        """Return the number of shards, of which only the last may be shorter."""
        return -(-self.num_cells // self.shard_rows)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Return for each axis how far apart in cells its neighbouring points are."""
        return tuple(math.prod(self.shape[after:]) for after in range(1, len(self.shape) + 1))

    def shard(self, index: int) -> range:
        """Return the cells of one shard."""
        return range(index * self.shard_rows, min((index + 1) * self.shard_rows, self.num_cells))

    def axis_columns(self, cells: NDArray[np.int64]) -> dict[str, Values]:
        """Return for each argument on an axis its values in these cells."""
        columns = {}
        for axis, stride in zip(self.axes, self.strides, strict=True):
            at = cells // stride % len(axis)
            columns.update({name: values[at] for name, values in axis.columns.items()})
        return columns

    def inputs(self, cell: int) -> dict[str, Value]:
        """Return for each argument on an axis its value in a cell."""
        return {name: column[0].item() for name, column in self.axis_columns(np.array([cell])).items()}

    def named(self, cell: int) -> str:
        """Return the number of a cell and its inputs, for a message."""
        return f"cell {cell} ({', '.join(f'{name} = {value}' for name, value in self.inputs(cell).items())})"

    @cached_property
    def columns(self) -> dict[str, Values]:
        """Return the values of each argument on an axis, in the order of the file."""
        return {name: values for axis in self.axes for name, values in axis.columns.items()}


def load(plan: str | os.PathLike[str] | Mapping[str, Any]) -> Plan:
    """Return the checked plan of a TOML file or of a mapping with the same content."""
    return parse(read(plan))


def read(plan: str | os.PathLike[str] | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of a TOML file; a mapping is that already."""
    if isinstance(plan, Mapping):
        return plan
    try:
        return read_toml(plan)
    except (OSError, ValueError, RecursionError) as error:  # an error of the text is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        if isinstance(error, RecursionError):
            reason = "it is nested too deeply"
        raise PlanError(f"plan must be a TOML file, not {os.fspath(plan)}: {reason}") from error


def parse(source: Mapping[str, Any]) -> Plan:
    """Return the checked plan of a mapping."""
    _check_sections(source)
    outputs = tuple(_output(column, given) for column, given in _table(source, "outputs").items())
    fixed = {name: scalar(f"fixed.{name}", value) for name, value in _table(source, "fixed").items()}
    axes = tuple(_axes(source))
    require(outputs and axes, f"{'axes' if outputs else 'outputs'} must have at least one entry, not none")
    shard_rows = source.get("shard_rows", _shard_rows(outputs, math.prod(map(len, axes))))
    if type(shard_rows) is not int or not 1 <= shard_rows <= MAX_SHARD_ROWS:
        raise PlanError(must("shard_rows", f"be an integer between 1 and {MAX_SHARD_ROWS}", shard_rows))
    plan = Plan(
        source.get("title", ""), shard_rows, outputs, fixed, axes, dict(source), source.get("instruction_set", "")
    )
    _check_names(plan)
    _check_arguments(plan)
    size = f"{' x '.join(map(str, plan.shape))} = {plan.num_cells}"
    require(plan.num_cells <= MAX_CELLS, f"axes must have at most {MAX_CELLS} cells together, not {size}")
    least = -(-plan.num_cells // MAX_SHARDS)
    if shard_rows < least:
        raise PlanError(must("shard_rows", f"be at least {least} for {plan.num_cells} cells", shard_rows))
    return plan


def _shard_rows(outputs: tuple[Output, ...], num_cells: int) -> int:
    """Return the rows of a shard where the plan has none: from the plan alone, so that its tables stay comparable."""
    rows = min(SHARD_ROWS[cost] for cost in costs(outputs))
    while rows * MAX_SHARDS < num_cells and rows < MAX_SHARD_ROWS:
        rows *= 2
    return rows


def only(known: Container[str], names: Iterable[str], told: str, before: str = "") -> None:
    """Refuse the first name that is not known."""
    for name in names:
        if name not in known:
            raise PlanError(f"{before}{name} {told}")


def _check_sections(source: Mapping[str, Any]) -> None:
    only(_SECTIONS, source, f"is unknown; a plan has {', '.join(_SECTIONS)}")
    title, chosen = source.get("title", ""), source.get("instruction_set", INSTRUCTION_SETS[0])
    if not isinstance(title, str):
        raise PlanError(must("title", "be a string", title))
    if chosen not in INSTRUCTION_SETS:
        raise PlanError(must("instruction_set", f"be one of {', '.join(INSTRUCTION_SETS)}", chosen))


def _table(source: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    given = source.get(key, {})
    if not isinstance(given, Mapping):  # only then is it shown: a list may have millions of values
        raise PlanError(must(key, "be a table", given))
    return given


def _axes(source: Mapping[str, Any]) -> list[Axis]:
    """Return the axes in the order of the file, where `[[zip]]` may stand before or after `[axes]`."""
    axes = [parse_axis(name, given) for name, given in _table(source, "axes").items()]
    zips = source.get("zip", [])
    if not isinstance(zips, list):
        raise PlanError(must("zip", "be an array of tables, [[zip]]", zips))
    zipped = [parse_zip(index, given) for index, given in enumerate(zips)]
    given = [key for key in source if key in ("axes", "zip")]
    return zipped + axes if given[:1] == ["zip"] else axes + zipped


def _output(column: str, given: Any) -> Output:
    key = f"outputs.{column}"
    named = _COLUMN.fullmatch(column) and column not in ("cell", "error")
    require(named, f"{key} must be named with letters, digits and underscores, and not cell or error")
    entry: Any = {"function": given} if isinstance(given, str) else given
    if not isinstance(entry, Mapping) or not isinstance(entry.get("function"), str):
        raise PlanError(must(key, "be a function's name or a table with function", given))
    only(("function", "arguments"), entry, "is unknown; an output has function and arguments", f"{key}.")
    function = lookup(entry["function"], f"{key} must name a registered function")
    own = entry.get("arguments", {})
    if not isinstance(own, Mapping):
        raise PlanError(must(f"{key}.arguments", "be a table", own))
    arguments = {name: scalar(f"{key}.arguments.{name}", value) for name, value in own.items()}
    return Output(column, function, arguments)


def _check_names(plan: Plan) -> None:
    """Every column has a name of its own."""
    on_axes = [name for axis in plan.axes for name in axis.columns]
    names = [*on_axes, *plan.fixed, *(output.column for output in plan.outputs)]
    if len(set(names)) < len(names):
        name, count = Counter(names).most_common(1)[0]
        raise PlanError(f"{name} must be used once in outputs, fixed, axes and zip, not {count} times")


def _check_arguments(plan: Plan) -> None:
    """Every output gets what it needs, and everything given is needed by some output."""
    fixed = {name: np.array([value]) for name, value in plan.fixed.items()}
    for output in plan.outputs:
        _check_output(output, plan.columns.keys() | fixed.keys())
    taken = {name: output.function for output in plan.outputs for name in output.function.parameters}
    for section, columns in [*((axis.section, axis.columns) for axis in plan.axes), ("fixed", fixed)]:
        told = f"is not an argument of any output; they take {', '.join(sorted(taken))}"
        only(taken, columns, told, f"{section}.")
        for name, values in columns.items():
            _check_kind(f"{section}.{name}", name, values, taken[name])


def _check_output(output: Output, shared: Container[str]) -> None:
    function = output.function
    for name, value in output.arguments.items():
        key = f"outputs.{output.column}.arguments.{name}"
        others = ", ".join(function.parameters)
        require(name in function.parameters, f"{key} is not an argument of {function.name}, which takes {others}")
        require(name not in shared, f"{key} must be given once, not also in fixed, axes or zip")
        _check_kind(key, name, np.array([value]), function)
    missing = ", ".join(name for name in function.required if name not in shared and name not in output.arguments)
    needed = f"outputs.{output.column} = {function.name} needs {missing}"
    require(not missing, f"{needed}; in axes, zip, fixed or its own arguments")


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
        raise PlanError(must(key, f"be {domain}", wrong[0]))


Values = NDArray[Any]  # (length,), float64, int64 or text

MAX_AXIS_LENGTH = 10**7  # all values of an axis are in memory, 80 MB here
INT64 = np.iinfo(np.int64)
MAX_POWER = 308.25  # of 10: the largest double is 10^308.2547


@dataclass(frozen=True, eq=False)
class Axis:
    """One or several arguments that move together."""

    columns: dict[str, Values]  # of each argument, all of the same length
    spacing: str  # list, linspace, logspace, range or zip
    section: str  # of the plan: axes or zip[0], say

    @property
    def name(self) -> str:
        """Return the first of the arguments, after which the axis is named."""
        return next(iter(self.columns))

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.columns[self.name])


def parse_axis(name: str, given: object) -> Axis:
    """Return the axis that `[axes]` gives for one name."""
    key = f"axes.{name}"
    spacing, values = _spaced(key, given) if isinstance(given, Mapping) else ("list", listed(key, given))
    in_order = np.sort(values)
    if (in_order[1:] == in_order[:-1]).any():
        raise PlanError(must(key, "have distinct values", given))
    return Axis({name: values}, spacing, "axes")


def parse_zip(index: int, given: object) -> Axis:
    """Return the axis that one `[[zip]]` table gives."""
    key = f"zip[{index}]"
    if not isinstance(given, Mapping) or not given:
        raise PlanError(must(key, "be a table of equally long lists", given))
    columns = {name: listed(f"{key}.{name}", entry) for name, entry in given.items()}
    lengths = ", ".join(f"{name} of {len(values)}" for name, values in columns.items())
    same = len({len(values) for values in columns.values()}) == 1
    require(same, f"{key} must have lists of one length, not {lengths}")
    return Axis(columns, "zip", key)


def listed(key: str, given: object) -> Values:
    """Return the array of a list of numbers, or of a list of words."""
    if not isinstance(given, list | tuple):
        raise PlanError(must(key, "be a list, or a table with linspace, logspace or range", given))
    if not given:
        raise PlanError(must(key, "have at least one value", given))
    checked = [scalar(f"{key}[{index}]", value) for index, value in enumerate(given)]
    words = [isinstance(value, str) for value in checked]
    if any(words) and not all(words):
        raise PlanError(must(key, "hold numbers only or strings only", given))
    if words[0]:
        return np.array(checked, dtype=np.str_)
    whole = all(isinstance(value, int) for value in checked)
    return np.array(checked, dtype=np.int64 if whole else np.float64)


def scalar(key: str, value: object) -> int | float | str:
    """Return a value that may stand in a cell: a finite number or a string."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PlanError(must(key, "be a number or a string", value))
    if isinstance(value, int) and not INT64.min <= value <= INT64.max:
        raise PlanError(must(key, "fit into 64 bits", value))
    if not math.isfinite(value):
        raise PlanError(must(key, "be finite", value))
    return value


def _spaced(key: str, given: Mapping[str, Any]) -> tuple[str, Values]:
    kinds = {"linspace": "num", "logspace": "num", "range": "step"}
    found = [kind for kind in kinds if kind in given]
    if len(found) != 1:
        raise PlanError(must(key, "have one of linspace, logspace and range", dict(given)))
    kind, beside = found[0], kinds[found[0]]
    only((kind, beside), given, f"is unknown; beside {kind} there may be {beside}", f"{key}.")
    first, last = _ends(f"{key}.{kind}", given[kind])
    if kind == "range":
        return kind, _range(key, first, last, given.get("step", 1))
    num = _length(key, given.get("num"), first == last)
    if kind == "logspace":
        positive = first > 0 and last > 0
        require(positive, must(f"{key}.logspace", "have two positive ends (values, not exponents)", [first, last]))
        return kind, _geometric(first, last, num)
    with np.errstate(all="ignore"):  # told below
        values = np.linspace(first, last, num, dtype=np.float64)
    finite = np.isfinite(values).all()
    require(finite, must(f"{key}.{kind}", "have finite values between its ends", [first, last]))
    return kind, values


def _geometric(first: float, last: float, num: int) -> Values:
    """Return a geometric sequence, both ends exact.

    Python's power is the C library's. NumPy's has other last digits on machines with AVX-512 than on others, which would keep
    a table from being made by both.
    """
    powers = np.linspace(math.log10(first), math.log10(last), num)[1:-1]
    between = [10.0 ** min(power, MAX_POWER) for power in powers.tolist()]
    values: Values = np.array([first, *between, last][:num])
    return values.clip(min(first, last), max(first, last))


def _ends(key: str, given: object) -> tuple[Any, Any]:
    if not isinstance(given, list | tuple) or len(given) != 2 or any(isinstance(value, str) for value in given):
        raise PlanError(must(key, "be [first, last], two numbers", given))
    return scalar(f"{key}[0]", given[0]), scalar(f"{key}[1]", given[1])


def _length(key: str, num: object, ends_equal: bool) -> int:
    least = 1 if ends_equal else 2  # both ends are included
    if type(num) is not int or not least <= num <= MAX_AXIS_LENGTH:
        raise PlanError(must(f"{key}.num", f"be an integer between {least} and {MAX_AXIS_LENGTH}", num))
    return num


def _range(key: str, first: Any, last: Any, step: Any) -> Values:
    for name, value in (("range[0]", first), ("range[1]", last), ("step", step)):
        require(type(value) is int, must(f"{key}.{name}", "be an integer", value))
    require(last >= first, must(f"{key}.range", "not decrease", [first, last]))
    domain = f"be positive and divide {last - first}, so that both ends are included"
    require(step >= 1 and (last - first) % step == 0, must(f"{key}.step", domain, step))
    length = (last - first) // step + 1
    require(length <= MAX_AXIS_LENGTH, must(f"{key}.range", f"have at most {MAX_AXIS_LENGTH} values", length))
    return np.fromiter(range(first, last + 1, step), np.int64, length)


_TEXT = re.compile(r"([1-9][0-9]{0,8}) of ([1-9][0-9]{0,8})")


@dataclass(frozen=True)
class Share:
    """The part of a plan that is one job's: the first of n is number 1."""

    number: int
    jobs: int

    def __str__(self) -> str:
        """Return what a manifest and a summary say."""
        return f"{self.number} of {self.jobs}"

    def shards(self, num_shards: int) -> list[int]:
        """Return the shards of this share; two shares differ by one shard at most."""
        return [index for index in range(num_shards) if (index + index // self.jobs) % self.jobs == self.number - 1]


def share_of(shards: object, num_shards: int) -> Share:
    """Return the share that a caller asks for, as (number, jobs)."""
    if not isinstance(shards, tuple | list) or len(shards) != 2 or any(type(value) is not int for value in shards):
        raise TypeError(must("shards", "be two integers, (number, jobs)", shards))
    number, jobs = shards
    named = must("shards", "be (number, jobs) with 1 <= number <= jobs", tuple(shards))
    require(1 <= number <= jobs, named, ValueError)
    most = f"{num_shards} jobs, the parts of this plan, not {jobs}; a smaller shard_rows makes more"
    require(jobs <= num_shards, f"shards must be for at most {most}")
    return Share(number, jobs)


def stored_share(text: object, place: object) -> Share | None:
    """Return the share that the manifest of a place names, None for a run of the whole plan."""
    if text is None:
        return None
    found = _TEXT.fullmatch(text) if isinstance(text, str) else None
    share = Share(int(found[1]), int(found[2])) if found else None
    rule = f"out must hold a run of a plan or of a share, not {place}: its manifest has share {shown(text)}"
    require(share and share.number <= share.jobs, rule, OutputError)
    return share

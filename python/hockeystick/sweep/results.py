"""The table of a sweep, opened for reading: as a data set, by axes, its best cell, its integrity; one table of several directories; and conditions on rows."""

from __future__ import annotations

import ast
import contextlib
import difflib
import functools
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks.doors import level
from hockeystick._checks.hints import needs
from hockeystick._checks.shown import listed, shown
from hockeystick.sweep.errors import OutputError, must, require
from hockeystick.sweep.functions import MEANING, registered
from hockeystick.sweep.parquet_part import IDENTITY, DamagedPartError, Part, schema_of
from hockeystick.sweep.plan import Plan
from hockeystick.sweep.store import Store, changes, manifest, open_store, stored_sweep

with needs("sweep", "a sweep needs pyarrow"):
    import pyarrow as pa
    from pyarrow import dataset as data_sets

if TYPE_CHECKING:
    import xarray

LEAST_BYTES = 12  # the magic at both ends of a Parquet file and the length of its footer


class Results:
    """The table of a sweep, finished or not, as `open` gives it.

    Attributes
    ----------
    manifest : dict
        What the numbers and the bytes depend on: plan, versions, instruction set, cells, axes.
    plan : dict
        The plan, as it was given.
    num_cells : int
        Cells of the plan.
    missing_cells : int
        Cells whose part is not there, or has fewer than the 12 bytes of the shortest Parquet file.
    damaged : tuple of str
        The parts that are too small to be one, by name.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        sizes = store.sizes()
        self.damaged = tuple(store.file(index) for index, size in sizes.items() if size < LEAST_BYTES)
        self._there = [index for index, size in sizes.items() if size >= LEAST_BYTES]
        self.manifest = store.described()
        self.plan: dict[str, Any] = self.manifest["plan"]
        self.num_cells = store.plan.num_cells
        self.missing_cells = self.num_cells - sum(len(store.plan.shard(index)) for index in self._there)

    def __repr__(self) -> str:
        """Return how much is there."""
        share = f"share {self._store.share} of a plan of " if self._store.share else ""
        missing = f", of which {self.missing_cells:,} are missing" if self.missing_cells else ""
        return f"{share}{self.num_cells:,} cells{missing}"

    def table(self) -> data_sets.Dataset:
        """Return the parts that are there as a data set of pyarrow, to filter and to scan; nothing is read yet.

        Its columns are ``cell``, the inputs, the outputs and ``error``, with unit, function and status as metadata of the
        fields. The checksums of pages are checked as they are read, the digests of parts are not: `verify` does that.

        Returns
        -------
        pyarrow.dataset.Dataset
            Its rows are cells; those of missing parts are not among them.
        """
        schema = schema_of(self._store.plan)
        if not self._there:
            return data_sets.dataset(schema.empty_table())
        folder = self._store.folder
        names = [f"{folder.root}/{self._store.name(index)}" for index in self._there]
        checked = data_sets.ParquetFragmentScanOptions(page_checksum_verification=True)
        kind = data_sets.ParquetFileFormat(default_fragment_scan_options=checked)
        system = None if folder.is_local else folder.system  # Arrow's own is faster
        return data_sets.dataset(names, schema=schema, format=kind, filesystem=system)

    def best(
        self,
        where: str | None = None,
        *,
        maximise: str | None = None,
        minimise: str | None = None,
        partial: bool = False,
    ) -> dict[str, Any] | None:
        """Return the cell that has the largest or the smallest value of a column, of those that satisfy a condition.

        The table is read part by part, each with its digest checked, in the memory of one part.

        Parameters
        ----------
        where : str, optional
            Comparisons of a column with a number or a quoted word, joined by ``and``, ``or``, ``not`` and parentheses:
            ``"epsilon <= 2 and 10 <= steps < 1000"``. It is parsed, never evaluated as Python. A cell whose value is NaN
            never satisfies a comparison, nor the negation of one; infinite values are compared like others.
        maximise, minimise : str
            The column; one of the two. A cell that has NaN there is left out.
        partial : bool, optional
            Take a table with missing cells, of which the best may be another. It is refused otherwise.

        Returns
        -------
        dict or None
            The row, from column to value, of equal ones the first in the order of cells. None if no cell satisfies the condition.
            A value is worth what the status of its column says; a column that is "unsound" is warned of.

        Raises
        ------
        TypeError, ValueError
            If a column does not exist, the condition is none, or not one of `maximise` and `minimise` is given.
        OutputError
            If cells are missing, unless `partial`, or a part is damaged.

        Examples
        --------
        >>> import tempfile
        >>> from hockeystick import sweep
        >>> plan = {
        ...     "outputs": {"epsilon": "dpsgd_epsilon"},
        ...     "fixed": {"sampling_rate": 0.01, "delta": 1e-5},
        ...     "axes": {"noise_multiplier": [0.8, 1.0, 1.2], "steps": [500, 1000, 2000]},
        ... }
        >>> with tempfile.TemporaryDirectory() as out:
        ...     summary = sweep.run(plan, out)
        ...     row = sweep.open(out).best(where="epsilon <= 2", maximise="steps")
        >>> row["steps"], row["noise_multiplier"]
        (2000, 1.2)
        """
        key, name = _objective(maximise, minimise)
        schema = schema_of(self._store.plan)
        is_text = pa.types.is_string(column_type(name, schema, key))
        require(not is_text, f"{key} must name a column of numbers, not {name}", ValueError)
        tree = None if where is None else parsed(where)
        needed = {name}
        if tree is not None:
            where_true(tree, schema.empty_table())  # refused before anything is read
            needed |= columns_of(tree)
        remedy = "merge all shares" if self._store.share else "run the sweep to its end"
        missing = f"{self._store.folder} without {self.missing_cells:,} of {self.num_cells:,}"
        rule = (
            f"out must hold all cells of the plan, not {missing}: "
            f"the best may be among those; {remedy}, or ask for the best of a partial table"
        )
        require(partial or not self.missing_cells, rule, OutputError)
        _warn_of_unsound(self._store.plan, needed)
        best: dict[str, Any] | None = None
        for _, table in self._parts():
            values = table[name].to_numpy()
            rows = np.flatnonzero(~np.isnan(values) & (True if tree is None else where_true(tree, table)))
            if not len(rows):
                continue
            at = rows[values[rows].argmax() if key == "maximise" else values[rows].argmin()]  # of equal ones the first
            if best is None or (values[at] > best[name] if key == "maximise" else values[at] < best[name]):
                best = table.slice(at, 1).to_pylist()[0]
        return best

    def to_xarray(self) -> xarray.Dataset:
        """Return the outputs by the axes of the plan.

        Every axis is a dimension with its values as coordinate. A zip is one dimension, named after its first argument, with
        the others as coordinates along it. Fixed arguments are coordinates without a dimension. Variables have the attributes
        units, status, function and arguments; the data set has those of the manifest, and how many cells are missing or failed.

        Returns
        -------
        xarray.Dataset
            All outputs, NaN in cells that failed or are missing: eight bytes a cell and output, in memory.

        Raises
        ------
        ImportError
            If the extra `xarray` is not installed.
        OutputError
            If a part is damaged.
        """
        with needs("xarray", "a table by its axes needs xarray"):
            import xarray  # noqa: PLC0415 - asked for when first needed
        plan, stored = self._store.plan, self.manifest
        moved = changes({"axes": stored.get("axes")}, {"axes": json.loads(json.dumps(manifest(plan)["axes"]))})
        if moved:  # another C library may round a logspace in another way
            raise OutputError(
                f"out must have axes whose values this machine computes alike: {moved[0]}; read its columns instead"
            )
        values = {output.column: np.full(plan.num_cells, np.nan) for output in plan.outputs}
        failed = 0
        for cells, table in self._parts():
            failed += table.num_rows - table["error"].null_count
            for name, column in values.items():
                column[cells.start : cells.stop] = table[name].to_numpy()
        dims = [axis.name for axis in plan.axes]
        cubes = {name: (dims, column.reshape(plan.shape)) for name, column in values.items()}
        inputs: dict[str, Any] = {
            name: (axis.name, column) for axis in plan.axes for name, column in axis.columns.items()
        }
        stated = {key: str(stored[key]) for key in IDENTITY}
        facts = {"title": plan.title, **stated, "plan": json.dumps(stored["plan"])}
        counts = {"missing_cells": self.missing_cells, "failed_cells": failed}
        found = xarray.Dataset(cubes, inputs | plan.fixed, {**facts, **counts})
        schema = schema_of(plan)
        for key, variable in found.variables.items():
            told = {about.decode(): text.decode() for about, text in schema.field(str(key)).metadata.items()}
            unit = told.pop("unit")
            variable.attrs = told | ({"units": unit} if unit else {})
        return found

    def verify(self) -> tuple[str, ...]:
        """Read every part that is there and check its digest, its plan, version, columns and cells.

        Returns
        -------
        tuple of str
            What is wrong, a text for each damaged part; none if all are what their run wrote. A digest is no signature.
        """
        told = [f"{name}: it has no content" for name in self.damaged]
        for index in self._there:
            try:
                self._store.decoded(index, self._store.content(index))
            except DamagedPartError as error:
                told.append(f"{self._store.file(index)}: {error}")
        return tuple(told)

    def _parts(self) -> Iterator[tuple[range, pa.Table]]:
        """Yield the cells and the rows of each part that is there, once its digest is right."""
        for index in self._there:
            yield self._store.plan.shard(index), self._store.table(index)


def open(out: str | os.PathLike[str]) -> Results:
    """Open the table of a sweep, finished or not.

    The manifest is read and the names and sizes of the parts are looked at, no more. `Results.best`, `Results.to_xarray` and
    `Results.verify` check the digest of every part that they read; `Results.table` does not.

    Parameters
    ----------
    out : path
        Directory or URL of a sweep, or of a share of one.

    Returns
    -------
    Results
        The table: as a data set of pyarrow, by its axes, or its best cell. Its values are worth what the status of their
        columns says.

    Raises
    ------
    OutputError
        If there is no sweep, or one of another format, or a manifest that contradicts itself.

    Examples
    --------
    >>> import tempfile
    >>> from hockeystick import sweep
    >>> plan = {"outputs": {"delta": "theta"}, "axes": {"r": [0.5, 1.0], "epsilon": {"linspace": [0, 8], "num": 5}}}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     summary = sweep.run(plan, out)
    ...     table = sweep.open(out)
    ...     print(table.num_cells, table.missing_cells, table.verify())
    ...     print(table.best(where="delta <= 1e-2 and r == 1.0", minimise="epsilon")["epsilon"])
    10 0 ()
    4.0
    """
    return Results(stored_sweep(out))


def merge(outs: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> None:
    """Make one table of the shares of a plan, byte for byte that of one run.

    Every part is read and its digest checked before it is copied. A merge that is killed and repeated ends with the same bytes.

    Parameters
    ----------
    outs : sequence of paths
        Directories or URLs of runs of one plan, which together have all parts: those of ``run(..., shards=(i, n))``, or
        unfinished ones. They stay as they are.
    out : path
        A directory or URL that is new, empty, or that of an earlier merge or run of the same plan.

    Raises
    ------
    TypeError, ValueError
        If `outs` is no list, or empty.
    OutputError
        If a share is missing or unfinished, a part is damaged, two have different bytes, or the directories are of different
        plans, versions or instruction sets; the message names them.

    Examples
    --------
    >>> import tempfile
    >>> from hockeystick import sweep
    >>> plan = {"shard_rows": 3, "outputs": {"delta": "theta"}, "axes": {"r": [0.5, 1.0], "epsilon": [0.0, 1.0, 2.0]}}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     shares = [f"{place}/{number}" for number in (1, 2)]
    ...     rows = [sweep.run(plan, out, shards=(number, 2)).rows for number, out in enumerate(shares, 1)]
    ...     sweep.merge(shares, f"{place}/whole")
    ...     print(rows, sweep.open(f"{place}/whole"))
    [3, 3] 6 cells
    """
    if isinstance(outs, str | bytes | os.PathLike) or not isinstance(outs, Sequence):
        raise TypeError(must("outs", "be a list of directories or URLs", outs))
    require(outs, "outs must name at least one directory, not none", ValueError)
    stores = [stored_sweep(place) for place in outs]
    first = stores[0]
    for other in stores[1:]:
        told = changes(first.manifest, other.manifest)
        if told:
            raise OutputError(f"outs must be of one sweep, not {first.folder} and {other.folder}: {told[0]}")
    holders: list[list[Store]] = [[] for _ in range(first.plan.num_shards)]
    for store in stores:
        for index in store.sizes():
            holders[index].append(store)
    _check_complete(stores, holders)
    with open_store(out, first.plan, identity=first.manifest) as merged:
        for index, some in enumerate(holders):
            _copy(index, some, merged)


def _warn_of_unsound(plan: Plan, columns: set[str]) -> None:
    for output in plan.outputs:
        if output.column in columns and registered(output.function.name).worth == "unsound":
            message = f"{output.column} = {output.function.name}: {MEANING['unsound']}"
            warnings.warn(message, UserWarning, stacklevel=level(3))


def _objective(maximise: str | None, minimise: str | None) -> tuple[str, str]:
    given = [(key, name) for key, name in (("maximise", maximise), ("minimise", minimise)) if name is not None]
    told = "both" if given else "neither"
    require(len(given) == 1, f"one of maximise and minimise must be given, not {told}", ValueError)
    return given[0]


def _check_complete(stores: list[Store], holders: list[list[Store]]) -> None:
    """Refuse to merge less than the whole plan, and say which share is missing or unfinished."""
    absent = [index for index, some in enumerate(holders) if not some]
    if not absent:
        return
    told = []
    for store in stores:
        lacking = len(set(store.shards).intersection(absent))
        name = f"share {store.share} in {store.folder}" if store.share else str(store.folder)
        if lacking:
            told.append(f"{name} lacks {lacking} of its {len(store.shards)} parts; run it again, it resumes")
    shares = [store.share for store in stores if store.share]
    jobs = {share.jobs for share in shares}
    if not told and len(jobs) == 1:
        others = {*range(1, 1 + max(jobs))} - {share.number for share in shares}
        told.append(f"share {listed(map(str, sorted(others)))} of {max(jobs)} is not among them")
    advice = "; ".join(told[:3]) or "run the plan to the end"
    raise OutputError(f"outs must hold all {len(holders)} parts of the plan; {len(absent)} are missing: {advice}")


def _copy(index: int, holders: list[Store], merged: Store) -> None:
    """Publish a part, unless its bytes are there; every copy of it must be whole and the same."""
    source = holders[0]
    content = source.content(index)
    try:
        counts = source.decoded(index, content)
    except DamagedPartError as error:
        raise OutputError(
            f"outs must hold whole parts, not {source.path(index)}: {error}; run it again to repair it"
        ) from error
    assert content is not None  # it would be damaged
    there = merged.content(index)
    if there != content:
        with contextlib.suppress(DamagedPartError):  # what is missing or damaged there is written below
            merged.decoded(index, there)
            holders = [*holders, merged]
    for other in holders[1:]:
        two = f"{source.path(index)} and another in {other.folder}: one of them is damaged or was not computed by this sweep"
        require(other.content(index) == content, f"outs must hold the same bytes, not {two}", OutputError)
    if there != content:
        merged.write(Part(index, content, counts))


# Conditions on the rows, such as "epsilon <= 2 and 10 <= steps < 1000", from text to the rows for which they hold.
#
# The text is parsed by Python's grammar and never evaluated: what is not a comparison of a column with a number or a quoted
# word, `and`, `or`, `not` or parentheses is refused.
#
# NaN is a value that is not known. A comparison with it is neither true nor false, nor is the negation of one; `and` and `or`
# follow Kleene's logic, which is the minimum and the maximum of 0, 1/2 and 1. A row is taken only where the condition is true: so
# `not epsilon > 2` does not take a cell that failed. An infinite value is compared like any other.

_SINGLE = re.compile(r"(?<![<>=!:])=(?!=)")
MAX_LENGTH = 2000  # characters, far more than a condition needs, and few enough for any parser
MAX_DEPTH = 50  # levels of the syntax tree, few enough for functions that call themselves
_INT64 = np.iinfo(np.int64)
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}  # of a comparison with the sides exchanged
_SYMBOLS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_COMPARE = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}
GRAMMAR = "comparisons of a column with a number or a quoted word, and, or, not, parentheses"


def column_type(name: str, schema: pa.Schema, key: str) -> pa.DataType:
    """Return the type of a column; refuse a name that is none, and tell the nearest."""
    if name not in schema.names:
        close = functools.partial(difflib.get_close_matches, name, schema.names)
        near = close() or close(cutoff=0.0)
        raise ValueError(f"{key} must name columns of the table, not {shown(name)}; did you mean {' or '.join(near)}?")
    return schema.field(name).type


def columns_of(expression: ast.expr) -> set[str]:
    """Return the columns that a parsed condition names."""
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def parsed(where: object) -> ast.expr:
    """Return the syntax tree of a condition, of which nothing is known yet but that it is short."""
    if not isinstance(where, str):
        raise TypeError(must("where", f"be a text, {GRAMMAR}", where))
    most = f"where must have at most {MAX_LENGTH} characters, not {len(where)}"
    require(len(where) <= MAX_LENGTH, most, ValueError)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Python takes "2or x" with a warning
            tree = ast.parse(where.strip(), mode="eval").body
        _check_depth(tree)
    except (SyntaxError, Warning, ValueError, MemoryError, RecursionError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or "it is nested too deeply"
        hint = "; equality is ==" if _SINGLE.search(where) else ""
        raise ValueError(f"where must be {GRAMMAR}, not {shown(where)}: {reason.splitlines()[0]}{hint}") from None
    return tree


def _check_depth(tree: ast.expr) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise RecursionError("it is nested too deeply")


def where_true(tree: ast.expr, table: pa.Table) -> NDArray[np.bool_]:
    """Return for which rows of a table a parsed condition is true."""
    found: NDArray[np.bool_] = _truth(tree, table) == 1.0
    return found


def _truth(tree: ast.expr, table: pa.Table) -> NDArray[np.float64]:
    """Return 1 for each row for which a condition is true, 0 where it is false, and 1/2 where that is not known."""
    if isinstance(tree, ast.BoolOp):
        join = np.minimum if isinstance(tree.op, ast.And) else np.maximum
        return functools.reduce(join, [_truth(part, table) for part in tree.values])
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return 1.0 - _truth(tree.operand, table)
    if isinstance(tree, ast.Compare):
        operands = [tree.left, *tree.comparators]
        pairs = zip(operands, tree.ops, operands[1:], strict=False)
        return functools.reduce(np.minimum, [_comparison(*pair, table) for pair in pairs])
    raise _refused(tree)


def _comparison(left: ast.expr, sign: ast.cmpop, right: ast.expr, table: pa.Table) -> NDArray[np.float64]:
    symbol = _SYMBOLS.get(type(sign), "")
    if not symbol or isinstance(left, ast.Name) == isinstance(right, ast.Name):
        raise _refused(ast.Compare(left, [sign], [right]))
    if isinstance(right, ast.Name):
        left, right, symbol = right, left, _MIRRORED.get(symbol, symbol)
    assert isinstance(left, ast.Name)
    kind, value = column_type(left.id, table.schema, "where"), _literal(right)
    column = table[left.id]
    wanted = "a quoted word" if pa.types.is_string(kind) else "a number"
    fits = pa.types.is_string(kind) == isinstance(value, str)
    require(fits, must("where", f"compare {left.id} with {wanted}", value), ValueError)
    if isinstance(value, str):
        rule = f"where must compare the words of {left.id} by == or !=, not {symbol}"
        require(symbol in ("==", "!="), rule, ValueError)
    else:
        value = _exact(symbol, value) if pa.types.is_integer(kind) else float(value)
    unknown = column.is_null(nan_is_null=True).to_numpy()
    return np.where(unknown, 0.5, _COMPARE[symbol](column.to_numpy(), value))


def _exact(symbol: str, value: float) -> float:
    """Return a number that is compared with integers like this one, but exactly: NumPy would round those beyond 2^53."""
    rounded = math.ceil(value) if symbol in ("<", ">=") else math.floor(value)
    if not _INT64.min <= rounded <= _INT64.max or (symbol in ("==", "!=") and rounded != value):
        return math.copysign(math.inf, value)  # which no integer is
    return rounded


def _literal(node: ast.expr) -> float | str:
    """Return the number or the word that a comparison has beside its column."""
    sign = 1
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign = -sign if isinstance(node.op, ast.USub) else sign
        node = node.operand
    value: Any = node.value if isinstance(node, ast.Constant) else None
    if type(value) is str and sign == 1:
        return value
    if type(value) not in (int, float):
        raise _refused(node)
    finite = abs(value) <= sys.float_info.max
    require(finite, must("where", "have numbers that are finite doubles", ast.unparse(node)), ValueError)
    return sign * value  # type: ignore[no-any-return]


def _refused(node: ast.expr) -> ValueError:
    return ValueError(f"where must be {GRAMMAR}, not {shown(ast.unparse(node))}")

"""One part of a sweep's table: from a computed shard to the bytes of a Parquet file, and back.

A part is a function of the plan and its number alone, so that it does not matter who computed it, where, and when: no
times, no random names, fixed writer options.

Its columns are `cell` (the number of the cell in the plan, from 0), the axes, the fixed arguments, the outputs, and
`error` (text, or null). Its rows are the cells of one shard, in order.

The metadata of its Parquet footer say what it is:

- `hockeystick.plan_sha256`, `hockeystick.version`, `hockeystick.instruction_set`, `hockeystick.pyarrow`: the sweep it
  belongs to, as in the manifest;
- `hockeystick.warnings`: what the functions warned of, a JSON list;
- `hockeystick.file_sha256`: the SHA-256 of the whole file in which these 64 digits are replaced by zeros. It covers
  every bit: values, statistics, page headers and the other metadata;
- of each column its `unit`, and of an output its `function`, `arguments` and `status`, which says what the values are
  worth ("exact", "certified", "simulated", "risk bound", "unsound").
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hockeystick._checks.hints import needs
from hockeystick.sweep.errors import CellError, require
from hockeystick.sweep.evaluate import Shard, evaluate, numbered
from hockeystick.sweep.functions import registered, unit_of_argument
from hockeystick.sweep.plan import Plan, Values

with needs("sweep", "a sweep needs pyarrow"):
    import pyarrow as pa
    import pyarrow.parquet as pq

PYARROW_VERSION: str = pa.__version__
WRITE_OPTIONS: dict[str, Any] = {
    "version": "2.6",
    "compression": "zstd",
    "compression_level": 1,
    "write_page_checksum": True,
    "write_page_index": True,
    "sorting_columns": [pq.SortingColumn(0)],  # the cell
    "store_schema": False,  # that of readers is, see `encode`
}
# Of the manifest's entries, those that a part repeats.
IDENTITY = ("plan_sha256", "version", "instruction_set", "pyarrow")
DIGEST = "hockeystick.file_sha256"
NO_DIGEST = b"0" * 64


class DamagedPartError(ValueError):
    """A part that is not what its sweep would write; the message goes on after "it", as in "it is cut short"."""


@dataclass
class Counts:
    """What a table holds, or several."""

    rows: int = 0
    errors: int = 0  # cells with an error text
    first_failure: tuple[int, str] | None = None  # its cell and the text
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)  # of the finite values of each output
    non_finite: dict[str, int] = field(default_factory=dict)  # NaN and infinite values of each output
    warnings: tuple[str, ...] = ()  # what the functions warned of

    def add(self, other: Counts) -> None:
        """Take in another part."""
        self.rows += other.rows
        self.errors += other.errors
        self.first_failure = min(filter(None, (self.first_failure, other.first_failure)), default=None)
        self.warnings = tuple(dict.fromkeys(self.warnings + other.warnings))
        for name, (least, greatest) in other.ranges.items():
            low, high = self.ranges.get(name, (np.nan, np.nan))
            self.ranges[name] = (float(np.fmin(low, least)), float(np.fmax(high, greatest)))
            self.non_finite[name] = self.non_finite.get(name, 0) + other.non_finite[name]


@dataclass
class Part:
    """A part that can be published, or, without its content, has been."""

    index: int
    content: bytes
    counts: Counts
    compute_seconds: float = 0.0
    write_seconds: float = 0.0  # to encode and to publish


def compute(plan: Plan, manifest: Mapping[str, Any], index: int, num_threads: int | None, *, strict: bool) -> Part:
    """Compute and encode a part of the sweep that has this manifest; a strict run ends at one with an error."""
    started = time.perf_counter()
    shard = evaluate(plan, plan.shard(index), num_threads)
    computed = time.perf_counter()
    part = encode(plan, manifest, shard)
    if strict:
        check(plan, part.counts)
    part.compute_seconds, part.write_seconds = computed - started, time.perf_counter() - computed
    return part


def check(plan: Plan, counts: Counts) -> None:
    """Refuse, with a CellError, what has a cell with an error."""
    if counts.first_failure:
        cell, text = counts.first_failure
        raise CellError(f"{plan.named(cell)}: {text}")


def encode(plan: Plan, manifest: Mapping[str, Any], shard: Shard) -> Part:
    """Return the part of a computed shard."""
    schema = schema_of(plan)
    cells = np.arange(shard.cells.start, shard.cells.stop)
    columns = [
        (values, stride)
        for axis, stride in zip(plan.axes, plan.strides, strict=True)
        for values in axis.columns.values()
    ]
    columns += [(np.array([value]), plan.num_cells) for value in plan.fixed.values()]  # axes of one value
    inputs = [_input(values, stride, shard.cells) for values, stride in columns]
    codes, texts = shard.errors.codes, pa.array(shard.errors.texts, pa.string())  # each text is stored once
    errors = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), texts)
    arrays = [pa.array(cells), *inputs, *map(pa.array, shard.outputs.values()), errors]
    told = {**_identity(manifest), "hockeystick.warnings": json.dumps(shard.warnings)}
    stored = pa.schema([pa.field(f.name, array.type, f.nullable) for f, array in zip(schema, arrays, strict=True)])
    table = pa.Table.from_arrays(arrays, schema=stored)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, stored, **_options(stored)) as writer:
        writer.write_table(table, row_group_size=len(shard.cells))
        # Words are stored as numbered, and read as strings: Arrow's own key says so, and has the metadata for readers.
        read = base64.b64encode(schema.with_metadata(told).serialize().to_pybytes()).decode()
        for key, value in {**told, "ARROW:schema": read, DIGEST: NO_DIGEST}.items():
            writer.add_key_value_metadata({key: value})  # one by one, since several would have no order
    content, counts = _sealed(sink.getvalue().to_pybytes()), count(table, shard.outputs)
    counts.warnings = tuple(shard.warnings)
    return Part(shard.cells.start // plan.shard_rows, content, counts)


def _options(schema: pa.Schema) -> dict[str, Any]:
    """Return how the columns are stored: the words by dictionaries, the numbers as docs/sweep/internals.md found cheapest."""
    encodings = {pa.float64(): "BYTE_STREAM_SPLIT", pa.int64(): "DELTA_BINARY_PACKED"}
    words = [f.name for f in schema if f.type not in encodings]
    numbers = {f.name: encodings[f.type] for f in schema if f.type in encodings}
    return {**WRITE_OPTIONS, "use_dictionary": words, "column_encoding": numbers}


def _input(values: Values, stride: int, cells: range) -> pa.Array:
    """Return the column of an input whose values stay for as many cells as the stride: an array, or of words the number of each and the words."""
    if values.dtype.kind != "U":
        return pa.array(_spread(values, stride, cells))
    words, numbers = np.unique(values, return_inverse=True)
    there, numbers = numbered(_spread(numbers, stride, cells), len(words))
    return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), pa.array(words[there], pa.string()))


def _spread(values: Values, stride: int, cells: range) -> Values:
    """Return the value of each cell, where each stays for as many cells as the stride and the last is followed by the first."""
    borders = np.arange(cells.start // stride, -(-cells.stop // stride) + 1)
    there = values[borders[:-1] % len(values)]
    return there if stride == 1 else np.repeat(there, np.diff((borders * stride).clip(cells.start, cells.stop)))


def decode(plan: Plan, manifest: Mapping[str, Any], index: int, content: bytes | None) -> Counts:
    """Return what a stored part holds; refuse a part that this sweep would not have written."""
    table = whole_table(plan, manifest, index, content)
    same = table.schema.remove_metadata().equals(schema_of(plan), check_metadata=True)
    require(same, "it has other units or another status in its columns", DamagedPartError)
    return count(table, [output.column for output in plan.outputs])


def whole_table(plan: Plan, manifest: Mapping[str, Any], index: int, content: bytes | None) -> pa.Table:
    """Return a stored part of the sweep that has this manifest, once its digest and what it says of itself are right."""
    if content is None:
        raise DamagedPartError("it cannot be read")
    _check_digest(content)
    file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    told = file.metadata.metadata
    for key, value in _identity(manifest).items():
        stored = told.get(key.encode(), b"").decode(errors="replace")
        told_of = f"whose {key.removeprefix('hockeystick.')} is {stored}, not {value}"
        require(stored == value, f"it belongs to another sweep, {told_of}", DamagedPartError)
    cells = plan.shard(index)
    # One thread: a thread of Arrow's pools that still holds the buffer while the interpreter ends would abort the process.
    table = file.read(use_threads=False)
    ends = (table["cell"][0].as_py(), table["cell"][-1].as_py()) if table.num_rows else None
    same = table.schema.equals(schema_of(plan)) and table.num_rows == len(cells) and ends == (cells[0], cells[-1])
    require(same, f"it holds other cells than {cells[0]} to {cells[-1]}", DamagedPartError)
    return table


def _identity(manifest: Mapping[str, Any]) -> dict[str, str]:
    return {f"hockeystick.{key}": str(manifest[key]) for key in IDENTITY}


def _sealed(content: bytes) -> bytes:
    """Return a file that has zeros in place of its digest with the digest."""
    at, view = _digest_at(content), memoryview(content)
    return b"".join([view[:at], hashlib.sha256(content).hexdigest().encode(), view[at + len(NO_DIGEST) :]])


def _digest_at(content: bytes) -> int:
    """Return where the digits of the digest are: after its key and two bytes of Parquet's, a field's type and length."""
    return content.rfind(DIGEST.encode()) + len(DIGEST) + 2


def _check_digest(content: bytes) -> None:
    """Refuse a file that is not as it was written, before anything else in it is read."""
    size = f"{len(content)} bytes"
    cut = f"it is cut short, or was not written by this version of hockeystick ({size})"
    require(DIGEST.encode() in content, cut, DamagedPartError)
    at = _digest_at(content)
    same = _sealed(content[:at] + NO_DIGEST + content[at + len(NO_DIGEST) :]) == content
    require(same, f"its digest is not that of its {size}", DamagedPartError)


def count(table: pa.Table, outputs: Iterable[str]) -> Counts:
    """Count a part."""
    failed = np.flatnonzero(table["error"].is_valid().to_numpy())
    first = table.slice(failed[0], 1).to_pylist()[0] if len(failed) else None
    told = (table.schema.metadata or {}).get(b"hockeystick.warnings", b"[]")
    counts = Counts(table.num_rows, len(failed), first and (first["cell"], first["error"]))
    counts.warnings = tuple(json.loads(told))
    for name in outputs:
        values = table[name].to_numpy()
        ends = np.isfinite([values.min(), values.max()])  # NaN where one is
        finite = values if ends.all() else values[np.isfinite(values)]
        counts.ranges[name] = (float(finite.min()), float(finite.max())) if len(finite) else (np.nan, np.nan)
        counts.non_finite[name] = len(values) - len(finite)
    return counts


def schema_of(plan: Plan) -> pa.Schema:
    """Return the columns of a plan's table."""
    types = {"f": pa.float64(), "i": pa.int64(), "U": pa.string()}
    fields = [pa.field("cell", pa.int64(), nullable=False)]
    for name, value in {**plan.columns, **plan.fixed}.items():
        kind = types[np.asarray(value).dtype.kind]
        fields.append(pa.field(name, kind, nullable=False, metadata={"unit": unit_of_argument(name)}))
    for output in plan.outputs:
        name = output.function.name
        worth = {"unit": registered(name).unit, "status": registered(name).worth}
        origin = {"function": name, "arguments": json.dumps(output.arguments), **worth}
        fields.append(pa.field(output.column, pa.float64(), nullable=False, metadata=origin))
    return pa.schema([*fields, pa.field("error", pa.string())])

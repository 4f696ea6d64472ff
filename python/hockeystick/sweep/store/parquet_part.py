"""One part of a sweep's table: from a computed shard to the bytes of a Parquet file, and back.

A part is a function of the plan and its number alone, so that it does not matter who computed it, where, and when: no
times, no random names, fixed writer options.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hockeystick.sweep.plan.plan import Plan
from hockeystick.sweep.running.evaluate import Shard

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as missing:
    need = "a sweep needs pyarrow: pip install 'hockeystick[sweep]'"
    raise ImportError(need) from missing

PYARROW_VERSION: str = pa.__version__
WRITE_OPTIONS: dict[str, Any] = {"version": "2.6", "compression": "zstd", "write_page_checksum": True}


@dataclass
class Counts:
    """What a table holds, or several."""

    rows: int = 0
    errors: int = 0  # cells with an error text
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)  # of the finite values of each output
    non_finite: dict[str, int] = field(default_factory=dict)  # NaN and infinite values of each output
    warnings: list[str] = field(default_factory=list)  # what the functions warned of

    def add(self, other: Counts) -> None:
        """Take in another part."""
        self.rows += other.rows
        self.errors += other.errors
        self.warnings += [text for text in other.warnings if text not in self.warnings]
        for name, (least, greatest) in other.ranges.items():
            low, high = self.ranges.get(name, (np.nan, np.nan))
            self.ranges[name] = (float(np.fmin(low, least)), float(np.fmax(high, greatest)))
            self.non_finite[name] = self.non_finite.get(name, 0) + other.non_finite[name]


@dataclass
class Part:
    """A part that can be published."""

    index: int
    content: bytes
    counts: Counts
    compute_seconds: float


def encode(plan: Plan, shard: Shard, compute_seconds: float) -> Part:
    """Return the part of a shard."""
    texts = [shard.errors.get(row) for row in range(len(shard.cells))]
    columns = {
        **shard.axes,
        **shard.outputs,
        **plan.fixed,
        "cell": np.arange(shard.cells.start, shard.cells.stop),
    }
    schema = schema_of(plan)
    arrays = [
        pa.array(texts, pa.string())
        if field.name == "error"
        else pa.array(np.broadcast_to(columns[field.name], len(texts)), field.type)
        for field in schema
    ]
    metadata = {"hockeystick.warnings": json.dumps(shard.warnings)}
    table = pa.Table.from_arrays(arrays, schema=schema.with_metadata(metadata))
    sink = pa.BufferOutputStream()
    dictionaries = [name for name in schema.names if name not in shard.outputs and name != "cell"]
    pq.write_table(table, sink, use_dictionary=dictionaries, row_group_size=len(texts), **WRITE_OPTIONS)
    counts = count(table, shard.outputs)
    return Part(shard.cells.start // plan.shard_rows, sink.getvalue().to_pybytes(), counts, compute_seconds)


def decode(plan: Plan, index: int, content: bytes) -> Counts | None:
    """Return what a stored part holds, or None if it is not that part or not whole."""
    table = whole_table(plan, index, content)
    return None if table is None else count(table, [output.column for output in plan.outputs])


def whole_table(plan: Plan, index: int, content: bytes) -> pa.Table | None:
    """Return a stored part, or None if it is not that part or not whole (which a check of every page tells)."""
    cells = plan.shard(index)
    try:
        table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
    except (OSError, pa.ArrowException):
        return None
    if table.num_rows != len(cells) or not table.schema.equals(schema_of(plan)):
        return None
    ends = table["cell"][0].as_py(), table["cell"][-1].as_py()
    return table if ends == (cells.start, cells.stop - 1) else None


def count(table: pa.Table, outputs: Iterable[str]) -> Counts:
    """Count a part."""
    counts = Counts(table.num_rows, table.num_rows - table["error"].null_count, warnings=_warnings(table))
    for name in outputs:
        values = table[name].to_numpy()
        finite = values[np.isfinite(values)]
        counts.ranges[name] = (float(finite.min()), float(finite.max())) if len(finite) else (np.nan, np.nan)
        counts.non_finite[name] = len(values) - len(finite)
    return counts


def schema_of(plan: Plan) -> pa.Schema:
    """Return the columns of a plan's table."""
    types = {"f": pa.float64(), "i": pa.int64(), "U": pa.string()}
    named = {name: types[v.dtype.kind] for axis in plan.axes for name, v in zip(axis.names, axis.values, strict=True)}
    named |= {name: types[np.asarray(value).dtype.kind] for name, value in plan.fixed.items()}
    fields = [pa.field("cell", pa.int64()), *(pa.field(name, kind) for name, kind in named.items())]
    for output in plan.outputs:
        origin = {"function": output.function.name, "arguments": json.dumps(output.arguments)}
        fields.append(pa.field(output.column, pa.float64(), metadata=origin))
    return pa.schema([*fields, pa.field("error", pa.string())])


def _warnings(table: pa.Table) -> list[str]:
    return list(json.loads((table.schema.metadata or {}).get(b"hockeystick.warnings", b"[]")))

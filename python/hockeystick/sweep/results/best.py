"""The cell of a table that has the largest or the smallest value of a column, of those that satisfy a condition."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from hockeystick.sweep.errors import OutputError
from hockeystick.sweep.plan.functions import MEANING, status
from hockeystick.sweep.plan.plan import Plan
from hockeystick.sweep.results.condition import column_type, columns_of, expression, parsed
from hockeystick.sweep.results.reading import parts, readable
from hockeystick.sweep.store.parquet_part import schema_of
from hockeystick.sweep.store.store import Store


def best_row(
    store: Store,
    shards: Sequence[int],
    *,
    where: str | None,
    maximise: str | None,
    minimise: str | None,
    missing: int,
) -> dict[str, Any] | None:
    """Return the row, the first of equal ones, or None; refuse a table without some cells."""
    key, name = _objective(maximise, minimise)
    schema = readable(schema_of(store.plan))
    if pa.types.is_string(column_type(name, schema, key)):
        message = f"{key} must name a column of numbers, not {name}"
        raise ValueError(message)
    tree = None if where is None else parsed(where)
    condition = None if tree is None else expression(tree, schema)
    needed = {"cell", name} | (set() if tree is None else columns_of(tree))
    if missing:
        remedy = "merge all shares" if store.share else "run the sweep to its end"
        message = (
            f"out must hold all cells of the plan, not {store.folder} without {missing:,} of {store.plan.num_cells:,}: "
            f"the best may be among those; {remedy}, or ask for the best of a partial table"
        )
        raise OutputError(message)
    _warn_of_unsound(store.plan, needed)
    best: dict[str, Any] | None = None
    for cells, table in parts(store, shards):
        found = _extreme(_selected(table.select(sorted(needed)), condition), name, largest=key == "maximise")
        if found is None:
            continue
        value, cell = found
        if best is None or (value > best[name] if key == "maximise" else value < best[name]):
            best = table.slice(cell - cells.start, 1).to_pylist()[0]
    return best


def _selected(rows: pa.Table, condition: pc.Expression | None) -> pa.Table:
    """Return the rows for which the condition is true, by one thread: Arrow's pools keep what they work on for too long."""
    if condition is None:
        return rows
    steps = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(rows)),
        acero.Declaration("filter", acero.FilterNodeOptions(condition)),
    ]
    return acero.Declaration.from_sequence(steps).to_table(use_threads=False)


def _extreme(rows: pa.Table, name: str, *, largest: bool) -> tuple[Any, int] | None:
    """Return the extreme value and the first cell that has it, None where no value is known."""
    values = rows[name].to_numpy()
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    value = known.max() if largest else known.min()
    return value, int(rows["cell"].to_numpy()[values == value].min())


def _warn_of_unsound(plan: Plan, columns: set[str]) -> None:
    for output in plan.outputs:
        if output.column in columns and status(output.function.name) == "unsound":
            message = f"{output.column} = {output.function.name}: {MEANING['unsound']}"
            warnings.warn(message, UserWarning, stacklevel=4)


def _objective(maximise: str | None, minimise: str | None) -> tuple[str, str]:
    given = [(key, name) for key, name in (("maximise", maximise), ("minimise", minimise)) if name is not None]
    if len(given) != 1:
        message = f"one of maximise and minimise must be given, not {'both' if given else 'neither'}"
        raise ValueError(message)
    return given[0]

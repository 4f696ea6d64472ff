"""A table of cells by the axes of its plan, for xarray."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hockeystick.sweep.errors import OutputError
from hockeystick.sweep.plan import units
from hockeystick.sweep.plan.functions import status
from hockeystick.sweep.plan.plan import Output, Plan
from hockeystick.sweep.store.store import changes, manifest

try:
    import xarray
except ImportError as missing:
    need = 'a table by its axes needs xarray: pip install ".[xarray]" in a clone'
    raise ImportError(need) from missing

STATED = ("plan_sha256", "version", "instruction_set", "pyarrow")  # of the manifest, in the attributes


def cube(plan: Plan, stored: Mapping[str, Any], missing: int, parts: Iterator[tuple[range, Any]]) -> xarray.Dataset:
    """Return the outputs of all cells, of which the parts have some."""
    told = changes({"axes": stored.get("axes")}, {"axes": json.loads(json.dumps(manifest(plan)["axes"]))})
    if told:  # another C library may round a logspace in another way
        message = f"out must have axes whose values this machine computes alike: {told[0]}; read its columns instead"
        raise OutputError(message)
    values = {output.column: np.full(plan.num_cells, np.nan) for output in plan.outputs}
    failed = 0
    for cells, table in parts:
        failed += table.num_rows - table["error"].null_count
        for name, column in values.items():
            column[cells.start : cells.stop] = table[name].to_numpy()
    dims = [axis.names[0] for axis in plan.axes]
    shape = [len(axis) for axis in plan.axes]
    variables = {
        output.column: (dims, values[output.column].reshape(shape), _attributes(output)) for output in plan.outputs
    }
    stated = {key: str(stored[key]) for key in STATED}
    facts = {"title": plan.title, **stated, "plan": json.dumps(stored["plan"])}
    counts = {"missing_cells": missing, "failed_cells": failed}
    return xarray.Dataset(variables, _coordinates(plan), {**facts, **counts})


def _coordinates(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for axis in plan.axes:
        for name, values in zip(axis.names, axis.values, strict=True):
            found[name] = (axis.names[0], values, _units(units.of_argument(name)))
    return found | {name: ((), value, _units(units.of_argument(name))) for name, value in plan.fixed.items()}


def _attributes(output: Output) -> dict[str, str]:
    name = output.function.name
    origin = {"function": name, "arguments": json.dumps(output.arguments), "status": status(name)}
    return origin | _units(units.of_value(name))


def _units(unit: str) -> dict[str, str]:
    return {"units": unit} if unit else {}

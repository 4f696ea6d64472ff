"""An accountant as plain JSON values: a version, the adjacency, and its steps in order.

A step is a mechanism with a count, ``{"mechanism": {...}, "count": 3}``, or some steps that come so many times in a row,
``{"steps": [...], "count": 10000}`` (steps.py says which): a state is as long as what does not repeat.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import hockeystick.mechanisms as all_mechanisms
import hockeystick.selection as all_selection
from hockeystick._checks.shown import listed, shown
from hockeystick.accounting.steps import Block
from hockeystick.mechanisms.base import Mechanism

FORMAT, VERSIONS = "hockeystick.Accountant", (1, 2)  # 1 had no blocks
DEEPEST = 100  # lists and mappings within each other; every one of a mechanism takes one to three
LARGEST = 2**1024  # integers from here on do not fit a double

Run = tuple[Mechanism, int]


def dump(adjacency: str, engine: str, steps: Block) -> dict[str, Any]:
    """Return the state; the older version where nothing repeats, which older releases read."""
    dumped = dump_steps(steps)
    return {
        "format": FORMAT,
        "version": 2 if any("steps" in step for step in dumped) else 1,
        "adjacency": adjacency,
        "engine": engine,
        "steps": dumped,
    }


def load(state: Mapping[str, Any]) -> tuple[Any, Any, Block]:
    """Return adjacency, engine and steps; what they hold is checked by those who take them."""
    require_format(state, FORMAT, VERSIONS, ("adjacency", "engine", "steps"))
    return state["adjacency"], state["engine"], tuple(map(_load_item, state["steps"]))


def require_format(state: Mapping[str, Any], form: str, versions: Sequence[int], names: Iterable[str]) -> None:
    """Raise if a state is not of this format and one of these versions, or lacks a name."""
    require_plain(state)
    if not isinstance(state, Mapping):
        raise TypeError(f"state must be a mapping, not {shown(state)}")
    if state.get("format") != form or state.get("version") not in versions:
        found = f"{shown(state.get('format'))} version {shown(state.get('version'))}"
        raise ValueError(
            f"state must have format {shown(form)} and version {' or '.join(map(str, versions))}, not {found}"
        )
    _require(state, names, "state")


def require_plain(state: Any) -> None:
    """Raise ValueError if a state is nested too deeply to be read, or has an integer that is no number of ours."""
    level, depth = [state], 0
    while level:  # level by level, since what is nested deeply must not be called deeply
        for value in level:
            if isinstance(value, int) and abs(value) >= LARGEST:
                raise ValueError(f"integers of state must be below 2^1024, not of {value.bit_length()} bits")
        level = [inner for value in level for inner in _inner(value)]
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"state must have at most {DEEPEST} lists and mappings within each other, not more")


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if _is_list(value) else ()


def dump_steps(block: Iterable[tuple[Mechanism | Block, int]]) -> list[dict[str, Any]]:
    """Return mechanisms and blocks with their counts as plain values."""
    steps = [_dump_item(*item) for item in block]
    require_plain([steps])  # within the mapping of the state: what is saved can be loaded
    return steps


def _dump_item(what: Mechanism | Block, count: int) -> dict[str, Any]:
    if isinstance(what, tuple):
        return {"steps": [_dump_item(*item) for item in what], "count": count}
    return {"mechanism": _dump_mechanism(what), "count": count}


def load_runs(steps: Iterable[Mapping[str, Any]]) -> list[Run]:
    """Return the mechanisms and counts that were dumped; there is no block among them."""
    return [_load_run(step) for step in steps]


def _load_run(step: Mapping[str, Any]) -> Run:
    _require(step, ("mechanism", "count"), "a step of state")
    return _load_mechanism(step["mechanism"]), step["count"]


def _load_item(step: Mapping[str, Any]) -> tuple[Mechanism | Block, int]:
    if not (isinstance(step, Mapping) and "steps" in step):
        return _load_run(step)
    _require(step, ("count",), "a block of state")
    if not (_is_list(step["steps"]) and step["steps"]):
        raise ValueError(f"a block of state must have steps in a list, not {shown(step['steps'])}")
    return tuple(map(_load_item, step["steps"])), step["count"]


def _dump_mechanism(mechanism: Mechanism) -> dict[str, Any]:
    fields = {field.name: _dump_value(getattr(mechanism, field.name)) for field in dataclasses.fields(mechanism)}  # type: ignore[arg-type]
    return {"name": type(mechanism).__name__} | fields


def _dump_value(value: Any) -> Any:
    if isinstance(value, Mechanism):
        return _dump_mechanism(value)
    return [_dump_value(part) for part in value] if _is_list(value) else value


def _load_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _load_mechanism(value)
    return [_load_value(part) for part in value] if _is_list(value) else value


def _load_mechanism(state: Mapping[str, Any]) -> Mechanism:
    _require(state, ("name",), "a mechanism of state")
    known = _known()
    if state["name"] not in known:
        raise ValueError(f"a mechanism of state must be one of {listed(known)}, not {shown(state['name'])}")
    kind = known[state["name"]]
    fields = dataclasses.fields(kind)
    needed = [field.name for field in fields if field.default is dataclasses.MISSING]  # what an older version wrote
    _require(state, needed, f"{state['name']} of state")
    arguments = {field.name: _load_value(state[field.name]) for field in fields if field.name in state}
    loaded: Mechanism = kind(**arguments)
    return loaded


@cache
def _known() -> dict[str, Any]:
    """Return the mechanisms by name."""
    return {
        name: kind
        for room in (all_mechanisms, all_selection)
        for name in room.__all__
        if isinstance(kind := getattr(room, name), type) and issubclass(kind, Mechanism) and kind is not Mechanism
    }


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _require(state: Any, names: Iterable[str], what: str) -> None:
    if not isinstance(state, Mapping):
        raise ValueError(f"{what} must be a mapping, not {shown(state)}")
    missing = [name for name in names if name not in state]
    if missing:
        raise ValueError(f"{what} must have {', '.join(missing)}")

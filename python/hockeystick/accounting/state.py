"""An accountant as plain JSON values: a version, the adjacency, and runs of equal steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import hockeystick.mechanisms as all_mechanisms
import hockeystick.selection as all_selection
from hockeystick.mechanisms.base import Mechanism

FORMAT, VERSION = "hockeystick.Accountant", 1
DEEPEST = 100  # lists and mappings within each other; every one of a mechanism takes one to three
LARGEST = 2**1024  # integers from here on do not fit a double

Run = tuple[Mechanism, int]


def dump(adjacency: str, engine: str, runs: Iterable[Run]) -> dict[str, Any]:
    """Return the state."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "adjacency": adjacency,
        "engine": engine,
        "steps": dump_steps(runs),
    }


def load(state: Mapping[str, Any]) -> tuple[Any, Any, list[Run]]:
    """Return adjacency, engine and runs; what they hold is checked by those who take them."""
    require_format(state, FORMAT, VERSION, ("adjacency", "engine", "steps"))
    return state["adjacency"], state["engine"], load_steps(state["steps"])


def require_format(state: Mapping[str, Any], form: str, version: int, names: Iterable[str]) -> None:
    """Raise if a state is not of this format and version, or lacks a name."""
    require_plain(state)
    if not isinstance(state, Mapping):
        msg = f"state must be a mapping, not {state!r}"
        raise TypeError(msg)
    if (state.get("format"), state.get("version")) != (form, version):
        found = f"{state.get('format')!r} version {state.get('version')!r}"
        msg = f"state must have format {form!r} and version {version}, not {found}"
        raise ValueError(msg)
    _require(state, names, "state")


def require_plain(state: Any) -> None:
    """Raise ValueError if a state is nested too deeply to be read, or has an integer that is no number of ours."""
    level, depth = [state], 0
    while level:  # level by level, since what is nested deeply must not be called deeply
        for value in level:
            if isinstance(value, int) and abs(value) >= LARGEST:
                msg = f"integers of state must be below 2^1024, not of {value.bit_length()} bits"
                raise ValueError(msg)
        level = [inner for value in level for inner in _inner(value)]
        depth += 1
        if depth > DEEPEST:
            msg = f"state must have at most {DEEPEST} lists and mappings within each other, not more"
            raise ValueError(msg)


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if _is_list(value) else ()


def dump_steps(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Return mechanisms and counts as plain values."""
    steps = [{"mechanism": _dump_mechanism(mechanism), "count": count} for mechanism, count in runs]
    require_plain([steps])  # within the mapping of the state: what is saved can be loaded
    return steps


def load_steps(steps: Iterable[Mapping[str, Any]]) -> list[Run]:
    """Return the mechanisms and counts that were dumped."""
    runs = []
    for step in steps:
        _require(step, ("mechanism", "count"), "a step of state")
        runs.append((_load_mechanism(step["mechanism"]), step["count"]))
    return runs


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
    known: dict[str, Any] = {
        name: kind
        for room in (all_mechanisms, all_selection)
        for name in room.__all__
        if isinstance(kind := getattr(room, name), type) and issubclass(kind, Mechanism) and kind is not Mechanism
    }
    if state["name"] not in known:
        msg = f"a mechanism of state must be one of {', '.join(known)}, not {state['name']!r}"
        raise ValueError(msg)
    kind = known[state["name"]]
    fields = dataclasses.fields(kind)
    needed = [field.name for field in fields if field.default is dataclasses.MISSING]  # what an older version wrote
    _require(state, needed, f"{state['name']} of state")
    arguments = {field.name: _load_value(state[field.name]) for field in fields if field.name in state}
    loaded: Mechanism = kind(**arguments)
    return loaded


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _require(state: Any, names: Iterable[str], what: str) -> None:
    if not isinstance(state, Mapping):
        msg = f"{what} must be a mapping, not {state!r}"
        raise ValueError(msg)  # noqa: TRY004, a wrong file rather than a wrong call
    missing = [name for name in names if name not in state]
    if missing:
        msg = f"{what} must have {', '.join(missing)}"
        raise ValueError(msg)

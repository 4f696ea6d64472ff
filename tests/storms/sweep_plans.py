"""Plans of sweeps that several tests run, and what a run left at a URL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

THETA: dict[str, Any] = {
    "shard_rows": 7,
    "outputs": {"delta": "theta", "log_delta": "log_theta"},
    "axes": {"eps": {"linspace": [0.0, 4.0], "num": 5}, "r": {"logspace": [0.1, 10.0], "num": 4}},
}


def toml(plan: Mapping[str, Any]) -> str:
    """Return the text of a plan file."""

    def value(given: Any) -> str:
        if isinstance(given, Mapping):
            return "{" + ", ".join(f"{key} = {value(inner)}" for key, inner in given.items()) + "}"
        return f"[{', '.join(map(value, given))}]" if isinstance(given, list) else json.dumps(given)

    return "".join(f"{key} = {value(given)}\n" for key, given in plan.items())


def changed(base: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """Return a plan with sections replaced, or left out where None."""
    return {key: value for key, value in {**base, **sections}.items() if value is not None}


def stored(url: str) -> dict[str, bytes]:
    """Return every file below a URL."""
    import fsspec  # noqa: PLC0415 - for these tests only

    system, root = fsspec.core.url_to_fs(url)
    system.invalidate_cache()
    root = root.strip("/")
    return {path.strip("/").removeprefix(f"{root}/"): system.cat_file(path) for path in system.find(root)}

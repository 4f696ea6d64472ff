"""A sweep that is there already: its plan and its manifest, once these agree, and the bytes of its parts."""

from __future__ import annotations

import os
from typing import Any

from hockeystick.sweep.errors import OutputError, PlanError
from hockeystick.sweep.plan.plan import Plan, parse
from hockeystick.sweep.plan.shares import stored_share
from hockeystick.sweep.store.folder import open_folder
from hockeystick.sweep.store.parquet_part import IDENTITY, DamagedPartError
from hockeystick.sweep.store.store import Store, changes, manifest, read_manifest

# Of the manifest's entries those that any version computes alike from the plan; IDENTITY says who computed the parts.
FROM_PLAN = ("plan_sha256", "cells", "shard_rows")


def stored_sweep(out: str | os.PathLike[str]) -> Store:
    """Return the store of an earlier run, unlocked, to read from; refuse a manifest that contradicts itself."""
    found = read_manifest(out)
    try:
        plan = parse(found["plan"])
    except PlanError as error:
        message = f"out must hold a plan that this version can read, not {out}: {error}"
        raise OutputError(message) from error
    _check_agrees(plan, found, out)
    share = stored_share(found.pop("share", None), out)
    return Store(open_folder(out), plan, found, share)


def part_content(store: Store, index: int) -> bytes:
    """Return the bytes of a part that was there a moment ago; refuse one that cannot be read."""
    content = store.content(index)
    if content is None:
        raise DamagedPartError("it cannot be read")  # noqa: EM101 - told by the caller
    return content


def _check_agrees(plan: Plan, found: dict[str, Any], out: str | os.PathLike[str]) -> None:
    computed = manifest(plan)
    told = changes({key: found.get(key) for key in FROM_PLAN}, {key: computed[key] for key in FROM_PLAN})
    told += [f"{key} is no text" for key in IDENTITY if not isinstance(found.get(key), str)]
    if told:
        message = f"out must have a manifest that agrees with its plan, not {out}: {told[0]}"
        raise OutputError(message)

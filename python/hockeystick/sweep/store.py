"""What a sweep leaves behind: a manifest and immutable Parquet parts, each whole or absent.

An interrupted and resumed sweep ends with the same bytes as an uninterrupted one, see the module `parquet_part`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import hockeystick._core as core
from hockeystick._checks.shown import shown
from hockeystick._core import __version__
from hockeystick.sweep.errors import OutputError, PlanError, require
from hockeystick.sweep.folders import MANIFEST, Folder, is_skipped, is_temporary
from hockeystick.sweep.parquet_part import (
    IDENTITY,
    PYARROW_VERSION,
    Counts,
    DamagedPartError,
    Part,
    decode,
    whole_table,
)
from hockeystick.sweep.plan import Axis, Plan, Share, costs, parse, stored_share

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 3  # of the manifest and the parts
# Of the manifest's entries those that any version computes alike from the plan; IDENTITY says who computed the parts.
FROM_PLAN = ("plan_sha256", "cells", "shard_rows")
LIBRARIES = ("numba", "numpy", "scipy", "scikit-learn")  # on which the last digits of trainings depend

# Within which a remote place is tried again: a store that refused an upload shows the other one by then.
CONFLICT_SECONDS = 2.0
POLL_SECONDS = 0.05


class Store:
    """The parts of the sweep that has this manifest in one folder."""

    def __init__(self, folder: Folder, plan: Plan, manifest: Mapping[str, Any], share: Share | None = None) -> None:
        self.folder = folder
        self.plan = plan
        self.manifest = manifest  # of the whole plan, whoever computes a part of it
        self.share = share
        self.shards = range(plan.num_shards) if share is None else share.shards(plan.num_shards)  # that are kept here
        self._digits = max(6, len(str(plan.num_shards - 1)))

    @cached_property
    def num_cells(self) -> int:
        """Return the number of cells that are kept here when all are done."""
        return sum(len(self.plan.shard(index)) for index in self.shards) if self.share else self.plan.num_cells

    def described(self) -> dict[str, Any]:
        """Return what the manifest here says."""
        return {**self.manifest, "share": str(self.share)} if self.share else dict(self.manifest)

    def file(self, index: int) -> str:
        """Return the name of a part, in the folder of parts."""
        return f"part-{index:0{self._digits}}.parquet"

    def name(self, index: int) -> str:
        """Return the name of a part, in the folder of the sweep."""
        return f"cells/{self.file(index)}"

    def path(self, index: int) -> str:
        """Return where a part is, for a message."""
        return f"{self.folder}/{self.name(index)}"

    def sizes(self) -> dict[int, int]:
        """Return the numbers of the parts that are there, whole or not, with their sizes."""
        found = self.folder.entries("cells")
        return {index: found[name] for index in self.shards if (name := self.file(index)) in found}

    def write(self, part: Part) -> None:
        """Publish a part."""
        started = time.perf_counter()
        self.folder.write(self.name(part.index), part.content)
        part.write_seconds += time.perf_counter() - started

    def content(self, index: int) -> bytes | None:
        """Return the bytes of a part, or None if it is not there."""
        return self.folder.read(self.name(index))

    def table(self, index: int) -> pa.Table:
        """Return the rows of a part; refuse one that this sweep would not have written."""
        try:
            return whole_table(self.plan, self.manifest, index, self.content(index))
        except DamagedPartError as error:
            raise OutputError(
                f"out must hold whole parts, not {self.path(index)}: {error}; run the sweep again to repair it"
            ) from error

    def decoded(self, index: int, content: bytes | None) -> Counts:
        """Return what a part of these bytes holds; refuse a part that this sweep would not have written."""
        return decode(self.plan, self.manifest, index, content)


@contextlib.contextmanager
def open_store(
    out: str | os.PathLike[str], plan: Plan, share: Share | None = None, identity: Mapping[str, Any] | None = None
) -> Iterator[Store]:
    """Give the store for this plan at that place, locked; refuse what is not an earlier run of the same plan.

    `identity` is the manifest of parts that were computed elsewhere; without it, of those that this process computes.
    """
    store = Store(Folder(out), plan, identity or manifest(plan), share)
    with _as_output_error(store.folder):
        _check_space(store)
        store.folder.create()
    with store.folder.locked():
        with _as_output_error(store.folder):
            _prepare(store)
        yield store
        with _as_output_error(store.folder):
            _check_manifest(store)  # somebody may have cleared the place and begun another sweep there


def stored_sweep(out: str | os.PathLike[str]) -> Store:
    """Return the store of an earlier run, unlocked, to read from; refuse a manifest that contradicts itself."""
    folder = Folder(out)
    found = stored_manifest(folder)
    if found is None:
        raise OutputError(f"out must be the directory of a sweep, not {out}: it has no {MANIFEST}")
    other = f"{out} of format {shown(found.get('format'))}, which this version does not read"
    rule = f"out must be a sweep of format {FORMAT}, not {other}; run the plan again in a new directory"
    require(found.get("format") == FORMAT, rule, OutputError)
    try:
        plan = parse(found["plan"])
    except PlanError as error:
        raise OutputError(f"out must hold a plan that this version can read, not {out}: {error}") from error
    computed = manifest(plan)
    told = changes({key: found.get(key) for key in FROM_PLAN}, {key: computed[key] for key in FROM_PLAN})
    told += [f"{key} is no text" for key in IDENTITY if not isinstance(found.get(key), str)]
    if told:
        raise OutputError(f"out must have a manifest that agrees with its plan, not {out}: {told[0]}")
    share = stored_share(found.pop("share", None), out)
    return Store(folder, plan, found, share)


def manifest(plan: Plan) -> dict[str, Any]:
    """Return what identifies a sweep: all that its numbers and its bytes depend on."""
    source = json.loads(json.dumps(plan.source, default=dict))  # any mapping counts as a table
    return {
        "format": FORMAT,
        "plan": source,
        "plan_sha256": hashlib.sha256(json.dumps(source, separators=(",", ":")).encode()).hexdigest(),
        "version": __version__,
        "instruction_set": plan.instruction_set or core.instruction_set,
        "pyarrow": PYARROW_VERSION,
        "cells": plan.num_cells,
        "shard_rows": plan.shard_rows,
        "axes": [_described(axis) for axis in plan.axes],
        **({"simulator": _simulator()} if "training" in costs(plan.outputs) else {}),
    }


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a manifest."""
    return hashlib.sha256(json.dumps(manifest).encode()).hexdigest()


def stored_manifest(folder: Folder) -> dict[str, Any] | None:
    """Return the manifest in a folder, or None if there is none."""
    stored = folder.read(MANIFEST)
    if stored is None:
        return None
    try:
        content = json.loads(stored)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("plan"), dict):
        raise OutputError(f"out must be the directory of a sweep, not {folder}: {MANIFEST} holds no plan")
    return content


def changes(before: Any, after: Any, key: str = "") -> list[str]:
    """Return in words how two trees of tables differ, the order of the keys included."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        same = json.dumps(before) == json.dumps(after)  # 1 and 1.0 differ: they make columns of different types
        return [] if same else [f"{key} changed from {shown(before)} to {shown(after)}"]
    found = [f"{key}.{name} was removed" for name in before if name not in after]
    found += [f"{key}.{name} was added" for name in after if name not in before]
    for name in after:
        if name in before:
            found += changes(before[name], after[name], f"{key}.{name}")
    if not found and list(before) != list(after):
        found = [f"{key} order changed from {', '.join(before)} to {', '.join(after)}"]
    return [text.removeprefix(".") for text in found]


def _described(axis: Axis) -> dict[str, Any]:
    """Describe an axis; the digest tells values apart that another NumPy would round differently."""
    columns = axis.columns.values()
    digest = hashlib.sha256(b"".join(values.tobytes() for values in columns))
    return {
        "names": list(axis.columns),
        "spacing": axis.spacing,
        "length": len(axis),
        "first": [values[0].item() for values in columns],
        "last": [values[-1].item() for values in columns],
        "sha256": digest.hexdigest(),
    }


def _simulator() -> dict[str, str]:
    """Return what the last digits of trainings depend on: libraries, and the processor.

    The core's set of instructions is not enough, since numba and the linear algebra behind NumPy choose their own.
    """
    from llvmlite import binding  # noqa: PLC0415 - comes with numba, which is for such plans only

    def installed(library: str) -> str:
        with contextlib.suppress(PackageNotFoundError):
            return version(library)
        return ""

    features = binding.get_host_cpu_features().flatten()
    processor = f"{binding.get_host_cpu_name()} {hashlib.sha256(features.encode()).hexdigest()[:12]}"
    return {"processor": processor, **{name: installed(name) for name in LIBRARIES}}


def _check_space(store: Store) -> None:
    """Refuse what cannot fit on the disk."""
    free = store.folder.free_bytes()
    if free is None:
        return
    stored = sum(size for name, size in store.folder.entries("cells").items() if name.startswith("part-"))
    # Inputs repeat and compress to little; computed doubles do not.
    needed = store.num_cells * (8 * len(store.plan.outputs) + 4) - stored
    sizes = f"about {needed / 1e9:.3g} GB are needed, {free / 1e9:.3g} GB are free"
    rule = f"axes must make a table that fits on the disk, not {store.num_cells} cells: {sizes}"
    require(needed <= free, rule, OutputError)


def _prepare(store: Store) -> None:
    """Bring an empty or an earlier folder into the state of a run that was interrupted between two parts.

    At a URL another run of the plan may come in between, and remove or write a file first: then the next look finds what it left.
    """
    deadline = time.monotonic() + (0.0 if store.folder.is_local else CONFLICT_SECONDS)
    while True:
        try:
            return _take(store)
        except OSError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(POLL_SECONDS)


def _take(store: Store) -> None:
    """Write the manifest where there is none, refuse that of another run, and remove what a killed one left."""
    folder = store.folder
    if stored_manifest(folder) is None:
        others = [name for name in folder.entries() if name != "cells/" and not is_skipped(name)]
        if (others or store.sizes()) and stored_manifest(folder) is None:  # no other run has begun by now
            raise OutputError(
                f"out must be empty or hold an earlier run of the same plan, not {folder}: it has no {MANIFEST}"
            )
        content = json.dumps(store.described(), indent=2) + "\n"
        folder.write_shared(MANIFEST, content.encode(), lambda: stored_manifest(folder) is None)
    _check_manifest(store)
    folder.create("cells")
    _tidy(store)


def _check_manifest(store: Store) -> None:
    """Refuse a folder whose manifest is not that of this run."""
    found, wanted = stored_manifest(store.folder), store.described()
    if found is None:
        raise OSError(f"{MANIFEST} cannot be read back from {store.folder}")
    told = changes(found["plan"], wanted["plan"])
    if not told and found.get("share") != wanted.get("share"):
        told = [f"it is {_held(found)}, not {_held(wanted)}"]
    told = told or changes(found, wanted)
    differs = f"{store.folder}: {'; '.join(told[:3])}" + (f" and {len(told) - 3} more" if len(told) > 3 else "")
    rule = f"out must be an earlier run of the same plan, not {differs}; use another output directory"
    require(not told, rule, OutputError)


def _held(manifest: Mapping[str, Any]) -> str:
    return f"for share {shown(manifest['share'])}" if "share" in manifest else "for the whole plan"


def _tidy(store: Store) -> None:
    """Remove what a killed run left unfinished; refuse what a reader would take for a part.

    A worker that is still busy for the killed run may have renamed or removed its file by now.
    """
    parts, there = {store.file(index) for index in store.shards}, store.folder.entries("cells")
    for name in there:
        why = ": a folder, which readers search for parts; move it away" if name.endswith("/") else ""
        rule = f"out must hold this sweep alone, not {store.folder}/cells/{name}{why}"
        require(name in parts or is_skipped(name), rule, OutputError)
    for below, names in (("", store.folder.entries()), ("cells/", there)):
        for name in filter(is_temporary, names):
            with contextlib.suppress(FileNotFoundError):
                store.folder.remove(below + name)


@contextlib.contextmanager
def _as_output_error(folder: Folder) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"out must be a writable directory, not {folder}: {error.strerror or error}") from error

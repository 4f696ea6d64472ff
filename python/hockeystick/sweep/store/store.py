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
from typing import Any

import numpy as np

import hockeystick._core as core
from hockeystick._core import __version__
from hockeystick.sweep.errors import OtherRunError, OutputError
from hockeystick.sweep.plan.axes import Axis, shorten
from hockeystick.sweep.plan.plan import Plan
from hockeystick.sweep.plan.shares import Share
from hockeystick.sweep.store.claims import blame_another_run, claimed
from hockeystick.sweep.store.folder import Folder, open_folder
from hockeystick.sweep.store.ledger import Ledger, Written
from hockeystick.sweep.store.names import FORMER_MANIFEST, MANIFEST, is_skipped, is_temporary
from hockeystick.sweep.store.parquet_part import PYARROW_VERSION, Counts, Part, decode
from hockeystick.sweep.store.space import check_space
from hockeystick.sweep.trainings.environment import environment

FORMAT = 3  # of the manifest and the parts; 1 had parts without a digest, 2 a manifest that readers took for a part


PATIENCE_SECONDS = 60.0  # for a listing on a network disk that is behind
POLL_SECONDS = 0.5


class Store:
    """The parts of the sweep that has this manifest in one folder."""

    def __init__(self, folder: Folder, plan: Plan, manifest: Mapping[str, Any], share: Share | None = None) -> None:
        self.folder = folder
        self.plan = plan
        self.manifest = manifest  # of the whole plan, whoever computes a part of it
        self.share = share
        self.shards = range(plan.num_shards) if share is None else share.shards(plan.num_shards)  # that are kept here
        self.ledger = Ledger()
        self._digits = max(6, len(str(plan.num_shards - 1)))

    @property
    def num_cells(self) -> int:
        """Return the number of cells that are kept here when all are done."""
        return sum(len(self.plan.shard(index)) for index in self.shards) if self.share else self.plan.num_cells

    def described(self) -> dict[str, Any]:
        """Return what the manifest here says."""
        return {**self.manifest, "share": str(self.share)} if self.share else dict(self.manifest)

    def name(self, index: int) -> str:
        """Return the file name of a part, which is in the folder `cells`."""
        return f"part-{index:0{self._digits}}.parquet"

    def present(self) -> list[int]:
        """Return the numbers of the parts that are there, whole or not."""
        names = self.folder.entries("cells")
        return [index for index in self.shards if self.name(index) in names]

    def stored_bytes(self) -> int:
        """Return the size of the parts that are there."""
        return sum(size for name, size in self.folder.entries("cells").items() if name.startswith("part-"))

    def write(self, part: Part | Written) -> None:
        """Publish a part, unless a worker has done so."""
        if isinstance(part, Part):
            self.folder.write(f"cells/{self.name(part.index)}", part.content)

    def unseen(self) -> list[int]:
        """Return the parts that workers have written, as they said, and that do not appear here in full length."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        names = {index: self.name(index) for index in self.ledger.sizes}
        while names and (lost := self.ledger.unseen(names, self.folder.entries("cells"))):
            if time.monotonic() > deadline:
                return lost
            time.sleep(POLL_SECONDS)
        return []

    def content(self, index: int) -> bytes | None:
        """Return the bytes of a part, or None if it is not there."""
        return self.folder.read(f"cells/{self.name(index)}")

    def read(self, index: int) -> Counts | None:
        """Return what a part holds, or None if it is not there; refuse a part that this sweep would not have written."""
        content = self.content(index)
        return None if content is None else decode(self.plan, self.manifest, index, content)


@contextlib.contextmanager
def open_store(
    out: str | os.PathLike[str], plan: Plan, share: Share | None = None, identity: Mapping[str, Any] | None = None
) -> Iterator[Store]:
    """Give the store for this plan at that place, locked; refuse what is not an earlier run of the same plan.

    `identity` is the manifest of parts that were computed elsewhere; without it, of those that this process computes.
    """
    store = Store(open_folder(out), plan, identity or manifest(plan), share)
    with _as_output_error(store.folder):
        check_space(store.folder, store.plan, store.num_cells, store.stored_bytes())
        store.folder.create()
    with store.folder.locked() as locked:
        with _as_output_error(store.folder):
            try:
                _prepare(store, locked=locked)
            except OSError as error:
                blame_another_run(store.folder, lambda: _is_ours(store), error)
                raise
        yield store
        with _as_output_error(store.folder):
            _check_manifest(store)  # somebody may have cleared the place and begun another sweep there


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
        **environment(plan),
    }


def read_manifest(out: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the manifest of a sweep's directory."""
    found = stored_manifest(open_folder(out))
    if found is None:
        message = f"out must be the directory of a sweep, not {out}: it has no {MANIFEST}"
        raise OutputError(message)
    if found.get("format") != FORMAT:
        message = (
            f"out must be a sweep of format {FORMAT}, not {out} of format {shorten(found.get('format'))}, "
            "which this version does not read; run the plan again in a new directory"
        )
        raise OutputError(message)
    return found


def changes(before: Any, after: Any, key: str = "") -> list[str]:
    """Return in words how two trees of tables differ, the order of the keys included."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        same = json.dumps(before) == json.dumps(after)  # 1 and 1.0 differ: they make columns of different types
        return [] if same else [f"{key} changed from {shorten(before)} to {shorten(after)}"]
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
    digest = hashlib.sha256()
    for array in axis.values:
        digest.update(np.ascontiguousarray(array).tobytes())
    return {
        "names": list(axis.names),
        "spacing": axis.spacing,
        "length": len(axis),
        "first": [array[0].item() for array in axis.values],
        "last": [array[-1].item() for array in axis.values],
        "sha256": digest.hexdigest(),
    }


def stored_manifest(folder: Folder) -> dict[str, Any] | None:
    """Return the manifest in a folder, or None if there is none."""
    name = MANIFEST
    stored = folder.read(name)
    if stored is None:
        name = FORMER_MANIFEST
        stored = folder.read(name)
    if stored is None:
        return None
    message = f"out must be the directory of a sweep, not {folder}: {name} holds no plan"
    try:
        content = json.loads(stored)
    except (ValueError, RecursionError) as error:
        raise OutputError(message) from error
    if not isinstance(content, dict) or not isinstance(content.get("plan"), dict):
        raise OutputError(message)
    return content


def _prepare(store: Store, *, locked: bool) -> None:
    """Bring an empty or an earlier folder into the state of a run that was interrupted between two parts."""
    if stored_manifest(store.folder) is None:
        with contextlib.nullcontext() if locked else claimed(store.folder, digest_of(store.described())):
            _write_manifest(store)
    _check_manifest(store)
    _tidy(store)


def _write_manifest(store: Store) -> None:
    """Write the manifest into an empty folder, unless another run has done so by now."""
    names = [
        name for name in store.folder.entries() if name != "cells/" and not is_temporary(name) and not is_skipped(name)
    ]
    parts = store.present()
    if stored_manifest(store.folder) is not None:
        return
    if names or parts:
        message = f"out must be empty or hold an earlier run of the same plan, not {store.folder}: it has no {MANIFEST}"
        raise OutputError(message)
    store.folder.write_new(MANIFEST, (json.dumps(store.described(), indent=2) + "\n").encode())


def _is_ours(store: Store) -> bool | None:
    """Say whether the manifest is that of this plan, None if there is none."""
    found = stored_manifest(store.folder)
    return None if found is None else not changes(found, store.described())


def _check_manifest(store: Store) -> None:
    """Refuse a folder whose manifest is not that of this run."""
    found = stored_manifest(store.folder)
    if found is None:
        message = f"{MANIFEST} cannot be read back from {store.folder}"
        raise OSError(message)
    if changes(found, store.described()):
        _refuse(store.folder, found, store.described())


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a manifest."""
    return hashlib.sha256(json.dumps(manifest).encode()).hexdigest()


def _tidy(store: Store) -> None:
    """Remove what a killed run left unfinished; refuse what a reader would take for a part.

    A worker that is still busy for the killed run may have renamed or removed its file by now.
    """
    numbers = {store.name(index) for index in store.shards}
    for name in store.folder.entries("cells"):
        if is_temporary(name):
            _remove(store.folder, f"cells/{name}")
        elif name not in numbers and not is_skipped(name):
            why = ": a folder, which readers search for parts; move it away" if name.endswith("/") else ""
            message = f"out must hold this sweep alone, not {store.folder}/cells/{name}{why}"
            raise OutputError(message)
    for name in filter(is_temporary, store.folder.entries()):
        _remove(store.folder, name)


def _remove(folder: Folder, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        folder.remove(name)


def _refuse(folder: Folder, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    told = changes(found["plan"], wanted["plan"])
    if not told and found.get("share") != wanted.get("share"):
        told = [f"it is {_held(found)}, not {_held(wanted)}"]
    if not told:
        told = changes(found, wanted)
    shown = "; ".join(told[:3]) + (f" and {len(told) - 3} more" if len(told) > 3 else "")
    message = f"out must be an earlier run of the same plan, not {folder}: {shown}; use another output directory"
    raise OutputError(message)


def _held(manifest: Mapping[str, Any]) -> str:
    return f"for share {shorten(manifest['share'])}" if "share" in manifest else "for the whole plan"


@contextlib.contextmanager
def _as_output_error(folder: Folder) -> Iterator[None]:
    try:
        yield
    except OtherRunError:
        raise
    except OSError as error:
        message = f"out must be a writable directory, not {folder}: {error.strerror or error}"
        raise OutputError(message) from error

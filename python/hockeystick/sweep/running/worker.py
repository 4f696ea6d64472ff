"""What a worker of a cluster does: it learns the plan once, computes parts, and writes them where the client would.

A task carries an errand, which is a few hundred bytes, and a number. The plan itself is in the manifest at the output; a
worker that cannot read it there asks its client once, and keeps it.

A worker that does not see the output, or cannot write there, returns the bytes of its part, and the client writes them.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import distributed
from dask.system import CPU_COUNT

from hockeystick.sweep.errors import ClusterError
from hockeystick.sweep.plan.plan import Plan, parse
from hockeystick.sweep.running import instructions
from hockeystick.sweep.running.evaluate import evaluate
from hockeystick.sweep.store.folder import Folder, open_folder
from hockeystick.sweep.store.ledger import Written
from hockeystick.sweep.store.marks import is_marked
from hockeystick.sweep.store.parquet_part import Part, encode
from hockeystick.sweep.store.store import Store, changes, digest_of, manifest, stored_manifest

MOST_PLANS = 4  # of which a worker keeps what it has learnt
REMEDY = 'in the plan, name the best set that all of them have, such as instruction_set = "v3"'


@dataclass(frozen=True)
class Errand:
    """What all tasks of a run have in common."""

    place: str  # a path or a URL
    mark: str  # a file there
    digest: str  # of the manifest
    num_threads: int | None
    strict: bool  # parts with an error are not to be written


@dataclass(frozen=True)
class Outcome:
    """What came of a task."""

    index: int
    part: Part | Written | None  # None where the worker needs the manifest
    worker: str
    reason: str = ""  # why the worker has not written the part


@dataclass(frozen=True)
class _Known:
    """What a worker knows of an errand."""

    plan: Plan
    manifest: Mapping[str, Any]
    store: Store | None  # None where the client writes
    reason: str  # why it does


def compute(errand: Errand, index: int, packed: bytes | None = None) -> Outcome:
    """Compute a part and write it; this runs on a worker. `packed` is the manifest, where the worker has asked for it."""
    worker = distributed.get_worker()
    known = _known(errand, packed)
    if known is None:
        return Outcome(index, None, worker.address)
    started = time.perf_counter()
    shard = evaluate(known.plan, known.plan.shard(index), threads(errand.num_threads or 1, worker.state.nthreads))
    part = encode(known.plan, known.manifest, shard, time.perf_counter() - started)
    return Outcome(index, *_published(errand, known, part))


def pack(manifest: Mapping[str, Any]) -> bytes:
    """Return a manifest as it travels to a worker that has asked for it."""
    return zlib.compress(json.dumps(manifest).encode(), 1)


def threads(wanted: int | None, tasks: int) -> int:
    """Return how many threads each of so many tasks on one machine may use: what is wanted within its share of the cores."""
    share: int = max(1, CPU_COUNT // tasks)
    return share if wanted is None else min(wanted, share)


_errands: dict[Errand, _Known] = {}
_learning = threading.Lock()


def _known(errand: Errand, packed: bytes | None) -> _Known | None:
    """Return what this worker knows of an errand, or None if it has to be told."""
    with _learning:
        if errand not in _errands:
            folder, reason = _place(errand)
            manifest = json.loads(zlib.decompress(packed)) if packed else _manifest_at(folder, errand.digest)
            if manifest is None:
                return None
            while len(_errands) >= MOST_PLANS:
                del _errands[next(iter(_errands))]
            plan = _checked(manifest)
            _errands[errand] = _Known(plan, manifest, Store(folder, plan, manifest) if folder else None, reason)
        return _errands[errand]


def _place(errand: Errand) -> tuple[Folder | None, str]:
    """Return the folder of an errand if this worker sees it, and else why not."""
    try:
        folder = open_folder(errand.place)
        if is_marked(folder, errand.mark, errand.digest):
            return folder, ""
    except (OSError, ImportError, ValueError) as error:
        return None, f"a worker cannot open {errand.place}: {error}"
    return None, f"a worker does not see this run at {errand.place}"


def _manifest_at(folder: Folder | None, digest: str) -> dict[str, Any] | None:
    """Return the manifest with that digest, if it is at the place."""
    if folder is None:
        return None
    try:
        found = stored_manifest(folder) or {}
    except (OSError, ValueError):
        return None
    found.pop("share", None)  # which parts the client wants; they are those of the plan
    return found if digest_of(found) == digest else None


def _checked(wanted: Mapping[str, Any]) -> Plan:
    """Return the plan, if this worker's library is the one whose numbers the table holds."""
    address = distributed.get_worker().address
    plan = parse(wanted["plan"])
    try:
        instructions.check(plan.instruction_set)
    except ValueError as error:
        message = f"workers must run the plan's instruction set; on {address} {error}; {REMEDY}"
        raise ClusterError(message) from error
    own = json.loads(json.dumps(manifest(plan)))
    told = changes(wanted, own)
    if told:
        remedy = f"; {REMEDY}" if wanted["instruction_set"] != own["instruction_set"] else ""
        message = f"workers must run what the client runs; on {address} {'; '.join(told)}{remedy}"
        raise ClusterError(message)
    return plan


def _published(errand: Errand, known: _Known, part: Part) -> tuple[Part | Written, str, str]:
    """Write a part, or give it back with the reason."""
    address = distributed.get_worker().address
    if known.store is None:
        return part, address, known.reason
    if errand.strict and part.counts.first_error:
        return part, address, "it has an error"  # with which the run ends
    started = time.perf_counter()
    folder = known.store.folder
    try:
        there = folder.write_shared(
            f"cells/{known.store.name(part.index)}",
            part.content,
            lambda: is_marked(folder, errand.mark, errand.digest),
        )
    except OSError as error:
        return part, address, f"a worker cannot write to {errand.place}: {error.strerror or error}"
    if not there:
        return part, address, f"a worker found another part or another run at {errand.place}"
    seconds = time.perf_counter() - started
    digest = hashlib.sha256(part.content).hexdigest()
    return Written(part.index, part.counts, part.compute_seconds, seconds, len(part.content), digest), address, ""

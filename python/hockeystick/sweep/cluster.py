"""Shards on a Dask cluster: a few under way at a time, computed, encoded and written by workers; the caller keeps count.

A task carries a specification, which is a few hundred bytes, and a number. The plan is in the manifest, which Dask takes to
each worker once.

Workers that do not see the output, or cannot write there, hand their parts over, and the caller writes them. Two workers that compute
one part, say because one of them was thought dead, write the same bytes, each into a hidden file of its own, or by one upload; the
second rename or upload changes nothing.

A worker knows that the place it sees is the one that its client means by the token of the run. The same path can be another disk
on another machine, and the same URL another server: even a manifest of the same plan may be there, of an earlier run. So the client
leaves a file with a random name while workers write parts, which holds the digest of the manifest, and a worker writes only while it
finds that file. The token goes when its run ends, or when the next run tidies what a killed one left. A worker that is still
busy for the earlier run then writes nothing, unless it has looked a moment before: then it renames a part that the next run of the
plan would write with the same bytes.

Dask's messages are pickled: whoever can connect to a scheduler or a worker can run code there and in this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import socket
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from hockeystick._checks.hints import needs
from hockeystick.sweep.errors import ClusterError, require
from hockeystick.sweep.evaluate import check_instruction_set
from hockeystick.sweep.folders import RUN_TOKEN, Folder
from hockeystick.sweep.parquet_part import Part
from hockeystick.sweep.parquet_part import compute as compute_part
from hockeystick.sweep.plan import Plan, parse
from hockeystick.sweep.store import Store, changes, digest_of, manifest

with needs("dask", "a sweep on a cluster needs Dask"):
    import dask
    import distributed
    from dask.system import CPU_COUNT

GREETING_SECONDS = 5.0
CONNECT_SECONDS = 10.0
PATIENCE_SECONDS = 60.0  # without any worker, and for a listing on a network disk that is behind
POLL_SECONDS = 0.5
SLOTS_SECONDS = 5.0  # between two looks at the cluster's size
TASKS_PER_THREAD = 2  # one that is computed, one that waits for it
MAX_PLANS = 4  # of which a worker keeps what it has learnt
ROLES = ("scheduler", "worker", "client")
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # Ctrl-C is for the client, which ends its workers
REMEDY = 'in the plan, name the best set that all of them have, such as instruction_set = "v3"'

logger = logging.getLogger("hockeystick.sweep")


def tls(ca_file: str, cert: str, key: str) -> distributed.Security:
    """Return the settings of a cluster whose members all have certificates of one authority, and talk TLS only."""
    roles = {f"tls_{role}_{what}": file for role in ROLES for what, file in (("cert", cert), ("key", key))}
    return distributed.Security(tls_ca_file=ca_file, require_encryption=True, **roles)


@contextlib.contextmanager
def connected(address: str, security: distributed.Security | None = None) -> Iterator[distributed.Client]:
    """Give a client of a scheduler that runs elsewhere."""
    try:
        host, port = distributed.comm.get_address_host_port(address)
        socket.create_connection((host, port), timeout=GREETING_SECONDS).close()
        asyncio.run(_greet(address, security))
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False, security=security)
    except (TimeoutError, OSError, ValueError, RuntimeError, TypeError, OverflowError) as error:
        raise ClusterError(
            f"scheduler must be the address of a Dask scheduler, not {address}: {_first_line(error)}"
        ) from error
    try:
        yield client
    finally:
        client.close(timeout=CONNECT_SECONDS)


def _first_line(error: Exception) -> str:
    """Say what failed: the innermost cause, since Dask wraps it in what it tried."""
    if isinstance(error, asyncio.TimeoutError):
        return f"nothing there has greeted like a scheduler within {GREETING_SECONDS:g} s"
    while error.__cause__ is not None and str(error.__cause__):
        error = error.__cause__  # type: ignore[assignment]
    return str(error).partition("\n")[0]


async def _greet(address: str, security: distributed.Security | None) -> None:
    """Refuse in seconds what is no scheduler: a client of Dask tries for long there, and cannot be closed."""
    options = (security or distributed.Security()).get_connection_args("client")
    connected = distributed.core.connect(address, timeout=GREETING_SECONDS, **options)
    comm = await asyncio.wait_for(connected, 2 * GREETING_SECONDS)
    try:
        told = await asyncio.wait_for(distributed.core.send_recv(comm, op="identity"), GREETING_SECONDS)
    finally:
        comm.abort()
    require(told.get("type") == "Scheduler", f"a {told.get('type')} answers there", ValueError)


@contextlib.contextmanager
def local(
    workers: int, security: distributed.Security | None = None, dashboard_port: int | None = None
) -> Iterator[distributed.Client]:
    """Give a client of so many worker processes of one thread on this machine, which end with it.

    They listen on the loopback interface alone. Without a dashboard, a free port there says that the scheduler is alive.
    """
    page = f"127.0.0.1:{dashboard_port}" if dashboard_port else None
    with (
        dask.config.set({} if page else {"distributed.scheduler.http.routes": ["distributed.http.health"]}),
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=page,
            scheduler_kwargs={} if page else {"dashboard_address": "127.0.0.1:0"},
            security=security,
            silence_logs=logging.CRITICAL,
            preload=DEAF,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def check_client(client: object) -> None:
    """Refuse what is no client that can be waited for."""
    waits = isinstance(client, distributed.Client) and not client.asynchronous
    require(waits, f"client must be a synchronous distributed.Client, not {client!r}", TypeError)


def threads(wanted: int | None, tasks: int) -> int:
    """Return how many threads each of so many tasks on one machine may use: what is wanted within its share of the cores."""
    share: int = max(1, CPU_COUNT // tasks)
    return share if wanted is None else min(wanted, share)


@dataclass(frozen=True)
class TaskSpec:
    """What all tasks of a run have in common."""

    place: str  # a path or a URL
    token: str  # a file there, while the run goes on, with the digest
    digest: str  # of the manifest
    num_threads: int | None
    strict: bool  # a part with an error ends the run

    def is_at(self, folder: Folder) -> bool:
        """Say whether the token of the run is in a folder."""
        return folder.read(self.token) == self.digest.encode()


class ClusterPool:
    """The tasks of a run on a cluster that are under way."""

    def __init__(self, client: distributed.Client, store: Store, num_threads: int | None, *, strict: bool) -> None:
        self.client = client
        self.store = store
        self.slots, self.asked = _slots(client), time.monotonic()
        self.sizes: dict[int, int] = {}  # of the parts that workers have written
        self.handed_over: Counter[str] = Counter()  # reason -> parts that this process writes
        digest = digest_of(store.manifest)
        token = f"{RUN_TOKEN}{uuid.uuid4().hex}.tmp"
        store.folder.write(token, digest.encode())
        self.spec = TaskSpec(store.folder.place, token, digest, num_threads, strict)
        self.manifest = client.submit(bytes, pack(store.manifest), pure=False)  # Dask takes it to each worker once

    def capacity(self) -> int:
        """Return how many tasks the cluster should have; workers come and go."""
        if time.monotonic() - self.asked > SLOTS_SECONDS:
            self.slots, self.asked = _slots(self.client), time.monotonic()
        return TASKS_PER_THREAD * self.slots

    def submit(self, index: int) -> distributed.Future:
        """Have a shard computed, and written by its worker if that can."""
        return self.client.submit(compute, self.spec, self.manifest, index, pure=False)

    def published(self, future: distributed.Future) -> Part:
        """Return a part that is there, written here if its worker has not."""
        part, size, reason = _result_of(future)
        if reason:
            self.handed_over[reason] += 1
            self.store.write(part)
        else:
            self.sizes[part.index] = size
        return part

    def close(self, in_flight: set[distributed.Future]) -> list[Part]:
        """Forget what is in flight; what runs will finish, and nobody asks for it."""
        for future in (*in_flight, self.manifest):
            future.release()
        with contextlib.suppress(OSError):  # the next run removes it
            self.store.folder.remove(self.spec.token)
        return []

    def finish(self) -> tuple[str, list[int]]:
        """Say who wrote the parts; return those that workers have written, as they said, and that do not appear here in full length."""
        told = [f"this process wrote {count:,}, since {reason}" for reason, count in self.handed_over.most_common(3)]
        if not self.sizes:  # nothing to look for
            return "; ".join(told), []
        told = [f"workers wrote {len(self.sizes):,} parts", *told]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (unseen := dict(self.sizes.items() - self.store.sizes().items())) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return "; ".join(told), sorted(unseen)


def _slots(client: distributed.Client) -> int:
    """Return how many tasks the cluster runs at a time, which is not none."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE_SECONDS)
        slots: int = sum(client.nthreads().values())
    except (OSError, distributed.TimeoutError) as error:
        raise ClusterError(f"the cluster has no workers: {error}") from error
    return slots


def _result_of(future: distributed.Future) -> TaskResult:
    """Return what came of a task; say in words what Dask says of one that was lost."""
    try:
        if future.cancelled():
            raise distributed.CancelledError("its connection was lost")
        result: TaskResult = future.result()
    except distributed.KilledWorker as error:
        raise ClusterError(
            f"a shard ended every worker that tried it ({error.task}); see the workers' logs and their memory"
        ) from error
    except ClusterError:
        raise
    except (OSError, distributed.CancelledError, distributed.TimeoutError) as error:
        raise ClusterError(f"the scheduler is gone: {error}") from error
    return result


# What a worker does.

# A part, its size in bytes, and why the worker has not written it; if it has, the part is without its content.
TaskResult: TypeAlias = tuple[Part, int, str]


def compute(spec: TaskSpec, packed: bytes, index: int) -> TaskResult:
    """Compute a part and write it, or give it back with the reason; this runs on a worker."""
    plan, manifest, store, reason = _learnt(spec, packed)
    num_threads = threads(spec.num_threads or 1, distributed.get_worker().state.nthreads)
    part = compute_part(plan, manifest, index, num_threads, strict=spec.strict)
    size = len(part.content)
    if store is not None:
        started = time.perf_counter()
        reason = _reason_not_to_write(spec, store, part)
        part.write_seconds += time.perf_counter() - started
    if not reason:
        part.content = b""
    return part, size, reason


def _reason_not_to_write(spec: TaskSpec, store: Store, part: Part) -> str:
    """Write a part beside other writers; return why that could not be done, empty if it was."""
    folder = store.folder
    try:
        there = folder.write_shared(store.name(part.index), part.content, lambda: spec.is_at(folder))
    except OSError as error:
        return f"a worker cannot write to {spec.place}: {error.strerror or error}"
    return "" if there else f"a worker found another part or another run at {spec.place}"


def pack(manifest: Mapping[str, Any]) -> bytes:
    """Return a manifest as it travels to the workers."""
    return zlib.compress(json.dumps(manifest).encode(), 1)


@functools.lru_cache(MAX_PLANS)
def _learnt(spec: TaskSpec, packed: bytes) -> tuple[Plan, Mapping[str, Any], Store | None, str]:
    """Return what this worker knows of a run: the plan, the manifest and the store; or no store, and why the client has to write."""
    manifest = json.loads(zlib.decompress(packed))
    plan = _checked(manifest)
    try:
        folder = Folder(spec.place)
        if spec.is_at(folder):
            return plan, manifest, Store(folder, plan, manifest), ""
    except (OSError, ImportError, ValueError) as error:
        return plan, manifest, None, f"a worker cannot open {spec.place}: {error}"
    return plan, manifest, None, f"a worker does not see this run at {spec.place}"


def _checked(wanted: Mapping[str, Any]) -> Plan:
    """Return the plan, if this worker's library is the one whose numbers the table holds."""
    address = distributed.get_worker().address
    plan = parse(wanted["plan"])
    try:
        check_instruction_set(plan.instruction_set)
    except ValueError as error:
        raise ClusterError(f"workers must run the plan's instruction set; on {address} {error}; {REMEDY}") from error
    own = json.loads(json.dumps(manifest(plan)))
    told = changes(wanted, own)
    remedy = f"; {REMEDY}" if wanted["instruction_set"] != own["instruction_set"] else ""
    other = f"workers must run what the client runs; on {address} {'; '.join(told)}{remedy}"
    require(not told, other, ClusterError)
    return plan

"""Shards on a Dask cluster: a few under way at a time, computed and encoded by workers, published by the caller alone.

Workers need hockeystick and neither the output's file system nor its credentials. Since one process publishes, a part
that two workers computed, say because one was thought dead, is published once.

Dask's messages are pickled: whoever can connect to a scheduler or a worker can run code there and in this process.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import queue
import time
from collections.abc import Iterator, Mapping
from typing import Any

from hockeystick.sweep.errors import ClusterError
from hockeystick.sweep.plan.plan import Plan, parse
from hockeystick.sweep.running.evaluate import evaluate
from hockeystick.sweep.running.schedule import Schedule
from hockeystick.sweep.store.parquet_part import Part, encode
from hockeystick.sweep.store.store import changes, manifest

try:
    import dask
    import distributed
    from dask.system import CPU_COUNT
except ImportError as missing:
    need = "a sweep on a cluster needs Dask: pip install 'hockeystick[dask]'"
    raise ImportError(need) from missing

CONNECT_SECONDS = 10.0
PATIENCE_SECONDS = 60.0  # without any worker
SLOTS_SECONDS = 5.0  # between two looks at the cluster's size
TASKS_PER_THREAD = 2  # one that is computed, one that waits for it
ROLES = ("scheduler", "worker", "client")
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # Ctrl-C is for the client, which ends its workers


def tls(ca_file: str, cert: str, key: str) -> distributed.Security:
    """Return the settings of a cluster whose members all have certificates of one authority, and talk TLS only."""
    roles = {f"tls_{role}_{what}": file for role in ROLES for what, file in (("cert", cert), ("key", key))}
    return distributed.Security(tls_ca_file=ca_file, require_encryption=True, **roles)


@contextlib.contextmanager
def connected(address: str, security: distributed.Security | None = None) -> Iterator[distributed.Client]:
    """Give a client of a scheduler that runs elsewhere."""
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False, security=security)
    except (OSError, ValueError, RuntimeError, TypeError, distributed.TimeoutError) as error:
        message = f"scheduler must be the address of a Dask scheduler, not {address}: {error}"
        raise ClusterError(message) from error
    try:
        yield client
    finally:
        client.close(timeout=CONNECT_SECONDS)


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
    if not isinstance(client, distributed.Client) or client.asynchronous:
        message = f"client must be a synchronous distributed.Client, not {client!r}"
        raise TypeError(message)


def parts(
    client: distributed.Client, identity: Mapping[str, Any], waiting: Schedule, num_threads: int | None
) -> Iterator[Part]:
    """Compute the shards that wait, and give each part as it arrives, in any order. `identity` is the manifest."""
    flying: set[distributed.Future] = set()
    landed: queue.SimpleQueue[distributed.Future] = queue.SimpleQueue()
    try:
        slots, asked = _slots(client), time.monotonic()
        while True:
            if time.monotonic() - asked > SLOTS_SECONDS:  # workers come and go
                slots, asked = _slots(client), time.monotonic()
            while len(flying) < TASKS_PER_THREAD * slots and (index := waiting.next()) is not None:
                future = client.submit(compute, identity, index, num_threads, pure=False)
                flying.add(future)
                future.add_done_callback(landed.put)
            if not flying:
                return
            future = _next(client, landed)
            part = _result(future)
            flying.remove(future)
            del future  # the last reference: the cluster forgets the part
            waiting.finished(part.index, part.compute_seconds)
            yield part
    finally:
        for future in flying:
            future.release()  # what runs will finish, and nobody keeps it


def compute(identity: Mapping[str, Any], index: int, num_threads: int | None) -> Part:
    """Compute a part; this runs on a worker. `identity` is the manifest, so that every worker computes the same bytes."""
    plan = _checked(json.dumps(identity))
    worker = distributed.get_worker()
    started = time.perf_counter()
    shard = evaluate(plan, plan.shard(index), threads(num_threads or 1, worker.state.nthreads))
    return encode(plan, identity, shard, time.perf_counter() - started)


def threads(wanted: int | None, tasks: int) -> int:
    """Return how many threads each of so many tasks on one machine may use: what is wanted within its share of the cores."""
    share: int = max(1, CPU_COUNT // tasks)
    return share if wanted is None else min(wanted, share)


@functools.lru_cache(maxsize=1)
def _checked(identity: str) -> Plan:
    """Return the plan, if this worker's library is the one whose numbers the table holds."""
    wanted = json.loads(identity)
    plan = parse(wanted["plan"])
    told = changes(wanted, json.loads(json.dumps(manifest(plan))))
    if told:
        message = f"workers must run what the client runs; on {distributed.get_worker().address} {'; '.join(told)}"
        raise ClusterError(message)
    return plan


def _slots(client: distributed.Client) -> int:
    """Return how many tasks the cluster runs at a time, which is not none."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE_SECONDS)
        slots: int = sum(client.nthreads().values())
    except (OSError, distributed.TimeoutError) as error:
        message = f"the cluster has no workers: {error}"
        raise ClusterError(message) from error
    return slots


def _next(client: distributed.Client, landed: queue.SimpleQueue[distributed.Future]) -> distributed.Future:
    """Wait for a future that is done, however long it takes while there are workers."""
    while True:
        with contextlib.suppress(queue.Empty):
            return landed.get(timeout=PATIENCE_SECONDS)
        _slots(client)


def _result(future: distributed.Future) -> Part:
    try:
        if future.cancelled():
            raise distributed.CancelledError("its connection was lost")  # noqa: EM101 - told below
        part: Part = future.result()
    except distributed.KilledWorker as error:
        message = f"a shard ended every worker that tried it ({error.task}); see the workers' logs and their memory"
        raise ClusterError(message) from error
    except ClusterError:
        raise
    except (OSError, distributed.CancelledError, distributed.TimeoutError) as error:
        message = f"the scheduler is gone: {error}"
        raise ClusterError(message) from error
    return part

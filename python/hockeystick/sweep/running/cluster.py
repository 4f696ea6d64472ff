"""Shards on a Dask cluster: a few under way at a time, computed, encoded and written by workers; the caller keeps count.

Workers that do not see the output hand their parts over, and the caller writes them. Two workers that compute one part, say
because one of them was thought dead, write the same bytes, each into a hidden file of its own, or by one upload; the second
rename or upload changes nothing. See the modules `worker` and `marks`.

Dask's messages are pickled: whoever can connect to a scheduler or a worker can run code there and in this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import socket
import time
from collections.abc import Generator, Iterator

from hockeystick.sweep.errors import ClusterError
from hockeystick.sweep.running.schedule import Schedule
from hockeystick.sweep.store.folder import place_of
from hockeystick.sweep.store.ledger import Written
from hockeystick.sweep.store.marks import marked
from hockeystick.sweep.store.parquet_part import Part
from hockeystick.sweep.store.store import Store, digest_of

try:
    import dask
    import distributed

    from hockeystick.sweep.running.worker import Errand, Outcome, compute, pack
except ImportError as missing:
    need = 'a sweep on a cluster needs Dask: pip install ".[dask]" in a clone'
    raise ImportError(need) from missing

GREETING_SECONDS = 5.0
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
        host, port = distributed.comm.get_address_host_port(address)
        socket.create_connection((host, port), timeout=GREETING_SECONDS).close()
        asyncio.run(_greet(address, security))
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False, security=security)
    except (OSError, ValueError, RuntimeError, TypeError, OverflowError, asyncio.TimeoutError) as error:
        message = f"scheduler must be the address of a Dask scheduler, not {address}: {_first_line(error)}"
        raise ClusterError(message) from error
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
    if told.get("type") != "Scheduler":
        message = f"a {told.get('type')} answers there"
        raise ValueError(message)


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
    client: distributed.Client, store: Store, waiting: Schedule, num_threads: int | None, *, strict: bool
) -> Generator[Part | Written]:
    """Compute the shards that wait, and give each part as it arrives, in any order: written, or to be written by the caller."""
    digest = digest_of(store.manifest)
    with marked(store.folder, digest) as mark:
        tasks = _Tasks(client, Errand(place_of(store.folder), mark, digest, num_threads, strict))
        try:
            slots, asked = _slots(client), time.monotonic()
            while True:
                if time.monotonic() - asked > SLOTS_SECONDS:  # workers come and go
                    slots, asked = _slots(client), time.monotonic()
                while len(tasks.flying) < TASKS_PER_THREAD * slots and (index := waiting.next()) is not None:
                    tasks.submit(index)
                if not tasks.flying:
                    return
                outcome = tasks.next()
                if outcome.part is None:
                    tasks.submit(outcome.index, pack(store.manifest), to=outcome.worker)
                    continue
                store.ledger.note(outcome.part, outcome.worker, outcome.reason)
                waiting.finished(outcome.index, outcome.part.compute_seconds)
                yield outcome.part
        finally:
            tasks.release()


class _Tasks:
    """The tasks of a run that are under way."""

    def __init__(self, client: distributed.Client, errand: Errand) -> None:
        self.client = client
        self.errand = errand
        self.flying: set[distributed.Future] = set()
        self.landed: queue.SimpleQueue[distributed.Future] = queue.SimpleQueue()

    def submit(self, index: int, packed: bytes | None = None, to: str | None = None) -> None:
        """Have a shard computed, by the worker that has asked for the manifest if that is given."""
        where = {"workers": [to], "allow_other_workers": True} if to else {}
        future = self.client.submit(compute, self.errand, index, packed, pure=False, **where)
        self.flying.add(future)
        future.add_done_callback(self.landed.put)

    def next(self) -> Outcome:
        """Wait for a task that is done, however long it takes while there are workers."""
        while True:
            try:
                future = self.landed.get(timeout=PATIENCE_SECONDS)
            except queue.Empty:
                _slots(self.client)
                continue
            outcome = _result(future)
            self.flying.remove(future)  # the last reference: the cluster forgets the outcome
            return outcome

    def release(self) -> None:
        """Forget what is under way; what runs will finish, and nobody asks for it."""
        for future in self.flying:
            future.release()


def _slots(client: distributed.Client) -> int:
    """Return how many tasks the cluster runs at a time, which is not none."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE_SECONDS)
        slots: int = sum(client.nthreads().values())
    except (OSError, distributed.TimeoutError) as error:
        message = f"the cluster has no workers: {error}"
        raise ClusterError(message) from error
    return slots


def _result(future: distributed.Future) -> Outcome:
    try:
        if future.cancelled():
            raise distributed.CancelledError("its connection was lost")  # noqa: EM101 - told below
        outcome: Outcome = future.result()
    except distributed.KilledWorker as error:
        message = f"a shard ended every worker that tried it ({error.task}); see the workers' logs and their memory"
        raise ClusterError(message) from error
    except ClusterError:
        raise
    except (OSError, distributed.CancelledError, distributed.TimeoutError) as error:
        message = f"the scheduler is gone: {error}"
        raise ClusterError(message) from error
    return outcome

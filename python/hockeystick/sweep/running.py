"""Run a plan: evaluate the shards that are not there yet, here or on a cluster, publish each, and summarise the whole table.

On the threads of this process each thread computes, encodes and writes whole shards. NumPy, Arrow, SHA-256 and the compiled functions
release the interpreter's lock, so that threads run side by side. A plan of costly functions, or of fewer shards than threads, runs one
shard at a time in the caller's thread and gives the functions the threads: the last shard then need not wait for one thread that has
many cells left, and Ctrl-C ends a training after its round. On a cluster the same is done by the module `cluster`.

Which shard is computed next moves no number and no border of the table.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick._checks import thread_count
from hockeystick._checks.hints import needs
from hockeystick._numeric.printing import format_upper
from hockeystick.sweep.errors import CellError
from hockeystick.sweep.evaluate import check_instruction_set
from hockeystick.sweep.functions import registered
from hockeystick.sweep.parquet_part import Counts, DamagedPartError, Part, check, compute
from hockeystick.sweep.plan import costs, load, share_of
from hockeystick.sweep.store import Store, open_store

if TYPE_CHECKING:
    import distributed

    from hockeystick.sweep.cluster import ClusterPool

READERS = 8  # threads that read the parts of an earlier run
LOG_SECONDS = 5.0
PATIENCE_SECONDS = 60.0  # in which no shard ends, until a cluster is asked whether it has workers
BAR = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} cells [{elapsed}, {rate_fmt}{postfix}]"
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0

# Cells done, cells in all, seconds that the rest will take (None if nothing is known).
Progress = Callable[[int, int, "float | None"], object]

logger = logging.getLogger("hockeystick.sweep")


def run(
    plan: str | os.PathLike[str] | Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    num_threads: int | None = None,
    progress: Progress | None = None,
    client: distributed.Client | None = None,
    strict: bool = False,
    shards: tuple[int, int] | None = None,
) -> Summary:
    """Evaluate every cell of a plan and write the table as a Parquet dataset.

    Interrupted at any moment, even killed, it goes on where it was when called again with the same plan and directory,
    and ends with the same bytes as an uninterrupted run. A cell out of a function's domain gets NaN and a text in the
    column ``error``; it does not stop the run, unless `strict`.

    Parameters
    ----------
    plan : path or mapping
        A TOML file, or a mapping with the same content.
    out : path
        A directory that is new, empty, or that of an earlier run of the same plan; or the URL of one that fsspec knows, such
        as ``s3://bucket/sweep``. Gets ``_manifest.json`` and ``cells/part-*.parquet``.
    num_threads : int, optional
        Threads that compute, encode and write: all cores if not given, on a cluster one for each task.
    progress : callable, optional
        Called as ``progress(cells done, cells in all, seconds left)`` at the start and after each shard. The time is None
        until something is known of it.
    client : distributed.Client, optional
        Of a Dask cluster that computes the shards. Its workers need hockeystick, in the same version and with the same
        instruction set, so that the table is the same as without a cluster. A worker that sees `out`, on a shared disk or
        in an object store, writes its parts there; for the others this process writes. Whoever can connect to the cluster
        can run code on it and in this process: give it TLS (``distributed.Security``) on a shared network.
    strict : bool, optional
        Stop at the first part that has a cell with an error; the parts before it stay.
    shards : (int, int), optional
        ``(i, n)`` computes share i of n, counted from 1, for job arrays: every n-th part, in a directory of its own. `merge`
        makes one table of all shares, byte for byte that of one run.

    Returns
    -------
    Summary
        Times, ranges and counts.

    Raises
    ------
    TypeError, ValueError
        If `num_threads` is no positive integer, `client` is not a synchronous client, `shards` names no share, or this machine
        does not have the instruction set of the plan.
    PlanError
        If the plan is wrong or its table too large; nothing has been written then.
    OutputError
        If the directory cannot be used, or holds the run of another plan.
    CellError
        If `strict`, and a function refuses a cell.
    OSError
        If a part cannot be written, say because the disk is full, or the cluster is lost; the parts before it stay.

    Examples
    --------
    >>> import tempfile
    >>> from hockeystick.sweep import run
    >>> plan = {"outputs": {"delta": "theta"}, "axes": {"r": [0.5, 1.0], "epsilon": {"linspace": [0, 8], "num": 5}}}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     summary = run(plan, out)
    >>> summary.rows, summary.errors
    (10, 0)
    """
    thread_count(num_threads)  # before anything is written
    if client is not None:
        from hockeystick.sweep.cluster import check_client  # noqa: PLC0415 - Dask is asked for when first needed

        check_client(client)
    checked = load(plan)
    if client is None:
        check_instruction_set(checked.instruction_set)  # before anything is written
    if "training" in costs(checked.outputs):
        from hockeystick.sweep.trainings import check_trainings  # noqa: PLC0415 - the simulator is for such plans only

        check_trainings(checked)
    started = time.perf_counter()
    share = None if shards is None else share_of(shards, checked.num_shards)
    with open_store(out, checked, share) as store:
        printers = {output.column: registered(output.function.name).printer for output in checked.outputs}
        summary = Summary(share=str(store.share or ""), printers=printers)
        runner = Runner(store, summary, num_threads, progress or (lambda *_progress: None), client, strict)
        try:
            runner.run()
        except OSError as error:
            kept = f"{summary.rows:,} cells are kept, the same command resumes"
            if error.errno is None:
                raise type(error)(f"{error}; {kept}") from error
            raise OSError(error.errno, f"{error.strerror}; {kept}", os.fspath(out)) from error
    summary.seconds = time.perf_counter() - started
    return summary


@dataclass
class Runner:
    """One run: what is computed, and what it counts."""

    store: Store
    summary: Summary
    num_threads: int | None
    progress: Progress
    client: distributed.Client | None
    strict: bool

    def run(self) -> None:
        """Take stock of the parts that are there, then compute and publish the others."""
        self.waiting = Schedule(self.missing())
        try:
            if self.strict:
                check(self.store.plan, self.summary)
            self.report()
            if len(self.waiting):
                self.compute()
        except CellError as error:
            raise CellError(f"{error}; {self.summary.rows:,} cells are kept") from None

    def compute(self) -> None:
        """Keep threads or a cluster busy to the end; count those parts, too, that were in flight when another one failed."""
        pool: ThreadPool | ClusterPool
        if self.client is None:
            pool = ThreadPool(self.store, self.num_threads, len(self.waiting), strict=self.strict)
        else:
            from hockeystick.sweep.cluster import ClusterPool  # noqa: PLC0415 - Dask is asked for when first needed

            pool = ClusterPool(self.client, self.store, self.num_threads, strict=self.strict)
        in_flight = set[Future[Any]]()
        done = queue.SimpleQueue[Future[Any]]()  # no signal's exception breaks it, as it may a lock of `futures.wait`
        try:
            while True:
                while len(in_flight) < pool.capacity() and (index := self.waiting.next()) is not None:
                    future = pool.submit(index)
                    in_flight.add(future)
                    future.add_done_callback(done.put)
                if not in_flight:
                    break
                with contextlib.suppress(queue.Empty):  # then a cluster is asked whether it has workers
                    future = done.get(timeout=PATIENCE_SECONDS)
                    in_flight.remove(future)
                    self.count(pool.published(future))
        finally:
            for part in pool.close(in_flight):
                self.count(part)
        self.summary.writers, unseen = pool.finish()
        if unseen:
            self.summary.rows -= sum(len(self.store.plan.shard(index)) for index in unseen)
            names = ", ".join(map(self.store.file, unseen[:3]))
            raise OSError(f"{len(unseen):,} parts that workers wrote are not in {self.store.folder}/cells: {names}")

    def missing(self) -> list[int]:
        """Return the shards without a whole part, and count the others, some at a time."""
        whole = set()
        present = [*self.store.sizes()]
        with ThreadPoolExecutor(READERS) as readers:
            for start in range(0, len(present), 8 * READERS):
                some = present[start : start + 8 * READERS]
                for index, found in zip(some, readers.map(self.stored, some), strict=True):
                    if isinstance(found, Counts):
                        self.summary.add(found)
                        whole.add(index)
                    elif found:
                        self.summary.damaged += (found,)
                        logger.warning("%s; it is computed anew", found)
        return [index for index in self.store.shards if index not in whole]

    def stored(self, index: int) -> Counts | str:
        """Return what a part of an earlier run holds, or what is wrong with it; nothing of one that is gone."""
        content = self.store.content(index)
        try:
            return "" if content is None else self.store.decoded(index, content)
        except DamagedPartError as error:
            return f"{self.store.path(index)}: {error}"

    def count(self, part: Part) -> None:
        """Count a part that is in its place, and tell how far the run is."""
        self.waiting.finished()
        self.summary.computed_rows += part.counts.rows
        self.summary.compute_seconds += part.compute_seconds
        self.summary.write_seconds += part.write_seconds
        self.summary.add(part.counts)
        self.report()

    def report(self) -> None:
        """Tell how far the run is."""
        self.progress(self.summary.rows, self.store.num_cells, self.waiting.seconds_left())


class ThreadPool:
    """Threads of this process, at most one shard in flight for each."""

    def __init__(self, store: Store, num_threads: int | None, num_waiting: int, *, strict: bool) -> None:
        self.store = store
        self.strict = strict
        threads = thread_count(num_threads)
        cheap = costs(store.plan.outputs) == {"cheap"}
        self.at_once = threads if cheap and num_waiting >= threads else 1
        self.threads_of_call = threads if self.at_once == 1 else 1
        # Connections of some remote file systems are no connections for several threads.
        lock = contextlib.nullcontext() if store.folder.is_local else threading.Lock()
        self.writing: contextlib.AbstractContextManager[Any] = lock
        self.executor = ThreadPoolExecutor(self.at_once)

    def capacity(self) -> int:
        """Return how many shards are computed at once."""
        return self.at_once

    def submit(self, index: int) -> Future[Part]:
        """Have a shard computed and written; one at a time in this thread, the only one in which Python hears Ctrl-C."""
        if self.at_once > 1:
            return self.executor.submit(self._publish, index)
        done = Future[Part]()
        done.set_result(self._publish(index))
        return done

    def published(self, future: Future[Any]) -> Part:
        """Return a part that is there, or raise what its thread raised."""
        part: Part = future.result()
        return part

    def close(self, in_flight: set[Future[Part]]) -> list[Part]:
        """Let the threads write what they are at, and return that; the first failure is the one that is told."""
        self.executor.shutdown(cancel_futures=True)
        return [future.result() for future in in_flight if not future.cancelled() and future.exception() is None]

    def finish(self) -> tuple[str, list[int]]:
        """Return no words and no parts: what this process alone has written is there."""
        return "", []

    def _publish(self, index: int) -> Part:
        """Compute and write a shard, in a thread."""
        part = compute(self.store.plan, self.store.manifest, index, self.threads_of_call, strict=self.strict)
        with self.writing:
            self.store.write(part)
        return part


class Schedule:
    """The shards that are not there yet, in an order whose every beginning is spread over the table, by multiples of the golden section.

    So the shards that are done are a fair sample of those that are left, whatever cells cost along the axes: the rest takes as long
    for each shard as the shards did that are done.
    """

    def __init__(self, missing: Sequence[int]) -> None:
        spread = np.argsort(np.argsort(np.arange(len(missing)) * GOLDEN % 1.0, kind="stable"))
        self._waiting = [missing[at] for at in spread[::-1].tolist()]  # the next is last
        self._total = self._unfinished = len(missing)
        self._started = time.monotonic()

    def __len__(self) -> int:
        """Return how many shards are not finished."""
        return self._unfinished

    def next(self) -> int | None:
        """Return the shard to compute next, or None if all are under way."""
        return self._waiting.pop() if self._waiting else None

    def finished(self) -> None:
        """Take note of a shard that is done."""
        self._unfinished -= 1

    def seconds_left(self) -> float | None:
        """Return the time that the unfinished shards will take at the speed so far, or None if nothing is finished."""
        finished = self._total - self._unfinished
        return (time.monotonic() - self._started) * self._unfinished / finished if finished else None


@contextlib.contextmanager
def bar() -> Iterator[Progress]:
    """Give a progress callback that draws a tqdm bar with the remaining time on standard error."""
    with needs("sweep", "a progress bar needs tqdm"):
        from tqdm import tqdm  # noqa: PLC0415 - needed on a terminal only
    drawn: Any = None

    def progress(done: int, total: int, left: float | None) -> None:
        nonlocal drawn
        if drawn is None:  # where an earlier run stopped
            drawn = tqdm(total=total, initial=done, unit="cell", unit_scale=True, file=sys.stderr, bar_format=BAR)
        drawn.set_postfix_str(_words(left, done < total), refresh=False)
        drawn.update(done - drawn.n)

    try:
        yield progress
    finally:
        if drawn is not None:
            drawn.close()


def lines(every: float = LOG_SECONDS) -> Progress:
    """Return a progress callback that logs at the start, at the end, and every few seconds between."""
    last: float | None = None

    def progress(done: int, total: int, left: float | None) -> None:
        nonlocal last
        now = time.monotonic()
        if last is not None and done < total and now - last < every:
            return
        last = now
        words = _words(left, done < total)
        logger.info("%s of %s cells (%.1f %%)%s", f"{done:,}", f"{total:,}", 100 * done / total, words and f", {words}")

    return progress


def _words(left: float | None, unfinished: bool) -> str:
    return "" if left is None or not unfinished else f"{left:.0f} s left"


@dataclass
class Summary(Counts):
    """What a run did and what its table holds."""

    computed_rows: int = 0  # by this run; the others were there
    seconds: float = 0.0
    compute_seconds: float = 0.0  # in the functions of the plan and around them, on all workers, without writing
    write_seconds: float = 0.0  # of all threads together, on all workers, encoding included
    damaged: tuple[str, ...] = ()  # the parts of an earlier run that were computed anew, and what was wrong with each
    share: str = ""  # which part of the plan this was, such as "2 of 4"; empty for all of it
    writers: str = ""  # on a cluster: who wrote the parts of this run, and why not the workers
    # How an output is printed; without an entry here it is rounded up.
    printers: Mapping[str, Callable[[float, str], str]] = field(default_factory=dict)

    @property
    def rows_per_second(self) -> float:
        """Return the computed rows per second of the run."""
        return self.computed_rows / self.seconds

    @property
    def first_error(self) -> str:
        """Return the first cell with an error text, and the text; nothing if there is none."""
        return "cell {}: {}".format(*self.first_failure) if self.first_failure else ""

    def __str__(self) -> str:
        """Return a few lines for a reader."""
        reused = self.rows - self.computed_rows
        share = f"share {self.share}: " if self.share else ""
        lines = [f"{share}{self.rows:,} cells" + (f", {reused:,} of them from an earlier run" if reused else "")]
        if self.computed_rows:
            shares = f"of all threads: computing {self.compute_seconds:.2f} s, writing {self.write_seconds:.2f} s"
            lines.append(f"{self.seconds:.2f} s ({shares}), {self.rows_per_second:,.0f} rows/s")
        lines += [self.writers] if self.writers else []
        for name, (least, greatest) in self.ranges.items():
            count = self.non_finite[name]
            printed = self.printers.get(name, format_upper)
            ends = f"{printed(least, '.6g')} to {printed(greatest, '.6g')}"
            lines.append(f"{name}: {ends}" + (f", {count:,} not finite" if count else ""))
        if self.errors:
            lines.append(f"{self.errors:,} cells have an error; see the column error. The first is {self.first_error}")
        lines += [f"computed anew, since damaged: {text}" for text in self.damaged]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

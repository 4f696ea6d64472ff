"""Run a plan: evaluate the shards that are not there yet, here or on a cluster, publish each, and summarise the whole table.

On the threads of this process each thread computes, encodes and writes whole shards. NumPy, Arrow, SHA-256 and the compiled functions
release the interpreter's lock, so that threads run side by side. A plan of costly functions, or of fewer shards than threads, runs one
shard at a time and gives the functions the threads: the last shard, or Ctrl-C, then need not wait for one thread that has many
cells left. On a cluster the same is done by the module `cluster`.

Which shard is computed next, and how long the rest will take, is the schedule's business. It moves no number and no border of the table.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import thread_count
from hockeystick._numeric.printing import format_upper
from hockeystick.sweep.errors import CellError, needs
from hockeystick.sweep.evaluate import check_instruction_set, evaluate
from hockeystick.sweep.functions import COSTLY, printer
from hockeystick.sweep.parquet_part import Counts, DamagedPartError, encode
from hockeystick.sweep.plan import Plan, load, share_of
from hockeystick.sweep.store import PublishedPart, Store, open_store

if TYPE_CHECKING:
    import distributed

    from hockeystick.sweep.cluster import ClusterPool

READERS = 8  # threads that read the parts of an earlier run
LOG_SECONDS = 5.0
BAR = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} cells [{elapsed}, {rate_fmt}{postfix}]"
MAX_PILOTS = 64
LEAST_PILOTS = 8  # below, all are spread, and none is a neighbour of another
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0

# Cells done, cells in all, seconds that the rest will take (None if nothing is known).
Progress = Callable[[int, int, "float | None"], object]
FirstError = tuple[int, str] | None  # a cell, and why it has no value

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
    >>> plan = {"outputs": {"delta": "theta"}, "axes": {"r": [0.5, 1.0], "eps": {"linspace": [0, 8], "num": 5}}}
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
    if checked.has_trainings:
        from hockeystick.sweep.trainings import check  # noqa: PLC0415 - the simulator is for such plans only

        check(checked)
    started = time.perf_counter()
    share = None if shards is None else share_of(shards, checked.num_shards)
    with open_store(out, checked, share) as store:
        runner = Runner(store, num_threads, progress or (lambda *_progress: None), client, strict)
        try:
            runner.run()
        except OSError as error:
            kept = f"{runner.counts.rows:,} cells are kept, the same command resumes"
            if error.errno is None:
                message = f"{error}; {kept}"
                raise type(error)(message) from error
            reason = f"{error.strerror}; {kept}"
            raise OSError(error.errno, reason, os.fspath(out)) from error
    return runner.summary(time.perf_counter() - started)


@dataclass
class Runner:
    """One run: what is computed, and what it counts."""

    store: Store
    num_threads: int | None
    progress: Progress
    client: distributed.Client | None
    strict: bool
    counts: Counts = field(default_factory=Counts)
    damaged: list[str] = field(default_factory=list)
    computed_rows: int = 0
    compute_seconds: float = 0.0
    write_seconds: float = 0.0
    writers: str = ""

    def run(self) -> None:
        """Take stock of the parts that are there, then compute and publish the others."""
        self.waiting = Schedule(self.store.plan, self.missing())
        try:
            self.check(self.counts.first_error)
            self.report()
            if len(self.waiting):
                self.compute(self.pool())
        except CellError as error:
            message = f"{error}; {self.counts.rows:,} cells are kept"
            raise CellError(message) from None

    def pool(self) -> ThreadPool | ClusterPool:
        """Return what computes: threads, or a cluster."""
        if self.client is None:
            return ThreadPool(self.store, self.num_threads, self.check, len(self.waiting))
        from hockeystick.sweep import cluster  # noqa: PLC0415 - Dask is asked for when first needed

        return cluster.ClusterPool(self.client, self.store, self.num_threads, self.check, strict=self.strict)

    def compute(self, pool: ThreadPool | ClusterPool) -> None:
        """Keep a pool busy to the end; count those parts, too, that were in flight when another one failed."""
        try:
            while True:
                while pool.in_flight < pool.capacity() and (index := self.waiting.next()) is not None:
                    pool.submit(index)
                if not pool.in_flight:
                    break
                self.count(pool.next())
        finally:
            for part in pool.close():
                with contextlib.suppress(Exception):  # the first failure is the one that is told
                    self.count(part)
        self.writers = pool.writers()
        if unseen := pool.unseen():
            self.counts.rows -= sum(len(self.store.plan.shard(index)) for index in unseen)
            names = ", ".join(self.store.name(index).removeprefix("cells/") for index in unseen[:3])
            message = f"{len(unseen):,} parts that workers wrote are not in {self.store.folder}/cells: {names}"
            raise OSError(message)

    def missing(self) -> list[int]:
        """Return the shards without a whole part, and count the others, some at a time."""
        whole = set()
        present = [*self.store.sizes()]
        with ThreadPoolExecutor(READERS) as readers:
            for start in range(0, len(present), 8 * READERS):
                some = present[start : start + 8 * READERS]
                for index, counts in zip(some, readers.map(self.stored, some), strict=True):
                    if counts is not None:
                        self.counts.add(counts)
                        whole.add(index)
        return [index for index in self.store.shards if index not in whole]

    def stored(self, index: int) -> Counts | None:
        """Return what a part of an earlier run holds; None, and say so, where it is not what that run wrote."""
        try:
            content = self.store.content(index)
            return None if content is None else self.store.decoded(index, content)
        except DamagedPartError as error:
            self.damaged.append(f"{self.store.path(index)}: {error}")
            logger.warning("%s; it is computed anew", self.damaged[-1])
            return None

    def check(self, error: FirstError) -> None:
        """End a strict run at a cell with an error."""
        if self.strict and error:
            message = f"{self.store.plan.named(error[0])}: {error[1]}"
            raise CellError(message)

    def count(self, part: PublishedPart | None) -> None:
        """Count a part that is in its place, and tell how far the run is."""
        if part is not None:
            self.waiting.finished(part.index, part.compute_seconds)
            self.computed_rows += part.counts.rows
            self.compute_seconds += part.compute_seconds
            self.write_seconds += part.write_seconds
            self.counts.add(part.counts)
            self.report()

    def report(self) -> None:
        """Tell how far the run is."""
        self.progress(self.counts.rows, self.store.num_cells, self.waiting.seconds_left())

    def summary(self, seconds: float) -> Summary:
        """Return what was done in that time."""
        error = self.counts.first_error
        return Summary(
            rows=self.counts.rows,
            computed_rows=self.computed_rows,
            seconds=seconds,
            compute_seconds=self.compute_seconds,
            write_seconds=self.write_seconds,
            rows_per_second=self.computed_rows / seconds,
            ranges=self.counts.ranges,
            non_finite=self.counts.non_finite,
            errors=self.counts.errors,
            first_error=f"cell {error[0]}: {error[1]}" if error else "",
            damaged=tuple(sorted(self.damaged)),
            warnings=tuple(self.counts.warnings),
            share=str(self.store.share or ""),
            writers=self.writers,
            printers={output.column: printer(output.function.name) for output in self.store.plan.outputs},
        )


class ThreadPool:
    """Threads of this process, at most one shard in flight for each."""

    def __init__(
        self, store: Store, num_threads: int | None, check: Callable[[FirstError], None], num_waiting: int
    ) -> None:
        self.store = store
        self.check = check  # raises where a strict run ends
        threads = thread_count(num_threads)
        costly = any(output.function.name in COSTLY for output in store.plan.outputs)
        self.at_once = 1 if costly or num_waiting < threads else threads
        self.threads_of_call = threads if self.at_once == 1 else 1
        # Connections of some remote file systems are no connections for several threads.
        self.writing: contextlib.AbstractContextManager[Any] = (
            threading.Lock() if store.folder.system else contextlib.nullcontext()
        )
        self.ending = threading.Event()
        # A signal's exception may come at any moment, also with a lock of Python's executors held, or between taking from a
        # queue and counting that. So these queues are one step each, and the end waits for threads and not for counts.
        self.queue: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[PublishedPart | BaseException | None] = queue.SimpleQueue()
        self.in_flight = 0
        self.threads: list[threading.Thread] = []

    def capacity(self) -> int:
        """Return how many shards are computed at once."""
        return self.at_once

    def submit(self, index: int) -> None:
        """Have a shard computed, by one more thread while there are too few."""
        self.in_flight += 1
        self.queue.put(index)
        if len(self.threads) < self.at_once:
            self.threads.append(threading.Thread(target=self._work))
            self.threads[-1].start()

    def next(self) -> PublishedPart | None:
        """Wait for a shard, and raise what its thread raised."""
        done = self.results.get()
        self.in_flight -= 1
        if isinstance(done, BaseException):
            raise done
        return done

    def close(self) -> list[PublishedPart]:
        """Let the threads end, none in the middle of writing; the first failure is the one that is told."""
        self.ending.set()
        for _ in self.threads:
            self.queue.put(None)
        for thread in self.threads:
            if thread.is_alive():
                thread.join()
        left = []
        while not self.results.empty():
            done = self.results.get()
            left += [done] if isinstance(done, PublishedPart) else []
        return left

    def unseen(self) -> list[int]:
        """Return no part: what this process has written is there."""
        return []

    def writers(self) -> str:
        """Say nothing: this process alone."""
        return ""

    def _work(self) -> None:
        """Do what is submitted, in a thread."""
        while (index := self.queue.get()) is not None:
            self.results.put(self._result(index))

    def _result(self, index: int) -> PublishedPart | BaseException | None:
        """Return what became of a shard."""
        try:
            return self._published(index)
        except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
            return error

    def _published(self, index: int) -> PublishedPart | None:
        """Compute and write a shard, unless the run ends before it is written."""
        if self.ending.is_set():
            return None
        started = time.perf_counter()
        shard = evaluate(self.store.plan, self.store.plan.shard(index), self.threads_of_call)
        computed = time.perf_counter()
        part = encode(self.store.plan, self.store.manifest, shard, computed - started)
        self.check(part.counts.first_error)
        if self.ending.is_set():
            return None
        with self.writing:
            self.store.write(part)
        return PublishedPart(index, part.counts, part.compute_seconds, time.perf_counter() - computed)


class Schedule:
    """The shards that are not there yet: some spread over the table first, then those expected to take longest.

    The first ones are pairs of neighbours. A shard is expected to take as long as the nearest pair did, near on the axes that
    a shard does not run through, but only in the share in which pairs differ by more than chance: neighbours differ by chance
    alone. Without that share the shards expected to be dear, which run next, would take less than expected, those left
    to the end more, and the time left would always be too short. Equal shards keep their order, so that neighbours, which
    share the values of the first axes, stay together.
    """

    def __init__(self, plan: Plan, missing: Sequence[int]) -> None:
        pilots = min(MAX_PILOTS, -(-len(missing) // 4))
        twins = 2 if pilots >= LEAST_PILOTS else 1
        places = pilots // twins
        self._pairs = [
            tuple(missing[at * len(missing) // places : at * len(missing) // places + twins]) for at in range(places)
        ]
        self._pilots = _spread([index for pair in self._pairs for index in pair])
        chosen = {*self._pilots}
        self._plan = plan
        self._waiting = [*self._pilots, *(index for index in missing if index not in chosen)][::-1]  # the next is last
        self._unfinished = set(missing)
        self._seconds: dict[int, float] = {}  # of the pilots
        self._expected: dict[int, float] = {}  # of the others, once the pilots are measured
        self._measured = 0.0  # in all
        self._left: float | None = None  # expected in all
        self._started = time.monotonic()

    def __len__(self) -> int:
        """Return how many shards are not finished."""
        return len(self._unfinished)

    def next(self) -> int | None:
        """Return the shard to compute next, or None if all are under way."""
        return self._waiting.pop() if self._waiting else None

    def finished(self, index: int, seconds: float) -> None:
        """Take note of how long a shard took."""
        self._unfinished.discard(index)
        self._measured += seconds
        if self._left is not None:
            self._left -= self._expected[index]
            return
        self._seconds[index] = seconds
        if self._seconds.keys() >= {*self._pilots}:
            self._sort()

    def seconds_left(self) -> float | None:
        """Return the time that the unfinished shards will take at the speed so far, or None if nothing is finished."""
        if not self._measured:
            return None
        left = self._left  # another thread may ask
        work = len(self._unfinished) * self._measured / len(self._seconds) if left is None else max(0.0, left)
        return (time.monotonic() - self._started) * work / self._measured

    def _sort(self) -> None:
        unfinished = sorted(self._unfinished)
        middle = _positions(self._plan, [pair[0] for pair in self._pairs])
        expected = _shrunk(np.array([[self._seconds[index] for index in pair] for pair in self._pairs]))
        nearest = _nearest(_positions(self._plan, unfinished), middle)
        self._expected = dict(zip(unfinished, expected[nearest].tolist(), strict=True))
        self._left = sum(self._expected.values())
        self._waiting.sort(key=lambda index: (self._expected[index], -index))


def _shrunk(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of pairs, drawn to the mean of all by the share of their variance that is chance.

    Half of a pair's squared difference is the variance of one time by chance, and half of that the variance of the mean.
    """
    means: NDArray[np.float64] = seconds.mean(axis=1)
    if seconds.shape[1] < 2 or means.var() == 0:
        return means
    chance = np.mean(np.diff(seconds, axis=1) ** 2) / 4
    share = max(0.0, 1.0 - chance / means.var(ddof=1))
    drawn: NDArray[np.float64] = means.mean() + share * (means - means.mean())
    return drawn


def _spread(ordered: list[int]) -> list[int]:
    """Return shards in an order whose every beginning is spread over the table: by multiples of the golden section."""
    places = np.argsort(np.arange(len(ordered)) * GOLDEN % 1.0, kind="stable")
    return [ordered[at] for at in np.argsort(places)]


def _positions(plan: Plan, shards: Sequence[int]) -> NDArray[np.float64]:
    """Return where on each axis the middle of each shard is, from 0 to 1; 0 on axes that a shard runs through."""
    middle = np.asarray(shards, np.int64) * plan.shard_rows + plan.shard_rows // 2
    columns = [
        np.minimum(middle, plan.num_cells - 1) // stride % length / length
        if stride * length > plan.shard_rows
        else np.zeros(len(middle))
        for length, stride in zip(plan.shape, plan.strides, strict=True)
    ]
    return np.stack(columns, axis=1)


def _nearest(points: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return for each point the number of its nearest centre."""
    nearest = np.zeros(len(points), np.intp)
    least = np.full(len(points), np.inf)
    for number, centre in enumerate(centres):
        distance = np.abs(points - centre).sum(axis=1)
        nearer = distance < least
        nearest[nearer], least[nearer] = number, distance[nearer]
    return nearest


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


@contextlib.contextmanager
def lines(every: float = LOG_SECONDS) -> Iterator[Progress]:
    """Give a progress callback that logs at the start, at the end, and every few seconds between."""
    last: float | None = None

    def progress(done: int, total: int, left: float | None) -> None:
        nonlocal last
        now = time.monotonic()
        if last is not None and done < total and now - last < every:
            return
        last = now
        words = _words(left, done < total)
        logger.info("%s of %s cells (%.1f %%)%s", f"{done:,}", f"{total:,}", 100 * done / total, words and f", {words}")

    yield progress


def _words(left: float | None, unfinished: bool) -> str:
    return "" if left is None or not unfinished else f"{left:.0f} s left"


@dataclass(frozen=True)
class Summary:
    """What a run did and what its table holds."""

    rows: int  # in the table
    computed_rows: int  # by this run; the others were there
    seconds: float
    compute_seconds: float  # in the functions of the plan and around them, on all workers together, without writing
    write_seconds: float  # of all threads together, encoding included; of workers that write, without encoding
    rows_per_second: float  # computed rows per second of the run
    ranges: dict[str, tuple[float, float]]  # of the finite values of each output
    non_finite: dict[str, int]  # NaN and infinite values of each output
    errors: int  # cells with an error text
    warnings: tuple[str, ...] = ()  # what the functions warned of
    first_error: str = ""  # the first cell with an error text, and the text
    damaged: tuple[str, ...] = ()  # the parts of an earlier run that were computed anew, and what was wrong with each
    share: str = ""  # which part of the plan this was, such as "2 of 4"; empty for all of it
    writers: str = ""  # on a cluster: who wrote the parts of this run, and why not the workers
    # How an output is printed; without an entry here it is rounded up.
    printers: Mapping[str, Callable[[float, str], str]] = field(default_factory=dict)

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

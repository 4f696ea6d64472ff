"""The work of a run: evaluate the shards that are not there yet, here or on a cluster, and publish each."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from hockeystick.sweep.plan.functions import printer
from hockeystick.sweep.running.evaluate import evaluate
from hockeystick.sweep.running.schedule import Schedule
from hockeystick.sweep.running.summary import Progress, Summary
from hockeystick.sweep.store.parquet_part import Counts, Part, encode
from hockeystick.sweep.store.store import Store

if TYPE_CHECKING:
    import distributed

READERS = 8  # threads that read the parts of an earlier run


class Runner:
    """One run: what is computed, and what it counts."""

    def __init__(
        self, store: Store, num_threads: int | None, progress: Progress, client: distributed.Client | None
    ) -> None:
        self.store = store
        self.plan = store.plan
        self.num_threads = num_threads
        self.progress = progress
        self.client = client
        self.counts = Counts()
        self.computed_rows = 0
        self.compute_seconds = 0.0
        self.write_seconds = 0.0

    def go(self) -> None:
        """Take stock of the parts that are there, then compute the others while those before are written."""
        self.waiting = Schedule(self.plan, self.missing())
        self.report()
        if self.counts.rows == self.plan.num_cells:
            return
        with ThreadPoolExecutor(max_workers=1) as writer, contextlib.closing(self.parts()) as parts:
            pending: Future[None] | None = None
            for part in parts:
                if pending:
                    pending.result()
                pending = writer.submit(self.publish, part)
            if pending:
                pending.result()

    def missing(self) -> list[int]:
        """Return the shards without a whole part, and count the others, some at a time."""
        whole = set()
        present = self.store.present()
        with ThreadPoolExecutor(READERS) as readers:
            for start in range(0, len(present), 8 * READERS):
                some = present[start : start + 8 * READERS]
                for index, counts in zip(some, readers.map(self.store.read, some), strict=True):
                    if counts is not None:
                        self.counts.add(counts)
                        whole.add(index)
        return [index for index in range(self.plan.num_shards) if index not in whole]

    def parts(self) -> Generator[Callable[[], Part]]:
        """Yield the parts as they are computed: each a call that the writer makes."""
        if self.client is not None:
            from hockeystick.sweep.running import cluster  # noqa: PLC0415 - Dask is asked for when first needed

            yield from cluster.parts(self.client, self.plan, self.waiting, self.num_threads)
            return
        while (index := self.waiting.next()) is not None:
            started = time.perf_counter()
            shard = evaluate(self.plan, self.plan.shard(index), self.num_threads)
            seconds = time.perf_counter() - started
            self.waiting.finished(index, seconds)
            yield functools.partial(encode, self.plan, shard, seconds)

    def publish(self, encoded: Callable[[], Part]) -> None:
        """Write a part, in the writer's thread."""
        started = time.perf_counter()
        part = encoded()
        self.store.write(part)
        self.write_seconds += time.perf_counter() - started
        self.compute_seconds += part.compute_seconds
        self.computed_rows += part.counts.rows
        self.counts.add(part.counts)
        self.report()

    def report(self) -> None:
        """Tell how far the run is."""
        self.progress(self.counts.rows, self.plan.num_cells, self.waiting.seconds_left())

    def summary(self, seconds: float) -> Summary:
        """Return what was done in that time."""
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
            warnings=tuple(self.counts.warnings),
            printers={output.column: printer(output.function.name) for output in self.plan.outputs},
        )

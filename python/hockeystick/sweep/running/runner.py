"""The work of a run: evaluate the shards that are not there yet, here or on a cluster, and publish each."""

from __future__ import annotations

import contextlib
import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from hockeystick.sweep.errors import CellError
from hockeystick.sweep.plan.functions import printer
from hockeystick.sweep.running.local import Shards
from hockeystick.sweep.running.schedule import Schedule
from hockeystick.sweep.running.summary import Progress, Summary
from hockeystick.sweep.store.ledger import Written
from hockeystick.sweep.store.parquet_part import Counts, DamagedPartError, Part
from hockeystick.sweep.store.store import Store

if TYPE_CHECKING:
    import distributed

READERS = 8  # threads that read the parts of an earlier run

logger = logging.getLogger("hockeystick.sweep")


class Runner:
    """One run: what is computed, and what it counts."""

    def __init__(
        self,
        store: Store,
        num_threads: int | None,
        progress: Progress,
        client: distributed.Client | None,
        *,
        strict: bool,
    ) -> None:
        self.store = store
        self.plan = store.plan
        self.num_threads = num_threads
        self.progress = progress
        self.client = client
        self.strict = strict
        self.counts = Counts()
        self.damaged: list[str] = []
        self.computed_rows = 0
        self.compute_seconds = 0.0
        self.write_seconds = 0.0

    def go(self) -> None:
        """Take stock of the parts that are there, then compute and write the others."""
        self.waiting = Schedule(self.plan, self.missing())
        try:
            self.check(self.counts.first_error)
            self.report()
            if not len(self.waiting):
                return
            if self.client is None:
                shards = Shards(
                    self.store, self.waiting, self.num_threads, lambda shard: self.check(shard.first_error())
                )
                shards.go(self.written)
            else:
                self.on_cluster(self.client)
        except CellError as error:
            message = f"{error}; {self.counts.rows:,} cells are kept"
            raise CellError(message) from None

    def on_cluster(self, client: distributed.Client) -> None:
        """Have the shards computed, and write them here as they arrive."""
        from hockeystick.sweep.running import cluster  # noqa: PLC0415 - Dask is asked for when first needed

        arriving = cluster.parts(client, self.store, self.waiting, self.num_threads, strict=self.strict)
        with ThreadPoolExecutor(max_workers=1) as writer, contextlib.closing(arriving) as parts:
            pending: Future[None] | None = None
            for part in parts:
                self.check(part.counts.first_error)
                if pending:
                    pending.result()
                pending = writer.submit(self.publish, part)
            if pending:
                pending.result()
        self.check_seen()

    def check_seen(self) -> None:
        """Refuse to call a table whole of which workers have written parts that are not to be seen from here."""
        unseen = self.store.unseen()
        if unseen:
            self.counts.rows -= sum(len(self.plan.shard(index)) for index in unseen)
            names = ", ".join(self.store.name(index) for index in unseen[:3])
            message = f"{len(unseen):,} parts that workers wrote are not in {self.store.folder}/cells: {names}"
            raise OSError(message)

    def missing(self) -> list[int]:
        """Return the shards without a whole part, and count the others, some at a time."""
        whole = set()
        present = self.store.present()
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
            return self.store.read(index)
        except DamagedPartError as error:
            self.damaged.append(f"{self.store.folder}/cells/{self.store.name(index)}: {error}")
            logger.warning("%s; it is computed anew", self.damaged[-1])
            return None

    def check(self, error: tuple[int, str] | None) -> None:
        """End a strict run at a cell with an error."""
        if self.strict and error:
            columns = self.plan.axis_columns(np.array([error[0]]))
            inputs = ", ".join(f"{name} = {column[0]}" for name, column in columns.items())
            message = f"cell {error[0]} ({inputs}): {error[1]}"
            raise CellError(message)

    def publish(self, part: Part | Written) -> None:
        """Write a part, in the writer's thread."""
        started = time.perf_counter()
        self.store.write(part)
        self.written(part, time.perf_counter() - started + (part.write_seconds if isinstance(part, Written) else 0.0))

    def written(self, part: Part | Written, seconds: float) -> None:
        """Count a part that is in its place, and tell how far the run is."""
        self.write_seconds += seconds
        self.compute_seconds += part.compute_seconds
        self.computed_rows += part.counts.rows
        self.counts.add(part.counts)
        self.report()

    def report(self) -> None:
        """Tell how far the run is."""
        self.progress(self.counts.rows, self.store.num_cells, self.waiting.seconds_left())

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
            first_error=_told(self.counts.first_error),
            damaged=tuple(sorted(self.damaged)),
            warnings=tuple(self.counts.warnings),
            share=str(self.store.share or ""),
            writers=str(self.store.ledger),
            printers={output.column: printer(output.function.name) for output in self.plan.outputs},
        )


def _told(error: tuple[int, str] | None) -> str:
    return f"cell {error[0]}: {error[1]}" if error else ""

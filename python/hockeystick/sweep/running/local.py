"""Shards on the threads of this process: each thread computes, encodes and writes whole shards.

NumPy, Arrow, SHA-256 and the compiled functions release the interpreter's lock, so that threads share cells evenly. A plan of costly
functions, or of fewer shards than threads, runs one shard at a time and gives the functions the threads: the last shard, or
Ctrl-C, then need not wait for one thread that has many cells left.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from hockeystick._checks import thread_count
from hockeystick.sweep.plan.functions import COSTLY
from hockeystick.sweep.running.evaluate import Shard, evaluate
from hockeystick.sweep.running.schedule import Schedule
from hockeystick.sweep.store.folder import LocalFolder
from hockeystick.sweep.store.parquet_part import Part, encode
from hockeystick.sweep.store.store import Store

Finished = tuple[Part, float]  # the part and how long encoding and writing took


class Shards:
    """The shards that wait, on as many threads; they are under way together, at most one for each thread."""

    def __init__(
        self, store: Store, waiting: Schedule, num_threads: int | None, check: Callable[[Shard], None]
    ) -> None:
        self.store = store
        self.plan = store.plan
        self.waiting = waiting
        self.check = check  # raises where a strict run ends
        threads = thread_count(num_threads)
        costly = any(output.function.name in COSTLY for output in self.plan.outputs)
        self.at_once = 1 if costly or len(waiting) < threads else threads
        self.threads = threads if self.at_once == 1 else 1  # of a call
        # Connections of some remote file systems are no connections for several threads.
        self.writing = contextlib.nullcontext() if isinstance(store.folder, LocalFolder) else threading.Lock()
        self.ending = threading.Event()

    def go(self, written: Callable[[Part, float], None]) -> None:
        """Compute and write all, and tell of each here; of those, too, that were under way when another one failed."""
        flying: set[Future[Finished | None]] = set()
        with ThreadPoolExecutor(self.at_once) as pool:
            try:
                while self._submit(pool, flying):
                    for future in wait(flying, return_when=FIRST_COMPLETED).done:
                        done = future.result()
                        flying.remove(future)
                        if done:
                            self.waiting.finished(done[0].index, done[0].compute_seconds)
                            written(*done)
            finally:
                self.ending.set()
                for future in flying:
                    if not future.cancel() and future.exception() is None and (done := future.result()):
                        written(*done)

    def _submit(self, pool: ThreadPoolExecutor, flying: set[Future[Finished | None]]) -> bool:
        """Keep every thread busy, and say whether any is."""
        while len(flying) < self.at_once and (index := self.waiting.next()) is not None:
            flying.add(pool.submit(self._one, index))
        return bool(flying)

    def _one(self, index: int) -> Finished | None:
        """Compute and write a shard, unless the run ends before it is written."""
        started = time.perf_counter()
        shard = evaluate(self.plan, self.plan.shard(index), self.threads)
        computed = time.perf_counter()
        self.check(shard)
        part = encode(self.plan, self.store.manifest, shard, computed - started)
        if self.ending.is_set():
            return None
        with self.writing:
            self.store.write(part)
        return part, time.perf_counter() - computed

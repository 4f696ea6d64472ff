"""Shards on the threads of this process: each thread computes, encodes and writes whole shards.

NumPy, Arrow, SHA-256 and the compiled functions release the interpreter's lock, so that threads run side by side. A plan of costly
functions, or of fewer shards than threads, runs one shard at a time and gives the functions the threads: the last shard, or
Ctrl-C, then need not wait for one thread that has many cells left.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable

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
        # A signal's exception may come at any moment, also with a lock of Python's executors held, or between taking from a
        # queue and counting that. So these queues are one step each, and the end waits for threads and not for counts.
        self.given: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self.landed: queue.SimpleQueue[Finished | BaseException | None] = queue.SimpleQueue()
        self.flying = 0  # given and not landed

    def go(self, written: Callable[[Part, float], None]) -> None:
        """Compute and write all, and tell of each here; of those, too, that were under way when another one failed."""
        threads = [threading.Thread(target=self._work) for _ in range(self.at_once)]
        try:
            for thread in threads:
                thread.start()
            while self._submit():
                self._count(self.landed.get(), written)
        finally:
            self.ending.set()
            for _ in threads:
                self.given.put(None)
            for thread in threads:
                if thread.is_alive():
                    thread.join()
            while not self.landed.empty():
                with contextlib.suppress(Exception):  # the first failure is the one that is told
                    self._count(self.landed.get(), written)

    def _submit(self) -> bool:
        """Keep every thread busy, and say whether any is."""
        while self.flying < self.at_once and (index := self.waiting.next()) is not None:
            self.flying += 1
            self.given.put(index)
        return self.flying > 0

    def _count(self, done: Finished | BaseException | None, written: Callable[[Part, float], None]) -> None:
        """Take note of a shard; raise what its thread raised."""
        self.flying -= 1
        if isinstance(done, BaseException):
            raise done
        if done:
            self.waiting.finished(done[0].index, done[0].compute_seconds)
            written(*done)

    def _work(self) -> None:
        """Do what is given, in a thread."""
        while (index := self.given.get()) is not None:
            self.landed.put(self._result(index))

    def _result(self, index: int) -> Finished | BaseException | None:
        """Return what became of a shard."""
        try:
            return self._one(index)
        except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
            return error

    def _one(self, index: int) -> Finished | None:
        """Compute and write a shard, unless the run ends before it is written."""
        if self.ending.is_set():
            return None
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

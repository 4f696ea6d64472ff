"""The compiled loops as a Python object: the states of some runs, advanced in pieces short enough for Ctrl-C."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import Array
from hockeystick.simulate.kernels import clients, loops
from hockeystick.simulate.kernels.core import words
from hockeystick.simulate.running.rule import BASE, HELPER, MAX_BYTES, MODEL, RELEASED, SLOTS, Data, UpdateRule

PIECE_SECONDS = 0.2  # of compiled work without a look at signals
ROUND_SECONDS = 1e-3  # from which it pays to give the clients of one run to several threads: handing out costs 1e-4
LONG_SECONDS = 0.1  # a round that takes longer does so by itself; a shorter one may have waited for a processor


class Engine:
    """The states of runs `first_run`, `first_run` + 1, ... of one rule; compiled loops let go of the GIL."""

    def __init__(self, rule: UpdateRule, seed: int, first_run: int, initial: Array, num_runs: int) -> None:
        self.rule, self.seed, self.first_run = rule, np.uint64(seed), first_run
        self.states: NDArray[np.float64] = np.zeros((num_runs, SLOTS, initial.shape[-1]))
        self.states[:, [MODEL, RELEASED, HELPER, BASE]] = np.atleast_2d(initial)[:, np.newaxis]
        self.failed = np.zeros(num_runs, np.int64)  # the round, from 1, in which a run became non-finite
        learnt = rule.rounds if rule.clip_rate > 0 else 0
        needed = 8 * num_runs * learnt
        if needed > MAX_BYTES:
            raise ValueError(
                f"num_runs={num_runs} and rounds={learnt} need {needed / 2**30:.3g} GiB for the clip norms of all rounds, "
                f"more than {MAX_BYTES >> 30}: make fewer runs at once, with first_run"
            )
        self.clip_norms = np.full((num_runs, learnt), np.nan)  # after each round, where they are learnt
        self.least, self.timed = math.inf, 0  # seconds of a round, in so many pieces that one thread made
        self.finished = 0  # rounds; between two pieces, states and failures are those after so many

    def _work(self, data: Data, at_once: int, first: int, last: int, sent: Array) -> clients.Work:
        """Return room for some of the runs, and the runs."""
        runs = slice(first, last)
        mine = clients.Progress(
            self.first_run + first, self.states[runs], self.clip_norms[runs], self.failed[runs], sent
        )
        return loops.workspace(data, self.rule, at_once, mine)

    def _loop(self, data: Data, work: clients.Work, *settings: int) -> None:
        given = [words(one) for one in (data, self.rule, work)]
        first, last, *part = settings
        loops.advance(*(one.ctypes.data for one in given), self.seed, first, last, *part)

    def prepare(self, data: Data) -> None:
        """Compile what the rule needs, or load it where that is done."""
        self._loop(data, self._work(data, 1, 0, 1, np.empty((0, self.states.shape[2]))), 0, 0, loops.WHOLE, 0, 1)

    def _runs(self, data: Data, first: int, last: int, pool: Executor, threads: int) -> None:
        """Run rounds [first, last); threads share the runs."""
        blocks = min(threads, len(self.states))
        edges = [block * len(self.states) // blocks for block in range(blocks + 1)]
        grouped = loops.FASTER_HERE and len(self.states) > 1 and loops.can_group(data, self.rule)
        none = np.empty((0, self.states.shape[2]))

        def advance(a: int, b: int) -> None:
            work = self._work(data, loops.RUNS_AT_ONCE if grouped else 1, a, b, none)
            self._loop(data, work, first, last, loops.WHOLE, 0, 1)

        list(pool.map(advance, edges[:-1], edges[1:]))

    def _clients(self, data: Data, first: int, last: int, pool: Executor, threads: int) -> None:
        """Run rounds [first, last) of the only run; threads share the clients."""
        sent = np.empty((data.offsets.size - 1, self.states.shape[2]))
        works = [self._work(data, 1, 0, 1, sent) for _ in range(threads)]

        def advance(rnd: int, part: int, k: int, step: int) -> None:
            self._loop(data, works[k], rnd, rnd + 1, part, k, step)

        for rnd in range(first, last):
            list(pool.map(partial(advance, rnd, loops.SEND), range(threads), [threads] * threads))
            advance(rnd, loops.COLLECT, 0, 1)

    def advance(  # noqa: PLR0917
        self, data: Data, first: int, last: int, pool: Executor, threads: int, done: Callable[[int], object]
    ) -> None:
        """Run rounds [first, last) in pieces, telling the length of each."""
        piece = 1
        alone = len(self.states) == 1 and threads > 1 and data.offsets.size > 2
        while first < last and not self.failed.all():
            length = min(piece, last - first)
            shared = alone and self.least > ROUND_SECONDS and self.timed >= (1 if self.least > LONG_SECONDS else 3)
            start = time.perf_counter()
            (self._clients if shared else self._runs)(data, first, first + length, pool, threads)
            seconds = time.perf_counter() - start
            if not shared:
                self.least, self.timed = min(self.least, seconds / length), self.timed + 1
            piece = max(1, min(16 * length, int(length * PIECE_SECONDS / max(seconds, 1e-9))))
            first += length
            self.finished = first
            done(length)


def evaluate(data: Data, models: Array, *, classes: bool) -> tuple[Array, Array]:
    """Return mean loss and accuracy of models, shape (n, dimension); NaN where a model is not finite."""
    loss, correct = np.zeros(len(models)), np.zeros(len(models) if classes else 0)
    given = words(data)
    loops.evaluate(given.ctypes.data, np.ascontiguousarray(models), loss, correct)
    lost = ~np.isfinite(models).all(axis=1)
    loss[lost] = np.nan
    if classes:
        correct[lost] = np.nan
    return loss, correct

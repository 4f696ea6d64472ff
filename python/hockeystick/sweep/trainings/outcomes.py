"""What comes of a training: computed once, and kept for the other columns of the same cell."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hockeystick import simulate
from hockeystick._checks import Array
from hockeystick.simulate.problem.problem import Problem
from hockeystick.sweep.trainings.settings import Training, Value, training

MOST_KEPT = 4096  # outcomes, a few numbers for each run


@dataclass(frozen=True, eq=False)
class Outcome:
    """Numbers of the last model of every run, shape (num_runs,) each."""

    loss: Array  # on the records trained on
    test_loss: Array
    accuracy: Array | None  # None where records have no classes
    failure: str = ""  # why there are no numbers


@dataclass(frozen=True, eq=False)
class Distances:
    """How far replacing one record moves the model of every run, shape (num_runs,) each."""

    total: Array
    data: Array
    model: Array


class _Kept:
    """The latest outcomes. Two threads that need the same one at the same moment both compute it, to the same bits."""

    def __init__(self) -> None:
        self.values: OrderedDict[Hashable, Any] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        with self.lock:
            if key in self.values:
                self.values.move_to_end(key)
                return self.values[key]
        value = compute()
        with self.lock:
            self.values[key] = value
            while len(self.values) > MOST_KEPT:
                self.values.popitem(last=False)
        return value


_KEPT = _Kept()


def _key(what: str, settings: Mapping[str, Value]) -> Hashable:
    return what, *sorted(settings.items())


def outcome(settings: Mapping[str, Value], num_threads: int | None) -> Outcome:
    """Return what the runs of a training reach; refuse one of which a run does not stay finite."""
    told = training(settings)
    found: Outcome = _KEPT.get(_key("outcome", settings), lambda: _run(told, num_threads))
    if found.failure:
        # Told each time, so that what is heard does not depend on what was kept.
        warnings.warn(found.failure, RuntimeWarning, stacklevel=2)
        raise ValueError(found.failure)
    return found


def _run(told: Training, num_threads: int | None) -> Outcome:
    result = simulate.run(
        told.algorithm,
        told.problem,
        rounds=told.rounds,
        seed=told.seed,
        num_runs=told.num_runs,
        num_threads=num_threads,
        progress=False,
    )
    if result.stopped == "interrupted":  # what is there is no outcome
        raise KeyboardInterrupt
    lost = result.diverged[result.diverged > 0]
    if lost.size:
        text = f"{lost.size} of {told.num_runs} runs became non-finite, the first in round {lost.min()}"
        return Outcome(np.empty(0), np.empty(0), None, text)
    classes = told.problem.classifies
    return Outcome(result.loss()[-1], result.loss(told.test)[-1], result.accuracy(told.test)[-1] if classes else None)


def distances(settings: Mapping[str, Value], num_threads: int | None) -> Distances:
    """Return how far the last models of two trainings are apart, one record of which differs."""
    told = training(settings)

    def compute() -> Distances:
        gap = simulate.sensitivity(
            told.algorithm,
            told.problem,
            adjacent(told.problem),
            rounds=told.rounds,
            seed=told.seed,
            num_runs=told.num_runs,
            record_every=told.rounds,
            num_threads=num_threads,
            progress=False,
        )
        return Distances(gap.total[-1], gap.data[-1], gap.model[-1])

    found: Distances = _KEPT.get(_key("distances", settings), compute)
    if not np.isfinite(found.total).all():
        msg = f"{(~np.isfinite(found.total)).sum()} of {told.num_runs} pairs of runs became non-finite"
        raise ValueError(msg)
    return found


def adjacent(problem: Problem) -> Problem:
    """Return the problem with the features of its first record negated; refuse one whose gradients that leaves as they are.

    The label is kept: the gradient of a logistic, hinge, absolute or squared loss stays as it is if both are turned around.
    """
    features, label = problem.data.features[0], float(problem.data.labels[0])
    even = (
        problem.loss in ("least_squares", "absolute") and label == 0.0
    )  # the loss is an even function of the features
    if even or not features.any():
        which = "label" if features.any() else "features"
        msg = f"the first record must change if its features are turned around: its {which} must not be 0 with record_loss = {problem.loss!r}"
        raise ValueError(msg)
    return problem.replace_record(0, -features, label)

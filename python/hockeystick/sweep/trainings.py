"""Trainings in a sweep: their columns, what is refused of a plan with them before its first cell runs, and a plan of one alone.

The arguments of a column are the settings of `training_settings`; each may be an array, words aside. A mean over runs is an estimate on
these data and these seeds; `training.epsilon` is a certified bound, which no run enters. What comes of a training is computed once, and
kept for the other columns of the same cell.
"""

from __future__ import annotations

import functools
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from hockeystick import simulate
from hockeystick._checks import DELTA, Array, choice, scalar
from hockeystick.federated.released_models import VIEWS, View
from hockeystick.simulate.problem.problem import Problem
from hockeystick.sweep.errors import PlanError, must, require
from hockeystick.sweep.functions import TRAININGS
from hockeystick.sweep.plan import Output, Plan, only, read
from hockeystick.sweep.plan import scalar as plan_scalar
from hockeystick.sweep.training_settings import OF_EPSILON, Training, Value, kinds, training

CONFIDENCE = 0.95  # of an interval of a mean
MAX_KEPT = 4096  # outcomes, a few numbers for each run
SECTIONS = ("title", "fixed")  # of a plan of one training

Settings = Mapping[str, Value]
Hashed = tuple[tuple[str, Value], ...]  # the same, by which what came of a training is kept
One = Callable[[Settings, "int | None"], Any]


def loss(*, num_threads: int | None = None, on_error: str = "raise", **settings: Any) -> Array:
    """Return the loss of the released model after the last round, a mean over runs and over the records trained on.

    Returns
    -------
    float64
        An estimate.
    """
    return _each(lambda cell, threads: outcome(cell, threads).loss.mean(), num_threads, on_error, settings)


def loss_on_test(*, num_threads: int | None = None, on_error: str = "raise", **settings: Any) -> Array:
    """Return the loss of the released model after the last round, a mean over runs and over the test records.

    Returns
    -------
    float64
        An estimate.
    """
    return _each(lambda cell, threads: outcome(cell, threads).test_loss.mean(), num_threads, on_error, settings)


def accuracy(*, num_threads: int | None = None, on_error: str = "raise", **settings: Any) -> Array:
    """Return the share of test records whose class the released model predicts after the last round, a mean over runs.

    Returns
    -------
    float64
        An estimate, in [0, 1].
    """
    return _each(lambda cell, threads: _accuracies(cell, threads).mean(), num_threads, on_error, settings)


def loss_half_width(*, num_threads: int | None = None, on_error: str = "raise", **settings: Any) -> Array:
    """Return half the width of the 95 % interval of the loss by Student's t over runs.

    Returns
    -------
    float64
        Of the mean of so many runs; data and split are held.
    """
    return _each(lambda cell, threads: half_width(outcome(cell, threads).loss), num_threads, on_error, settings)


def accuracy_half_width(*, num_threads: int | None = None, on_error: str = "raise", **settings: Any) -> Array:
    """Return half the width of the 95 % interval of the accuracy by Student's t over runs.

    Returns
    -------
    float64
        Of the mean of so many runs; data and split are held.
    """
    return _each(lambda cell, threads: half_width(_accuracies(cell, threads)), num_threads, on_error, settings)


def sensitivity(*, num_threads: int | None = None, on_error: str = "raise", **settings: Any) -> Array:
    """Return how far the last iterates of two trainings are apart that share all noise and differ in one record, a mean over runs.

    Returns
    -------
    float64
        An estimate for one pair of problems: the first record's features are turned around, and its label is kept. No bound.
    """
    return _each(lambda cell, threads: distances(cell, threads).total[-1].mean(), num_threads, on_error, settings)


def data_sensitivity(*, num_threads: int | None = None, on_error: str = "raise", **settings: Any) -> Array:
    """Return how far one record moves the model in the last round from a common start, a mean over runs.

    Returns
    -------
    float64
        An estimate for the pair of problems of `training.sensitivity`. No bound.
    """
    return _each(lambda cell, threads: distances(cell, threads).data[-1].mean(), num_threads, on_error, settings)


def model_sensitivity(*, num_threads: int | None = None, on_error: str = "raise", **settings: Any) -> Array:
    """Return how far apart the last round leaves the models of two trainings on one problem, a mean over runs.

    Returns
    -------
    float64
        An estimate for the pair of problems of `training.sensitivity`. No bound.
    """
    return _each(lambda cell, threads: distances(cell, threads).model[-1].mean(), num_threads, on_error, settings)


def epsilon(
    *, delta: Any, released: str | None = None, num_threads: int | None = None, on_error: str = "raise", **settings: Any
) -> Array:
    """Return the certified epsilon of what a training releases, as `Algorithm.guarantee` has it; a note says what that is.

    Parameters
    ----------
    delta : float
        In [0, 1).
    released : str
        What may be seen of a run; what the algorithm is meant to release if not given.

    Returns
    -------
    float64
        A certified upper bound for one of the runs, by itself.
    """
    return _each(_epsilon, num_threads, on_error, {**settings, "delta": delta, "released": released})


def _epsilon(cell: Settings, threads: int | None) -> float:
    del threads
    told = training({name: value for name, value in cell.items() if name not in OF_EPSILON})
    view: Any = cell.get("released")
    guarantee = told.algorithm.guarantee(told.problem, rounds=told.rounds, released=view)
    value = float(guarantee.epsilon(told.rounds, float(cell["delta"])))
    note = f"covers {guarantee.released}, adjacency {guarantee.adjacency}, by {guarantee.source}"
    warnings.warn(note, UserWarning, stacklevel=2)
    return value


def _accuracies(cell: Settings, threads: int | None) -> Array:
    found = outcome(cell, threads)
    if found.accuracy is None:
        raise ValueError("accuracy is for losses of classes: logistic, softmax, network, hinge")
    return found.accuracy


def half_width(values: Array) -> float:
    """Return half the width of the 95 % interval of the mean of independent values, by Student's t."""
    require(values.size >= 2, f"num_runs must be at least 2 for an interval, not {values.size}", ValueError)
    if values.min() == values.max():  # the deviation of equal numbers is not 0 but for rounding
        return 0.0
    quantile = float(stdtrit(values.size - 1, (1 + CONFIDENCE) / 2))
    return quantile * float(values.std(ddof=1)) / math.sqrt(values.size)


def _each(one: One, num_threads: int | None, on_error: Any, settings: Mapping[str, Any]) -> Array:
    """Return the value of every cell; NaN for what is refused, if asked."""
    strict = not isinstance(on_error, list) and choice("on_error", on_error, ("raise", "nan")) == "raise"
    given = {name: np.asarray(value) for name, value in settings.items() if value is not None}
    shape = np.broadcast_shapes(*(array.shape for array in given.values()))
    values = np.full(shape, np.nan)
    for at in np.ndindex(shape):
        cell = {name: np.broadcast_to(array, shape)[at].item() for name, array in given.items()}
        try:
            values[at] = one(cell, num_threads)
        except (ValueError, TypeError):
            if strict:
                raise
    return values[()]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Numbers of the last model of every run, shape (num_runs,) each."""

    loss: Array  # on the records trained on
    test_loss: Array
    accuracy: Array | None  # None where records have no classes


def outcome(settings: Mapping[str, Value], num_threads: int | None) -> Outcome:
    """Return what the runs of a training reach; refuse one of which a run does not stay finite."""
    found = _run(tuple(sorted(settings.items())), num_threads)
    if isinstance(found, str):
        # Told each time, so that what is heard does not depend on what was kept.
        warnings.warn(found, RuntimeWarning, stacklevel=2)
        raise ValueError(found)
    return found


@functools.lru_cache(maxsize=MAX_KEPT)
def _run(settings: Hashed, num_threads: int | None) -> Outcome | str:
    """Return what the runs reach, or why there are no numbers."""
    told = training(dict(settings))
    result = simulate.run(told.algorithm, told.problem, **_how(told, num_threads))
    if result.stopped == "interrupted":  # what is there is no outcome
        raise KeyboardInterrupt
    lost = result.diverged[result.diverged > 0]
    if lost.size:
        return f"{lost.size} of {told.num_runs} runs became non-finite, the first in round {lost.min()}"
    classes = told.problem.classifies
    return Outcome(result.loss()[-1], result.loss(told.test)[-1], result.accuracy(told.test)[-1] if classes else None)


def distances(settings: Mapping[str, Value], num_threads: int | None) -> simulate.Sensitivity:
    """Return how far the last models of two trainings are apart, one record of which differs."""
    found = _distances(tuple(sorted(settings.items())), num_threads)
    lost = ~np.isfinite(found.total[-1])
    require(not lost.any(), f"{lost.sum()} of {lost.size} pairs of runs became non-finite", ValueError)
    return found


@functools.lru_cache(maxsize=MAX_KEPT)
def _distances(settings: Hashed, num_threads: int | None) -> simulate.Sensitivity:
    told = training(dict(settings))
    other = adjacent(told.problem)
    return simulate.sensitivity(
        told.algorithm, told.problem, other, record_every=told.rounds, **_how(told, num_threads)
    )


def _how(told: Training, num_threads: int | None) -> dict[str, Any]:
    given = {"rounds": told.rounds, "seed": told.seed, "num_runs": told.num_runs}
    return {**given, "num_threads": num_threads, "progress": False}


def adjacent(problem: Problem) -> Problem:
    """Return the problem with the features of its first record negated; refuse one whose gradients that leaves as they are.

    The label is kept: the gradient of a logistic, hinge, absolute or squared loss stays as it is if both are turned around.
    """
    features, label = problem.data.features[0], float(problem.data.labels[0])
    even = problem.loss in ("least_squares", "absolute") and label == 0.0  # as a function of the features
    rule = f"its {'label' if features.any() else 'features'} must not be 0 with record_loss = {problem.loss!r}"
    changes = features.any() and not even
    require(changes, f"the first record must change if its features are turned around: {rule}", ValueError)
    return problem.replace_record(0, -features, label)


def check_trainings(plan: Plan) -> None:
    """Refuse a plan with a training that cannot run: a setting is missing, unused or outside its domain, or memory does not suffice."""
    outputs = [output for output in plan.outputs if output.function.name in TRAININGS]
    from hockeystick.simulate.running.engine import Engine  # noqa: PLC0415 - numba is missed before anything is written

    used, given, seen = {*OF_EPSILON}, set[str](), set[Any]()
    for cell, arguments in _cells(plan, outputs):
        key = tuple(sorted(arguments.items()))
        if key in seen:
            continue
        seen.add(key)
        try:
            told = training(arguments)
        except (ValueError, TypeError) as error:
            raise PlanError(f"{plan.named(cell)}: {error}") from error
        used |= told.used
        given |= {*arguments}
        # Compiled here, once, for all workers that begin together.
        Engine(told.algorithm._rule(told.problem, 1), 0, 0, told.problem.initial(), 1).prepare(told.problem.data)
    only(used, sorted(given), "must be left out: no algorithm and no data of this plan have it")


def _cells(plan: Plan, outputs: list[Output]) -> Iterator[tuple[int, dict[str, Value]]]:
    """Yield each cell with the arguments of each output that differ from those of another."""
    for cell in range(plan.num_cells):
        shared = plan.fixed | plan.inputs(cell)
        for output in outputs:
            taken = {*output.function.parameters} - {*OF_EPSILON}
            yield cell, {name: value for name, value in (shared | output.arguments).items() if name in taken}


def load_one(plan: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[Training, float | None, View | None]:
    """Return the training of a TOML file or of a mapping, and of what its epsilon is asked: at which delta, if at all, and who sees what."""
    source = read(plan)
    has = f"a plan of one training has {' and '.join(SECTIONS)}; hockeystick sweep run takes plans of many"
    only(SECTIONS, source, f"must be left out: {has}")
    fixed: Any = source.get("fixed")
    require(isinstance(fixed, Mapping), must("fixed", "be a table with the settings of a training", fixed))
    settings = {name: plan_scalar(f"fixed.{name}", value) for name, value in fixed.items()}
    delta, released = (settings.pop(name, None) for name in OF_EPSILON)
    others = ", ".join([*OF_EPSILON, *sorted(kinds())])
    only(kinds(), settings, f"is no setting of a training; they are {others}", "fixed.")
    try:
        told = training(settings)
        at = None if delta is None else scalar("delta", delta, *DELTA)  # type: ignore[arg-type]
        view: Any = None if released is None else choice("released", str(released), VIEWS)
    except (ValueError, TypeError) as error:
        raise PlanError(f"fixed: {error}") from error
    only(told.used, settings, f"must be left out: neither {settings['algorithm']} nor these data have it", "fixed.")
    return told, at, view

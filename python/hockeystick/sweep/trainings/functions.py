"""The columns that a training gives. Arguments are the settings of `settings`; each may be an array, words aside.

A mean over runs is an estimate on these data and these seeds; `training.epsilon` is a certified bound, which no run enters.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import stdtrit

from hockeystick._checks import Array, choice
from hockeystick.sweep.trainings.outcomes import distances, outcome
from hockeystick.sweep.trainings.settings import OF_EPSILON, Value, training

CONFIDENCE = 0.95  # of an interval of a mean

Settings = Mapping[str, Value]
One = Callable[[Settings, "int | None"], float]


def loss(*, num_threads: int | None = None, on_error: str = "raise", **settings: Any) -> Array:
    """Return the loss of the released model after the last round, a mean over runs and over the records trained on.

    Returns
    -------
    float64
        An estimate.
    """
    return _each(lambda cell, threads: float(outcome(cell, threads).loss.mean()), num_threads, on_error, settings)


def loss_on_test(*, num_threads: int | None = None, on_error: str = "raise", **settings: Any) -> Array:
    """Return the loss of the released model after the last round, a mean over runs and over the test records.

    Returns
    -------
    float64
        An estimate.
    """
    return _each(lambda cell, threads: float(outcome(cell, threads).test_loss.mean()), num_threads, on_error, settings)


def accuracy(*, num_threads: int | None = None, on_error: str = "raise", **settings: Any) -> Array:
    """Return the share of test records whose class the released model predicts after the last round, a mean over runs.

    Returns
    -------
    float64
        An estimate, in [0, 1].
    """
    return _each(lambda cell, threads: float(_accuracies(cell, threads).mean()), num_threads, on_error, settings)


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
    return _each(lambda cell, threads: float(distances(cell, threads).total.mean()), num_threads, on_error, settings)


def data_sensitivity(*, num_threads: int | None = None, on_error: str = "raise", **settings: Any) -> Array:
    """Return how far one record moves the model in the last round from a common start, a mean over runs.

    Returns
    -------
    float64
        An estimate for the pair of problems of `training.sensitivity`. No bound.
    """
    return _each(lambda cell, threads: float(distances(cell, threads).data.mean()), num_threads, on_error, settings)


def model_sensitivity(*, num_threads: int | None = None, on_error: str = "raise", **settings: Any) -> Array:
    """Return how far apart the last round leaves the models of two trainings on one problem, a mean over runs.

    Returns
    -------
    float64
        An estimate for the pair of problems of `training.sensitivity`. No bound.
    """
    return _each(lambda cell, threads: float(distances(cell, threads).model.mean()), num_threads, on_error, settings)


def epsilon(
    *,
    delta: Any,
    released: str | None = None,
    num_threads: int | None = None,
    on_error: str = "raise",
    **settings: Any,
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
        msg = "accuracy is for losses of classes: logistic, softmax, network, hinge"
        raise ValueError(msg)
    return found.accuracy


def half_width(values: Array) -> float:
    """Return half the width of the 95 % interval of the mean of independent values, by Student's t."""
    if values.size < 2:
        msg = f"num_runs must be at least 2 for an interval, not {values.size}"
        raise ValueError(msg)
    if values.min() == values.max():  # the deviation of equal numbers is not 0 but for rounding
        return 0.0
    quantile = float(stdtrit(values.size - 1, (1 + CONFIDENCE) / 2))
    return quantile * float(values.std(ddof=1)) / math.sqrt(values.size)


def _each(one: One, num_threads: int | None, on_error: str, settings: Mapping[str, Any]) -> Array:
    """Return the value of every cell; NaN for what is refused, if asked."""
    strict = choice("on_error", on_error, ("raise", "nan")) == "raise"
    words = {name: value for name, value in settings.items() if value is None or isinstance(value, str)}
    numbers = {name: np.asarray(value) for name, value in settings.items() if name not in words}
    shape = np.broadcast_shapes(*(array.shape for array in numbers.values()))
    wide = {name: np.broadcast_to(array, shape) for name, array in numbers.items()}
    values = np.full(shape, np.nan)
    for at in np.ndindex(shape):
        cell = words | {name: array[at].item() for name, array in wide.items()}
        try:
            values[at] = one({name: value for name, value in cell.items() if value is not None}, num_threads)
        except (ValueError, TypeError):
            if strict:
                raise
    return values[()]

"""Where runs start: one model for all, one for each, or one drawn for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Array, real
from hockeystick._checks.shown import shown
from hockeystick.simulate.problem.problem import Problem

__all__ = ["Start", "check_initial", "starting_models"]

Start: TypeAlias = "ArrayLike | Callable[[np.random.Generator], ArrayLike] | None"


def check_initial(initial: ArrayLike | None, problem: Problem) -> Array:
    """Return a finite model of the problem's dimension."""
    if initial is None:
        return problem.initial()
    return _finite("initial", initial, (problem.dimension,))


def starting_models(initial: Start, problem: Problem, seed: int, first_run: int, num_runs: int) -> Array:
    """Return the model that every run starts from, shape (num_runs, dimension), or one for all, shape (dimension,).

    A law draws by a generator of the seed and the number of the run, so that a run starts from the same model whichever others there
    are. Its words are not those of the noise, whose streams have the seed as their key.
    """
    if callable(initial):
        draws = (initial(np.random.default_rng([seed, run, 0x6D75])) for run in range(first_run, first_run + num_runs))
        return np.stack([_finite("initial(generator)", draw, (problem.dimension,)) for draw in draws])
    if initial is None or real("initial", initial).ndim < 2:
        return check_initial(initial, problem)
    return _finite("initial", initial, (num_runs, problem.dimension))


def _finite(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    model = real(name, value)
    if model.shape != shape or not np.isfinite(model).all():
        msg = f"{name} must be finite and of shape {shape}, not {shown(model)}"
        raise ValueError(msg)
    return model

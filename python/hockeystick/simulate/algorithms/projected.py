"""Projected noisy SGD (Asoodeh, Diaz and Calmon 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import hockeystick._core as core
from hockeystick._checks import Array, at_most, boolean_scalar, choice, count_scalar
from hockeystick._numeric.rounding import GAUSSIAN_TAIL
from hockeystick.federated.released_models import (
    WORDS,
    Guarantee,
    NoGuaranteeError,
    View,
    by_bisection,
    by_composition,
    by_later_rounds,
    never_zero,
    smallest_epsilon,
)
from hockeystick.last_iterate import best as smallest_bound
from hockeystick.last_iterate import best_cyclic
from hockeystick.mechanisms import Gaussian, Laplace
from hockeystick.simulate.algorithms.algorithm import Algorithm, Views
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.participation import Cyclic, Participation
from hockeystick.simulate.running.rule import GAUSSIAN, LAPLACE, LAST, STOPPED, UpdateRule

__all__ = ["ProjectedNoisySGD"]

MAX_REFINED = 300  # numbers of later rounds for which all bounds are asked; they take longer the more rounds there are


@dataclass(frozen=True, kw_only=True)
class ProjectedNoisySGD(Algorithm):
    """One record a round, in the order of the data: w = Proj(w - learning_rate (g + noise)).

    Parameters
    ----------
    learning_rate : float
        Step size, positive.
    clip_norm : float
        Of each record's gradient, positive; infinite for no clipping.
    noise_std : float
        Of the noise added to the gradient; for Laplace noise its scale.
    noise : {"gaussian", "laplace"}
        Which noise; Laplace noise is for models that are one number.
    radius : float
        Of the ball that models are projected onto.
    random_stop : bool
        Whether the released model is the one after a uniformly random round.

    Notes
    -----
    `guarantee` is that of the record that loses most: by composition, if all models may be seen; for a random stop within one pass, that
    of the only model released. If the last model alone is seen (``released="last_model"``), it is `last_iterate.best_cyclic`, after any number of passes; with
    ``index=`` that of one record, by its number from 1, in the first: `last_iterate.best` with ``quick=True``, which is never above Theorems 3 and 4.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> simulate.ProjectedNoisySGD(learning_rate=0.5, clip_norm=1.0, noise_std=2.0, radius=1.0).noise
    'gaussian'
    """

    noise: Literal["gaussian", "laplace"] = "gaussian"
    random_stop: bool = False

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        choice("noise", self.noise, ("gaussian", "laplace"))
        self._check(random_stop=boolean_scalar)

    @property
    def _records(self) -> Participation:
        return Cyclic(1)

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        self._one_silo(problem)
        return self._plain_rule(
            problem,
            rounds,
            noise=LAPLACE if self.noise == "laplace" else GAUSSIAN,
            release=STOPPED if self.random_stop else LAST,
        )

    def _every_model(self, problem: Problem) -> Guarantee:
        if self.noise == "laplace" and problem.dimension > 1:
            raise ValueError(f"Laplace noise is certified for models that are one number, not {problem.dimension}")
        multiplier = self._noises(problem)[0] / self.clip_norm
        step = Laplace(multiplier) if self.noise == "laplace" else Gaussian(multiplier)
        return by_composition(
            [("replace", lambda t: (step, -(-t // problem.num_records)))],
            "all models, for the record that loses most",
            "Accountant; each record is used once in a pass (last_iterate.best for what later rounds hide)",
        )

    def _views(self, problem: Problem, rounds: int) -> Views:
        every = self._every_model(problem)
        one: Views = {"random_model": lambda: self._one_model(problem, rounds, None)}
        if self.random_stop:
            return (one if rounds <= problem.num_records else {}) | {"every_model": lambda: every}
        return {"every_model": lambda: every, "last_model": lambda: self._last_model(problem)}

    def _views_of(self, index: int, problem: Problem, rounds: int) -> Views:
        every = self._every_model(problem)
        index = count_scalar("index", index)
        at_most("index", index, "num_records", problem.num_records)
        one: View = "random_model" if self.random_stop else "last_model"
        return {one: lambda: self._one_model(problem, rounds, index), "every_model": lambda: every}

    def _last_model(self, problem: Problem) -> Guarantee:
        """Return the guarantee of the last model for the record of the last round, which leaks most (docs/core/federated.md)."""
        if self.noise == "laplace" or not self._is_smooth(problem):
            raise NoGuaranteeError(
                "last_iterate.best_cyclic needs Gaussian noise, and short steps on smooth convex losses whose gradients are not clipped"
            )

        def delta_of(rounds: int, eps: float) -> float:
            period = problem.num_records
            bound = best_cyclic(
                eps,
                index=(rounds - 1) % period + 1,
                period=period,
                rounds=rounds,
                noise_std=self._noises(problem)[0],
                **self._descent(problem),
            )
            return float(bound.delta)

        return Guarantee("replace", WORDS["last_model"], "last_iterate.best_cyclic", by_bisection(delta_of))

    def _is_smooth(self, problem: Problem) -> bool:
        """Tell whether the theorems on smooth convex losses apply: short steps along gradients that clipping leaves as they are, or constant as they were."""
        if not problem.convex or problem.smoothness is None:
            return False
        if problem.smoothness > 0.0 and (problem.lipschitz is None or problem.lipschitz > self.clip_norm):
            return False
        return self.learning_rate * (problem.smoothness + problem.strong_convexity) <= 2.0

    def _descent(self, problem: Problem) -> dict[str, Any]:
        """Return the arguments that the bounds of `last_iterate` share."""
        return {
            "learning_rate": self.learning_rate,
            "lipschitz": self.clip_norm,
            "smoothness": problem.smoothness,
            "strong_convexity": problem.strong_convexity,
            "diameter": 2.0 * self.radius,
        }

    def _one_model(self, problem: Problem, rounds: int, index: int | None) -> Guarantee:
        """Return the guarantee of the only model released, for one record or for the worst."""
        if index is not None and rounds > problem.num_records:
            raise NoGuaranteeError(
                f"nothing is certified for index={index} in more rounds ({rounds}) than records ({problem.num_records})"
            )

        def delta_of(eps: float, t: int) -> float:
            if not self.random_stop and index is not None:
                return float(self._later_deltas(problem, eps, np.array([t - index]))[0])
            deltas = by_later_rounds(self._later_deltas(problem, eps, np.arange(t)), rounds)
            return float(deltas.max() if index is None else deltas[t - index])

        def epsilon(t: int, delta: float) -> float:
            at_most("rounds", t, "those planned", rounds)
            unused = index is not None and index > t
            return 0.0 if unused else smallest_epsilon(lambda eps: delta_of(eps, t), delta)

        seen = "the model after a uniformly random round only" if self.random_stop else "the last model only"
        whose = "the record that loses most" if index is None else f"record {index}"
        return Guarantee(
            "replace", f"{seen}, for {whose}", "last_iterate.best, after each number of later rounds", epsilon
        )

    def _later_deltas(self, problem: Problem, eps: float, later: NDArray[np.int64]) -> Array:
        """Return upper bounds of delta for records that so many rounds follow."""
        noise = self._noises(problem)[0]
        theta = core.laplace_theta if self.noise == "laplace" else core.theta
        image = 2.0 * self.radius + 2.0 * self.learning_rate * self.clip_norm
        contracted = float(theta(eps, image / (self.learning_rate * noise)))
        first = float(theta(eps, 2.0 * self.clip_norm / noise))
        # Laplace noise has zeros that are exact, those of Gaussian noise underflow
        positive = (self.noise == "gaussian") | ((first > 0) & ((contracted > 0) | (later == 0)))
        any_loss = never_zero(first * contracted**later * (1.0 + GAUSSIAN_TAIL * (64.0 + later.max())), positive)
        if not self._is_smooth(problem) or later.size > MAX_REFINED:
            return any_loss
        kind: dict[str, Any] = {"noise_scale" if self.noise == "laplace" else "noise_std": noise}
        bound = smallest_bound(
            eps,
            index=1 + later.max() - later,
            num_records=1 + later.max(),
            quick=True,  # some dozens of eps for each number of later rounds
            **kind,
            **self._descent(problem),
        )
        smaller: Array = np.minimum(bound.delta, any_loss)
        return smaller

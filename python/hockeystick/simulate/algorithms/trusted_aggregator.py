"""Federated learning with a trusted aggregator (Asoodeh, Chen, Calmon and Ozgur 2021, Algorithm 1)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

import hockeystick._core as core
from hockeystick._checks import FRACTION, Array, at_most, boolean_scalar, count_scalar, positive_scalar
from hockeystick._checks.shown import shown
from hockeystick.accounting.accountant import Accountant
from hockeystick.federated import best as smallest_bound
from hockeystick.federated.released_models import (
    WORDS,
    Guarantee,
    View,
    at_random_stop,
    last_rounds,
    running_sums,
    smallest_epsilon,
)
from hockeystick.mechanisms import Gaussian
from hockeystick.simulate.algorithms.algorithm import Algorithm, Views
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.participation import Participation, Shuffled
from hockeystick.simulate.running.rule import LAST, STOPPED, UpdateRule

__all__ = ["TrustedAggregator"]


@dataclass(frozen=True, kw_only=True)
class TrustedAggregator(Algorithm):
    """A batch of users a round, each in exactly one: w = Proj(w - learning_rate mean(g_i + noise_i)).

    Parameters
    ----------
    learning_rate : float
        Step size, positive.
    clip_norm : float
        Of each record's gradient, positive; infinite for no clipping.
    noise_std : float
        Of the Gaussian noise that each user adds to the mean gradient of its records.
    batch_size : int
        Users in a round. Users are the problem's silos, split at random into batches.
    radius : float
        Of the ball that models are projected onto.
    step_factors, noise_factors : tuple of float
        What learning_rate and noise_std are multiplied by in each round, positive; empty for constants. Steps of 1/(lambda t) are
        ``learning_rate=1/lambda`` and ``step_factors`` of 1, 1/2, 1/3, ...
    random_stop : bool
        Whether the released model is the one after a uniformly random round.
    suffix : float
        The random round is one of the last ceil(suffix T) of T rounds; in (0, 1].

    Examples
    --------
    >>> from hockeystick import simulate
    >>> simulate.TrustedAggregator(learning_rate=0.5, clip_norm=1.0, noise_std=1.5, batch_size=10, radius=1.0).batch_size
    10
    """

    batch_size: int
    step_factors: tuple[float, ...] = ()
    noise_factors: tuple[float, ...] = ()
    random_stop: bool = False
    suffix: float = 1.0

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        self._check(batch_size=count_scalar)
        for name in ("step_factors", "noise_factors"):
            factors = getattr(self, name)
            if not isinstance(factors, tuple):
                raise TypeError(f"{name} must be a tuple of numbers, one for each round, not {shown(factors)}")
            self._set(**{name: tuple(positive_scalar(f"{name}[{t}]", x) for t, x in enumerate(factors))})
        self._check(random_stop=boolean_scalar, suffix=FRACTION)
        if self.suffix < 1 and not self.random_stop:
            raise ValueError(f"suffix must be 1 without a random stop, not {self.suffix}")

    @property
    def _clients(self) -> Participation:
        return Shuffled(self.batch_size)

    def _factors(self, name: str, rounds: int) -> Array:
        """Return the factors of the rounds."""
        factors = getattr(self, name) or (1.0,) * rounds
        if rounds > len(factors):
            raise ValueError(f"rounds must be at most the length of {name} ({len(factors)}), not {rounds}")
        return np.array(factors[:rounds])

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        rule = self._plain_rule(problem, rounds, release=STOPPED if self.random_stop else LAST)
        most = problem.num_silos // self.batch_size
        if rounds > most:
            raise ValueError(
                f"rounds must be at most num_silos // batch_size ({most}), not {rounds}: each user takes part once"
            )
        return rule._replace(
            step_factors=self._factors("step_factors", rounds),
            noise_factors=self._factors("noise_factors", rounds),
            stop_rounds=last_rounds(self.suffix, rounds),
        )

    def _one_model(self, problem: Problem, rounds: int) -> Guarantee:
        inactive = problem.lipschitz is not None and problem.lipschitz <= self.clip_norm
        if self.random_stop or self.step_factors or self.noise_factors:
            return self._by_rounds(problem, rounds, convex=problem.convex and inactive)
        if math.isinf(self.radius):  # nothing is hidden
            return dataclasses.replace(self._every_model(problem, rounds), released=WORDS["last_model"])
        smooth = problem.smoothness is not None and self.learning_rate * problem.smoothness <= 2
        loss: Literal["convex", "nonconvex"] = "convex" if problem.convex and inactive and smooth else "nonconvex"
        noise = min(self._noises(problem))

        def delta_of(eps: float, t: int) -> float:
            """Return delta of t rounds: the bound for the users who took part, times their share."""
            bound = smallest_bound(
                eps,
                num_users=t * self.batch_size,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                noise_std=noise,
                lipschitz=self.clip_norm,
                radius=self.radius,
                loss=loss,
                smoothness=problem.smoothness,
                strong_convexity=problem.strong_convexity if loss == "convex" else 0.0,
            )
            return t * self.batch_size / problem.num_silos * float(bound.delta)

        source = f"federated.best with loss={loss!r}"
        return Guarantee("replace", WORDS["last_model"], source, _until(rounds, delta_of))

    def _views(self, problem: Problem, rounds: int) -> Views:
        one: View = "random_model" if self.random_stop else "last_model"
        return {
            one: lambda: self._one_model(problem, rounds),
            "every_model": lambda: self._every_model(problem, rounds),
        }

    def _every_model(self, problem: Problem, rounds: int) -> Guarantee:
        """Return the guarantee of releasing all models: who is in which batch might be known, and a user is in one."""
        noise = min(self._noises(problem)) * float(self._factors("noise_factors", rounds).min())
        step = Accountant("replace").compose(Gaussian(noise * math.sqrt(self.batch_size) / self.clip_norm))

        def delta_of(eps: float, t: int) -> float:
            return t * self.batch_size / problem.num_silos * float(step.delta(eps))

        source = "Accountant; each user takes part once"
        return Guarantee("replace", WORDS["every_model"], source, _until(rounds, delta_of))

    def _by_rounds(self, problem: Problem, rounds: int, *, convex: bool) -> Guarantee:
        """Return the guarantee of Theorem 2 with schedules, or of Corollary 3."""
        steps = self.learning_rate * self._factors("step_factors", rounds)
        noise = min(self._noises(problem)) * self._factors("noise_factors", rounds)
        root = math.sqrt(self.batch_size)
        shown = 2.0 * self.clip_norm / (root * noise)
        smoothness = math.inf if problem.smoothness is None or not convex else problem.smoothness
        expands = steps * smoothness > 2
        image = 2.0 * (self.radius + np.where(expands, steps * self.clip_norm, 0.0))
        hidden = image * root / (steps * noise)

        def delta_of(eps: float, t: int) -> float:
            first = core.theta(eps, shown[:t]) * (self.batch_size / problem.num_silos)
            deltas = running_sums(first, core.theta(eps, hidden[:t]))
            return at_random_stop(deltas, rounds, self.suffix) if self.random_stop else float(deltas[-1])

        return Guarantee(
            "replace",
            "the model after a random round only" if self.random_stop else WORDS["last_model"],
            f"federated.trusted_aggregator{'_random_stop' if self.random_stop else ''}, round by round",
            _until(rounds, delta_of),
        )


def _until(rounds: int, delta_of: Callable[[float, int], float]) -> Callable[[int, float], float]:
    """Return epsilon after no more than the planned rounds, where delta is known for every epsilon and number of rounds."""

    def epsilon(t: int, delta: float) -> float:
        at_most("rounds", t, "those planned", rounds)
        return smallest_epsilon(lambda eps: delta_of(eps, t), delta)

    return epsilon

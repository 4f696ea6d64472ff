"""Projected noisy SGD (Asoodeh, Diaz and Calmon 2020), and its federated form with a trusted aggregator (Asoodeh et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hockeystick._checks import choice, count_scalar
from hockeystick._numeric.search import Probe, narrow
from hockeystick.accounting.accountant import Accountant
from hockeystick.federated import best as smallest_bound
from hockeystick.mechanisms import Gaussian, Laplace
from hockeystick.mechanisms.base import Mechanism
from hockeystick.simulate.algorithms.algorithm import ALL, Algorithm
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.guarantee import Guarantee, by_composition
from hockeystick.simulate.running.participation import Cyclic, Shuffled
from hockeystick.simulate.running.rule import GAUSSIAN, LAPLACE, LAST, STOPPED, UpdateRule

__all__ = ["ProjectedNoisySGD", "TrustedAggregator"]


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
        if not isinstance(self.random_stop, bool):
            msg = f"random_stop must be True or False, not {self.random_stop!r}"
            raise TypeError(msg)

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        if problem.num_silos > 1:
            msg = f"projected SGD is for one silo, not {problem.num_silos}; see Problem.pooled"
            raise ValueError(msg)
        return self._plain_rule(
            problem,
            rounds,
            ALL,
            Cyclic(1),
            noise=LAPLACE if self.noise == "laplace" else GAUSSIAN,
            release=STOPPED if self.random_stop else LAST,
        )

    def _guarantee(self, problem: Problem, rounds: int) -> Guarantee:
        del rounds
        multiplier = self._noises(problem)[0] / self.clip_norm
        mechanism: Mechanism = Gaussian(multiplier)
        if self.noise == "laplace":
            if problem.dimension > 1:
                msg = f"Laplace noise is certified for models that are one number, not {problem.dimension}"
                raise ValueError(msg)
            mechanism = Laplace(multiplier)
        return by_composition(
            [("replace", mechanism, lambda t: -(-t // problem.num_records))],
            "all models, for the record that loses most",
            "Accountant; each record is used once in a pass (last_iterate.best for what later rounds hide)",
        )


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

    Examples
    --------
    >>> from hockeystick import simulate
    >>> simulate.TrustedAggregator(learning_rate=0.5, clip_norm=1.0, noise_std=1.5, batch_size=10, radius=1.0).batch_size
    10
    """

    batch_size: int

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        self._set("batch_size", count_scalar("batch_size", self.batch_size))

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        rule = self._plain_rule(problem, rounds, Shuffled(self.batch_size), ALL)
        if rounds > problem.num_silos // self.batch_size:
            msg = (
                f"rounds must be at most num_silos // batch_size ({problem.num_silos // self.batch_size}), "
                f"not {rounds}: each user takes part once"
            )
            raise ValueError(msg)
        return rule

    def _guarantee(self, problem: Problem, rounds: int) -> Guarantee:
        del rounds
        noise = min(self._noises(problem))
        inactive = problem.lipschitz is not None and problem.lipschitz <= self.clip_norm
        smooth = problem.smoothness is not None and self.learning_rate * problem.smoothness <= 2
        loss: Literal["convex", "nonconvex"] = "convex" if problem.convex and inactive and smooth else "nonconvex"

        def delta_of(eps: float, t: int) -> float:
            """Return delta of t rounds: the bound for the users who took part, times their share."""
            share = t * self.batch_size / problem.num_silos
            if math.isinf(self.radius):
                ledger = Accountant("replace").compose(Gaussian(noise * math.sqrt(self.batch_size) / self.clip_norm))
                return share * float(ledger.delta(eps))
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
            return share * float(bound.delta)

        return Guarantee(
            "replace",
            "the last model only",
            f"federated.best with loss={loss!r}",
            lambda t, delta: _smallest_epsilon(lambda eps: delta_of(eps, t), delta),
        )


def _smallest_epsilon(delta_of: Callable[[float], float], delta: float) -> float:
    """Return an epsilon at which delta_of is at most delta, within 1e-9 of the smallest, or infinity."""
    if delta_of(0.0) <= delta:
        return 0.0
    good = Probe(1.0, delta_of(1.0) - delta)
    while good.excess > 0:
        if good.x > 5e5:
            return math.inf
        good = Probe(2 * good.x, delta_of(2 * good.x) - delta)
    return float(narrow(lambda eps: delta_of(eps) - delta, good, Probe(0.0, math.inf), tolerance=1e-9).x)

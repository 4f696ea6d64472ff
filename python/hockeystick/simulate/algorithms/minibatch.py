"""Noisy minibatch SGD between silos, ISRL-DP (Lowy and Razaviyayn 2023, Algorithms 2 and 7)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hockeystick._checks import scalar
from hockeystick.federated.released_models import Guarantee, View
from hockeystick.isrl import shuffled_mb_sgd_epsilon
from hockeystick.simulate.algorithms.algorithm import ALL, Algorithm, Records, check_records, check_sampler, each_silo
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.participation import EveryRound, FixedSize, Participation, WithReplacement
from hockeystick.simulate.running.rule import MEAN, UpdateRule

__all__ = ["NoisyMinibatchSGD"]


def guarantee_of_shuffled(algorithm: NoisyMinibatchSGD, problem: Problem, alone: Guarantee) -> Guarantee:
    """Return the guarantee of shuffled messages where one record of each silo is drawn in a round, and that of every silo otherwise.

    The shuffler's needs silos that are alike in size and noise, and a known number of them.
    """
    released = "the shuffled messages of every round, and so all models"
    samplers = set(each_silo("records", algorithm.records, problem))
    noises, sizes = set(algorithm._noises(problem)), set(problem.sizes or ())
    known = isinstance(algorithm.clients, (EveryRound, FixedSize))
    if not (samplers <= {FixedSize(1), WithReplacement(1)} and known and len(noises) == len(sizes) == 1):
        return dataclasses.replace(alone, released=released)
    setting: dict[str, Any] = {
        "noise_std": noises.pop(),
        "lipschitz": algorithm.clip_norm,
        "num_records": sizes.pop(),
        "num_silos": problem.num_silos,
        "silos_per_round": int(algorithm.clients._expected(problem.num_silos)),
    }

    def epsilon(rounds: int, delta: float) -> float:
        if delta == 0.0:
            return alone.epsilon(rounds, delta)
        return shuffled_mb_sgd_epsilon(**setting, rounds=rounds, delta=delta)

    unseen = f"{released}, but not which silos take part"
    return Guarantee("replace", unseen, "isrl.shuffled_mb_sgd_epsilon", epsilon)


@dataclass(frozen=True, kw_only=True)
class NoisyMinibatchSGD(Algorithm):
    """Silos send noisy means of clipped gradients; the server steps, projects, and releases the mean of its models.

    Parameters
    ----------
    learning_rate : float
        Step size, positive.
    clip_norm : float
        L, of each record's gradient, positive; infinite for no clipping.
    noise_std : float or tuple of float
        Of the Gaussian noise that each silo adds to its mean gradient; one number for all silos, or one for each.
    records : Participation or tuple of Participation
        Batches; one sampler for all silos, or one for each.
    clients : Participation
        Which silos take part in a round; all by default.
    radius : float
        Of the ball that models are projected onto.
    shuffled : bool
        Whether a shuffler hides which silo sent which message, so that the guarantee is for who sees the shuffled messages.
    strong_convexity : float
        mu: the model before round r, from 0, counts (1 - mu learning_rate)^-(r+1) times in the mean; 0 for the plain mean.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> algorithm = simulate.NoisyMinibatchSGD(
    ...     learning_rate=0.5, clip_norm=1.0, noise_std=0.2, records=simulate.FixedSize(8)
    ... )
    >>> algorithm.records
    FixedSize(size=8)
    """

    records: Records
    clients: Participation = ALL
    shuffled: bool = False
    strong_convexity: float = 0.0

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        check_records(self.records)
        check_sampler("clients", self.clients)
        decay = scalar(
            "strong_convexity",
            self.strong_convexity,
            lambda x: 0 <= x * self.learning_rate < 1,
            f"lie in [0, 1/learning_rate = {1 / self.learning_rate})",
        )
        self._set("strong_convexity", decay)

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        decay = 1.0 - self.strong_convexity * self.learning_rate
        return self._plain_rule(problem, rounds, self.clients, self.records, release=MEAN, mean_decay=decay)

    def _views(self, problem: Problem, rounds: int, index: int | None) -> dict[View, Callable[[], Guarantee]]:
        if index is not None:
            self._of_record(problem, rounds, index)
        views: dict[View, Callable[[], Guarantee]] = {
            "messages": lambda: self._each_message(problem, self.records),
            "every_model": lambda: self._each_sum(problem, self.records, self.clients),
        }
        if self.shuffled:
            views["shuffled_messages"] = lambda: self._guarantee(problem, rounds)
        return views

    def _guarantee(self, problem: Problem, rounds: int) -> Guarantee:
        del rounds
        alone = self._each_message(problem, self.records)
        return guarantee_of_shuffled(self, problem, alone) if self.shuffled else alone

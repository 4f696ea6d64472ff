"""Noisy minibatch SGD between silos, ISRL-DP (Lowy and Razaviyayn 2023, Algorithms 2 and 7)."""

from __future__ import annotations

from dataclasses import dataclass

from hockeystick._checks import scalar
from hockeystick.simulate.algorithms.algorithm import ALL, Algorithm, Records, check_records, check_sampler
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.guarantee import Guarantee
from hockeystick.simulate.running.participation import Participation
from hockeystick.simulate.running.rule import MEAN, UpdateRule

__all__ = ["NoisyMinibatchSGD"]


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

    def _guarantee(self, problem: Problem, rounds: int) -> Guarantee:
        del rounds
        return self._each_message(problem, self.records)

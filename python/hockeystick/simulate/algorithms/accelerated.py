"""Accelerated noisy minibatch SGD between silos, also in stages (Lowy and Razaviyayn 2023, Algorithms 1 and 6, Appendix E.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hockeystick._checks import count_scalar, positive_scalar, scalar
from hockeystick.federated.released_models import Guarantee, View
from hockeystick.simulate.algorithms.algorithm import ALL, Algorithm, Records, check_records, check_sampler
from hockeystick.simulate.algorithms.shuffled import BinomialNoise, check_protocol, guarantee_of_sums
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.participation import Participation
from hockeystick.simulate.running.rule import ACCELERATED, UpdateRule

__all__ = ["AcceleratedMinibatchSGD", "MultistageMinibatchSGD"]


@dataclass(frozen=True, kw_only=True)
class AcceleratedMinibatchSGD(Algorithm):
    """Accelerated noisy minibatch SGD: the AC-SA of Ghadimi and Lan on the silos' noisy mean gradients.

    Parameters
    ----------
    scale : float
        phi: round r, from 1, has alpha = 2/(r+1) and eta = 4 phi/(r(r+1)); at least twice the smoothness for its rate.
    clip_norm : float
        L, of each record's gradient, positive; infinite for no clipping.
    noise_std : float or tuple of float
        Of the Gaussian noise that each silo adds to its mean gradient.
    records : Participation or tuple of Participation
        Batches. `Cyclic` or `Shuffled` batches within one pass are disjoint: then each record is charged once.
    clients : Participation
        Which silos take part in a round; all by default.
    radius : float
        Of the ball that models are projected onto.
    strong_convexity : float
        mu, that of the loss and the regulariser together.
    regularization : float
        Adds regularization/2 |w - w_0|^2, whose gradient the server knows without noise.
    protocol : BinomialNoise, optional
        Encodes every record's gradient for a shuffler, in place of Gaussian noise.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> simulate.AcceleratedMinibatchSGD(scale=2.0, clip_norm=1.0, noise_std=0.2, records=simulate.Cyclic(8)).scale
    2.0
    """

    learning_rate: float = 1.0
    scale: float
    records: Records
    clients: Participation = ALL
    strong_convexity: float = 0.0
    regularization: float = 0.0
    protocol: BinomialNoise | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        if self.learning_rate != 1.0:
            msg = f"learning_rate must not be given, scale decides the steps, not {self.learning_rate}"
            raise ValueError(msg)
        self._set("scale", positive_scalar("scale", self.scale))
        check_records(self.records)
        check_sampler("clients", self.clients)
        for name in ("strong_convexity", "regularization"):
            value = scalar(name, getattr(self, name), lambda x: 0 <= x < math.inf, "be non-negative and finite")
            self._set(name, value)
        if self.protocol is not None:
            positive_scalar("clip_norm", self.clip_norm)
            check_protocol(self.protocol, self.noise_std)

    def _refusal(self, problem: Problem) -> str | None:
        return None if self.protocol else super()._refusal(problem)

    def _stages(self, rounds: int) -> Sequence[tuple[int, float]]:
        return ((rounds, self.scale),)

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        stages = self._stages(rounds)
        return self._plain_rule(
            problem,
            rounds,
            self.clients,
            self.records,
            server=ACCELERATED,
            strong_convexity=self.strong_convexity,
            regularization=self.regularization,
            stage_starts=np.cumsum([0, *(length for length, _ in stages[:-1])]),
            stage_scales=np.array([scale for _, scale in stages]),
            **(self.protocol._changes() if self.protocol else {}),
        )

    def _views(self, problem: Problem, rounds: int, index: int | None) -> dict[View, Callable[[], Guarantee]]:
        views = super()._views(problem, rounds, index)
        if self.protocol:
            return {"shuffled_messages": views["messages"]}
        return views | {"every_model": lambda: self._each_sum(problem, self.records, self.clients)}

    def _guarantee(self, problem: Problem, rounds: int) -> Guarantee:
        del rounds
        if self.protocol:
            return guarantee_of_sums(problem, self.protocol, self.records, self.clients)
        return self._each_message(problem, self.records)


@dataclass(frozen=True, kw_only=True)
class MultistageMinibatchSGD(AcceleratedMinibatchSGD):
    """Accelerated noisy minibatch SGD in stages, each of which starts from the last one's result.

    Parameters
    ----------
    stages : sequence of (int, float)
        Rounds and scale of each stage, for example by `isrl.multistage_schedule`.
    clip_norm, noise_std, records, clients, radius, strong_convexity, regularization, protocol
        As in `AcceleratedMinibatchSGD`.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> stages = ((10, 2.0), (20, 4.0))
    >>> simulate.MultistageMinibatchSGD(stages=stages, clip_norm=1.0, noise_std=0.2, records=simulate.Cyclic(8)).stages
    ((10, 2.0), (20, 4.0))
    """

    stages: Sequence[tuple[int, float]]
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        if not self.stages:
            msg = "stages must not be empty"
            raise ValueError(msg)
        checked = (
            (count_scalar(f"stages[{i}][0]", length), positive_scalar(f"stages[{i}][1]", scale))
            for i, (length, scale) in enumerate(self.stages)
        )
        self._set("stages", tuple(checked))

    def _stages(self, rounds: int) -> Sequence[tuple[int, float]]:
        planned = sum(length for length, _ in self.stages)
        if rounds > planned:
            msg = f"rounds must be at most those of all stages, {planned}, not {rounds}"
            raise ValueError(msg)
        return self.stages

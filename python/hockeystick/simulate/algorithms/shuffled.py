"""Shuffled minibatch SGD between silos (Lowy and Razaviyayn 2023, Section 5): the vector sum of Algorithms 4 and 5, corrected."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from hockeystick._checks import count_scalar, positive_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick.federated.released_models import Guarantee, NoGuaranteeError, View
from hockeystick.isrl import vector_sum_epsilon
from hockeystick.mechanisms import Gaussian
from hockeystick.simulate.algorithms.algorithm import ALL, Algorithm, Records, check_records, check_sampler, each_silo
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.participation import FixedSize, Participation, Poisson, WithReplacement
from hockeystick.simulate.running.rule import MEAN, UpdateRule

__all__ = ["BinomialNoise", "ShuffledMinibatchSGD"]

ANY_NOISE = Gaussian(1.0)  # for samplers that are asked only how often a record can take part


@dataclass(frozen=True)
class BinomialNoise:
    """The noise of the shuffled vector sum: each coordinate is rounded at random to a level, and binomial counts are added.

    Parameters
    ----------
    levels : int
        Levels of a coordinate, g.
    bits : int
        Noise bits of each message, b; 0 for none.
    probability : float
        Of a noise bit, p, in (0, 1).

    Notes
    -----
    Algorithms 4 and 5 of Lowy and Razaviyayn, corrected: coordinates lie in [0, 2 clip_norm] after they are moved, and moving
    back subtracts that once for every message.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> simulate.BinomialNoise(levels=20, bits=8, probability=0.25)
    BinomialNoise(levels=20, bits=8, probability=0.25)
    """

    levels: int
    bits: int
    probability: float

    def __post_init__(self) -> None:
        """Check the settings."""
        object.__setattr__(self, "levels", count_scalar("levels", self.levels))
        object.__setattr__(self, "bits", count_scalar("bits", self.bits, 0))
        rate = scalar("probability", self.probability, lambda x: 0 < x < 1, "lie in (0, 1)")
        object.__setattr__(self, "probability", rate)

    def _changes(self) -> dict[str, Any]:
        return {"protocol_levels": self.levels, "protocol_bits": self.bits, "protocol_rate": self.probability}


def guarantee_of_sums(problem: Problem, protocol: BinomialNoise, records: Records, clients: Participation) -> Guarantee:
    """Return the guarantee of all sums that the server learns from the shuffler, for one record replaced.

    Bits are shuffled coordinate by coordinate, so that a round shows the sum of all messages. That needs the same weight for every
    message, and a number of messages that is known.
    """
    samplers = each_silo("records", records, problem)
    if any(isinstance(sampler, (Poisson, WithReplacement)) for sampler in (*samplers, clients)):
        msg = "shuffled sums are certified for batches and clients of known number, each record at most once in a round"
        raise NoGuaranteeError(msg)
    batches = {int(sampler._expected(count)) for sampler, count in zip(samplers, problem.sizes or (), strict=True)}
    if len(batches) > 1:
        msg = f"a shuffled sum of gradients needs batches of the same size in every silo, not {sorted(batches)}"
        raise NoGuaranteeError(msg)
    messages = batches.pop() * int(clients._expected(problem.num_silos))
    uses = [sampler._account(ANY_NOISE, count)[2] for sampler, count in zip(samplers, problem.sizes or (), strict=True)]

    def epsilon(rounds: int, delta: float) -> float:
        if delta == 0.0:
            return math.inf
        return vector_sum_epsilon(
            num_messages=messages,
            levels=protocol.levels,
            noise_bits=protocol.bits,
            probability=protocol.probability,
            dimension=problem.dimension,
            delta=delta,
            rounds=max(count(rounds) for count in uses),
        )

    source = f"isrl.vector_sum_epsilon; {messages} messages a round, each record charged for the rounds in which it can take part"
    return Guarantee("replace", "the shuffled messages of every round, and so all models", source, epsilon)


def check_protocol(protocol: Any, noise_std: Any) -> None:
    """Check that a protocol is one, and that there is no other noise."""
    if not isinstance(protocol, BinomialNoise):
        msg = f"protocol must be BinomialNoise, not {shown(protocol)}"
        raise TypeError(msg)
    if noise_std != 0.0:
        msg = f"noise_std must be 0 with a protocol, which has its own noise, not {noise_std}"
        raise ValueError(msg)


@dataclass(frozen=True, kw_only=True)
class ShuffledMinibatchSGD(Algorithm):
    """Silos send one encoded gradient each, which a shuffler mixes; the server only learns their sum.

    Parameters
    ----------
    learning_rate : float
        Step size, positive.
    clip_norm : float
        L, of each record's gradient, positive and finite.
    protocol : BinomialNoise
        How gradients are encoded.
    records : Participation
        Whose gradients are sent: one record of each silo by default.
    clients : Participation
        Which silos take part in a round; all by default.
    radius : float
        Of the ball that models are projected onto.

    Notes
    -----
    Shuffling Gaussian messages does not change their mean: for these take `NoisyMinibatchSGD`. The guarantee is that of
    `isrl.vector_sum_epsilon` for whoever sees the shuffled bits. It asks for batches of the same size in all silos, without
    replacement, and counts no amplification by sampling.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> protocol = simulate.BinomialNoise(levels=20, bits=8, probability=0.25)
    >>> simulate.ShuffledMinibatchSGD(learning_rate=0.5, clip_norm=1.0, protocol=protocol).records
    FixedSize(size=1)
    """

    protocol: BinomialNoise
    records: Records = FixedSize(1)  # noqa: RUF009 - immutable
    clients: Participation = ALL

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        positive_scalar("clip_norm", self.clip_norm)
        check_records(self.records)
        check_sampler("clients", self.clients)
        check_protocol(self.protocol, self.noise_std)

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        return self._plain_rule(problem, rounds, self.clients, self.records, release=MEAN, **self.protocol._changes())

    def _refusal(self, problem: Problem) -> str | None:
        del problem
        return None

    _view: ClassVar[View] = "shuffled_messages"

    def _guarantee(self, problem: Problem, rounds: int) -> Guarantee:
        del rounds
        return guarantee_of_sums(problem, self.protocol, self.records, self.clients)

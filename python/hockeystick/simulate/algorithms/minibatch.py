"""Noisy minibatch SGD between silos, ISRL-DP: plain, shuffled, accelerated and in stages (Lowy and Razaviyayn 2023, Algorithms 1 to 7)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hockeystick._checks import OPEN_PROBABILITY, POSITIVE, count_scalar, non_negative_scalar, positive_scalar
from hockeystick._checks.checked import Checked
from hockeystick._checks.shown import shown
from hockeystick.federated.released_models import Guarantee, NoGuaranteeError
from hockeystick.isrl import shuffled_mb_sgd_epsilon, vector_sum_epsilon
from hockeystick.mechanisms import Gaussian
from hockeystick.simulate.algorithms.algorithm import ALL, Algorithm, Records, Views, each_silo
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.participation import EveryRound, FixedSize, Participation, RandomSize, WithReplacement
from hockeystick.simulate.running.rule import ACCELERATED, MEAN, UpdateRule

ANY_NOISE = Gaussian(1.0)  # for samplers that are asked only how often a record can take part


@dataclass(frozen=True)
class BinomialNoise(Checked):
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
        self._check(levels=count_scalar, bits=partial(count_scalar, smallest=0), probability=OPEN_PROBABILITY)

    def _changes(self) -> dict[str, Any]:
        return {"protocol_levels": self.levels, "protocol_bits": self.bits, "protocol_rate": self.probability}


def guarantee_of_sums(algorithm: Algorithm, problem: Problem, protocol: BinomialNoise) -> Guarantee:
    """Return the guarantee of all sums that the server learns from the shuffler, for one record replaced.

    Bits are shuffled coordinate by coordinate, so that a round shows the sum of all messages. That needs the same weight for every
    message, and a number of messages that is known.
    """
    clients, samplers = algorithm._clients, algorithm._samplers(problem)
    drawn = [clients, *(sampler for sampler, _ in samplers)]
    if any(isinstance(sampler, (RandomSize, WithReplacement)) for sampler in drawn):
        raise NoGuaranteeError(
            "shuffled sums are certified for batches and clients of known number, each record at most once in a round"
        )
    batches = {int(sampler._expected(count)) for sampler, count in samplers}
    if len(batches) > 1:
        raise NoGuaranteeError(
            f"a shuffled sum of gradients needs batches of the same size in every silo, not {sorted(batches)}"
        )
    messages = batches.pop() * int(clients._expected(problem.num_silos))
    accounts = [sampler._account(ANY_NOISE, count)[1] for sampler, count in samplers]

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
            rounds=max(leaks(rounds)[1] for leaks in accounts),
        )

    source = f"isrl.vector_sum_epsilon; {messages} messages a round, each record charged for the rounds in which it can take part"
    return Guarantee("replace", "the shuffled messages of every round, and so all models", source, epsilon)


def check_protocol(algorithm: Algorithm, protocol: Any) -> None:
    """Check that gradients are clipped, that the protocol is one, and that it is the only noise."""
    positive_scalar("clip_norm", algorithm.clip_norm)
    if not isinstance(protocol, BinomialNoise):
        raise TypeError(f"protocol must be BinomialNoise, not {shown(protocol)}")
    if algorithm.noise_std != 0.0:
        raise ValueError(f"noise_std must be 0 with a protocol, which has its own noise, not {algorithm.noise_std}")


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
        check_protocol(self, self.protocol)

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        return self._plain_rule(problem, rounds, release=MEAN, **self.protocol._changes())

    def _has_noise(self, problem: Problem) -> bool:
        del problem
        return True  # that of the protocol

    def _views(self, problem: Problem, rounds: int) -> Views:
        del rounds
        return {"shuffled_messages": lambda: guarantee_of_sums(self, problem, self.protocol)}


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
        domain = f"lie in [0, 1/learning_rate = {1 / self.learning_rate})"
        self._check(strong_convexity=(lambda x: 0 <= x * self.learning_rate < 1, domain))

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        decay = 1.0 - self.strong_convexity * self.learning_rate
        return self._plain_rule(problem, rounds, release=MEAN, mean_decay=decay)

    def _views(self, problem: Problem, rounds: int) -> Views:
        del rounds
        shuffled: Views = {
            "shuffled_messages": lambda: guarantee_of_shuffled(self, problem, self._each_message(problem))
        }
        return (shuffled if self.shuffled else {}) | self._views_of_sums(problem)


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
            raise ValueError(f"learning_rate must not be given, scale decides the steps, not {self.learning_rate}")
        self._check(scale=POSITIVE, strong_convexity=non_negative_scalar, regularization=non_negative_scalar)
        if self.protocol is not None:
            check_protocol(self, self.protocol)

    def _has_noise(self, problem: Problem) -> bool:
        return self.protocol is not None or super()._has_noise(problem)

    def _stages(self, rounds: int) -> Sequence[tuple[int, float]]:
        return ((rounds, self.scale),)

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        stages = self._stages(rounds)
        return self._plain_rule(
            problem,
            rounds,
            server=ACCELERATED,
            strong_convexity=self.strong_convexity,
            regularization=self.regularization,
            stage_starts=np.cumsum([0, *(length for length, _ in stages[:-1])]),
            stage_scales=np.array([scale for _, scale in stages]),
            **(self.protocol._changes() if self.protocol else {}),
        )

    def _views(self, problem: Problem, rounds: int) -> Views:
        del rounds
        protocol = self.protocol
        if protocol is None:
            return self._views_of_sums(problem)
        return {"shuffled_messages": lambda: guarantee_of_sums(self, problem, protocol)}


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
            raise ValueError("stages must not be empty")
        checked = (
            (count_scalar(f"stages[{i}][0]", length), positive_scalar(f"stages[{i}][1]", scale))
            for i, (length, scale) in enumerate(self.stages)
        )
        self._set(stages=tuple(checked))

    def _stages(self, rounds: int) -> Sequence[tuple[int, float]]:
        planned = sum(length for length, _ in self.stages)
        if rounds > planned:
            raise ValueError(f"rounds must be at most those of all stages, {planned}, not {rounds}")
        return self.stages

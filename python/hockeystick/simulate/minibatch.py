"""Noisy minibatch SGD between silos, ISRL-DP (Lowy and Razaviyayn 2023, Algorithms 1, 2, 6 and 7), accelerated and shuffled too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hockeystick import _checks
from hockeystick.simulate.algorithm import ALL, Algorithm, Records, check_records, check_sampler
from hockeystick.simulate.guarantee import Guarantee, NoGuaranteeError
from hockeystick.simulate.participation import FixedSize, Participation
from hockeystick.simulate.problem import Problem
from hockeystick.simulate.rule import ACCELERATED, MEAN, Rule

__all__ = [
    "AcceleratedMinibatchSGD",
    "BinomialNoise",
    "MultistageMinibatchSGD",
    "NoisyMinibatchSGD",
    "ShuffledMinibatchSGD",
    "multistage_schedule",
]


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
        object.__setattr__(self, "levels", _checks.count_scalar("levels", self.levels))
        object.__setattr__(self, "bits", _checks.count_scalar("bits", self.bits, 0))
        rate = _checks.scalar("probability", self.probability, lambda x: 0 < x < 1, "lie in (0, 1)")
        object.__setattr__(self, "probability", rate)

    def _changes(self) -> dict[str, Any]:
        return {"protocol_levels": self.levels, "protocol_bits": self.bits, "protocol_rate": self.probability}


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
        decay = _checks.scalar(
            "strong_convexity",
            self.strong_convexity,
            lambda x: 0 <= x * self.learning_rate < 1,
            f"lie in [0, 1/learning_rate = {1 / self.learning_rate})",
        )
        self._set("strong_convexity", decay)

    def _rule(self, problem: Problem, rounds: int) -> Rule:
        decay = 1.0 - self.strong_convexity * self.learning_rate
        return self._plain_rule(problem, rounds, self.clients, self.records, release=MEAN, mean_decay=decay)

    def _guarantee(self, problem: Problem, rounds: int) -> Guarantee:
        del rounds
        return self._each_message(problem, self.records)


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
    Shuffling Gaussian messages does not change their mean: for these take `NoisyMinibatchSGD`. No function here certifies
    binomial noise on vectors, so this algorithm has no guarantee.

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
        _checks.positive_scalar("clip_norm", self.clip_norm)
        check_records(self.records)
        check_sampler("clients", self.clients)
        _check_protocol(self.protocol, self.noise_std)

    def _rule(self, problem: Problem, rounds: int) -> Rule:
        return self._plain_rule(problem, rounds, self.clients, self.records, release=MEAN, **self.protocol._changes())

    def guarantee(self, problem: Problem, *, rounds: int) -> Guarantee:
        """Raise NoGuaranteeError.

        Parameters
        ----------
        problem : Problem
            What is learned.
        rounds : int
            How many rounds are planned.

        Returns
        -------
        Guarantee
            Never.

        Raises
        ------
        NoGuaranteeError
            Always.
        """
        del problem, rounds
        raise NoGuaranteeError(NO_BINOMIAL)


NO_BINOMIAL = "no function here certifies binomial noise on vectors"


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
        self._set("scale", _checks.positive_scalar("scale", self.scale))
        check_records(self.records)
        check_sampler("clients", self.clients)
        for name in ("strong_convexity", "regularization"):
            value = _checks.scalar(name, getattr(self, name), lambda x: 0 <= x < math.inf, "be non-negative and finite")
            self._set(name, value)
        if self.protocol is not None:
            _checks.positive_scalar("clip_norm", self.clip_norm)
            _check_protocol(self.protocol, self.noise_std)

    def _stages(self, rounds: int) -> tuple[tuple[int, float], ...]:
        return ((rounds, self.scale),)

    def _rule(self, problem: Problem, rounds: int) -> Rule:
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

    def _guarantee(self, problem: Problem, rounds: int) -> Guarantee:
        del rounds
        return self._each_message(problem, self.records)


@dataclass(frozen=True, kw_only=True)
class MultistageMinibatchSGD(AcceleratedMinibatchSGD):
    """Accelerated noisy minibatch SGD in stages, each of which starts from the last one's result.

    Parameters
    ----------
    stages : tuple of (int, float)
        Rounds and scale of each stage, for example by `multistage_schedule`.
    clip_norm, noise_std, records, clients, radius, strong_convexity, regularization, protocol
        As in `AcceleratedMinibatchSGD`.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> stages = ((10, 2.0), (20, 4.0))
    >>> simulate.MultistageMinibatchSGD(stages=stages, clip_norm=1.0, noise_std=0.2, records=simulate.Cyclic(8)).stages
    ((10, 2.0), (20, 4.0))
    """

    stages: tuple[tuple[int, float], ...]
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        if not self.stages:
            msg = "stages must not be empty"
            raise ValueError(msg)
        for i, (length, scale) in enumerate(self.stages):
            _checks.count_scalar(f"stages[{i}][0]", length)
            _checks.positive_scalar(f"stages[{i}][1]", scale)

    def _stages(self, rounds: int) -> tuple[tuple[int, float], ...]:
        planned = sum(length for length, _ in self.stages)
        if rounds > planned:
            msg = f"rounds must be at most those of all stages, {planned}, not {rounds}"
            raise ValueError(msg)
        return self.stages


def multistage_schedule(
    *, smoothness: float, strong_convexity: float, variance_bound: float, gap: float, rounds: int
) -> tuple[tuple[int, float], ...]:
    r"""Return rounds and scale of every stage of multi-stage AC-SA.

    Parameters
    ----------
    smoothness : float
        beta, positive.
    strong_convexity : float
        mu, positive.
    variance_bound : float
        V, the square root of a bound of the noisy gradients' variance; positive.
    gap : float
        Delta, a bound of F(w_0) - F*; positive.
    rounds : int
        At most this many rounds in all.

    Returns
    -------
    tuple of (int, float)
        As many stages as fit.

    Raises
    ------
    ValueError
        If not even the first stage fits, or an argument is outside its domain.

    Notes
    -----
    Stage k has :math:`R_k = \lceil\max(4\sqrt{2\beta/\mu}, 128 V^2/(3 \mu \Delta 2^{-(k+1)}))\rceil` rounds and
    :math:`\phi_k = \max(2\beta, \sqrt{\mu V^2 R_k(R_k+1)(R_k+2)/(3 \Delta 2^{-(k-1)})})`: Lowy and Razaviyayn, Appendix E.1, where
    the product of the R_k is printed in the denominator, which makes the second branch useless.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> simulate.multistage_schedule(smoothness=1.0, strong_convexity=0.1, variance_bound=1.0, gap=1.0, rounds=2000)[0][0]
    1707
    """
    beta = _checks.positive_scalar("smoothness", smoothness)
    mu = _checks.positive_scalar("strong_convexity", strong_convexity)
    variance = _checks.positive_scalar("variance_bound", variance_bound) ** 2
    gap = _checks.positive_scalar("gap", gap)
    left = _checks.count_scalar("rounds", rounds)
    stages: list[tuple[int, float]] = []
    while True:
        k = len(stages) + 1
        length = math.ceil(max(4 * math.sqrt(2 * beta / mu), 128 * variance / (3 * mu * gap * 2.0 ** -(k + 1))))
        if length > left:
            break
        product = length * (length + 1.0) * (length + 2.0)
        stages.append((length, max(2 * beta, math.sqrt(mu * variance * product / (3 * gap * 2.0 ** -(k - 1))))))
        left -= length
    if not stages:
        msg = f"rounds must be at least those of the first stage, {length}, not {rounds}"
        raise ValueError(msg)
    return tuple(stages)


def _check_protocol(protocol: Any, noise_std: Any) -> None:
    if not isinstance(protocol, BinomialNoise):
        msg = f"protocol must be BinomialNoise, not {protocol!r}"
        raise TypeError(msg)
    if noise_std != 0.0:
        msg = f"noise_std must be 0 with a protocol, which has its own noise, not {noise_std}"
        raise ValueError(msg)

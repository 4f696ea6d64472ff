"""Who takes part in a round, or in a batch. Each sampler names the mechanism that accounts for it, if there is one.

Sampling is part of a mechanism: Poisson, fixed-size and shuffled batches leak different amounts, and none is a default for
another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import FRACTION, POSITIVE, boolean_scalar, count_scalar, scalar
from hockeystick._checks.checked import Checked
from hockeystick._numeric.rounding import DOWN, UP
from hockeystick.federated.released_models import Account, Clients, NoGuaranteeError
from hockeystick.mechanisms import FixedSizeSampled, Gaussian, Mechanism, PoissonSampled, RandomAllocation
from hockeystick.mechanisms.base import Adjacency
from hockeystick.mechanisms.sampled import NOISE
from hockeystick.simulate.running import rule

__all__ = [
    "BallsInBins",
    "Cyclic",
    "CyclicPoisson",
    "EveryRound",
    "FixedSize",
    "MinSeparatedPoisson",
    "Participation",
    "Poisson",
    "Shuffled",
    "WithReplacement",
]


@dataclass(frozen=True)
class Participation(Checked):
    """The base of all samplers."""

    _kind: ClassVar[int]

    def _numbers(self, name: str, population: int) -> tuple[int, int, float]:
        """Return kind, size and rate, after checking that the population is large enough."""
        size = getattr(self, "size", population)
        if size > population and not isinstance(self, WithReplacement):
            raise ValueError(
                f"{name} must draw at most {population}, the number there is, not {size} without replacement"
            )
        return self._kind, int(size), float(getattr(self, "sampling_rate", 1.0))

    def _expected(self, population: int) -> float:
        """Return the expected number drawn."""
        return float(getattr(self, "size", population)) * float(getattr(self, "sampling_rate", 1.0))

    def _divisor(self, population: int) -> float:
        """Return what a batch's sum of gradients is divided by."""
        return self._expected(population)

    def _account(self, mechanism: Gaussian, population: int) -> Account:
        """Return adjacency, and what some rounds leak about one member: a mechanism, and how often.

        The mechanism's noise is in units of what one member can change, divisor and all: where the divisor counts the members,
        one that is added or removed would rescale all others, so that the adjacency is "replace".
        """
        raise NotImplementedError

    def _clients(self, population: int, rounds: int) -> Clients:
        """Return what is proven to matter of clients who take part in these rounds."""
        return Clients(self._numbers("clients", population)[1], list(range(rounds)))

    def _use(self, population: int, draws: int) -> float:
        """Return the probability that one member is in one of several independent draws, or 1 where they are not independent."""
        del population, draws
        return 1.0

    def draw(self, population: int, *, rounds: int, seed: int, run: int = 0) -> list[NDArray[np.int64]]:
        """Return who takes part, round by round.

        Parameters
        ----------
        population : int
            How many there are, at least 1.
        rounds : int
            How many rounds, at least 1.
        seed : int
            Of the random streams, in [0, 2^64).
        run : int
            Number of the run; each has streams of its own.

        Returns
        -------
        list of ndarray
            Indices in [0, population), one array a round: those of the clients in a run with this seed, before any drop out.
        As batches for another training they are as secret as the seed: ``secrets.randbits(64)`` makes one.

        Raises
        ------
        ValueError
            If more are drawn without replacement than there are.
        """
        population = count_scalar("population", population)
        kind, size, rate = self._numbers("population", population)
        draw, stream = rule.function("draw"), np.zeros(rule.STREAM_WORDS, np.uint64)
        order, out = np.arange(population), np.empty(max(population, size), np.int64)
        settings = (kind, size, rate, population, order.ctypes, out.ctypes)
        drawn = []
        for rnd in range(count_scalar("rounds", rounds)):
            count = draw(stream.ctypes, seed, rule.CLIENTS, run, 0, rnd, *settings)
            drawn.append(out[:count].copy())
        return drawn


@dataclass(frozen=True)
class EveryRound(Participation):
    """All take part, always; as a batch, the full batch."""

    _kind: ClassVar[int] = rule.EVERY

    def _account(self, mechanism: Gaussian, population: int) -> Account:
        del population
        return "replace", lambda rounds: (mechanism, rounds)


class RandomSize(Participation):
    """Samplers whose batches vary in size, so that a sum may be divided by a public number that is not counted."""

    expected_batch_size: float | None

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(**{one.name: CHECKS[one.name] for one in fields(self)})

    def _numbers(self, name: str, population: int) -> tuple[int, int, float]:
        del name
        apart = getattr(self, "separation", getattr(self, "bins", population))
        return self._kind, int(apart), float(getattr(self, "sampling_rate", 1.0))

    def _divisor(self, population: int) -> float:
        return self._expected(population) if self.expected_batch_size is None else self.expected_batch_size

    @property
    def _adjacency(self) -> Adjacency:
        return "replace" if self.expected_batch_size is None else "add_or_remove"

    def _require_public_divisor(self) -> None:
        if self.expected_batch_size is None:
            raise NoGuaranteeError(
                f"{self!r} is certified for a record that is added or removed: give a public expected_batch_size"
            )


@dataclass(frozen=True)
class Poisson(RandomSize):
    """Each takes part independently of all others.

    Parameters
    ----------
    sampling_rate : float
        Probability of each, in (0, 1].
    expected_batch_size : float, optional
        Of records: what a batch's sum of gradients is divided by, positive and finite. It is public, and must not be computed from
        the number of records. By default sums are divided by `sampling_rate` times the records that there are.

    Notes
    -----
    With `expected_batch_size` the guarantee is for a record that is added or removed. Without it a record less would change the divisor, and with it
    what all other records contribute: the guarantee is then for a record that is replaced.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> simulate.Poisson(0.1, expected_batch_size=6)
    Poisson(sampling_rate=0.1, expected_batch_size=6.0)
    """

    sampling_rate: float
    expected_batch_size: float | None = None
    _kind: ClassVar[int] = rule.POISSON

    def _account(self, mechanism: Gaussian, population: int) -> Account:
        del population
        return self._adjacency, lambda rounds: (PoissonSampled(mechanism, self.sampling_rate), rounds)

    def _clients(self, population: int, rounds: int) -> Clients:
        return Clients(population, list(range(rounds)), self.sampling_rate, poisson=True)

    def _use(self, population: int, draws: int) -> float:
        del population
        return _in_one_of(draws, self.sampling_rate)


@dataclass(frozen=True)
class _Sized(Participation):
    size: int

    def __post_init__(self) -> None:
        """Check the argument."""
        self._check(size=count_scalar)


@dataclass(frozen=True)
class FixedSize(_Sized):
    """A uniform subset, drawn without replacement, afresh every round.

    Parameters
    ----------
    size : int
        How many, at least 1 and at most the population.
    """

    _kind: ClassVar[int] = rule.FIXED_SIZE

    def _account(self, mechanism: Gaussian, population: int) -> Account:
        sampled = FixedSizeSampled(mechanism, population, self.size, replacement=False)
        return "replace", lambda rounds: (sampled, rounds)

    def _clients(self, population: int, rounds: int) -> Clients:
        return super()._clients(population, rounds)._replace(rate=self.size / population)

    def _use(self, population: int, draws: int) -> float:
        return _in_one_of(draws, self.size / population)


@dataclass(frozen=True)
class WithReplacement(_Sized):
    """Independent uniform draws; one may be drawn more than once, and then leaks more.

    Parameters
    ----------
    size : int
        How many draws, at least 1.
    """

    _kind: ClassVar[int] = rule.WITH_REPLACEMENT

    def _account(self, mechanism: Gaussian, population: int) -> Account:
        sampled = FixedSizeSampled(mechanism, population, self.size, replacement=True)
        return "replace", lambda rounds: (sampled, rounds)

    def _use(self, population: int, draws: int) -> float:
        return _in_one_of(draws * self.size, 1.0 / population)


@dataclass(frozen=True)
class Shuffled(_Sized):
    """The parts of a random order, one after another; a new order when all parts are used. What is left over sits out.

    Parameters
    ----------
    size : int
        Of a part, at least 1 and at most the population.
    """

    _kind: ClassVar[int] = rule.SHUFFLED

    def _account(self, mechanism: Gaussian, population: int) -> Account:
        # nothing is claimed for the order: it might as well be known, and each member is used once in an epoch
        parts = population // self.size
        return "replace", lambda rounds: (mechanism, -(-rounds // parts))

    def _clients(self, population: int, rounds: int) -> Clients:
        return Clients(self.size, list(range(0, rounds, population // self.size)))


@dataclass(frozen=True)
class Cyclic(_Sized):
    """The parts of the given order, round and round.

    Parameters
    ----------
    size : int
        Of a part, at least 1 and at most the population.
    """

    _kind: ClassVar[int] = rule.CYCLIC

    def _account(self, mechanism: Gaussian, population: int) -> Account:
        return "replace", lambda rounds: (mechanism, math.ceil(rounds * self.size / population))

    def _clients(self, population: int, rounds: int) -> Clients:
        uses = math.ceil(rounds * self.size / population)
        return Clients(self.size, [k * population // self.size for k in range(uses)])


@dataclass(frozen=True)
class CyclicPoisson(RandomSize):
    """Poisson samples of the parts of the records in turn: those of `correlated_noise.cyclic_poisson`.

    Parameters
    ----------
    separation : int
        Into how many parts the records are divided, by their place modulo `separation`; round t, from 0, draws from part t modulo `separation`.
    sampling_rate : float
        Probability of each record of the part, in (0, 1].
    expected_batch_size : float, optional
        As in `Poisson`.

    Notes
    -----
    A record that is added or removed leaves the places of all others as they are. The guarantee is that of a Poisson sample in every
    round of its part.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> first, second = simulate.CyclicPoisson(2, 1.0).draw(5, rounds=2, seed=1)
    >>> first.tolist(), second.tolist()
    ([0, 2, 4], [1, 3])
    """

    separation: int
    sampling_rate: float
    expected_batch_size: float | None = None
    _kind: ClassVar[int] = rule.CYCLIC_POISSON

    def _expected(self, population: int) -> float:
        return population * self.sampling_rate / self.separation

    def _account(self, mechanism: Gaussian, population: int) -> Account:
        del population
        sampled = PoissonSampled(mechanism, self.sampling_rate)
        return self._adjacency, lambda rounds: (sampled, -(-rounds // self.separation))


@dataclass(frozen=True)
class MinSeparatedPoisson(RandomSize):
    """Poisson samples whose members sit out the next rounds: those of `correlated_noise.min_separated_poisson`.

    Parameters
    ----------
    separation : int
        b, at least 1: after a round that it was in, a record sits out the next b - 1.
    sampling_rate : float
        Probability, in (0, 1], with which a record is in a round that it may be in.
    warm_start : bool
        Whether each record first sits out a random number of rounds, so that all batches are expected to be of one size.
    expected_batch_size : float, optional
        As in `Poisson`; the guarantee needs it.

    Notes
    -----
    The guarantee is that of a Poisson sample in every round, which dominates (`hockeystick.correlated_noise.min_separation` has the proof), for
    a record that is added or removed; ``min_separated_poisson([1.0], ...)`` may say less.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> [batch.tolist() for batch in simulate.MinSeparatedPoisson(3, 1.0).draw(2, rounds=4, seed=1)]
    [[0, 1], [], [], [0, 1]]
    """

    separation: int
    sampling_rate: float
    warm_start: bool = False
    expected_batch_size: float | None = None
    _kind: ClassVar[int] = rule.MIN_SEPARATED

    def _numbers(self, name: str, population: int) -> tuple[int, int, float]:
        kind, separation, rate = super()._numbers(name, population)
        return rule.WARM_MIN_SEPARATED if self.warm_start else kind, separation, rate

    def _expected(self, population: int) -> float:
        """Return the expected number in a round after a warm start, or after many rounds."""
        return population * self.sampling_rate / (1.0 + (self.separation - 1) * self.sampling_rate)

    def _account(self, mechanism: Gaussian, population: int) -> Account:
        del population
        self._require_public_divisor()
        return self._adjacency, lambda rounds: (PoissonSampled(mechanism, self.sampling_rate), rounds)


@dataclass(frozen=True)
class BallsInBins(RandomSize):
    """The bins that the records drew once, round and round: the batches of `correlated_noise.balls_in_bins`.

    Parameters
    ----------
    bins : int
        How many, at least 1; each record's is uniform, for itself. Round t, from 0, has the records of bin t modulo `bins`.
    expected_batch_size : float, optional
        As in `Poisson`; the guarantee needs it.

    Notes
    -----
    A record is in as many rounds as there are epochs, and they are one secret: the guarantee is that of a random allocation of all of them at
    once, for a record that is added or removed.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> batches = simulate.BallsInBins(3).draw(100, rounds=6, seed=1)
    >>> sum(map(len, batches[:3])), all((batches[i] == batches[i + 3]).all() for i in range(3))
    (100, True)
    """

    bins: int
    expected_batch_size: float | None = None
    _kind: ClassVar[int] = rule.BALLS_IN_BINS

    def _expected(self, population: int) -> float:
        return population / self.bins

    def _account(self, mechanism: Gaussian, population: int) -> Account:
        del population
        self._require_public_divisor()

        def leaks(rounds: int) -> tuple[Mechanism, int]:
            noise = min(mechanism.noise_multiplier / math.sqrt(-(-rounds // self.bins)) * DOWN, NOISE[1])
            epochs = Gaussian(noise)
            return (RandomAllocation(epochs, self.bins) if noise >= NOISE[0] else epochs), 1

        return self._adjacency, leaks


OF_RECORDS = (WithReplacement, CyclicPoisson, MinSeparatedPoisson, BallsInBins)  # no clients are drawn by these
CHECKS: dict[str, Any] = {
    "separation": count_scalar,
    "bins": count_scalar,
    "sampling_rate": FRACTION,
    "warm_start": boolean_scalar,
    "expected_batch_size": lambda name, value: None if value is None else scalar(name, value, *POSITIVE),
}


def _in_one_of(draws: int, probability: float) -> float:
    """Return an upper bound of 1 - (1 - probability)^draws, close by rounding."""
    return min(-math.expm1(draws * math.log1p(-probability)) * UP, 1.0) if probability < 1 else 1.0

"""Who takes part in a round, or in a batch. Each sampler names the mechanism that accounts for it, if there is one.

Sampling is part of a mechanism: Poisson, fixed-size and shuffled batches leak different amounts, and none is a default for
another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import FRACTION, POSITIVE, count_scalar
from hockeystick._checks.checked import Checked
from hockeystick._numeric.rounding import UP
from hockeystick.federated.released_models import Account, Clients
from hockeystick.mechanisms import FixedSizeSampled, Gaussian, PoissonSampled
from hockeystick.mechanisms.base import Adjacency
from hockeystick.simulate.running import rule

__all__ = ["Cyclic", "EveryRound", "FixedSize", "Participation", "Poisson", "Shuffled", "WithReplacement"]


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
        """Return adjacency, what one round leaks about one member, and the number of such rounds in some rounds.

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

        Raises
        ------
        ValueError
            If more are drawn without replacement than there are.
        """
        from hockeystick.simulate.kernels import core  # noqa: PLC0415 - numba is asked for when needed

        population = count_scalar("population", population)
        kind, size, rate = self._numbers("population", population)
        draw, stream = core.function("draw"), np.zeros(rule.STREAM_WORDS, np.uint64)
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
        return "replace", mechanism, lambda rounds: rounds


@dataclass(frozen=True)
class Poisson(Participation):
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

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(sampling_rate=FRACTION)
        if self.expected_batch_size is not None:
            self._check(expected_batch_size=POSITIVE)

    def _divisor(self, population: int) -> float:
        return self._expected(population) if self.expected_batch_size is None else self.expected_batch_size

    def _account(self, mechanism: Gaussian, population: int) -> Account:
        del population
        adjacency: Adjacency = "replace" if self.expected_batch_size is None else "add_or_remove"
        return adjacency, PoissonSampled(mechanism, self.sampling_rate), lambda rounds: rounds

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
        return "replace", FixedSizeSampled(mechanism, population, self.size, replacement=False), lambda rounds: rounds

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
        return "replace", FixedSizeSampled(mechanism, population, self.size, replacement=True), lambda rounds: rounds

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
        return "replace", mechanism, lambda rounds: -(-rounds // parts)

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
        return "replace", mechanism, lambda rounds: math.ceil(rounds * self.size / population)

    def _clients(self, population: int, rounds: int) -> Clients:
        uses = math.ceil(rounds * self.size / population)
        return Clients(self.size, [k * population // self.size for k in range(uses)])


def _in_one_of(draws: int, probability: float) -> float:
    """Return an upper bound of 1 - (1 - probability)^draws, close by rounding."""
    return min(-math.expm1(draws * math.log1p(-probability)) * UP, 1.0) if probability < 1 else 1.0

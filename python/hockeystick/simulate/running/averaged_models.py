"""What the averaged models of federated rounds leak about one record (docs/core/federated.md has the proofs).

Clients start a round from the same model, which is known, and end it within a distance of it that the clipped steps allow.
So one client's model moves the mean of m by at most the same distance, whether a record is replaced or the client is.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array, at_most
from hockeystick._numeric.binomial import binomial_pmf
from hockeystick._numeric.rounding import DOWN, UP
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.gaussian_dp import gdp_epsilon
from hockeystick.mechanisms import Gaussian
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism
from hockeystick.simulate.running.guarantee import Guarantee
from hockeystick.simulate.running.participation import Participation, Poisson

__all__ = ["averaged_models"]

SAME_STEP = math.log(1.01)  # rounds whose steps differ by less are charged as one kind, the longer step's
MOST_KINDS = 32  # of rounds with Poisson clients, each of which is a mixture; rounds are grouped by more than 1 % then
SAME_SIZE = 1.02  # numbers of clients that differ by less likewise, the smaller number's
LEAST_CHANCE = 1e-40  # a smaller chance of so few clients is that of none
ROUNDED_SUM = 1.0 + 1e-9  # far more than a million probabilities added up err by
NO_SHIFT = 1e-12  # in place of none, which is smaller


class _UpperBound(Mechanism):
    """A mechanism of which no data are known that attain its pair."""

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        return super()._pairs(adjacency) if upper else []


@dataclass(frozen=True)
class FixedMean(_UpperBound):
    """Gaussian noise on the mean of a fixed number of models, in which a record is used with a probability.

    Parameters
    ----------
    shift : float
        By how many deviations of the noise one model can move the mean.
    rate : float
        Probability that a record is used, in (0, 1].
    """

    shift: float
    rate: float

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return core.fixed_size_sampled(Gaussian(2.0 / self.shift)._pair(adjacency), self.rate)


@dataclass(frozen=True)
class PoissonMean(_UpperBound):
    """Gaussian noise on each model, of which the mean is taken over a Poisson sample of clients.

    Parameters
    ----------
    shift : float
        By how many deviations of its own noise one model can move.
    sampling_rate : float
        Probability of each client, in (0, 1].
    use : float
        Probability that the record is used if its client takes part, in (0, 1].
    num_clients : int
        At least 1.
    """

    shift: float
    sampling_rate: float
    use: float
    num_clients: int

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        del adjacency
        used = min(self.sampling_rate * self.use * UP, 1.0)
        return _among_others(self.shift, used, self.num_clients - 1, self.sampling_rate)


@dataclass(frozen=True)
class RemainingMean(_UpperBound):
    """Gaussian noise on each model, of which the mean is taken over those clients of a fixed number that do not drop out.

    Parameters
    ----------
    shift : float
        By how many deviations of its own noise one model can move.
    rate : float
        Probability that a record would be used if nobody dropped out, in (0, 1].
    size : int
        How many clients there are before some drop out, at least 1.
    dropout : float
        Probability of each to drop out, in (0, 1).
    """

    shift: float
    rate: float
    size: int
    dropout: float

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        del adjacency
        remains = (1.0 - self.dropout) * DOWN  # fewer others hide less
        base = _among_others(self.shift, min((1.0 - self.dropout) * UP, 1.0), self.size - 1, remains)
        return core.fixed_size_sampled(base, self.rate) if self.rate < 1 else base


def _among_others(shift: float, used: float, num_others: int, rate: float) -> core.Pair:
    """Return the pair that shows whether a model is used, and how many others of this rate are averaged with it."""
    others, weights = _others(num_others, rate)
    shifts = shift / np.sqrt(others + 1.0) * UP
    rare = [(NO_SHIFT, 1.0 - used)] if used < 1 else []
    pairs = [*rare, *zip(shifts.tolist(), (used * weights).tolist(), strict=True)]
    return core.labelled_gaussian([shift for shift, _ in pairs], [weight for _, weight in pairs])


def _others(num_others: int, rate: float) -> tuple[Array, Array]:
    """Return numbers of other clients, and probabilities that put no less on few of them than the binomial law does."""
    if rate == 1 or num_others == 0:
        return np.array([float(num_others)]), np.ones(1)
    at_most_so_many = np.minimum(np.cumsum(binomial_pmf(num_others, rate)) * ROUNDED_SUM, 1.0)
    few = int(np.searchsorted(at_most_so_many, LEAST_CHANCE))
    starts = [0]
    while starts[-1] < num_others:
        starts.append(max(starts[-1] + 1, few, math.floor((starts[-1] + 1) * SAME_SIZE) - 1))
    ends = np.minimum(np.array([*starts[1:], num_others + 1]), num_others + 1) - 1
    weights = np.diff(at_most_so_many[ends], prepend=0.0)
    kept = weights > 0
    return np.asarray(starts, float)[kept], weights[kept]


def averaged_models(
    clients: Participation,
    num_clients: int,
    moves: Array,
    noise_std: float,
    use: float,
    *,
    dropout: float = 0.0,
    alike: float | None = None,
) -> Guarantee:
    """Return the guarantee of releasing the averaged model of every round, a record of one client replaced.

    Parameters
    ----------
    clients : Participation
        Who takes part in a round.
    num_clients : int
        How many there are.
    moves : ndarray
        Shape (rounds,): by how much one client's model can move, from the same start; never longer than in the round before.
    noise_std : float
        Of the noise that each client adds.
    use : float
        An upper bound of the probability that a record is used in a round in which its client takes part.
    dropout : float
        Probability of each client that would take part to drop out.
    alike : float, optional
        If weights differ and all take part: how many clients of equal weight would hide one of them as well as the heaviest is hidden.

    Returns
    -------
    Guarantee
        Under "replace".
    """
    rounds, counted = moves.size, dropout > 0 or isinstance(clients, Poisson)  # how many are averaged varies
    if isinstance(clients, Poisson):
        charged, rate, size = list(range(rounds)), clients.sampling_rate * use, num_clients
    else:
        charged, rate = clients._rounds_of_one(num_clients, rounds)
        rate, size = min(rate * use * UP, 1.0), clients._numbers("clients", num_clients)[1]
    shifts = moves[charged] / (noise_std if counted else noise_std * math.sqrt(alike or size)) * UP
    mu = shifts[0] * np.sqrt(np.cumsum((shifts / shifts[0]) ** 2)) * UP * UP
    levels = _levels(shifts, MOST_KINDS if counted else math.inf)

    def step(shift: float) -> Mechanism:
        if isinstance(clients, Poisson):
            remain = clients.sampling_rate * (1.0 - dropout) * (DOWN if dropout else 1.0)
            return PoissonMean(shift, remain, use, num_clients)
        return RemainingMean(shift, rate, size, dropout) if counted else FixedMean(shift, rate)

    def epsilon(t: int, delta: float) -> float:
        at_most("rounds", t, "those planned", rounds)
        uses = int(np.searchsorted(charged, t))  # the charged rounds before the first that is not over
        certain = float(gdp_epsilon(mu[uses - 1], delta))
        if rate == 1 and dropout == 0:
            return certain
        sampled = Accountant("replace")
        for shift, count in Counter(levels[:uses].tolist()).items():
            sampled = sampled.compose(step(shift), count)
        return min(certain, float(sampled.epsilon(delta)))

    return Guarantee("replace", "the averaged model of every round", _source(clients, rate, dropout), epsilon)


def _levels(shifts: Array, most_kinds: float) -> Array:
    """Return shifts that fall, each raised by at most 1 % to one of a few levels, or by more where there would be too many."""
    same = max(SAME_STEP, math.log(shifts[0] / shifts[-1]) / most_kinds)
    levels: Array = shifts[0] * np.exp(-same * np.floor(np.log(shifts[0] / shifts) / same)) * UP
    return np.clip(levels, shifts, shifts[0])


def _source(clients: Participation, rate: float, dropout: float) -> str:
    if isinstance(clients, Poisson):
        return (
            "Accountant; Gaussian noise on a mean over those drawn, how many and whether a record is used being shown"
        )
    if dropout > 0:
        drawn = f"a record would be used with probability {rate:.3g}"
        return f"Accountant; Gaussian noise on a mean over those that do not drop out, how many being shown; {drawn}"
    if rate == 1:
        return "gdp_epsilon; composition of the rounds in which one client takes part"
    return f"Accountant; fixed-size samples of Gaussian noise, in which a record is used with probability {rate:.3g}"

"""What released models leak about one record: guarantees, by what an adversary may see.

From top to bottom: what may be seen, and what a guarantee of it says; the averaged model of every round, where the clients of a round are drawn;
the last averaged model alone; one hidden model, the last or that of a random round. docs/core/federated.md has the theorems and their proofs.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import DELTA, Array, Checks, at_most, count_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick._hidden_states.best import sampled_bounds, smallest
from hockeystick._numeric.binomial import binomial_pmf
from hockeystick._numeric.rounding import DOWN, GAUSSIAN_TAIL, UP
from hockeystick._numeric.search import SMALLEST, last_whole, smallest_feasible
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.gaussian_dp import gdp_epsilon
from hockeystick.mechanisms import Dominating, Gaussian
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism
from hockeystick.mechanisms.premises import Premises

View: TypeAlias = Literal["messages", "shuffled_messages", "every_model", "last_model", "random_model"]
VIEWS: tuple[View, ...] = get_args(View)

WORDS: dict[View, str] = {
    "messages": "every message of every client, and so all models",
    "shuffled_messages": "the shuffled messages of every round, and so all models",
    "every_model": "the model after every round",
    "last_model": "the last model only",
    "random_model": "the model after a uniformly random round only",
}
# For each view, the views from which it can be computed. A sum does not depend on the order of the messages.
FROM: dict[View, tuple[View, ...]] = {
    "messages": ("messages",),
    "shuffled_messages": ("shuffled_messages", "messages"),
    "every_model": ("every_model", "shuffled_messages", "messages"),
    "last_model": ("last_model", "every_model", "shuffled_messages", "messages"),
    "random_model": ("random_model", "every_model", "shuffled_messages", "messages"),
}

Leaks = Callable[[int], tuple[Mechanism, int]]  # what some rounds leak: a mechanism, and how often
Account = tuple[Adjacency, Leaks]


class NoGuaranteeError(ValueError):
    """No certified bound covers an algorithm with these settings; the message says why."""


@dataclass(frozen=True)
class Guarantee:
    """A certified upper bound of epsilon after any number of rounds.

    Attributes
    ----------
    adjacency : {"add_or_remove", "replace"}
        Which problems are adjacent.
    released : str
        What an adversary may see.
    source : str
        The function that certifies, with what it assumes here.
    parts : tuple of Guarantee
        If several guarantees apply, each of them; epsilon is the smallest of theirs.
    """

    adjacency: Adjacency
    released: str
    source: str
    _epsilon: Callable[[int, float], float] = field(repr=False)
    _accounts: Sequence[Account] = field(default=(), repr=False)
    parts: tuple[Guarantee, ...] = field(default=(), repr=False)
    # The smaller of its epsilon and a known one, if that is quicker to tell.
    _below: Callable[[int, float, float], float] | None = field(default=None, repr=False)

    @property
    def premises(self) -> Premises:
        """What the bound rests on; that a training attains it is not claimed."""
        return Premises(self.adjacency, released=(self.released,), attained=False, sources=(self.source,))

    def epsilon(self, rounds: int, delta: float) -> float:
        """Return the certified upper end of epsilon at `delta` after some rounds; 0 after none.

        Parameters
        ----------
        rounds : int
            At least 0.
        delta : float
            In [0, 1).

        Returns
        -------
        float
            An upper bound, perhaps infinite.
        """
        rounds = count_scalar("rounds", rounds, 0)
        delta = scalar("delta", delta, *DELTA)
        return self._epsilon(rounds, delta) if rounds else 0.0

    def bounds(self, rounds: int, delta: float) -> dict[str, float]:
        """Return the epsilon of every guarantee that applies, the smallest first.

        Parameters
        ----------
        rounds : int
            At least 0.
        delta : float
            In [0, 1).

        Returns
        -------
        dict of str to float
            Upper bounds by the function that certifies; of several by one function, each says what it covers.
        """
        parts = self.parts or (self,)
        found: dict[str, float] = {}
        for part in parts:
            alone = sum(other.source == part.source for other in parts) == 1
            name = part.source if alone else f"{part.source}, which covers {part.released}"
            value = part.epsilon(rounds, delta)
            found[name] = min(value, found.get(name, value))
        return dict(sorted(found.items(), key=lambda item: item[1]))

    def accountant(self, rounds: int, delta: float) -> Accountant | None:
        """Return what the silo that loses most has spent after some rounds, or None for a bound of hidden states.

        Parameters
        ----------
        rounds : int
            At least 0.
        delta : float
            Decides which silo loses most; in [0, 1).

        Returns
        -------
        Accountant or None
            With its ledger, which knows the premises.
        """
        ledgers = _ledgers(self._accounts, count_scalar("rounds", rounds, 0))
        worst = max(ledgers, key=lambda ledger: float(ledger.epsilon(delta)), default=None)
        if worst is None:
            return None
        known = Accountant(worst.adjacency)
        for step, count in worst.ledger.items():
            assumes = (f"the bound is that of {self.source}", *step.premises(worst.adjacency).assumptions)
            known.compose(Dominating(step, assumes=assumes, released=self.released, adjacency=worst.adjacency), count)
        return known

    def affordable(self, rounds: int, epsilon: float, delta: float) -> int:
        """Return after how many rounds, of at most `rounds`, a budget stops a run: before the first that would exceed it.

        Parameters
        ----------
        rounds : int
            At least 1.
        epsilon, delta : float
            The budget.

        Returns
        -------
        int
            0 if not even one round fits.
        """
        return last_whole(lambda count: self.epsilon(int(count), delta) - epsilon, rounds)


def by_composition(accounts: Sequence[Account], released: str, source: str) -> Guarantee:
    """Return the guarantee of the worst of several silos."""

    def epsilon(rounds: int, delta: float) -> float:
        return max(float(ledger.epsilon(delta)) for ledger in _ledgers(accounts, rounds))

    return Guarantee(accounts[0][0], released, source, epsilon, accounts)


def _ledgers(accounts: Sequence[Account], rounds: int) -> list[Accountant]:
    """Return what silos have spent, once for those that have spent the same: silos may agree after some rounds and not after others."""
    spent = dict.fromkeys((adjacency, *leaks(rounds)) for adjacency, leaks in accounts)
    return [Accountant(adjacency).compose(mechanism, count) for adjacency, mechanism, count in spent]


def view_from(view: View, proven: Mapping[View, Callable[[], Guarantee]]) -> Guarantee:
    """Return the smallest of all guarantees that cover a view, from those that are proven for some views.

    Raises
    ------
    NoGuaranteeError
        If none covers it; of those that do not apply to the settings, the first says why.
    """
    found, refusal = [], None
    for source in FROM[view]:
        if source in proven:
            try:
                found.append(proven[source]())
            except NoGuaranteeError as error:
                refusal = refusal or error
    if found:
        return smallest_of(WORDS[view], found)
    if refusal:
        raise refusal
    raise NoGuaranteeError(
        f"nothing is certified for released={shown(view)}, only for {' and '.join(map(repr, proven))}"
    )


def smallest_of(released: str, found: Iterable[Guarantee]) -> Guarantee:
    """Return the guarantee whose epsilon is the smallest of several under one adjacency, the first one's."""
    first, *others = (part for guarantee in found for part in guarantee.parts or (guarantee,))
    parts = [first, *(part for part in others if part.adjacency == first.adjacency)]
    if len(parts) == 1:
        return parts[0]
    source = "; or, if smaller: ".join(dict.fromkeys(part.source for part in parts))

    def epsilon(rounds: int, delta: float) -> float:
        least = min((part.epsilon(rounds, delta) for part in parts if part._below is None), default=math.inf)
        for below in (part._below for part in parts if part._below is not None):  # which take long
            least = below(rounds, delta, least)
        return least

    return Guarantee(parts[0].adjacency, released, source, epsilon, parts=tuple(parts))


# The averaged model of every round.
#
# Clients start a round from the same model, which is known, and end it within a distance of it that the clipped steps allow. So one client's
# model moves the mean of m by at most the same distance, whether a record is replaced or the client is.

MAX_KINDS = 32  # of rounds: each is charged as the longest of its kind
MAX_MIXED_KINDS = 12  # the same, where each is a mixture over how many are averaged
LARGEST_SHIFT = 7.0  # a larger one shows all
SAME_SIZE = 1.02  # numbers of clients that differ by less likewise, the smaller number's
MIN_CHANCE = 1e-40  # a smaller chance of so few clients is that of none
ROUNDED_SUM = 1.0 + 1e-9  # far more than a million probabilities added up err by
NO_SHIFT = 1e-12  # in place of none, which is smaller


class Clients(NamedTuple):
    """Who takes part in the rounds of a training, as far as the proofs ask.

    Attributes
    ----------
    number : int
        How many models are averaged in a round; of a Poisson sample, from how many clients it is drawn.
    charged : list of int
        The rounds, from 0 and at the earliest, in which one client may take part.
    rate : float
        Probability that it does, in each of them.
    poisson : bool
        Whether each takes part independently of the others, so that the number averaged varies.
    """

    number: int
    charged: list[int]
    rate: float = 1.0
    poisson: bool = False


class _UpperBound(Mechanism):
    """A mechanism of which no data are known that attain its pair."""

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        return super()._pairs(adjacency) if upper else []


@dataclass(frozen=True)
class FixedMean(_UpperBound):
    """Gaussian noise on the mean of a fixed number of models, in which a record is used with a probability: theorem "fixed number".

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
    """Gaussian noise on each model, of which the mean is taken over a Poisson sample of clients: theorem "Poisson".

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
    """Gaussian noise on each model, of which the mean is taken over those of a fixed number who do not drop out: theorem "dropouts".

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
    few = int(np.searchsorted(at_most_so_many, MIN_CHANCE))
    starts = [0]
    while starts[-1] < num_others:
        starts.append(max(starts[-1] + 1, few, math.floor((starts[-1] + 1) * SAME_SIZE) - 1))
    ends = np.minimum(np.array([*starts[1:], num_others + 1]), num_others + 1) - 1
    weights = np.diff(at_most_so_many[ends], prepend=0.0)
    kept = weights > 0
    return np.asarray(starts, float)[kept], weights[kept]


def averaged_models(
    clients: Clients, moves: Array, noise_std: float, use: float, *, dropout: float = 0.0, alike: float | None = None
) -> Guarantee:
    """Return the guarantee of releasing the averaged model of every round, a record of one client replaced.

    Parameters
    ----------
    clients : Clients
        Who takes part in a round.
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
    rounds, counted = moves.size, dropout > 0 or clients.poisson  # how many are averaged varies
    rate = min(clients.rate * use * UP, 1.0)
    shifts = moves[clients.charged] / (noise_std if counted else noise_std * math.sqrt(alike or clients.number)) * UP
    mu = shifts[0] * np.sqrt(np.cumsum((shifts / shifts[0]) ** 2)) * UP * UP
    levels = _levels(shifts, MAX_MIXED_KINDS if counted else MAX_KINDS)

    def step(shift: float) -> Mechanism:
        if clients.poisson:
            remain = clients.rate * (1.0 - dropout) * (DOWN if dropout else 1.0)
            return PoissonMean(shift, remain, use, clients.number)
        return RemainingMean(shift, rate, clients.number, dropout) if counted else FixedMean(shift, rate)

    def epsilon(t: int, delta: float) -> float:
        at_most("rounds", t, "those planned", rounds)
        uses = int(np.searchsorted(clients.charged, t))  # the charged rounds before the first that is not over
        certain = float(gdp_epsilon(mu[uses - 1], delta))
        if rate == 1 and dropout == 0:
            return certain
        sampled = Accountant("replace")
        for shift, count in Counter(levels[:uses].tolist()).items():
            sampled = sampled.compose(step(shift), count)
        return min(certain, float(sampled.epsilon(delta)))

    return Guarantee("replace", "the averaged model of every round", _source(clients, rate, dropout), epsilon)


def _levels(shifts: Array, max_kinds: int) -> Array:
    """Return falling shifts in at most so many kinds, each raised to the first of its kind.

    A kind adds at most one amount to the variance of the losses: the least, on a grid, that needs no more kinds.
    """
    variances = (shifts / shifts[0]) ** 2 * np.exp(np.minimum(shifts, LARGEST_SHIFT) ** 2)
    sums = np.cumsum(variances)
    for most in sums[-1] * np.geomspace(1e-6, 2.0 * shifts.size, 100):  # the last is enough for one kind
        starts = [0]
        while starts[-1] < shifts.size and len(starts) <= max_kinds:
            first = starts[-1]
            excess = lambda t, i=first: variances[i] * (t - i) - sums[t] + sums[i]
            starts.append(bisect_right(range(shifts.size), most, first + 1, key=excess))
        if starts[-1] == shifts.size:
            break
    return np.maximum(np.repeat(shifts[starts[:-1]], np.diff(starts)), shifts)


def _source(clients: Clients, rate: float, dropout: float) -> str:
    if clients.poisson:
        return (
            "Accountant; Gaussian noise on a mean over those drawn, how many and whether a record is used being shown"
        )
    if dropout > 0:
        drawn = f"a record would be used with probability {rate:.3g}"
        return f"Accountant; Gaussian noise on a mean over those that do not drop out, how many being shown; {drawn}"
    if rate == 1:
        return "gdp_epsilon; composition of the rounds in which one client takes part"
    return f"Accountant; fixed-size samples of Gaussian noise, in which a record is used with probability {rate:.3g}"


# The last averaged model alone

MAX_EPSILON = 1e4
TOLERANCE = 1e-3  # relative, of an epsilon whose every trial takes hundredths of a second: the feasible end


@dataclass(frozen=True)
class AlikeRounds:
    """Rounds that are alike, in deviations of the noise of their mean: theorem "last model".

    Parameters
    ----------
    shift : float
        By how much a record that is used moves the mean.
    rate : float
        Probability that it is used, in (0, 1].
    lipschitz : float
        Of a round's map from model to mean, with the clients and batches given; at least 1.
    diameter : float
        Of the ball that models are projected onto, finite.
    """

    shift: float
    rate: float
    lipschitz: float
    diameter: float

    def delta(self, rounds: int, eps: float) -> float:
        """Return the smallest bound of a record that is used at random, with noise and steps of 1, but for those of whole curves."""
        smoothness = (self.lipschitz - 1.0) * UP
        cell = (eps, 1.0, rounds, 1.0, 1.0, self.shift / 2.0 * UP, smoothness, 0.0, self.diameter, self.rate)
        cells, grid = list(map(np.asarray, cell)), Checks(1, "raise")
        return float(smallest(sampled_bounds(cells, grid, convex=smoothness == 0.0, curves=False), grid).delta)

    def guarantee(self) -> Guarantee:
        """Return the guarantee of the last model, whose bounds of whole curves are those of all rounds at once."""
        search = by_bisection(self.delta)

        @lru_cache(maxsize=1024)
        def by_curves(delta: float) -> list[float]:
            return core.sampled_epsilons(self.shift, self.rate, self.lipschitz, self.diameter, delta) or [math.inf]

        def below(rounds: int, delta: float, known: float) -> float:
            curves = by_curves(delta)
            known = min(known, curves[min(rounds, len(curves)) - 1])  # the last holds for more rounds
            if math.isinf(known) or self.delta(rounds, known * (1.0 - TOLERANCE)) <= delta:
                known = min(known, search(rounds, delta))
            return known

        source = "last_iterate.best_sampled; rounds that are alike"
        return Guarantee(
            "replace", WORDS["last_model"], source, lambda t, delta: below(t, delta, math.inf), _below=below
        )


def by_bisection(delta_of: Callable[[int, float], float]) -> Callable[[int, float], float]:
    """Return an upper bound of epsilon at a delta after some rounds, from a slow one of delta at an epsilon; infinity beyond `MAX_EPSILON`."""

    @lru_cache(maxsize=1024)
    def epsilon(rounds: int, delta: float) -> float:
        if delta == 0.0:
            return math.inf

        def excess(eps: float) -> float:
            return math.log(max(delta_of(rounds, eps), SMALLEST) / delta)

        return smallest_feasible(excess, most=MAX_EPSILON, tolerance=TOLERANCE)

    return epsilon


# One hidden model: the last of a run, or that of a uniformly random round. Deltas become epsilons here.
#
# A run may be stopped by a budget, or be recorded before its last round. So a guarantee of a random stop among the planned rounds says
# after t of them the larger of two deltas: that of the model after min(stop, t) rounds, and that of a run for which t rounds were planned.
#
# A positive delta that underflows is the smallest double: a delta of 0 would claim pure differential privacy.


def smallest_epsilon(delta_of: Callable[[float], float], delta: float) -> float:
    """Return an epsilon at which delta_of is at most delta, within 1e-9 of the smallest, or infinity."""
    return float(smallest_feasible(lambda eps: delta_of(eps) - delta, most=2.0**19, tolerance=1e-9))


def never_zero(deltas: Array, positive: ArrayLike) -> Array:
    """Return the smallest double in place of the zeros among deltas that are known to be positive."""
    kept: Array = np.where(positive, np.maximum(deltas, SMALLEST), deltas)
    return kept


def running_sums(first: Array, later: Array) -> Array:
    """Return Theorem 2's sum for Gaussian noise after each round, rounded up. A round multiplies the sum by `later` and adds `first`."""
    sums, total = np.empty(first.size), 0.0
    for t, (added, kept) in enumerate(zip(first.tolist(), later.tolist(), strict=True)):
        total = added + kept * total
        sums[t] = total
    return never_zero(sums * (1.0 + GAUSSIAN_TAIL * (64.0 + first.size)), True)


def at_random_stop(deltas: Array, planned: int, suffix: float) -> float:
    """Return the delta of a stop among the last ceil(suffix T) rounds, from the deltas after each of the rounds so far.

    Parameters
    ----------
    deltas : ndarray
        Delta of the model after round 1, ..., t.
    planned : int
        T, at least t.
    suffix : float
        In (0, 1].
    """
    done = deltas.size
    worst = 0.0
    for rounds in {planned, done}:
        stops = np.arange(rounds - last_rounds(suffix, rounds) + 1, rounds + 1)
        reached = deltas[np.minimum(stops, done) - 1]
        worst = max(worst, SMALLEST if reached.any() else 0.0, float(reached.mean()))
    return worst * (1.0 + GAUSSIAN_TAIL)


def by_later_rounds(deltas: Array, planned: int) -> Array:
    """Return the delta at a uniformly random stop for the records that 0, 1, ... rounds follow, from their deltas after these.

    A record with k later rounds shows nothing if the stop is before its own, and what j later rounds leave if j of them are run.
    """
    done, sums = deltas.size, np.cumsum(deltas)
    unfinished = (sums - deltas + (planned - done + 1) * deltas) / planned
    worst: Array = np.maximum(unfinished, sums / done) * (1.0 + GAUSSIAN_TAIL * (64.0 + done))
    return never_zero(worst, sums > 0)


def last_rounds(suffix: float, rounds: int) -> int:
    """Return ceil(suffix rounds), at least 1; a product that is whole but for rounding is not rounded up."""
    return max(1, math.ceil(suffix * rounds * (1.0 - GAUSSIAN_TAIL)))

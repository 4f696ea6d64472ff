"""Local reports behind a shuffler.

The pair (Feldman, McMillan and Talwar 2021, Theorem 3.1). One report depends on the record that is replaced. Each of the other n - 1 is with
probability r a clone: a report of either of the two records, each with probability 1/2. What is seen tells no more than how many
reports there are of either, a and b, with a + b - 1 = C binomial(n - 1, r). With p = e^epsilon0 and y binomial(C + 1, 1/2),

    P(a | C) = 2 y(a) (p a + b)/((p + 1)(C + 1)),    loss = log (p a + b)/(a + p b),    Q the same with a and b exchanged.

r = 1/p holds for every epsilon0-LDP randomiser. r = 2/(p + 1) holds where R_x(y) >= (R_0(y) + R_1(y))/(p + 1) for all inputs x, 0, 1 and
outputs y, as then each report is with that probability one of the extreme ones Q_0 and Q_1, Q_0 + Q_1 = R_0 + R_1. k-ary randomised
response is such: where neither 0 nor 1 is y the right side is 2 s/(p + 1) <= s, the probability of a wrong bucket, else it is s.
For randomisers of all kinds it was printed with a faulty proof (Feldman, McMillan and Talwar 2023, see their errata).

Fewer clones leak more (adding one is a post-processing), so that C is rounded down to a few levels, and to 0 where its tail is cut.
Where the tail of y is cut the rest is as likely under P as under Q, by symmetry, and epsilon0 bounds its loss: it joins the level 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array, at_most, choice, count_scalar, scalar
from hockeystick._numeric.binomial import binomial_bulk
from hockeystick._numeric.rounding import HANDFUL
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism, refuse
from hockeystick.mechanisms.discrete_pair import connect_the_dots, widen

Randomizer: TypeAlias = Literal["any", "randomized_response"]
RANDOMIZERS = ("any", "randomized_response")
LARGEST_EPSILON, MOST_USERS = 20.0, 10**10
DEPTH = 80.0  # tails are cut where they are below e^-80
LEVELS, RELATIVE = 256, 2e-4  # of C: at most so many, not closer than this share of it
NODES = 1000  # of the loss, on either side of 0


@dataclass(frozen=True)
class Shuffled(Mechanism):
    """One round of local reports in random order, of which a record decides one.

    Only under ``adjacency="replace"``.

    Parameters
    ----------
    epsilon0 : float
        Each report is epsilon0-locally differentially private; in (0, 20].
    num_users : int
        Reports in the round, in [1, 10^10].
    randomizer : {"any", "randomized_response"}
        What is known of the local randomiser; the second is k-ary randomised response whose true bucket is e^epsilon0 times as
        likely as each other one, for any k.

    Notes
    -----
    Feldman, McMillan and Talwar 2021 and 2023; see mechanisms/shuffled.py for the pair and its proof; its grid raises epsilon by about 1e-4
    of itself. No randomiser is known to attain it, so that lower ends are 0. `hockeystick.isrl.shuffle_amplification` is the closed form,
    for (epsilon0, delta0) too. All users run randomisers of the same outputs, each epsilon0-LDP; each sends one report.

    Examples
    --------
    >>> import hockeystick as hs
    >>> polls = hs.Accountant("replace").compose(hs.Shuffled(1.0, 10_000), 10)
    >>> print(f"{polls.epsilon(1e-6):.3f}")
    0.182
    """

    epsilon0: float
    num_users: int
    randomizer: Randomizer = "any"

    def __post_init__(self) -> None:
        """Check the arguments."""
        epsilon0 = scalar("epsilon0", self.epsilon0, lambda x: 0 < x <= LARGEST_EPSILON, "lie in (0, 20]")
        object.__setattr__(self, "epsilon0", epsilon0)
        object.__setattr__(self, "num_users", count_scalar("num_users", self.num_users))
        at_most("num_users", self.num_users, "the largest supported", MOST_USERS)
        choice("randomizer", self.randomizer, RANDOMIZERS)

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [
            (
                "shuffling: each user sends one report by a randomiser of its own coins, every report is "
                f"{self.epsilon0:g}-locally private, and only their multiset is seen"
            )
        ]

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        if adjacency != "replace":
            raise refuse(self, adjacency, "a report is replaced, not added or removed")
        ratio = math.exp(self.epsilon0)
        rate = 1.0 / ratio if self.randomizer == "any" else 2.0 / (ratio + 1.0)
        return _dominating_pair(self.epsilon0, self.num_users, rate)

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        return super()._pairs(adjacency) if upper else []


@lru_cache(maxsize=64)
def _dominating_pair(epsilon0: float, num_users: int, rate: float) -> core.Pair:
    """Return P and Q on the grid."""
    levels, weights, none = _levels(num_users - 1, rate)
    outcomes = [_outcomes(epsilon0, int(level)) for level in levels]
    spread = [weight * float(q @ (loss * loss)) for weight, (loss, q) in zip(weights, outcomes, strict=True)]
    scale = min(max(math.sqrt(math.fsum(spread)), 1e-9), epsilon0) if spread else epsilon0
    half = scale * np.sinh(np.linspace(0.0, math.asinh(epsilon0 / scale), NODES + 1))
    half[-1] = epsilon0
    nodes = np.concatenate([-half[:0:-1], half])
    q = np.zeros(nodes.size)
    for weight, (loss, masses) in zip(weights, outcomes, strict=True):
        q += connect_the_dots(loss, weight * masses, nodes)
    q[[0, -1]] += none / (1.0 + np.exp([-epsilon0, epsilon0]))
    rounding = HANDFUL * (sum(loss.size for loss, _ in outcomes) + 64)
    q = widen(nodes, q[::-1], q, rounding)[1]
    return core.discrete(q[::-1].tolist(), q.tolist())


def _levels(trials: int, rate: float) -> tuple[Array, Array, float]:
    """Return the levels to which the number of clones is rounded down, their masses, and the mass of no clones and of the tails."""
    first, masses = binomial_bulk(trials, rate, DEPTH)
    step = max(masses.size / LEVELS, RELATIVE * first, 1.0)
    counts = first + np.arange(masses.size, dtype=np.float64)
    group = np.floor(np.arange(masses.size) / step).astype(np.int64)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    weights = np.add.reduceat(masses, starts)
    levels = counts[starts]
    clones = levels > 0
    return levels[clones], weights[clones], math.fsum([*weights[~clones], 4.0 * math.exp(-DEPTH)])


def _outcomes(epsilon0: float, clones: int) -> tuple[Array, Array]:
    """Return the losses and Q's masses of the reports among clones + 1, far tails left out."""
    first, masses = binomial_bulk(clones + 1, 0.5, DEPTH)
    a = first + np.arange(masses.size, dtype=np.float64)
    b = clones + 1.0 - a
    ratio = math.exp(epsilon0)
    loss = np.log1p((ratio - 1.0) * (a - b) / (a + ratio * b))
    return loss, masses * 2.0 * (a + ratio * b) / ((ratio + 1.0) * (clones + 1.0))

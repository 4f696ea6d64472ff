"""Local reports behind a shuffler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import hockeystick._core as core
from hockeystick._checks import at_most, choice, count_scalar, interval
from hockeystick._statements import say
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism

__all__ = ["Shuffled"]

Randomizer: TypeAlias = Literal["any", "randomized_response"]
RANDOMIZERS = ("any", "randomized_response")
MOST_USERS = 10**10


@dataclass(frozen=True)
class Shuffled(Mechanism):
    """One round of local reports in random order, of which a record decides one.

    Only under ``adjacency="replace"``. Nothing doubles where a record is replaced.

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
    Feldman, McMillan and Talwar 2021 and 2023; see release/shuffled.hpp for the pair and its proof; its grid raises epsilon by about 1e-4
    of itself. Lower ends are those of 3-ary randomised response where all others hold the third value. `hockeystick.isrl.shuffle_amplification` is the closed form,
    for (epsilon0, delta0) too. All users run randomisers of the same outputs, each epsilon0-LDP; each sends one report.

    Examples
    --------
    >>> import hockeystick as hs
    >>> polls = hs.Accountant("replace").compose(hs.mechanisms.Shuffled(1.0, 10_000), 10)
    >>> print(f"{polls.epsilon(1e-6):.3f}")
    0.182
    """

    epsilon0: float
    num_users: int
    randomizer: Randomizer = "any"

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(epsilon0=interval("(0, 20]"), num_users=count_scalar)
        at_most("num_users", self.num_users, "the largest supported", MOST_USERS)
        choice("randomizer", self.randomizer, RANDOMIZERS)

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [say("assumed_shuffled", epsilon=f"{self.epsilon0:g}")]

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if adjacency != "replace":
            raise self._refusal(adjacency, "a report is replaced, not added or removed")
        known = self.randomizer == "randomized_response"
        return [(core.shuffled(self.epsilon0, float(self.num_users), known, upper), 1.0)]

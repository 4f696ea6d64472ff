"""What all mechanisms are, the pairs that the compiled core knows them by, and the Renyi orders that are asked of others."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import ClassVar, TypeAlias

from hockeystick._checks import interval
from hockeystick._checks.checked import Checked
from hockeystick._checks.shown import shown
from hockeystick._core import Pair, as_one
from hockeystick._numeric.rounding import UP
from hockeystick.mechanisms.premises import Adjacency, Premises, Status, joined

LARGEST_ORDER = 1e5  # the binomial sum of accounting/renyi_divergence.py has as many terms
# Integers, where sampled mechanisms have the best bounds, and a grid of a - 1 so fine that the best order is never far.
ORDERS: tuple[float, ...] = tuple(
    sorted({*map(float, range(2, 65)), *(1.0 + 2.0 ** (k / 16.0) for k in range(-256, 209))})
)

__all__ = ["Adjacency", "Mechanism", "Pair", "Status"]  # three of other modules, which the room does not show

EPSILON = interval("(0, 600]")  # of what has no infinite loss, and some loss
ADJACENCIES = ("add_or_remove", "replace")
# Other programs' words for them. A record that is zeroed out leaves what one leaves that is removed.
REMOVED = (
    "add_or_remove_one",
    "add_remove",
    "addremove",
    "remove",
    "zero_out",
    "zeroing",
    "replace_special",
    "unbounded",
)
REPLACED = ("replace_one", "replacement", "substitution", "substitute", "swap", "change_one", "edit", "bounded")
ALSO_CALLED = dict.fromkeys(REMOVED, "add_or_remove") | dict.fromkeys(REPLACED, "replace")
# By how much a query moves, in units of its add-or-remove sensitivity.
SENSITIVITY = {"add_or_remove": 1.0, "replace": 2.0}

CountedPair: TypeAlias = tuple[Pair, float]  # a pair of the compiled core, and how often it is released

TAIL = math.exp(-50.0)  # a mass of next to nothing


def highest_loss(pair: Pair, forward: bool) -> float:
    """Return a loss, at least 0, beyond which there is nothing, or next to nothing, in one direction of a pair."""
    _, most, _, infinite = pair.limits(forward)
    spared = min(infinite * (1 + 1e-13) + TAIL, 1.0)
    return max(min(most, pair.one_step(forward, True, spared)[1]), 0.0)


def upper_delta(pair: Pair, forward: bool, eps: float) -> float:
    """Return the upper end of delta of one direction of a pair, at a negative eps by that of the other."""
    if eps >= 0:
        return float(pair.one_step(forward, False, eps)[1])
    other = pair.one_step(not forward, False, -eps)[1]
    return float(min((-math.expm1(eps) + math.exp(eps) * other) * UP, 1.0))


class Mechanism(Checked):
    """What one step releases; the base of all mechanisms."""

    _for_one_adjacency: ClassVar[bool] = False  # a guarantee that says nothing of the other one
    _has_pair: ClassVar[bool] = True  # else only bounds of Renyi divergences are known
    _assumes: ClassVar[tuple[str, ...]] = ()  # what must be true of every step of the class
    _never_refused: ClassVar[bool] = False  # has a pair under both adjacencies, whatever its parameters
    _certified: ClassVar[bool] = True  # whether the pair is proven to dominate, if those of the parts are

    def _pair(self, adjacency: Adjacency) -> Pair:
        """Return the pair that dominates one step, or raise ValueError if none is known for this adjacency."""
        return as_one(self._pairs(adjacency), upper=True)

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        """Return the releases of one step, for the upper or the lower end of what it leaks.

        A mechanism defines this, or `_pair` if that is exact, as most are.
        """
        del upper
        return [(self._pair(adjacency), 1.0)]

    def _refusal(self, adjacency: Adjacency, reason: str) -> ValueError:
        """Return the error to raise where no pair is proven."""
        return ValueError(f"{shown(self)} is not supported under adjacency={shown(adjacency)}: {reason}")

    def _mixed_failure(self) -> tuple[float, Mechanism]:
        """Return the probability f with which nothing is promised, and what is: the laws of the output are mixtures (1 - f) P' + f P''."""
        return 0.0, self

    def assumptions(self) -> list[str]:
        """Return what must be true of the step for its numbers to hold, in words; what it is made of says its own."""
        return list(self._assumes)

    def premises(self, adjacency: Adjacency = "add_or_remove") -> Premises:
        """Return what the numbers of one step rest on.

        Parameters
        ----------
        adjacency : {"add_or_remove", "replace"}
            Which data sets are adjacent.

        Returns
        -------
        Premises
            Its own, and those of what it is made of.

        Raises
        ------
        ValueError
            If nothing is known of the mechanism under this adjacency.
        """
        failure, attained = self._mixed_failure()[0], self._attains(adjacency)
        own = Premises(adjacency, attained=attained, failure=failure, status=self.status)
        return joined(adjacency, (own, self._words(adjacency)))

    def _words(self, adjacency: Adjacency) -> Premises:
        """Return what must be true of it and of its parts, which says nothing of what it attains."""
        own = Premises(adjacency, assumptions=tuple(self.assumptions()))
        return joined(adjacency, (own, *(part._words(adjacency) for part in self._parts())))

    def _attains(self, adjacency: Adjacency) -> bool:
        """Say whether it is known what some data sets leak, if any do."""
        below = any(pair.leaks for pair, _ in self._pairs(adjacency, upper=False))
        return below or (self._has_pair and not any(pair.leaks for pair, _ in self._pairs(adjacency)))

    def _shown(self) -> str:
        """Return what one step releases, for a statement, which has its premises in other places."""
        return repr(self)

    def _added_failure(self) -> float:
        """Return the probability with which what is accounted for may not stand for one step; it adds to every delta."""
        return 0.0

    def _holding(self) -> Mechanism:
        """Return what is accounted for where that does not happen."""
        return self

    def _plain(self) -> tuple[tuple[Mechanism, int], ...]:
        """Return the releases whose composition one step is, for upper ends: what only adds words to them is left away."""
        return ((self, 1),)

    def _parts(self) -> tuple[Mechanism, ...]:
        """Return the mechanisms that this one is made of."""
        return ()

    def _within(self) -> list[Mechanism]:
        """Return this mechanism, and all that it is made of."""
        return parts_of((self,))

    @property
    def status(self) -> Status:
        """Whether the pair is proven to dominate, "certified", or an "estimate"."""
        return status_of((self,))


def status_of(mechanisms: Iterable[Mechanism]) -> Status:
    """Return "certified" if the pairs of all mechanisms are proven to dominate, else "estimate"."""
    return "certified" if all(part._certified for part in parts_of(mechanisms)) else "estimate"


def parts_of(mechanisms: Iterable[Mechanism]) -> list[Mechanism]:
    """Return mechanisms and all that they are made of."""
    parts = list(mechanisms)
    for part in parts:  # which grow
        parts.extend(part._parts())
    return parts


def plain(ledger: Mapping[Mechanism, int]) -> dict[Mechanism, int]:
    """Return the releases of a ledger that upper ends are computed from."""
    releases: dict[Mechanism, int] = {}
    for step, count in ledger.items():
        for release, times in step._plain():
            releases[release] = releases.get(release, 0) + times * count
    return releases


def require_mechanism(mechanism: object) -> None:
    """Refuse what is no mechanism; a class that others are derived from is none."""
    if not isinstance(mechanism, Mechanism) or not dataclasses.is_dataclass(mechanism):
        raise TypeError(f"mechanism must be one of hockeystick's mechanisms, not {shown(mechanism)}")


def require_pairs(mechanism: Mechanism) -> None:
    """Refuse what is known by its Renyi divergences alone."""
    for part in mechanism._within():
        if not part._has_pair:
            raise ValueError(
                f"mechanism must have a dominating pair; only Renyi divergences are known of {shown(part)}"
            )

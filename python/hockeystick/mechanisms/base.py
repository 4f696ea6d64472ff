"""What all mechanisms are, and the pairs that the compiled core knows them by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal, TypeAlias

from hockeystick._core import Pair

Adjacency: TypeAlias = Literal["add_or_remove", "replace"]
Status: TypeAlias = Literal["certified", "estimate"]
ADJACENCIES = ("add_or_remove", "replace")
# Other programs' words for them. A record that is zeroed out leaves what one leaves that is removed.
ALSO_CALLED = {
    **dict.fromkeys(
        (
            "add_or_remove_one",
            "add_remove",
            "addremove",
            "remove",
            "zero_out",
            "zeroing",
            "replace_special",
            "unbounded",
        ),
        "add_or_remove",
    ),
    **dict.fromkeys(
        ("replace_one", "replacement", "substitution", "substitute", "swap", "change_one", "edit", "bounded"), "replace"
    ),
}
CountedPair: TypeAlias = tuple[Pair, float]  # a pair of the compiled core, and how often it is released


class Mechanism:
    """What one step releases; the base of all mechanisms."""

    _for_one_adjacency: ClassVar[bool] = False  # a guarantee that says nothing of the other one
    _has_pair: ClassVar[bool] = True  # else only bounds of Renyi divergences are known

    def _pair(self, adjacency: Adjacency) -> Pair:
        """Return the pair that dominates one step, or raise ValueError if none is known for this adjacency."""
        raise NotImplementedError

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        """Return the releases of one step, for the upper or the lower end of what it leaks."""
        del upper  # most pairs are exact
        return [(self._pair(adjacency), 1.0)]

    def _failing(self) -> tuple[float, Mechanism]:
        """Return the probability f with which nothing is promised, and what is: the laws of the output are mixtures (1 - f) P' + f P''."""
        return 0.0, self

    def assumptions(self) -> list[str]:
        """Return what must be true of the step for its numbers to hold, in words; what it is made of says its own."""
        return []

    def _parts(self) -> tuple[Mechanism, ...]:
        """Return the mechanisms that this one is made of."""
        return ()

    def _within(self) -> Iterator[Mechanism]:
        """Yield this mechanism, and all that it is made of."""
        yield self
        for part in self._parts():
            yield from part._within()

    @property
    def status(self) -> Status:
        """Whether the pair is proven to dominate, "certified", or an "estimate"."""
        return status_of(self._parts())


def status_of(mechanisms: Iterable[Mechanism]) -> Status:
    """Return "certified" if the pairs of all mechanisms are proven to dominate, else "estimate"."""
    return "certified" if all(mechanism.status == "certified" for mechanism in mechanisms) else "estimate"


def require_mechanism(mechanism: object) -> None:
    """Refuse what is no mechanism."""
    if not isinstance(mechanism, Mechanism):
        msg = f"mechanism must be one of hockeystick's mechanisms, not {mechanism!r}"
        raise TypeError(msg)


def require_pairs(mechanism: Mechanism) -> None:
    """Refuse what is known by its Renyi divergences alone."""
    for part in mechanism._within():
        if not part._has_pair:
            msg = f"mechanism must have a dominating pair; only Renyi divergences are known of {part!r}"
            raise ValueError(msg)


def sensitivity(adjacency: Adjacency) -> float:
    """Return by how much a query moves, in units of its add-or-remove sensitivity."""
    return 2.0 if adjacency == "replace" else 1.0


def refuse(mechanism: Mechanism, adjacency: Adjacency, reason: str) -> ValueError:
    """Return the error to raise where no pair is proven."""
    return ValueError(f"{mechanism!r} is not supported under adjacency={adjacency!r}: {reason}")

"""What all mechanisms are, and the pairs that the compiled core knows them by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal, TypeAlias

Adjacency: TypeAlias = Literal["add_or_remove", "replace"]
Status: TypeAlias = Literal["certified", "estimate"]
ADJACENCIES = ("add_or_remove", "replace")
Core: TypeAlias = tuple[str, list[float], float]  # kind, parameters, Poisson sampling rate
Entry: TypeAlias = tuple[str, list[float], float, float]  # the same, and a count


class Mechanism:
    """What one step releases; the base of all mechanisms."""

    _for_one_adjacency: ClassVar[bool] = False  # a guarantee that says nothing of the other one
    _has_pair: ClassVar[bool] = True  # else only bounds of Renyi divergences are known

    def _core(self, adjacency: Adjacency) -> Core:
        """Return the pair as the compiled core names it, or raise ValueError if there is none for this adjacency."""
        raise NotImplementedError

    def _entries(self, adjacency: Adjacency, *, upper: bool = True) -> list[Entry]:
        """Return the releases of one step, for the upper or the lower end of what it leaks."""
        del upper  # most pairs are exact
        return [(*self._core(adjacency), 1.0)]

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


def shift(noise_multiplier: float, adjacency: Adjacency) -> float:
    """Return the sensitivity of a query over its noise."""
    return (2.0 if adjacency == "replace" else 1.0) / noise_multiplier


def symmetric(kind: str, parameters: list[float], rate: float) -> bool:
    """Say whether the pair and its reverse have one privacy loss."""
    if kind == "discrete":
        half = len(parameters) // 2
        pair = list(zip(parameters[:half], parameters[half:], strict=True))
        return rate == 1.0 and sorted(pair) == sorted((q, p) for p, q in pair)
    if kind in ("gaussian_mixture", "truncated_gaussian", "discrete_pairs"):
        return False
    return rate == 1.0  # reflection exchanges the pair; the curve of a fixed-size sample is symmetric


def refuse(mechanism: Mechanism, adjacency: Adjacency, reason: str) -> ValueError:
    """Return the error to raise where no pair is proven."""
    return ValueError(f"{mechanism!r} is not supported under adjacency={adjacency!r}: {reason}")


def approximate_pair(epsilon: float, delta: float) -> Core:
    """Return the pair that dominates all (epsilon, delta)-DP mechanisms (Kairouz, Oh and Viswanath 2015)."""
    small = math.exp(-epsilon)
    high, low = (1.0 - delta) / (1.0 + small), (1.0 - delta) * small / (1.0 + small)
    return "discrete", [delta, high, low, 0.0, 0.0, low, high, delta], 1.0

"""What a number rests on. It goes wherever the number goes: statement, explanation, report and command line read nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from hockeystick._numeric.printing import format_upper
from hockeystick._numeric.rounding import failure_of
from hockeystick._statements import SENTENCES, say

Adjacency: TypeAlias = Literal["add_or_remove", "replace"]
Status: TypeAlias = Literal["certified", "estimate"]
ONE_RECORD = "one record"


@dataclass(frozen=True)
class Premises:
    """What a privacy guarantee rests on.

    Attributes
    ----------
    adjacency : {"add_or_remove", "replace"}
        Which data sets are adjacent.
    unit : str
        What is added, removed or replaced, if that was said: "one client with all its records".
    special : tuple of str
        What that means in steps where it means something special, such as zeroing out.
    released : tuple of str
        What an adversary may see; empty where it is all outputs.
    attained : bool
        Whether lower ends are known: what adjacent data sets of this algorithm leak. Otherwise what is accounted for only dominates, and they are 0.
    failure : float
        A bound of the probability with which the releases that are accounted for do not stand for the algorithm. Every delta includes it.
    assumptions : tuple of str
        What must be true of the algorithm.
    sources : tuple of str
        Where the bound comes from, if it is not the mechanism's own.
    status : {"certified", "estimate"}
        Whether the upper ends are proven.
    """

    adjacency: Adjacency
    unit: str = ""
    special: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    attained: bool = True
    failure: float = 0.0
    assumptions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    status: Status = "certified"

    def times(self, count: int) -> Premises:
        """Return the premises of so many such steps."""
        return replace(self, failure=failure_of([(count, self.failure)]))

    def change(self) -> str:
        """Return in words how adjacent data sets differ."""
        verb = f"{SENTENCES['adjacency'][self.adjacency]} {self.unit or ONE_RECORD}"
        return f"{verb} ({'; '.join(self.special)})" if self.special else verb

    def to_check(self) -> tuple[str, ...]:
        """Return all that must be true for the number to hold, the adjacency first."""
        adjacent = SENTENCES["assumed_adjacency"][self.adjacency].replace(ONE_RECORD, self.unit or ONE_RECORD)
        only = () if self.attained else (say("only_dominates"),)
        failing = (say("failure_included", failure=format_upper(self.failure, ".3g")),) if self.failure > 0.0 else ()
        return tuple(dict.fromkeys((adjacent, *self.special, *self.assumptions, *only, *failing)))


def joined(adjacency: Adjacency, parts: Iterable[Premises]) -> Premises:
    """Return the premises of a composition; nothing composed has none."""
    parts = tuple(parts)

    def union(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for part in parts for text in getattr(part, name)))

    return Premises(
        adjacency,
        " and ".join(dict.fromkeys(part.unit for part in parts if part.unit)),
        union("special"),
        union("released"),
        all(part.attained for part in parts),
        failure_of((1, part.failure) for part in parts),
        union("assumptions"),
        union("sources"),
        "certified" if all(part.status == "certified" for part in parts) else "estimate",
    )

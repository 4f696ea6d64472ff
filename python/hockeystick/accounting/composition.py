"""A ledger as the compiled core sees it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import hockeystick._core as core
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism, status_of


class Composition:
    """The steps of a ledger as pairs, with the engine that keeps what it computed between questions."""

    def __init__(self, ledger: Mapping[Mechanism, int], adjacency: Adjacency) -> None:
        """Take a ledger whose mechanisms support the adjacency."""
        self.ledger = dict(ledger)
        self.status = status_of(ledger)
        self.adjacency = adjacency
        self.by_renyi_alone = not all(mechanism._has_pair for mechanism in ledger)
        self._accountants: dict[bool, core.Accountant] = {}  # lower ends may cost much, and are not always asked for
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes it anew: a copy starts cold."""
        return Composition, (self.ledger, self.adjacency)

    def accountant(self, *, upper_only: bool) -> core.Accountant:
        """Return the core's accountant, with the steps for the ends that are asked for."""
        with self._lock:
            if upper_only not in self._accountants:
                accountant = core.Accountant()
                for upper in (True,) if upper_only else (True, False):
                    for pair, count in releases(self.ledger, self.adjacency, upper=upper):
                        accountant.compose(pair, count, upper)
                self._accountants[upper_only] = accountant
            return self._accountants[upper_only]

    def steps(self, *, upper: bool) -> list[CountedPair]:
        """Return the steps for an upper or a lower end, all Gaussian ones in one."""
        return self.accountant(upper_only=upper).steps(upper)

    def name_of(self, answer: core.Answer) -> str:
        """Return the name of the direction that an answer is about."""
        if answer.both_directions:
            return "both"
        names = ("forward", "reverse") if self.adjacency == "replace" else ("remove", "add")
        return names[0 if answer.forward else 1]


def releases(ledger: Mapping[Mechanism, int], adjacency: Adjacency, *, upper: bool) -> list[CountedPair]:
    """Return what a ledger releases that leaks, equal releases as one, for the upper or the lower end."""
    counts: dict[core.Pair, float] = {}
    for mechanism, count in ledger.items():
        for pair, times in mechanism._pairs(adjacency, upper=upper):
            if pair.leaks and times > 0.0:
                counts[pair] = counts.get(pair, 0.0) + times * float(count)
    return list(counts.items())

"""A ledger as the compiled core sees it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

from hockeystick._numeric.rounding import DOWN, UP
from hockeystick.mechanisms.base import Adjacency, Entry, Mechanism, status_of, symmetric


class Composition:
    """Steps that leak, all Gaussian ones in one."""

    def __init__(self, ledger: Mapping[Mechanism, int], adjacency: Adjacency) -> None:
        """Take a ledger whose mechanisms support the adjacency."""
        self.ledger = dict(ledger)
        self.status = status_of(ledger)
        self.adjacency = adjacency
        above = releases(ledger, adjacency, upper=True)
        self.others, self.mu = _without_gaussians(above), _gaussian_shift(above)

    @cached_property
    def _below(self) -> tuple[list[Entry], tuple[float, float] | None]:
        """For lower ends: not asked for by queries that need none."""
        below = releases(self.ledger, self.adjacency, upper=False)
        return _without_gaussians(below), _gaussian_shift(below)

    @property
    def is_exact(self) -> bool:
        """Whether upper and lower ends have the same steps."""
        others, mu = self._below
        return others == self.others and mu == self.mu and (mu is None or mu[0] == mu[1])

    def entries(self, *, upper: bool) -> list[Entry]:
        """Return the steps for an upper or a lower end."""
        others, mu = (self.others, self.mu) if upper else self._below
        return [*([] if mu is None else [("gaussian", [mu[upper]], 1.0, 1.0)]), *others]

    def directions(self) -> dict[str, bool]:
        """Return the names of the directions, and whether each is the forward one."""
        if all(symmetric(*entry[:3]) for entry in self.others):
            return {"both": True}
        if self.adjacency == "replace":
            return {"forward": True, "reverse": False}
        return {"remove": True, "add": False}


def releases(ledger: Mapping[Mechanism, int], adjacency: Adjacency, *, upper: bool) -> list[Entry]:
    """Return what a ledger releases, equal releases as one, for the upper or the lower end."""
    entries = [
        (kind, parameters, rate, times * float(count))
        for mechanism, count in ledger.items()
        for kind, parameters, rate, times in mechanism._entries(adjacency, upper=upper)
    ]
    entries = [entry for entry in entries if entry[2] > 0.0 and entry[3] > 0.0]
    if len(entries) < 2:
        return entries
    counts: dict[tuple[str, tuple[float, ...], float], float] = {}
    for kind, parameters, rate, count in entries:
        key = (kind, tuple(parameters), rate)
        counts[key] = counts.get(key, 0.0) + count
    return [(kind, list(parameters), rate, count) for (kind, parameters, rate), count in counts.items()]


def _without_gaussians(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if not (entry[0] == "gaussian" and entry[2] == 1.0)]


def _gaussian_shift(entries: list[Entry]) -> tuple[float, float] | None:
    """Return ends of the shift of all Gaussian steps in one, the root of the sum of squares; None if there are none."""
    gaussians = [entry for entry in entries if entry[0] == "gaussian" and entry[2] == 1.0]
    if not gaussians:
        return None
    mu = math.hypot(*(math.sqrt(count) * parameters[0] for _, parameters, _, count in gaussians))
    once = len(gaussians) == 1 and gaussians[0][3] == 1.0
    return (mu, mu) if once else (mu * DOWN, mu * UP)

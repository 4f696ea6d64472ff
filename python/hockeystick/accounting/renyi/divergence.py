"""Renyi divergences of a ledger: those of its pairs, and those by which some mechanisms are known, add up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import singledispatch

from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import FUNCTIONS
from hockeystick.mechanisms.base import Adjacency, Mechanism, plain
from hockeystick.mechanisms.renyi_bounded import RenyiMechanism, ZeroConcentratedDP

SMALLEST = 1e-290  # the least divergence that is told from 0


@singledispatch
def require_bound(mechanism: Mechanism, adjacency: Adjacency) -> None:
    """Refuse a mechanism whose bound cannot be computed; private_selection.py adds the one that needs an accountant."""
    del mechanism, adjacency


@singledispatch
def known_divergence(mechanism: RenyiMechanism, order: float, adjacency: Adjacency) -> float:
    """Return the bound that a mechanism is known by, in both directions; private_selection.py adds one as above."""
    return mechanism._divergence(order, adjacency)


def require_supported(mechanism: Mechanism, adjacency: Adjacency) -> None:
    """Raise ValueError if nothing certified is known of a mechanism under this adjacency."""
    if mechanism._has_pair:
        mechanism._holding()._pairs(adjacency)
    else:
        for release, _ in mechanism._plain():
            require_bound(release, adjacency)


def first_without_bound(ledger: Mapping[Mechanism, int]) -> Mechanism | None:
    """Return a mechanism whose divergences are not known for certain, or None."""
    return next((mechanism for mechanism in ledger if mechanism.status != "certified"), None)


def of_ledger(ledger: Mapping[Mechanism, int], adjacency: Adjacency, order: float) -> float:
    """Return the sum over the ledger, the larger of both directions."""
    unknown = first_without_bound(ledger)
    if unknown is not None:
        msg = f"rdp has no bound for {shown(unknown)}, which is only estimated"
        raise ValueError(msg)
    if any(mechanism._added_failure() > 0.0 for mechanism in ledger):
        return math.inf
    found = max(
        math.fsum(
            count * _of_step(mechanism, adjacency, order, forward=forward) for mechanism, count in plain(ledger).items()
        )
        * (1 + FUNCTIONS)
        for forward in (True, False)
    )
    # Where terms were subnormal, roundings are no longer relative; SMALLEST is above all that they take.
    return found if found >= SMALLEST or all(_leaks_nothing(m, adjacency) for m in ledger) else SMALLEST


def _leaks_nothing(mechanism: Mechanism, adjacency: Adjacency) -> bool:
    if isinstance(mechanism, ZeroConcentratedDP):
        return mechanism.rho == mechanism.xi == mechanism.delta == 0.0
    return mechanism._has_pair and not any(pair.leaks for pair, _ in mechanism._pairs(adjacency))


def _of_step(mechanism: Mechanism, adjacency: Adjacency, order: float, *, forward: bool) -> float:
    if isinstance(mechanism, RenyiMechanism):
        return known_divergence(mechanism, order, adjacency)
    pairs = mechanism._pairs(adjacency)
    return math.fsum(times * pair.renyi(order, forward or pair.symmetric) for pair, times in pairs)

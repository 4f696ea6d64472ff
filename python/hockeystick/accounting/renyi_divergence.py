"""Renyi divergences of a ledger: those of its pairs, and those by which some mechanisms are known, add up; delta and epsilon from them.

`_core.renyi_bound` converts divergences. Where nothing holds with probability f, the laws of the output are
P = (1 - f) P' + f P'' and Q = (1 - f) Q' + f Q'', and the divergences are those of P' and Q'. For every event,
P <= (1 - f) P' + f <= (1 - f)(e^eps Q' + delta') + f <= e^eps Q + (1 - f) delta' + f, so that (eps, delta') of P' and Q' is (eps, (1 - f) delta' + f) of P and Q. Steps j fail with probability f_j, also if each is chosen by what
the earlier ones released: their densities are at least the product of 1 - f_j times those of steps that did not fail, so that
f = 1 - prod_j (1 - f_j).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache, singledispatch

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import DOWN, FUNCTIONS, LONG_SUM, UP
from hockeystick.mechanisms.base import ORDERS, Adjacency, Mechanism, plain
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


def of_ledger(ledger: Mapping[Mechanism, int], adjacency: Adjacency, order: float) -> float:
    """Return the sum over the ledger, the larger of both directions."""
    unknown = next((mechanism for mechanism in ledger if mechanism.status != "certified"), None)
    if unknown is not None:
        raise ValueError(f"rdp has no bound for {shown(unknown)}, which is only estimated")
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
    return found if found >= SMALLEST or all(leaks_nothing(m, adjacency) for m in ledger) else SMALLEST


def leaks_nothing(mechanism: Mechanism, adjacency: Adjacency) -> bool:
    """Say whether a step certainly does not depend on the records."""
    if isinstance(mechanism, ZeroConcentratedDP):
        return mechanism.rho == mechanism.xi == mechanism.delta == 0.0
    if not mechanism._has_pair or mechanism._added_failure() > 0.0:
        return False
    return not any(pair.leaks for pair, _ in mechanism._pairs(adjacency))


def _of_step(mechanism: Mechanism, adjacency: Adjacency, order: float, *, forward: bool) -> float:
    if isinstance(mechanism, RenyiMechanism):
        return known_divergence(mechanism, order, adjacency)
    pairs = mechanism._pairs(adjacency)
    return math.fsum(times * pair.renyi(order, forward or pair.symmetric) for pair, times in pairs)


def best(ledger: Mapping[Mechanism, int], adjacency: Adjacency, for_epsilon: bool, value: float) -> tuple[float, float]:
    """Return the least upper bound over the orders, and its order."""
    failure, holding = split_failure(ledger)
    divergences = _curve(frozenset(holding.items()), adjacency)
    if for_epsilon:
        if value < failure:
            return math.inf, ORDERS[-1]
        return core.renyi_bound(ORDERS, divergences.tolist(), True, without_failure(value, failure))
    delta, order = core.renyi_bound(ORDERS, divergences.tolist(), False, value)
    return with_failure(delta, failure), order


def split_failure(ledger: Mapping[Mechanism, int]) -> tuple[float, dict[Mechanism, int]]:
    """Return the probability that a step of a ledger fails, rounded up, and the ledger of steps that do not."""
    logs, holding = [0.0], dict[Mechanism, int]()
    for mechanism, count in plain(ledger).items():
        failure, rest = mechanism._mixed_failure()
        logs.append(count * math.log1p(-failure) if failure < 1.0 else -math.inf)
        holding[rest] = holding.get(rest, 0) + count
    return min(1.0, -math.expm1(math.fsum(logs)) * (1.0 + LONG_SUM)), holding


def without_failure(delta: float, failure: float) -> float:
    """Return (delta - f)/(1 - f), what is left of a delta beside a probability of failure, rounded down; 0 if nothing is."""
    if failure == 0.0:
        return delta
    left = (delta - failure) / (1.0 - failure) if failure < delta else 0.0
    return left * DOWN


def with_failure(delta: float, failure: float) -> float:
    """Return (1 - f) delta + f, rounded up."""
    return delta if failure == 0.0 else min(1.0, math.nextafter((failure + (1.0 - failure) * delta) * UP, 1.0))


@lru_cache(maxsize=256)
def _curve(ledger: frozenset[tuple[Mechanism, int]], adjacency: Adjacency) -> Array:
    return np.array([of_ledger(dict(ledger), adjacency, order) for order in ORDERS])

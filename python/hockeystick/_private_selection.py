"""The Renyi divergence of the best of a random number of runs (Papernot and Steinke 2022).

Truncated negative binomial K of shape eta and success gamma (Theorem 2): if a run has divergences D(a) and D(b), a, b > 1,

    D'(a) <= D(a) + (1 + eta)(1 - 1/b) D(b) + (1 + eta) log(1/gamma)/b + log(E K)/(a - 1).

Poisson K of mean m (Theorem 6): if a run is (e, d)-DP with e = log(1 + 1/(a - 1)), D'(a) <= D(a) + m d + log(m)/(a - 1).
log(m) < 0 is taken as 0, which costs nothing that matters and lets the bound grow with m.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from hockeystick import _renyi
from hockeystick._noise import Adjacency, Mechanism
from hockeystick._orders import ORDERS

if TYPE_CHECKING:
    from hockeystick._renyi_bounds import PrivateSelection

ROUNDING = 1.0 + 1e-12


@lru_cache(maxsize=4096)
def divergence(selection: PrivateSelection, order: float, adjacency: Adjacency) -> float:
    """Return the bound, infinite at order 1, where none is stated."""
    run = _run(selection.mechanism, selection.count, adjacency, order)
    if order <= 1.0 or run == math.inf:
        return math.inf
    often = math.log(selection.mean) / (order - 1.0)
    if selection.shape is None:
        close = _delta(selection.mechanism, selection.count, adjacency, -math.log1p(-1.0 / order))
        return (run + selection.mean * close + max(often, 0.0)) * ROUNDING
    log_gamma = _log_success(selection.shape, selection.mean)
    second = min(
        (1.0 - 1.0 / b) * _run(selection.mechanism, selection.count, adjacency, b) - log_gamma / b for b in ORDERS
    )
    return (run + (1.0 + selection.shape) * second + often) * ROUNDING


@lru_cache(maxsize=4096)
def _run(mechanism: Mechanism, count: int, adjacency: Adjacency, order: float) -> float:
    return _renyi.of_ledger({mechanism: count}, adjacency, order)


@lru_cache(maxsize=1024)
def _delta(mechanism: Mechanism, count: int, adjacency: Adjacency, eps: float) -> float:
    from hockeystick.accounting import Accountant  # noqa: PLC0415, which imports this

    return float(Accountant(adjacency).compose(mechanism, count).delta(eps * (1.0 - 2.0**-50)))


@lru_cache(maxsize=64)
def _log_success(shape: float, mean: float) -> float:
    """Return log gamma for which the mean is E K, by bisection, on the side of the larger mean."""
    low, high = -60.0, 0.0
    while high - low > 1e-13 * max(-low, 1e-3):
        middle = 0.5 * (low + high)
        if low < middle < high and log_mean(shape, middle) < math.log(mean):
            high = middle
        elif low < middle < high:
            low = middle
        else:
            break
    return low


def log_mean(shape: float, log_gamma: float) -> float:
    """Return log E K: E K = eta (1 - gamma)/(gamma (1 - gamma^eta)), and (1 - gamma)/(gamma log(1/gamma)) for eta = 0."""
    missed = -math.expm1(log_gamma)
    if abs(shape * log_gamma) < 1e-9:
        return math.log(missed / -log_gamma) - log_gamma
    return math.log(missed * shape / -math.expm1(shape * log_gamma)) - log_gamma

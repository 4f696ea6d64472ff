"""The Renyi divergence of the best of a random number of runs (Papernot and Steinke 2022).

Truncated negative binomial K of shape eta and success gamma (Theorem 2): if a run has divergences D(a) and D(b), a, b > 1,

    D'(a) <= D(a) + (1 + eta)(1 - 1/b) D(b) + (1 + eta) log(1/gamma)/b + log(E K)/(a - 1).

Poisson K of mean m (Theorem 6): if a run is (e, d)-DP with e = log(1 + 1/(a - 1)), D'(a) <= D(a) + m d + log(m)/(a - 1).
log(m) < 0 is taken as 0, which costs nothing that matters and lets the bound grow with m.
"""

from __future__ import annotations

import bisect
import math
from functools import lru_cache

import numpy as np

from hockeystick._numeric.rounding import DOWN
from hockeystick._numeric.search import halve
from hockeystick.accounting import renyi_divergence as renyi
from hockeystick.accounting.composition import Composition
from hockeystick.mechanisms.base import ORDERS, Adjacency, Mechanism
from hockeystick.mechanisms.renyi_bounded import PrivateSelection

MARGIN = 1.0 + 1e-12  # the logarithms of means, which cancel


@renyi.known_divergence.register
def divergence(selection: PrivateSelection, order: float, adjacency: Adjacency) -> float:
    """Return the least bound of this order or, as divergences do not fall, of a larger one."""
    beyond = bisect.bisect_left(ORDERS, order)
    least = _least_from(selection, adjacency)[beyond]
    return least if ORDERS[beyond : beyond + 1] == (order,) else min(least, _bound(selection, order, adjacency, order))


@renyi.require_bound.register
def require_bound(selection: PrivateSelection, adjacency: Adjacency) -> None:
    """Raise ValueError if nothing is known of the runs, or no such number of them exists."""
    _bound(selection, 2.0, adjacency)


@lru_cache(maxsize=64)
def _least_from(selection: PrivateSelection, adjacency: Adjacency) -> list[float]:
    """Return the least bound of the orders from each one on; infinite at last."""
    bounds = [_bound(selection, order, adjacency) for order in ORDERS]
    return [*np.minimum.accumulate(bounds[::-1])[::-1].tolist(), math.inf]


def _bound(selection: PrivateSelection, order: float, adjacency: Adjacency, distance_at: float | None = None) -> float:
    """Return what the theorem has for an order; infinity at 1, of which it says nothing.

    The distance of runs is asked at the order `distance_at`; by default at one of a few, the next that is not below `order`.
    """
    run = _run(selection.mechanism, selection.count, adjacency, order)
    if order <= 1.0 or run == math.inf:
        return math.inf
    often = math.log(selection.mean) / (order - 1.0)
    if selection.shape is None:
        distance = -math.log1p(-1.0 / (distance_at or _rounded_up(order)))
        close = _delta(selection.mechanism, selection.count, adjacency, distance)
        return (run + selection.mean * close + max(often, 0.0)) * MARGIN
    return (run + _second(selection, adjacency) + often) * MARGIN


def _rounded_up(order: float) -> float:
    """Return one of fewer orders, at which the distance of runs is asked: a larger one has the larger delta."""
    return next((asked for asked in ORDERS[::6] if asked >= order), order)


@lru_cache(maxsize=64)
def _second(selection: PrivateSelection, adjacency: Adjacency) -> float:
    """Return the part with the second order b, at the best one."""
    shape = selection.shape or 0.0
    log_gamma = _log_success(shape, selection.mean)
    run = (_run(selection.mechanism, selection.count, adjacency, b) for b in ORDERS)
    return (1.0 + shape) * min((1.0 - 1.0 / b) * value - log_gamma / b for b, value in zip(ORDERS, run, strict=True))


@lru_cache(maxsize=4096)
def _run(mechanism: Mechanism, count: int, adjacency: Adjacency, order: float) -> float:
    return renyi.of_ledger({mechanism: count}, adjacency, order)


@lru_cache(maxsize=1024)
def _delta(mechanism: Mechanism, count: int, adjacency: Adjacency, eps: float) -> float:
    return Composition({mechanism: count}, adjacency).upper_delta(eps * DOWN)


@lru_cache(maxsize=64)
def _log_success(shape: float, mean: float) -> float:
    """Return log gamma for which the mean is E K, by bisection, on the side of the larger mean."""
    low, high = -700.0, 0.0
    if log_mean(shape, low) < math.log(mean):
        raise ValueError(f"mean must be at most {math.exp(log_mean(shape, low)):g} for shape {shape:g}, not {mean:g}")
    return halve(lambda x: log_mean(shape, x) >= math.log(mean), low, high, tolerance=1e-13, smallest=1e-3)[0]


def log_mean(shape: float, log_gamma: float) -> float:
    """Return log E K: E K = eta (1 - gamma)/(gamma (1 - gamma^eta)), and (1 - gamma)/(gamma log(1/gamma)) for eta = 0."""
    missed = -math.expm1(log_gamma)
    if abs(shape * log_gamma) < 1e-9:
        return math.log(missed / -log_gamma) - log_gamma
    return math.log(missed * shape / -math.expm1(shape * log_gamma)) - log_gamma

"""The trade-off function from certified deltas: every tangent lies below it, so any choice of them is sound."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.rounding import LARGEST_BELOW_ONE

START, ROUNDS, MOST = 17, 6, 400  # points at first, refinements, points at most

Function = Callable[[float], float]


def false_negative_rates(delta: Function, epsilon: Function, fpr: Array) -> Array:
    """Return the largest tangent at every false-positive rate: sup of 1 - delta - e^eps fpr and e^-eps (1 - delta - fpr)."""
    rates = np.unique(fpr[(fpr > 0.0) & (fpr < 1.0)])
    table = tangents_near(rates, delta, epsilon)
    result = np.zeros(fpr.shape)
    for at in np.ndindex(fpr.shape):
        rate = float(fpr[at])
        result[at] = _never_caught(delta) if rate == 0.0 else float(tangents(table, rate).max())
    return result


def tangents_near(rates: Array, delta: Function, epsilon: Function) -> Array:
    """Return points (eps, delta) of the curve, refined where they give the best tangents at increasing rates in (0, 1)."""
    curve = {0.0: delta(0.0)}
    if rates.size:
        # Beyond the epsilon at which delta is within a thousandth of the rates of its limit, tangents gain less than that.
        limit = delta(math.inf)
        farthest = epsilon(min(limit + 1e-3 * float(min(rates[0], 1.0 - rates[-1], 1e-3)), LARGEST_BELOW_ONE))
        top = min(farthest, 700.0)
        for eps in np.linspace(0.0, top, START)[1:].tolist():
            curve[eps] = delta(eps)
        for _ in range(ROUNDS):
            _refine(curve, delta, rates)
    return np.array(sorted(curve.items()))  # (points, 2)


def _never_caught(delta: Function) -> float:
    """Return the rate at which outcomes possible on one data set alone are not seen."""
    return max(math.nextafter(1.0 - delta(math.inf), 0.0), 0.0) if delta(math.inf) > 0.0 else 1.0


def tangents(table: Array, rate: float | Array) -> Array:
    """Return both tangents of each point at a rate, rounded down: shape (2, points), or (2, rates, points) for a column of rates."""
    eps, delta = table.T
    growth = np.exp(eps)
    steep = (1.0 - delta) - growth * rate * (1.0 + 1e-15)
    flat = ((1.0 - delta) - rate) / growth * (1.0 - 1e-15)
    steep -= 4e-16 * np.maximum(1.0 - delta, growth * rate)
    flat -= 4e-16 * np.maximum(1.0 - delta, rate) / growth
    both: Array = np.maximum(np.stack([steep, flat]), 0.0)
    return both


def _refine(curve: dict[float, float], delta: Function, rates: Array) -> None:
    """Add the points half-way to both neighbours of each rate's best one."""
    table = np.array(sorted(curve.items()))
    wanted: set[float] = set()
    for rate in rates.tolist():
        best = int(np.argmax(tangents(table, rate).max(axis=0)))
        near = table[max(best - 1, 0) : best + 2, 0].tolist()
        wanted |= {0.5 * (a + b) for a, b in zip(near, near[1:])}  # noqa: B905, RUF007, shifted by one
    for eps in sorted(wanted - {*curve})[: MOST - len(curve)]:
        curve[eps] = delta(eps)

"""The pair of discrete distributions whose curve connects the dots of a profile.

delta as a function of a = e^eps is convex, 1 at a = 0, and does not rise (Zhu, Dong and Wang 2022). Chords between upper bounds
of it therefore lie above it, and the chords are the curve of a pair. An outcome at the loss eps of two chords has the difference of
their slopes under Q, and e^eps times that under P. Beyond the last point delta stays: that is P's mass of infinite loss.

Losses below 0 are seen from the other direction, where the same holds with P and Q exchanged. Each side is computed in its own
direction, from differences of the numbers given, so that every tail of either law has a small relative error. eps = 0 belongs to
both directions. With d the total variation distance there, and s and t the slopes of the first chords on its two sides, the loss 0
has the mass 1 - d - s - t under both laws. Where that is negative, d lies above the chord of its neighbours. Then d becomes the
chord's value, which bounds it as well, and the mass is 0. These few numbers are computed exactly, as fractions.

A point above the chord of its neighbours is left out. This only raises the chords that it was the end of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.rounding import MASSES, SHORT_SUM, UP
from hockeystick.mechanisms.discrete_pair import narrow, widen

Law: TypeAlias = list[float]
LEAST_SLOPE = 2.0**-960  # smaller ones lose digits, as doubles do near 1e-308


class _Point(NamedTuple):
    eps: float
    delta: float
    slope: float  # by how much delta falls, a unit of e^eps, on the chord to the next point; 0 beyond the last


class _Connected(NamedTuple):
    """The outcomes, by increasing loss, and their masses."""

    losses: Array
    p: Array
    q: Array
    precise: bool  # every slope has all its digits


def dominating_pair(epsilons: Sequence[float], remove: Sequence[float], add: Sequence[float]) -> tuple[Law, Law]:
    """Return the masses of a pair whose curve is nowhere below the chords."""
    dots = _connect(epsilons, remove, add)
    p, q = widen(dots.losses, dots.p, dots.q, MASSES)
    return _whole(p, dots.losses == math.inf), _whole(q, dots.losses == -math.inf)


def attained_pair(epsilons: Sequence[float], remove: Sequence[float], add: Sequence[float]) -> tuple[Law, Law] | None:
    """Return the masses of a pair whose curve is nowhere above the chords, or None where rounding forbids it."""
    dots = _connect(epsilons, remove, add)
    pair = narrow(dots.losses, dots.p, dots.q, MASSES) if dots.precise else None
    return None if pair is None else (pair[0].tolist(), pair[1].tolist())


def _connect(epsilons: Sequence[float], remove: Sequence[float], add: Sequence[float]) -> _Connected:
    sides = [_hull(epsilons, remove), _hull(epsilons, add)]
    distance, slopes = _at_zero(remove[0], sides)
    rest = float(1 - distance - sum(slopes))
    (up, p_up, q_up), (down, q_down, p_down) = (
        _outcomes(side, slope, distance) for side, slope in zip(sides, slopes, strict=True)
    )
    losses = np.array([*(-eps for eps in reversed(down)), 0.0, *up])
    p = np.array([*reversed(p_down), rest, *p_up])
    q = np.array([*reversed(q_down), rest, *q_up])
    kept = (p > 0.0) | (q > 0.0)
    all_slopes = [*slopes, *(point.slope for side in sides for point in side)]
    precise = all(slope == 0 or slope > LEAST_SLOPE for slope in all_slopes)
    return _Connected(losses[kept], p[kept], q[kept], precise)


def _hull(epsilons: Sequence[float], deltas: Sequence[float]) -> list[_Point]:
    """Return the points beyond 0 on their lower convex hull, the nearest to 0 last."""
    kept: list[_Point] = []
    for eps, delta in list(zip(epsilons, deltas, strict=True))[:0:-1]:
        while kept and _slope(eps, delta, kept[-1]) < kept[-1].slope:
            kept.pop()
        kept.append(_Point(eps, delta, _slope(eps, delta, kept[-1]) if kept else 0.0))
    return kept


def _slope(eps: float, delta: float, point: _Point) -> float:
    """Return the slope of the chord to a later point, rounded up."""
    fall, gap = delta - point.delta, point.eps - eps
    # A gap of 1 or more is rounded, by up to 2^-44 where eps is hundreds: too much for an exponent.
    width = math.exp(eps) * math.expm1(gap) if gap < 1.0 else math.exp(point.eps) - math.exp(eps)
    return math.nextafter(fall / width * UP, math.inf) if fall > 0.0 else 0.0


def _at_zero(delta: float, sides: list[list[_Point]]) -> tuple[Fraction, list[Fraction]]:
    """Return delta(0) and the slopes of the first chords; points that are above such a chord leave their side."""
    while True:
        nearest = [side[-1] for side in sides if side]
        weights = [1 / Fraction(math.expm1(point.eps)) for point in nearest]
        chord = 1 + sum(Fraction(point.delta) * weight for point, weight in zip(nearest, weights, strict=True))
        distance = min(Fraction(delta), chord / (1 + sum(weights)))
        slopes = [_first_slope(distance, side) for side in sides]
        above = [side for side, slope in zip(sides, slopes, strict=True) if side and slope < side[-1].slope]
        if not above:
            return distance, slopes
        for side in above:
            side.pop()


def _first_slope(distance: Fraction, side: list[_Point]) -> Fraction:
    return (distance - Fraction(side[-1].delta)) / Fraction(math.expm1(side[-1].eps)) if side else Fraction(0)


def _outcomes(side: list[_Point], first_slope: Fraction, distance: Fraction) -> tuple[list[float], Law, Law]:
    """Return the losses of one side from 0 outwards, and the masses of the likelier and of the other law."""
    slope = math.nextafter(float(first_slope) * UP, math.inf) if first_slope > 0 else 0.0
    losses, likelier, other = [], [], []
    for point in reversed(side):
        losses.append(point.eps)
        other.append(slope - point.slope)
        likelier.append(other[-1] * math.exp(point.eps))
        slope = point.slope
    infinite = side[0].delta if side else _raised(distance)
    return [*losses, math.inf], [*likelier, infinite], [*other, 0.0]


def _raised(value: Fraction) -> float:
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, 1.0)


def _whole(law: Array, infinite: Array) -> Law:
    """Return a law that sums to 1; what is missing beyond rounding counts as infinite loss."""
    missing = 1.0 - math.fsum(law.tolist())
    if missing < -SHORT_SUM:
        msg = f"the masses of a profile sum to 1{-missing:+g}. This is a bug in hockeystick."
        raise RuntimeError(msg)
    return (law + np.where(infinite, missing, 0.0) if missing > SHORT_SUM else law).tolist()

r"""Trade-off functions that are polygons: their corners in exact fractions, and the privacy profile that says the same.

Let S be an event of probability x without a record, which fails with probability y with it. The guarantee is that every (x, y) lies on or
above a convex polygon. With gamma = e^epsilon,

.. math:: \delta(\epsilon) = \sup_S\, (1 - y - \gamma x) = \max_{\text{corners}}\, (1 - y - \gamma x),

because a linear function has its maximum over what lies above a convex polygon at a corner (Dong, Roth and Su 2022, Proposition 6). It
bends where gamma is the steepness of a side, so that the points there determine it. The other order of both data sets has the
mirrored polygon, of corners (y, x).

Errors: steepnesses and deltas are exact fractions, then rounded outwards. An epsilon is rounded up for an upper bound, as delta falls,
and down for a lower one: then both points that a chord connects lie on one side of the line that it stands for.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from fractions import Fraction

from hockeystick._numeric.rounding import HANDFUL
from hockeystick.mechanisms.privacy_profile import PrivacyProfile
from hockeystick.mechanisms.profile_sampling import LARGEST_EPSILON

Corner = tuple[Fraction, Fraction]
STEEPEST = Fraction(math.exp(LARGEST_EPSILON))  # beyond it delta counts as that of infinite epsilon


def rounded(value: Fraction, *, up: bool) -> float:
    """Return the next double that is not below, or not above, a fraction."""
    nearest = float(value)
    off = Fraction(nearest) - value
    if (off < 0) if up else (off > 0):
        return math.nextafter(nearest, math.inf if up else -math.inf)
    return nearest


def lower_hull(points: Iterable[Corner]) -> list[Corner]:
    """Return the corners of the largest convex function on or below the points."""
    kept: list[Corner] = []
    for x, y in sorted(points):
        if kept and kept[-1][0] == x:
            continue  # sorted: the lower one was first
        while len(kept) > 1 and _fall(kept[-2], kept[-1]) <= _fall(kept[-2], (x, y)):
            kept.pop()
        kept.append((x, y))
    return kept


def _fall(left: Corner, right: Corner) -> Fraction:
    """Return how steeply a side falls."""
    return (left[1] - right[1]) / (right[0] - left[0])


class _Direction:
    """Delta of one order of the data sets, as upper or as lower bounds."""

    def __init__(self, corners: list[Corner], *, up: bool) -> None:
        self._up = up
        self._corners = corners
        falls = [_fall(corners[i], corners[i + 1]) for i in range(len(corners) - 1)]
        self._falls = falls[::-1]  # increasing
        steep = [fall for fall in self._falls if 1 < fall <= STEEPEST]
        self.is_steep = any(fall > STEEPEST for fall in falls)
        self.epsilons = [self._epsilon(fall) for fall in steep]
        self._deltas = [self._exact(fall) for fall in steep]

    def _epsilon(self, fall: Fraction) -> float:
        margin = 1.0 + HANDFUL if self._up else 1.0 - HANDFUL
        return min(math.log1p(rounded(fall - 1, up=self._up)) * margin, LARGEST_EPSILON)

    def _exact(self, gamma: Fraction) -> Fraction:
        x, y = self._corners[len(self._falls) - bisect_right(self._falls, gamma)]
        return max(1 - y - gamma * x, Fraction(0))

    def delta(self, eps: float) -> float:
        """Return a bound at any epsilon; at an epsilon of a side the one of that side."""
        if eps == 0.0:
            return rounded(self._exact(Fraction(1)), up=self._up)
        gamma = Fraction(math.exp(eps)) * Fraction(1.0 - HANDFUL if self._up else 1.0 + HANDFUL)
        bound = self._exact(gamma)
        if self._up:  # delta falls: not above that of a side before
            near = bisect_right(self.epsilons, eps) - 1
            bound = min(bound, self._deltas[near]) if near >= 0 else bound
        else:
            near = bisect_left(self.epsilons, eps)
            if self.epsilons[near : near + 1] == [eps]:
                bound = self._deltas[near]  # and not a little more, which would be left at infinity
        return min(rounded(bound, up=self._up), 1.0)


def profile(corners: list[Corner], *, symmetric: bool, up: bool) -> PrivacyProfile:
    """Return the profile of a convex polygon from x = 0 to y = 0, nowhere below its delta or nowhere above it.

    If `symmetric`, the polygon bounds both orders of the data sets; else that with the record, and its mirror image the other order.
    """
    mirrored = lower_hull((y, x) for x, y in corners)
    sides = [_Direction(corners, up=up), _Direction(mirrored, up=up)]
    epsilons = sorted({0.0, *sides[0].epsilons, *sides[1].epsilons})
    if any(side.is_steep for side in sides):
        epsilons = sorted({*epsilons, LARGEST_EPSILON})
    remove, add = ([side.delta(eps) for eps in epsilons] for side in sides)
    if symmetric:
        return PrivacyProfile(epsilons, _falling(map(min, remove, add)))
    return PrivacyProfile(epsilons, _falling(remove), _falling(add))


def _falling(deltas: Iterable[float]) -> list[float]:
    """Return each number, or the least before it: rounding may make them rise."""
    least, result = 1.0, []
    for delta in deltas:
        least = min(least, delta)
        result.append(least)
    return result

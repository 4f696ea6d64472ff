r"""A mechanism of one's own by its trade-off function: a polygon, and the privacy profile that says the same.

Let S be an event of probability x without a record, which fails with probability y with it. The guarantee is that every (x, y) lies on or
above a convex polygon. With gamma = e^epsilon,

.. math:: \delta(\epsilon) = \sup_S\, (1 - y - \gamma x) = \max_{\text{corners}}\, (1 - y - \gamma x),

because a linear function has its maximum over what lies above a convex polygon at a corner (Dong, Roth and Su 2022, Proposition 6). It
bends where gamma is the steepness of a side, so that the points there determine it. The other order of both data sets has the
mirrored polygon, of corners (y, x).

Errors: steepnesses and deltas are exact fractions, then rounded outwards. An epsilon is rounded up for an upper bound, as delta falls,
and down for a lower one: then both points that a chord connects lie on one side of the line that it stands for.

A polygon below a trade-off function that is known at some points has steps if nothing else is known, tangents if it is convex.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, at_most, boolean_scalar, count_scalar, interval, scalar, vector
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import HANDFUL
from hockeystick.mechanisms.base import Adjacency
from hockeystick.mechanisms.privacy_profile import LARGEST_EPSILON, PrivacyProfile, ProfiledMechanism
from hockeystick.mechanisms.user_function import function_of_one_number, require_convex, require_falling

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

    def delta(self, epsilon: float) -> float:
        """Return a bound at any epsilon; at an epsilon of a side the one of that side."""
        if epsilon == 0.0:
            return rounded(self._exact(Fraction(1)), up=self._up)
        gamma = Fraction(math.exp(epsilon)) * Fraction(1.0 - HANDFUL if self._up else 1.0 + HANDFUL)
        bound = self._exact(gamma)
        if self._up:  # delta falls: not above that of a side before
            near = bisect_right(self.epsilons, epsilon) - 1
            bound = min(bound, self._deltas[near]) if near >= 0 else bound
        else:
            near = bisect_left(self.epsilons, epsilon)
            if self.epsilons[near : near + 1] == [epsilon]:
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
    both = np.array([[side.delta(eps) for eps in epsilons] for side in sides])
    curves = both.min(axis=0, keepdims=True) if symmetric else both
    return PrivacyProfile(epsilons, *np.minimum.accumulate(curves, axis=1).tolist())  # rounding may make them rise


FARTHEST = 36.7  # logit of the largest rate below 1
ROUNDING = 1e-15  # of values near 1: by how much a function may look wrong without being it


def _rates(count: int) -> list[float]:
    """Return false-positive rates from 0 to 1, closest to both ends."""
    logits = np.linspace(-FARTHEST, FARTHEST, count - 2)
    near_one = -np.expm1(-np.log1p(np.exp(-logits)))  # 1/(1 + e^logit)
    inner = np.where(logits < 0.0, 1.0 / (1.0 + np.exp(-logits)), 1.0 - near_one)
    rates: list[float] = np.unique(np.concatenate([[0.0], inner, [1.0]])).tolist()
    return rates


def _corners(rates: list[float], lows: list[float], highs: list[float]) -> list[Corner]:
    """Return points of which the lower hull is below every convex function that lies between `lows` and `highs` at the rates."""
    x, low, high = ([Fraction(value) for value in values] for values in (rates, lows, highs))
    found = list(zip(x, low, strict=True))
    last = len(x) - 1
    for i in range(last):
        # Lines through a point and its neighbour away from the cell; none is steeper than to fall, or less than to be level.
        before = (low[i] - high[i - 1]) / (x[i] - x[i - 1]) if i else None
        after = min((high[i + 2] - low[i + 1]) / (x[i + 2] - x[i + 1]), Fraction(0)) if i + 2 <= last else Fraction(0)
        if before is None:  # how f falls from 0 is not known: at once
            found[0] = x[0], min(low[0], _rounded_down(low[1] - after * x[1]))
        elif before < after:
            cross = (low[i + 1] - after * x[i + 1] - low[i] + before * x[i]) / (before - after)
            if x[i] < cross < x[i + 1]:
                # To the left of where both lines meet, the corner on the lower one has its chords below both.
                corner = Fraction(rounded(cross, up=False))
                found.append((corner, _rounded_down(low[i + 1] + after * (corner - x[i + 1]))))
    return found


def _rounded_down(value: Fraction) -> Fraction:
    return Fraction(rounded(max(value, Fraction(0)), up=False))


TOLERANCE = 1e-12  # what rounding may make of a convex function below the diagonal


@dataclass(frozen=True)
class TradeOff(ProfiledMechanism):
    """A mechanism of one's own, by a trade-off function f that is a polygon: f-differential privacy.

    Nothing doubles where a record is replaced.

    Parameters
    ----------
    false_positive_rates : sequence of float
        Where the polygon has its corners: increasing from 0, at most 1. A test says "the record was there" on an event; this is the event's
        probability without the record.
    false_negative_rates : sequence of float
        f there: no test of that false-positive rate misses the record less often. In [0, 1], not rising, at last 0, convex, and
        at most one less the false-positive rate. To 1e-12: what is above the chord of its neighbours, or above the diagonal,
        by less is moved down.
    symmetric : bool
        True if f bounds tests of both data sets against each other, whichever of them counts as the one without. Else the other
        order has the inverse of f.

    Notes
    -----
    Dong, Roth and Su 2022. The guarantee is that no test of adjacent data sets lies below the polygon. Its delta at all epsilons follows by
    linear programming over the corners (mechanisms/trade_off_function.py), exactly; the doubles given count as exact. A test between two
    corners of your own function is below the chord: corners that lie *on* a curved f make a polygon above it, which claims too much.
    `from_function` takes tangents and `from_points` steps, which are below. If symmetric, f and its inverse both hold, so does their maximum: where f(0) < 1, the inverse
    says that no loss is infinite in either order.

    The lower ends are those of a mechanism whose tests reach the polygon. Numbers near 1 hold about 16 digits of how far they are
    from it, so that a delta below 1e-16 is not told apart from 0 or from 1e-16; `PrivacyProfile` can say it.

    Noise whose tests at distance 1 have exactly the trade-off function f, and no smaller one at less, is canonical for f (Awan and Vadhan 2023): as a
    mechanism it *is* `TradeOff`. Tulap noise is canonical for (epsilon, delta), which is `ApproximateDP`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.mechanisms.TradeOff([0.0, 0.25, 1.0], [1.0, 0.25, 0.0])
    >>> print(hs.format_upper(hs.Accountant().compose(step, 3).delta(1.0), ".4f"))
    0.4191
    """

    false_positive_rates: Sequence[float]
    false_negative_rates: Sequence[float]
    symmetric: bool = True

    _for_one_adjacency: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the arguments."""
        rates, missed = _checked(self.false_positive_rates, self.false_negative_rates, from_zero=True)
        if missed[-1] != 0.0:
            raise ValueError(f"false_negative_rates must end with 0, not with {missed[-1]:g}")
        require_convex("false_negative_rates", "rate", rates, missed, TOLERANCE)
        self._check(symmetric=boolean_scalar)
        self._set(false_positive_rates=tuple(rates.tolist()))
        self._set(false_negative_rates=tuple(missed.tolist()))

    @classmethod
    def from_points(
        cls, false_positive_rates: ArrayLike, false_negative_rates: ArrayLike, *, symmetric: bool = True
    ) -> Self:
        """Return what is known if the trade-off function is at least some numbers at some rates, and nothing of it in between.

        Parameters
        ----------
        false_positive_rates : array_like of shape (n,)
            Increasing, in [0, 1].
        false_negative_rates : array_like of shape (n,)
            Lower bounds of f there: in [0, 1], not rising, and at most one less the false-positive rate.
        symmetric : bool
            As in the class.

        Returns
        -------
        TradeOff
            The largest convex function below the steps: between two rates f is at least its number at the right one, as it does not rise.

        Raises
        ------
        ValueError
            If the numbers leave their domains; the message says which.

        Examples
        --------
        >>> import hockeystick as hs
        >>> rates = [k / 1000 for k in range(1001)]
        >>> step = hs.mechanisms.TradeOff.from_points(rates, hs.gdp_trade_off(0.5, rates))
        >>> print(hs.format_upper(hs.Accountant().compose(step).delta(0.5), ".4f"), hs.format_upper(hs.gdp_delta(0.5, 0.5), ".4f"))
        0.0535 0.0525
        """
        rates, missed = _checked(false_positive_rates, false_negative_rates, from_zero=False)
        known = [(x, y) for x, y in zip(rates.tolist(), missed.tolist(), strict=True) if 0.0 < x < 1.0]
        lefts, heights = [0.0, *(x for x, _ in known)], [*(y for _, y in known), 0.0]
        steps = [(Fraction(x), Fraction(y)) for x, y in zip(lefts, heights, strict=True)]
        return cls(*_doubles(lower_hull(steps)), symmetric)

    @classmethod
    def from_function(
        cls,
        function: Callable[[float], float],
        *,
        symmetric: bool = True,
        accuracy: float = 1e-12,
        num_points: int = 2000,
    ) -> Self:
        """Return the tangents of a trade-off function f, called at chosen rates, checked, and not kept.

        Parameters
        ----------
        function : callable
            f at a false-positive rate in [0, 1]: a Python function of one number, a numba cfunc or a scipy.LowLevelCallable of
            signature ``double (double)``.
        symmetric : bool
            As in the class.
        accuracy : float
            Relative error of the function, in [0, 0.1].
        num_points : int
            In [8, 10^5]. Twice as many make the excess of delta a quarter.

        Returns
        -------
        TradeOff
            A polygon below f. For a symmetric f, delta is close to that of f down to about 1e-14; for another one down to `accuracy`, because 1 minus f is what counts
            at small rates.

        Raises
        ------
        ValueError
            If the function leaves [0, 1], rises, is not convex, or lies above the diagonal; the message says where and by how much.

        Notes
        -----
        Beyond two of its points the line through both is below a convex function. Between neighbours the larger of the lines from the two
        sides is therefore a bound, whatever happens there. The values less and plus `accuracy` hold (1 - accuracy^2) f between them, which is convex and
        below f.

        Examples
        --------
        >>> import hockeystick as hs
        >>> step = hs.mechanisms.TradeOff.from_function(lambda rate: float(hs.gdp_trade_off(0.2, rate)))
        >>> print(hs.format_upper(hs.Accountant().compose(step, 25).delta(1.0), ".5f"), hs.format_upper(hs.gdp_delta(1.0, 1.0), ".5f"))
        0.12702 0.12694
        """
        ask = function_of_one_number("function", function)
        accuracy = scalar("accuracy", accuracy, *interval("[0, 0.1]"))
        num_points = count_scalar("num_points", num_points, 8)
        at_most("num_points", num_points, "the largest supported", 10**5)
        rates = _rates(num_points)
        values = np.array([float(ask(rate)) for rate in rates])
        allowed = 2.0 * accuracy * np.abs(values) + ROUNDING
        for rate, value, error in zip(rates, values, allowed, strict=True):
            if not -ROUNDING <= value <= 1.0 - rate + error:
                raise ValueError(f"function({rate:g}) must lie in [0, 1 - {rate:g}], not be {shown(float(value))}")
        require_falling("function", "rate", rates, values, allowed[1:])
        require_convex("function", "rate", rates, values, allowed[1:-1] + 2.0 * accuracy * values[:-2])
        lows = np.clip(values * (1.0 - accuracy), 0.0, 1.0 - np.array(rates)).tolist()
        highs = np.minimum(values * (1.0 + accuracy), 1.0).tolist()
        lows[-1] = highs[-1] = 0.0
        return cls(*_doubles(lower_hull(_corners(rates, lows, highs))), symmetric)

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        which = "in both orders" if self.symmetric else "with and without the record, in this order"
        return [f"no test of adjacent data sets, {which}, is below the trade-off function given, for this adjacency"]

    def _profile(self, adjacency: Adjacency, *, upper: bool) -> PrivacyProfile:
        del adjacency  # the function is taken to be for the one in use
        pairs = zip(self.false_positive_rates, self.false_negative_rates, strict=True)
        points = [(Fraction(x), min(Fraction(y), 1 - Fraction(x))) for x, y in pairs]
        return profile(lower_hull(points), symmetric=self.symmetric, up=upper)


def _doubles(corners: list[Corner]) -> tuple[list[float], list[float]]:
    """Return the coordinates of corners that are doubles."""
    return [float(x) for x, _ in corners], [float(y) for _, y in corners]


def _checked(
    false_positive_rates: ArrayLike, false_negative_rates: ArrayLike, *, from_zero: bool
) -> tuple[Array, Array]:
    """Return both rates as arrays, or refuse what no trade-off function has at these rates, convex or not."""
    rates = vector("false_positive_rates", STRICT.probability("false_positive_rates", false_positive_rates))
    if (from_zero and rates[0] != 0.0) or not (np.diff(rates) > 0.0).all():
        start = " from 0" if from_zero else ""
        raise ValueError(f"false_positive_rates must increase{start}, not be {shown(false_positive_rates)}")
    missed = vector("false_negative_rates", STRICT.probability("false_negative_rates", false_negative_rates))
    if missed.size != rates.size:
        raise ValueError(
            f"false_negative_rates must be as long as false_positive_rates ({rates.size}), not of length {missed.size}"
        )
    require_falling("false_negative_rates", "rate", rates, missed)
    excess = missed - (1.0 - rates)
    if excess.max() > TOLERANCE:
        at = int(excess.argmax())
        raise ValueError(
            f"false_negative_rates must be at most 1 - false_positive_rates, not {missed[at]:g} at rate {rates[at]:g}"
        )
    return rates, missed

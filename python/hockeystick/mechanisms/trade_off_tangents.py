"""Polygons below a trade-off function that is known at some points: steps if nothing else is, tangents if it is convex."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from hockeystick._checks import at_most, count_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick.mechanisms.trade_off_polygon import Corner, lower_hull, rounded
from hockeystick.mechanisms.user_function import function_of_one_number

FARTHEST = 36.7  # logit of the largest rate below 1
ROUNDING = 1e-15  # of values near 1: by how much a function may look wrong without being it


def steps(rates: list[float], missed: list[float]) -> list[Corner]:
    """Return the corners of the steps below a function that does not rise and is at least `missed` at `rates`."""
    known = [(x, y) for x, y in zip(rates, missed, strict=True) if 0.0 < x < 1.0]
    lefts, heights = [0.0, *(x for x, _ in known)], [*(y for _, y in known), 0.0]
    return [(Fraction(x), Fraction(y)) for x, y in zip(lefts, heights, strict=True)]


def of_function(function: Any, accuracy: float, num_points: int) -> list[Corner]:
    """Return the corners of a polygon below a convex function, which are doubles."""
    ask = function_of_one_number("function", function)
    accuracy = scalar("accuracy", accuracy, lambda x: 0 <= x <= 0.1, "lie in [0, 0.1]")
    num_points = count_scalar("num_points", num_points, 8)
    at_most("num_points", num_points, "the largest supported", 10**5)
    logits = np.linspace(-FARTHEST, FARTHEST, num_points - 2)
    near_one = -np.expm1(-np.log1p(np.exp(-logits)))  # 1/(1 + e^logit)
    inner = np.where(logits < 0.0, 1.0 / (1.0 + np.exp(-logits)), 1.0 - near_one)
    rates = np.unique(np.concatenate([[0.0], inner, [1.0]])).tolist()
    values = [float(ask(rate)) for rate in rates]
    _check(rates, values, accuracy)
    lows = [min(max(value * (1.0 - accuracy), 0.0), 1.0 - rate) for rate, value in zip(rates, values, strict=True)]
    highs = [min(value * (1.0 + accuracy), 1.0) for value in values]
    lows[-1] = highs[-1] = 0.0
    return lower_hull(_corners(rates, lows, highs))


def _check(rates: list[float], values: list[float], accuracy: float) -> None:
    """Raise where a function is no trade-off function, by more than it may be wrong."""
    for i, (rate, value) in enumerate(zip(rates, values, strict=True)):
        allowed = 2.0 * accuracy * abs(value) + ROUNDING
        if not -ROUNDING <= value <= 1.0 - rate + allowed:
            msg = f"function({rate:g}) must lie in [0, 1 - {rate:g}], not be {shown(value)}"
            raise ValueError(msg)
        if i and value > values[i - 1] + allowed:
            msg = f"function must not rise, not by {value - values[i - 1]:g} from rate {rates[i - 1]:g} to {rate:g}"
            raise ValueError(msg)
        if 0 < i < len(rates) - 1:
            share = (rate - rates[i - 1]) / (rates[i + 1] - rates[i - 1])
            excess = value - ((1.0 - share) * values[i - 1] + share * values[i + 1])
            if excess > allowed + 2.0 * accuracy * values[i - 1]:
                msg = f"function must be convex; at rate {rate:g} it is {excess:g} above the chord of {rates[i - 1]:g} and {rates[i + 1]:g}"
                raise ValueError(msg)


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

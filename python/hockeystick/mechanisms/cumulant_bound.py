"""From a cumulant function to Renyi divergences, with the checks that every cumulant function passes."""

from __future__ import annotations

from typing import Any

from hockeystick._checks import scalar
from hockeystick._numeric.rounding import SHORT_SUM
from hockeystick.mechanisms.orders import LARGEST_ORDER, ORDERS
from hockeystick.mechanisms.user_function import function_of_one_number


def of_function(cumulant: Any, accuracy: float, largest_order: float) -> tuple[list[float], list[float]]:
    """Return orders and raised divergences."""
    function = function_of_one_number("cumulant", cumulant)
    accuracy = scalar("accuracy", accuracy, lambda x: 0 <= x <= 0.1, "lie in [0, 0.1]")
    largest = scalar("largest_order", largest_order, lambda x: 2 <= x <= LARGEST_ORDER, "lie in [2, 1e5]")
    points = [-1.0, 0.0, *(order - 1.0 for order in ORDERS if order < largest), largest - 1.0]
    values = [float(function(s)) for s in points]
    for s, value in zip(points[:2], values, strict=False):
        if not abs(value) <= max(accuracy, 1e-12):
            msg = f"cumulant({s:g}) must be 0, as P and Q are distributions on the same outcomes, not {value:g}"
            raise ValueError(msg)
    errors = [accuracy * max(value, s, 0.0) + 1e-12 * (s <= 0.0) for s, value in zip(points, values, strict=True)]
    for i, (s, value) in enumerate(zip(points, values, strict=True)):
        if i > 1 and not value >= -errors[i]:
            msg = f"cumulant({s:g}) must be non-negative, not {value:g}"
            raise ValueError(msg)
        if 0 < i < len(points) - 1:
            part = (s - points[i - 1]) / (points[i + 1] - points[i - 1])
            excess = value - ((1.0 - part) * values[i - 1] + part * values[i + 1])
            if excess > errors[i] + errors[i - 1] + errors[i + 1] + SHORT_SUM * abs(value):
                msg = f"cumulant must be convex; at {s:g} it is {excess:g} above the chord of {points[i - 1]:g} and {points[i + 1]:g}"
                raise ValueError(msg)
    divergences, least = [], 0.0
    for s, value, error in zip(points[2:], values[2:], errors[2:], strict=True):
        least = max(least, (max(value, 0.0) + error) / s)  # they do not fall; rounding may make it look so
        divergences.append(least)
    return [s + 1.0 for s in points[2:]], divergences

"""From functions to a profile: where to ask, and what every delta(eps) and every density must satisfy."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, at_most, count_scalar, scalar, vector
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import HANDFUL
from hockeystick.mechanisms.user_function import function_of_one_number

LARGEST_EPSILON = 600.0
ORDER, MOST_PANELS = 16, 2**13  # of Gauss and Legendre in a panel; panels between two breakpoints
Function: TypeAlias = Callable[[float], float]
Curve: TypeAlias = tuple[float, ...]

FLAT = 1e-6  # a curve that falls by less of itself when epsilon doubles, at 1 or more, has reached its end
EMPHASIS = 0.125  # power of the fall of delta by which a cell's width counts


def of_functions(
    remove: Any, add: Any, accuracy: float, tail: float, num_points: int
) -> tuple[Curve, Curve, Curve | None]:
    """Return epsilons, and the raised deltas of both directions."""
    functions = [function_of_one_number("remove", remove)]
    if add is not None:
        functions.append(function_of_one_number("add", add))
    accuracy = scalar("accuracy", accuracy, lambda x: 0 <= x <= 0.1, "lie in [0, 0.1]")
    tail = scalar("tail", tail, lambda x: 0 <= x <= 0.1, "lie in [0, 0.1]")
    num_points = count_scalar("num_points", num_points, 2)
    at_most("num_points", num_points, "the largest supported", 10**5)

    names = ("remove", "add")[: len(functions)]
    ask = _Curves(dict(zip(names, functions, strict=True)), accuracy, tail)
    epsilons = _where(ask, num_points)
    curves = [tuple(ask.raised(name, eps) for eps in epsilons) for name in names]
    for name in names:
        _check_shape(name, epsilons, [ask.delta(name, eps) for eps in epsilons], accuracy, tail)
    first = [curve[0] for curve in curves]
    if abs(first[0] - first[-1]) > 2.0 * accuracy * max(first) + tail:
        msg = f"add must be the total variation distance at 0, as remove ({first[0]:g}), not {first[-1]:g}: off by {first[-1] - first[0]:g}"
        raise ValueError(msg)
    curves = [(max(first), *_falling(curve)[1:]) for curve in curves]
    return epsilons, curves[0], curves[1] if add is not None else None


class _Curves:
    """The functions, each asked once at an epsilon, and checked for its range."""

    def __init__(self, functions: dict[str, Function], accuracy: float, tail: float) -> None:
        self.functions, self._accuracy, self._tail = functions, accuracy, tail
        self._known: dict[tuple[str, float], float] = {}

    def delta(self, name: str, eps: float) -> float:
        if (name, eps) not in self._known:
            value = float(self.functions[name](eps))
            if not -self._tail <= value <= 1.0 + self._accuracy:
                msg = f"{name}({eps:g}) must lie in [0, 1], not be {shown(value)}"
                raise ValueError(msg)
            self._known[name, eps] = min(max(value, 0.0), 1.0)
        return self._known[name, eps]

    def raised(self, name: str, eps: float) -> float:
        """Return an upper bound of delta."""
        return min(self.delta(name, eps) * (1.0 + self._accuracy) + self._tail, 1.0)

    def largest(self, eps: float) -> float:
        return max(self.delta(name, eps) for name in self.functions)


def _where(ask: _Curves, num_points: int) -> Curve:
    """Return epsilons from 0 to where delta has no more to fall, closest where that matters most."""
    end = 2.0**-20
    while end < LARGEST_EPSILON and ask.largest(end) > ask._tail:
        if end >= 1.0 and ask.largest(2.0 * end) >= (1.0 - FLAT) * ask.largest(end):
            break
        end *= 2.0
    end = min(end, LARGEST_EPSILON)
    cells: list[tuple[float, float, float]] = []

    def add_cell(left: float, right: float) -> None:
        fall = max(ask.largest(left) - ask.largest(right), 0.0)
        heapq.heappush(cells, (-(right - left) * fall**EMPHASIS, left, right))

    add_cell(0.0, end)
    while len(cells) < num_points - 1:
        cost, left, right = heapq.heappop(cells)
        middle = 0.5 * (left + right)
        if cost == 0.0 or not left < middle < right:
            heapq.heappush(cells, (cost, left, right))
            break
        add_cell(left, middle)
        add_cell(middle, right)
    return (0.0, *sorted(right for _, _, right in cells))


def _check_shape(name: str, epsilons: Curve, deltas: list[float], accuracy: float, tail: float) -> None:
    """Raise where a curve rises, or lies above the chord of its neighbours, by more than it may be wrong."""
    for i in range(1, len(deltas)):
        allowed = 2.0 * accuracy * deltas[i] + tail
        if deltas[i] > deltas[i - 1] + allowed:
            rise = deltas[i] - deltas[i - 1]
            msg = f"{name} must not rise with epsilon, not by {rise:g} from epsilon {epsilons[i - 1]:g} to {epsilons[i]:g}"
            raise ValueError(msg)
        if i + 1 < len(deltas):
            left, middle, right = epsilons[i - 1 : i + 2]
            share = math.expm1(middle - left) / math.expm1(right - left) if right - left < 700.0 else 0.0
            excess = deltas[i] - ((1.0 - share) * deltas[i - 1] + share * deltas[i + 1])
            if excess > allowed + 2.0 * accuracy * deltas[i - 1] + HANDFUL * deltas[i - 1]:
                msg = f"{name} must be convex in e^epsilon; at epsilon {middle:g} it is {excess:g} above the chord of {left:g} and {right:g}"
                raise ValueError(msg)


def _falling(curve: Curve) -> list[float]:
    """Return what holds as delta cannot rise: the least bound so far."""
    least, result = 1.0, []
    for value in curve:
        least = min(least, value)
        result.append(least)
    return result


def of_densities(
    log_p: Any, log_q: Any, breakpoints: ArrayLike, tolerance: float, num_points: int
) -> tuple[Curve, Curve, Curve | None]:
    """Return epsilons and deltas of both directions, by quadrature over the outcomes."""
    densities = [function_of_one_number("log_p", log_p), function_of_one_number("log_q", log_q)]
    points = vector("breakpoints", STRICT.finite("breakpoints", breakpoints))
    if points.size < 2 or not (np.diff(points) > 0.0).all():
        msg = f"breakpoints must be at least two increasing numbers, not {shown(breakpoints)}"
        raise ValueError(msg)
    tolerance = scalar("tolerance", tolerance, lambda x: 0 < x <= 0.01, "lie in (0, 0.01]")
    p, q = _weights(densities, points, tolerance)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(p == q, 0.0, np.log(p) - np.log(q))

    def delta(weights: Array, losses: Array) -> Function:
        return lambda eps: float(-weights @ np.expm1(np.minimum(eps - losses, 0.0)))

    return of_functions(delta(p, loss), delta(q, -loss), tolerance, tolerance, num_points)


def _weights(densities: list[Function], points: Array, tolerance: float) -> tuple[Array, Array]:
    """Return what P and Q weigh at the nodes of a quadrature fine enough for both to be 1, and their distance to stay."""
    panels, before, off = 4, math.inf, ""
    while panels <= MOST_PANELS:
        p, q = _on_panels(densities, points, panels)
        for name, law in (("log_p", p), ("log_q", q)):
            if not math.isfinite(total := math.fsum(law.tolist())):
                msg = f"{name} must be the logarithm of a density, finite or minus infinity; its integral is {total}"
                raise ValueError(msg)
        distance = 0.5 * float(np.abs(p - q).sum())
        errors = {"log_p": math.fsum(p.tolist()) - 1.0, "log_q": math.fsum(q.tolist()) - 1.0}
        name, error = max(errors.items(), key=lambda item: abs(item[1]))
        off = f"the integral of exp({name}) is 1{error:+.3g}"
        if abs(error) <= tolerance:
            off = f"their total variation distance changes by {distance - before:.3g} at the last refinement"
            if abs(distance - before) <= tolerance:
                return p / p.sum(), q / q.sum()
        before, panels = distance, 2 * panels
    msg = f"log_p and log_q must be densities between the breakpoints, to {tolerance:g}: {off}"
    raise ValueError(msg)


def _on_panels(densities: list[Function], points: Array, panels: int) -> list[Array]:
    nodes, weights = np.polynomial.legendre.leggauss(ORDER)
    edges = np.concatenate([np.linspace(*ends, panels + 1)[:-1] for ends in pairwise(points.tolist())])
    width = np.diff(edges, append=points[-1])[:, None]
    outcomes = (edges[:, None] + 0.5 * width * (1.0 + nodes)).ravel()
    area = (0.5 * width * weights).ravel()
    return [area * np.exp([float(density(x)) for x in outcomes.tolist()]) for density in densities]

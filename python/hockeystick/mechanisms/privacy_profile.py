"""Mechanisms by their delta(eps), a user's or one that they compute; the core makes the pair (release/privacy_profile.hpp).

Functions are asked where their curve bends, and held against what every delta(eps) and every density must satisfy.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

import hockeystick._core as core
from hockeystick._checks import STRICT, Array, at_most, choice, count_scalar, interval, real, scalar, vector
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import HANDFUL
from hockeystick.mechanisms.base import ADJACENCIES, Adjacency, CountedPair, Mechanism, Status
from hockeystick.mechanisms.user_function import function_of_one_number, require_convex, require_falling

__all__ = ["PrivacyProfile"]

LARGEST_EPSILON = 600.0
ORDER, MOST_PANELS = 16, 2**13  # of Gauss and Legendre in a panel; panels between two breakpoints
Function: TypeAlias = Callable[[float], float]
Curve: TypeAlias = tuple[float, ...]

FLAT = 1e-6  # a curve that falls by less of itself when epsilon doubles, at 1 or more, has reached its end
EMPHASIS = 0.125  # power of the fall of delta by which a cell's width counts


class _Curves:
    """The functions, each asked once at an epsilon, and checked for its range."""

    def __init__(self, functions: dict[str, Function], accuracy: float, tail: float) -> None:
        self.functions, self._accuracy, self._tail = functions, accuracy, tail
        self._known: dict[tuple[str, float], float] = {}

    def delta(self, name: str, epsilon: float) -> float:
        if (name, epsilon) not in self._known:
            value = float(self.functions[name](epsilon))
            if not -self._tail <= value <= 1.0 + self._accuracy:
                raise ValueError(f"{name}({epsilon:g}) must lie in [0, 1], not be {shown(value)}")
            self._known[name, epsilon] = min(max(value, 0.0), 1.0)
        return self._known[name, epsilon]

    def raised(self, name: str, epsilon: float) -> float:
        """Return an upper bound of delta."""
        return min(self.delta(name, epsilon) * (1.0 + self._accuracy) + self._tail, 1.0)

    def largest(self, epsilon: float) -> float:
        return max(self.delta(name, epsilon) for name in self.functions)


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


def _weights(densities: list[Function], points: Array, tolerance: float) -> tuple[Array, Array]:
    """Return what P and Q weigh at the nodes of a quadrature fine enough for both to be 1, and their distance to stay."""
    panels, before, off = 4, math.inf, ""
    while panels <= MOST_PANELS:
        p, q = _on_panels(densities, points, panels)
        for name, law in (("log_p", p), ("log_q", q)):
            if not math.isfinite(total := math.fsum(law.tolist())):
                raise ValueError(
                    f"{name} must be the logarithm of a density, finite or minus infinity; its integral is {total}"
                )
        distance = 0.5 * float(np.abs(p - q).sum())
        errors = {"log_p": math.fsum(p.tolist()) - 1.0, "log_q": math.fsum(q.tolist()) - 1.0}
        name, error = max(errors.items(), key=lambda item: abs(item[1]))
        off = f"the integral of exp({name}) is 1{error:+.3g}"
        if abs(error) <= tolerance:
            off = f"their total variation distance changes by {distance - before:.3g} at the last refinement"
            if abs(distance - before) <= tolerance:
                return p / p.sum(), q / q.sum()
        before, panels = distance, 2 * panels
    raise ValueError(f"log_p and log_q must be densities between the breakpoints, to {tolerance:g}: {off}")


def _on_panels(densities: list[Function], points: Array, panels: int) -> list[Array]:
    nodes, weights = np.polynomial.legendre.leggauss(ORDER)
    edges = np.concatenate([np.linspace(*ends, panels + 1)[:-1] for ends in pairwise(points.tolist())])
    width = np.diff(edges, append=points[-1])[:, None]
    outcomes = (edges[:, None] + 0.5 * width * (1.0 + nodes)).ravel()
    area = (0.5 * width * weights).ravel()
    return [area * np.exp([float(density(x)) for x in outcomes.tolist()]) for density in densities]


MOST_POINTS = 2000
STATUSES = ("certified", "estimate")


@dataclass(frozen=True)
class PrivacyProfile(Mechanism):
    """A mechanism of one's own, by upper bounds of delta at some epsilons.

    Nothing doubles where a record is replaced.

    Parameters
    ----------
    epsilons : sequence of float
        Increasing from 0 to at most 600.
    remove : sequence of float
        At each epsilon an upper bound in [0, 1] of delta, of a data set with the record against the one without; not rising.
    add : sequence of float, optional
        The same of without against with, if it differs; its first number must be that of `remove`, the total variation
        distance. By default `remove` must bound both directions, as any (epsilon, delta) guarantee does.
    status : {"certified", "estimate"}
        "estimate" if the numbers are not proven upper bounds: then no answer about a composition with it is called certified.

    Notes
    -----
    Between the points delta is bounded by chords in e^epsilon (connecting the dots: Doroshenko, Ghazi, Kamath, Kumar and Manurangsi
    2022), beyond the last by its value there. All that is assumed is that the numbers are upper bounds for the adjacency in use; then the upper
    ends of `Accountant` are certified. A number above the chord of its neighbours is replaced by the chord, which is a bound too.

    The lower ends are those of a mechanism whose delta is the chords: no mechanism of these numbers leaks more, and your own may leak
    less. They are 0 where rounding does not let them be shown: where nearly all outcomes tell the data sets apart, where all
    of one law tells, or where a slope falls below 1e-289.

    Examples
    --------
    >>> import hockeystick as hs
    >>> known = hs.mechanisms.PrivacyProfile([0.0, 0.5, 1.0], [0.3, 0.1, 0.0])
    >>> print(hs.format_upper(hs.Accountant().compose(known, 2).delta(1.0), ".4f"))
    0.1118
    """

    epsilons: Sequence[float]
    remove: Sequence[float]
    add: Sequence[float] | None = None
    status: Status = "certified"

    _for_one_adjacency: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the arguments."""
        for name in ("epsilons", "remove", "add"):
            if (value := getattr(self, name)) is not None:
                self._set(**{name: tuple(vector(name, real(name, value)).tolist())})
        choice("status", self.status, STATUSES)
        self._steps(upper=True)  # the core refuses what is no profile

    @classmethod
    def from_function(
        cls,
        remove: Callable[[float], float],
        add: Callable[[float], float] | None = None,
        *,
        accuracy: float = 1e-12,
        tail: float = 1e-15,
        num_points: int = MOST_POINTS,
    ) -> Self:
        """Return the profile of a function delta(eps), called at chosen points, checked, and not kept.

        Parameters
        ----------
        remove : callable
            delta at an epsilon >= 0: a Python function of one number, a numba cfunc or a scipy.LowLevelCallable of signature
            ``double (double)``.
        add : callable, optional
            The same for the other direction, if it differs.
        accuracy : float
            Relative error of the function, in [0, 0.1]: all numbers are raised by it.
        tail : float
            Its absolute error, in [0, 0.1], which is added to all numbers, infinite epsilon included. Beyond the epsilon at which
            delta falls below it nothing is asked.
        num_points : int
            In [2, 10^5]. Twice as many make the excess of a composition a quarter.

        Returns
        -------
        PrivacyProfile
            Finer where delta is large.

        Raises
        ------
        ValueError
            If the function leaves [0, 1], rises, is not convex in e^epsilon, or differs from `add` at 0; the message says where
            and by how much.

        Examples
        --------
        >>> import hockeystick as hs
        >>> step = hs.mechanisms.PrivacyProfile.from_function(lambda eps: hs.theta(eps, 0.2))  # a Gaussian, say
        >>> steps = hs.Accountant().compose(step, 25)
        >>> print(hs.format_upper(steps.delta(1.0), ".5f"), hs.format_upper(hs.gdp_delta(1.0, 1.0), ".5f"))
        0.12697 0.12694
        """
        functions = {"remove": function_of_one_number("remove", remove)}
        if add is not None:
            functions["add"] = function_of_one_number("add", add)
        accuracy = scalar("accuracy", accuracy, *interval("[0, 0.1]"))
        tail = scalar("tail", tail, *interval("[0, 0.1]"))
        num_points = count_scalar("num_points", num_points, 2)
        at_most("num_points", num_points, "the largest supported", 10**5)
        ask = _Curves(functions, accuracy, tail)
        epsilons = _where(ask, num_points)
        for name in functions:
            deltas = np.array([ask.delta(name, eps) for eps in epsilons])
            allowed = 2.0 * accuracy * deltas[1:] + tail
            require_falling(name, "epsilon", epsilons, deltas, allowed)
            before = (2.0 * accuracy + HANDFUL) * deltas[:-2]
            require_convex(name, "epsilon", epsilons, deltas, allowed[:-1] + before, in_powers=True)
        curves = {name: [ask.raised(name, eps) for eps in epsilons] for name in functions}
        first = [curve[0] for curve in curves.values()]
        if abs(first[0] - first[-1]) > 2.0 * accuracy * max(first) + tail:
            off = f"({first[0]:g}), not {first[-1]:g}: off by {first[-1] - first[0]:g}"
            raise ValueError(f"add must be the total variation distance at 0, as remove {off}")
        falling = {name: np.minimum.accumulate(curve).tolist() for name, curve in curves.items()}
        for curve in falling.values():
            curve[0] = max(first)
        return cls(epsilons, **falling)

    @classmethod
    def from_densities(
        cls,
        log_p: Callable[[float], float],
        log_q: Callable[[float], float],
        breakpoints: Sequence[float],
        *,
        tolerance: float = 1e-9,
        num_points: int = MOST_POINTS,
    ) -> Self:
        """Return the profile of two densities on the line, an estimate: no error of the quadrature is proven.

        Parameters
        ----------
        log_p, log_q : callable
            Logarithms of the densities of the outcome with the record and without, kinds of functions as in `from_function`; minus
            infinity is legal. P and Q must be a dominating pair: the densities of the worst adjacent data sets.
        breakpoints : sequence of float
            Increasing: the ends of the support, or where what lies beyond does not count, and where a density jumps or has a kink.
        tolerance : float
            In (0, 0.01]: how close both integrals must be to 1, and by how much all deltas are raised.
        num_points : int
            As in `from_function`.

        Returns
        -------
        PrivacyProfile
            With status "estimate": `Accountant.delta_bracket` and its like answer and say so, `Accountant.delta` refuses.

        Raises
        ------
        ValueError
            If an integral is not 1, or the total variation distance does not settle; the message says by how much.

        Notes
        -----
        16 points of Gauss and Legendre in each panel, and panels halved until both integrals and the total variation distance stay.

        Examples
        --------
        >>> import hockeystick as hs
        >>> ends = [-12.0, 0.0, 1.0, 13.0]
        >>> laplace = hs.mechanisms.PrivacyProfile.from_densities(lambda x: -abs(x - 1) - 0.693147180559945, lambda x: -abs(x) - 0.693147180559945, ends, tolerance=1e-5)
        >>> delta = hs.Accountant().compose(laplace).delta_bracket(0.5).upper
        >>> print(hs.format_upper(delta, ".4f"), hs.format_upper(hs.kernels.laplace_theta(0.5, 1.0), ".4f"))
        0.2213 0.2212
        """
        densities = [function_of_one_number("log_p", log_p), function_of_one_number("log_q", log_q)]
        points = vector("breakpoints", STRICT.finite("breakpoints", breakpoints))
        if points.size < 2 or not (np.diff(points) > 0.0).all():
            raise ValueError(f"breakpoints must be at least two increasing numbers, not {shown(breakpoints)}")
        tolerance = scalar("tolerance", tolerance, *interval("(0, 0.01]"))
        p, q = _weights(densities, points, tolerance)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.where(p == q, 0.0, np.log(p) - np.log(q))

        def delta(weights: Array, losses: Array) -> Function:
            return lambda eps: float(-weights @ np.expm1(np.minimum(eps - losses, 0.0)))

        found = cls.from_function(
            delta(p, loss), delta(q, -loss), accuracy=tolerance, tail=tolerance, num_points=num_points
        )
        return dataclasses.replace(found, status="estimate")

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        numbers = "the numbers of PrivacyProfile are upper bounds for this adjacency"
        if self.status == "certified":
            return [numbers]
        return [numbers, "a privacy profile is an estimate by quadrature, with no proof of its error"]

    @property
    def _certified(self) -> bool:  # type: ignore[override]
        return self.status == "certified"

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        del adjacency  # the numbers are taken to be for the one in use
        return self._dominating

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        return super()._pairs(adjacency) if upper else self._attained

    def _steps(self, *, upper: bool) -> list[CountedPair]:
        add = self.remove if self.add is None else self.add
        return core.privacy_profile(self.epsilons, self.remove, add, upper)

    @cached_property
    def _dominating(self) -> core.Pair:
        return self._steps(upper=True)[0][0]

    @cached_property
    def _attained(self) -> list[CountedPair]:
        return self._steps(upper=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the numbers alone, without the pair."""
        return {name: self.__dict__[name] for name in ("epsilons", "remove", "add", "status")}


class ProfiledMechanism(Mechanism):
    """A mechanism that says its delta at some epsilons."""

    def profile(self, adjacency: Adjacency = "add_or_remove") -> PrivacyProfile:
        """Return the profile that answers are computed from: upper bounds of delta, and chords between them.

        Parameters
        ----------
        adjacency : {"add_or_remove", "replace"}
            For mechanisms that hold for one adjacency both are the same.

        Returns
        -------
        PrivacyProfile
            Certified.
        """
        known: PrivacyProfile = self._known(adjacency, upper=True)
        return known

    def _profile(self, adjacency: Adjacency, *, upper: bool) -> Mechanism | None:
        """Compute a profile that is nowhere below delta, or what some data sets attain; None if no such is known.

        A mechanism defines this, or `_upper_profile` and `_lower_profile` if they do not depend on the adjacency.
        """
        del adjacency  # what moves is taken to be for the one in use
        return self._upper_profile() if upper else self._lower_profile()

    def _upper_profile(self) -> PrivacyProfile:
        raise NotImplementedError

    def _lower_profile(self) -> Mechanism | None:
        return None

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        known = self._known(adjacency, upper=upper)
        return [] if known is None else known._pairs(adjacency, upper=upper)

    def _known(self, adjacency: Adjacency, *, upper: bool) -> Any:
        self._require_adjacency(adjacency)
        key = ADJACENCIES[0] if self._for_one_adjacency else adjacency, upper
        if key not in self._profiles:
            self._profiles[key] = self._profile(adjacency, upper=upper)
        return self._profiles[key]

    def _require_adjacency(self, adjacency: Adjacency) -> None:
        """Raise ValueError if nothing is known under an adjacency."""

    @cached_property
    def _profiles(self) -> dict[tuple[str, bool], Mechanism | None]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters alone, without what was computed from them."""
        return {field.name: self.__dict__[field.name] for field in dataclasses.fields(self)}  # type: ignore[arg-type]

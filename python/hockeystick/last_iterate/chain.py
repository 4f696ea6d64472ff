"""Projected noisy gradient descent in one dimension, exactly: the yardstick for every bound of the last iterate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import (
    FRACTION,
    NON_NEGATIVE_OR_INFINITE,
    POSITIVE,
    STRICT,
    Array,
    Domain,
    choice,
    count_at_most,
    count_scalar,
    non_negative_scalar,
    positive_scalar,
    real,
    scalar,
)
from hockeystick._checks.shown import shown
from hockeystick.accounting.brackets import Bracket
from hockeystick.last_iterate.arguments import noise_given

GradientMap: TypeAlias = Literal["linear", "quadratic", "logistic"]
GradientFunction: TypeAlias = Callable[[Array, float], ArrayLike]  # (iterates, record) -> gradients

GRADIENT_MAPS: tuple[GradientMap, ...] = get_args(GradientMap)

NARROW = 1e-12  # no bracket need be narrower
MIN_POINTS = 2**11
MAX_TABLE_POINTS = 2**16
MAX_WORK = 1e8  # cells times rounds of one attempt with Laplace noise: some seconds

Step: TypeAlias = tuple[float, float, float]  # record, learning_rate, noise


def _sequence(name: str, value: ArrayLike, domain: Domain) -> Array:
    array = STRICT.within(name, value, domain)
    if array.ndim > 1 or array.size == 0:
        raise ValueError(f"{name} must be a number or a sequence with one number a round, not of shape {array.shape}")
    return array


def _length(rounds: int | None, arrays: dict[str, Array]) -> int:
    """Return the number of rounds, on which all sequences must agree."""
    lengths = {name: array.size for name, array in arrays.items() if array.ndim}
    if rounds is not None:
        lengths = {"rounds": count_scalar("rounds", rounds), **lengths}
    if not lengths:
        raise ValueError("rounds must be given where no argument is a sequence with one number a round")
    if len(set(lengths.values())) > 1:
        stated = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"arguments must agree on the number of rounds, but {stated}")
    return next(iter(lengths.values()))


class _Chain(NamedTuple):
    """The two sequences of maps, and how to evaluate them on a grid of points."""

    gradient_map: GradientMap | GradientFunction
    runs: tuple[list[Step], list[Step]]
    smoothness: float
    curvature: float
    radius: float
    start: float
    laplace: bool

    @property
    def refined(self) -> bool:
        """Whether the bracket narrows with the number of points."""
        return self.laplace or callable(self.gradient_map)

    def _table(self, record: float, points: int) -> list[float]:
        """Return the gradient at the middles of cells, both ends and the start, and check what was said about it."""
        if isinstance(self.gradient_map, str):
            return []
        with np.errstate(all="ignore"):  # a subnormal radius
            middles = 2 * self.radius * ((np.arange(points) + 0.5) / points) - self.radius
        at = np.concatenate([middles, [-self.radius, self.radius, self.start]])
        gradient = real("the result of gradient_map", self.gradient_map(at, record))
        if gradient.shape != at.shape or not np.isfinite(gradient).all():
            raise ValueError(f"gradient_map must return finite numbers of the shape {at.shape} of its first argument")
        order = np.argsort(at)
        with np.errstate(all="ignore"):  # subnormal gradients
            moved, apart = np.abs(np.diff(gradient[order])), np.diff(at[order])
            known = self.smoothness * apart * (1 + 1e-6) + 1e-13 * np.abs(gradient).max()
        if np.any(moved > known):
            raise ValueError(f"smoothness must be at least the gradient's Lipschitz constant, not {self.smoothness}")
        table: list[float] = gradient.tolist()
        return table

    def bracket(self, epsilon: Array, points: int) -> tuple[Array, Array]:
        """Return both ends for one number of points."""
        kind = self.gradient_map if isinstance(self.gradient_map, str) else "table"
        numbers: dict[Step, int] = {}
        first, second = ([numbers.setdefault(step, len(numbers)) for step in run] for run in self.runs)
        tables = {record: self._table(record, points) for record in {step[0] for step in numbers}}
        maps = [
            (kind, record, self.smoothness, self.curvature, rate, noise, tables[record])
            for record, rate, noise in numbers
        ]
        lower, upper = core.scalar_chain(
            epsilon.ravel().tolist(), maps, first, second, self.radius, self.start, self.laplace, points
        )
        return np.reshape(lower, epsilon.shape), np.reshape(upper, epsilon.shape)

    def refine(self, epsilon: Array, tolerance: float) -> tuple[Array, Array, bool]:
        """Return both ends, narrowed as far as asked or affordable, and whether they are as narrow as asked."""
        affordable = max(64, int(min(2**18, MAX_WORK / len(self.runs[0])))) if self.laplace else MAX_TABLE_POINTS
        points = min(MIN_POINTS, affordable)
        lower, upper = self.bracket(epsilon, points)
        while True:
            with np.errstate(all="ignore"):  # subnormal deltas
                asked = np.maximum(tolerance * upper, NARROW)
                excess = float(np.max((upper - lower) / asked, initial=0.0))
            if excess <= 1 or not self.refined or points >= affordable:
                return lower, upper, excess <= 1
            points = min(affordable, int(points * min(16.0, max(2.0, 1.3 * math.sqrt(excess)))))
            finer = self.bracket(epsilon, points)
            lower, upper = np.maximum(lower, finer[0]), np.minimum(upper, finer[1])


def _smoothness(gradient_map: GradientMap | GradientFunction, smoothness: float | None) -> float:
    if gradient_map in ("linear", "logistic"):
        if smoothness is not None:
            raise TypeError(
                f"smoothness must not be given with gradient_map = {shown(gradient_map)}, which knows its own"
            )
        return 0.0
    if smoothness is None:
        raise TypeError("smoothness must be given: the curvature of a quadratic, the Lipschitz constant of a function")
    return non_negative_scalar("smoothness", smoothness)


def chain_delta(
    epsilon: ArrayLike,
    *,
    gradient_map: GradientMap | GradientFunction,
    record: ArrayLike,
    neighbour: ArrayLike,
    index: int | None = None,
    rounds: int | None = None,
    learning_rate: ArrayLike,
    noise_std: ArrayLike | None = None,
    noise_scale: ArrayLike | None = None,
    diameter: float,
    smoothness: float | None = None,
    curvature: float = math.inf,
    start: float = 0.0,
    tolerance: float = 0.01,
) -> Bracket:
    r"""Return the exact delta of the last iterate of a scalar chain, as a certified bracket.

    :math:`W_{t+1} = \Pi_{[-D/2, D/2]}\big(W_t - \eta_t (g(W_t, x_t) + Z_t)\big)` is run on two adjacent data sets from the
    same start, and only the last iterate is seen.

    Parameters
    ----------
    epsilon : array_like
        The points at which delta is evaluated, >= 0; any shape. All are answered from one run of the chain.
    gradient_map : {"linear", "quadratic", "logistic"} or callable
        g(w, x): x itself; smoothness (w - x); -x/(1 + exp(x w)), the gradient of log(1 + exp(-x w)); or a function of an
        array of iterates and one record that returns an array of gradients.
    record, neighbour : array_like
        The record used in each round, and what the adjacent data set has in its place: numbers, or sequences with one
        number a round.
    index : int, optional
        The one round, counted from 1, in which the neighbour takes part; by default it does in every round.
    rounds : int, optional
        Number of rounds, where no argument is a sequence.
    learning_rate : array_like
        Step size, positive; a number or a sequence.
    noise_std, noise_scale : array_like
        Standard deviation of Gaussian noise, or scale of Laplace noise, added to the gradient before the learning rate;
        positive, a number or a sequence. Exactly one of the two decides which noise it is.
    diameter : float
        Length D of the interval around 0 that iterates are projected onto, positive.
    smoothness : float
        Lipschitz constant of the gradient in w, >= 0; for "quadratic" and functions only.
    curvature : float
        Lipschitz constant of the gradient's derivative in w, for functions: infinite if there is none or it is not known,
        which makes brackets much wider.
    start : float
        The first iterate, in [-D/2, D/2].
    tolerance : float
        Width of the bracket that is asked for, relative to its upper end; in (0, 1]. 1e-12 is always narrow enough.

    Returns
    -------
    Bracket
        Certified ends, arrays where `epsilon` is one: the truth lies between them, discretisation and rounding included. The
        larger of both directions. The method says so where they are wider than asked.

    Raises
    ------
    ValueError
        If an argument is outside its domain, a function's values contradict its Lipschitz constant, or the chain needs too
        much memory.
    TypeError
        If an argument has the wrong type, or smoothness or noise is missing or given twice.

    Notes
    -----
    Gaussian noise: Gauss-Legendre panels with a bound from the integrand's size in the complex plane, so that only rounding
    is left; the signs of the density p - gamma q are certified by counting sign changes or by slopes. Laplace noise: the
    midpoint rule with its total-variation bound, and exact integrals of the last densities. Functions: the midpoint rule on
    a fine grid; first order in the grid, second order where `curvature` is given. Errors are summed with Dobrushin's
    coefficient of the noise, that is, old ones are forgotten as the chain forgets.

    Examples
    --------
    >>> from hockeystick import format_lower, format_upper, last_iterate
    >>> bracket = last_iterate.chain_delta(
    ...     1.0, gradient_map="logistic", record=1.0, neighbour=-1.0, index=20, rounds=22,
    ...     learning_rate=0.5, noise_std=1.0, diameter=2.0,
    ... )
    >>> print(f"{format_lower(bracket.lower, '.6e')} {format_upper(bracket.upper, '.6e')}")
    4.611324e-05 4.611326e-05
    """
    epsilon = STRICT.within("epsilon", epsilon, NON_NEGATIVE_OR_INFINITE)
    if not callable(gradient_map):
        choice("gradient_map", gradient_map, GRADIENT_MAPS)
    arrays = {
        "record": _sequence("record", record, (np.isfinite, "be finite")),
        "neighbour": _sequence("neighbour", neighbour, (np.isfinite, "be finite")),
        "learning_rate": _sequence("learning_rate", learning_rate, POSITIVE),
    }
    name, noise = noise_given(noise_std, noise_scale)
    arrays[name] = _sequence(name, noise, POSITIVE)
    length = _length(rounds, arrays)
    differing = None if index is None else count_at_most("index", index, "the number of rounds", length)
    radius = positive_scalar("diameter", diameter) / 2
    known = _smoothness(gradient_map, smoothness)
    curvature = scalar("curvature", curvature, *NON_NEGATIVE_OR_INFINITE)
    start = scalar("start", start, lambda x: abs(x) <= radius, "lie in [-diameter/2, diameter/2]")
    tolerance = scalar("tolerance", tolerance, *FRACTION)

    records, neighbours, rates, scales = (np.broadcast_to(array, (length,)) for array in arrays.values())
    takes_part = np.ones(length, dtype=bool) if differing is None else np.arange(1, length + 1) == differing
    runs = tuple(
        list(zip(run.tolist(), rates.tolist(), scales.tolist(), strict=True))
        for run in (records, np.where(takes_part, neighbours, records))
    )
    chain = _Chain(gradient_map, (runs[0], runs[1]), known, curvature, radius, start, name == "noise_scale")
    lower, upper, narrow = chain.refine(epsilon, tolerance)
    method = f"scalar chain, {'Laplace' if chain.laplace else 'Gaussian'} noise"
    ends: tuple[Any, Any] = lower[()], upper[()]  # arrays where epsilon is one
    return Bracket(*ends, method if narrow else f"{method}, wider than asked", "certified")

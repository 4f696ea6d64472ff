"""The checks and the one call of an array function."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks.arrays import Array, Result, broadcast, first_bad, real
from hockeystick._checks.refusals import Refusal, listener
from hockeystick._checks.scalars import (
    LARGEST_COUNT,
    NON_NEGATIVE_OR_INFINITE,
    OPEN_PROBABILITY,
    POSITIVE,
    PROBABILITY,
    Domain,
    OnError,
    choice,
    thread_count,
)

NUM_AXES = operator.attrgetter("ndim")
CoreFunction: TypeAlias = Callable[[list[Array], int], Array]


def pmf(name: str, value: ArrayLike, tolerance: float = 1e-9) -> Array:
    """Return probabilities along the last axis, which must sum to 1 within the tolerance."""
    array = np.atleast_1d(STRICT.probability(name, value))
    total = array.sum(axis=-1)
    off = np.abs(total - 1.0)
    if array.size == 0 or off.max() > tolerance:
        msg = (
            f"{name} must sum to 1 within {tolerance:g}, not to {total.ravel()[np.argmax(off)] if array.size else 0.0}"
        )
        raise ValueError(msg)
    return array


def _integers(smallest: int, largest: float) -> Domain:
    def rule(x: Any) -> Any:
        return (x >= smallest) & (x <= largest) & (x.is_integer() if isinstance(x, float) else x == np.floor(x))

    return rule, f"be an integer in [{smallest}, {largest:.0f}]"


def _check_for(rule: Callable[[Any], Any], domain: str) -> Callable[[Grid, str, ArrayLike], Array]:
    """Return the check for a domain, a method of a grid. NumPy takes ten times as long for a number in an array as Python for the number."""

    def check(grid: Grid, name: str, value: ArrayLike) -> Array:
        if isinstance(value, float) or (type(value) is int and abs(value) <= LARGEST_COUNT):
            number = float(value)
            if rule(number):
                return np.asarray(number)
        return grid._check(name, value, rule, domain)

    return check


def _any_nan(result: Array) -> bool:
    return bool(np.isnan(result).any()) if result.ndim else math.isnan(result)


class Grid:
    """The checks and the one call of an array function.

    Numbers are checked in the order of the arguments, after `on_error`, `num_threads` and other choices, which decide what
    to check. With ``on_error="nan"`` only types are checked here: the core returns NaN in a cell outside its domain. Within
    `refusals.collected` the checks are made all the same, and what they find is collected.
    """

    def __init__(self, num_threads: int | None, on_error: OnError) -> None:
        self.strict = choice("on_error", on_error, ("raise", "nan")) == "raise"
        self._threads = None if num_threads is None else thread_count(num_threads)
        self.refusals = None if self.strict else listener()

    @property
    def threads(self) -> int:
        """Return the number of threads; the system is asked late, since a single cell needs one."""
        return thread_count(self._threads)

    def _check(self, name: str, value: ArrayLike, rule: Callable[[Any], Any], domain: str) -> Array:
        array = real(name, value)
        self._look(name, array, rule, domain)
        return array

    def _look(self, name: str, array: Array, rule: Callable[[Any], Any], domain: str) -> None:
        if self.strict:
            good = np.asarray(rule(array))
            if not good.all():
                where, bad = first_bad(name, array, good)
                msg = f"{where} must {domain}, not {bad!s}"
                raise ValueError(msg)
        elif self.refusals is not None:
            self._collect(f"{name} must {domain}", {name: array}, rule)

    def _collect(self, rule: str, arguments: dict[str, Array], condition: Callable[..., Any]) -> None:
        """Collect what fails a check that does not raise. Values that an earlier check refused are no reason to warn."""
        with np.errstate(all="ignore"):
            good = np.asarray(condition(*arguments.values()))
        if self.refusals is not None and not good.all():
            self.refusals.append(Refusal(rule, arguments, good))

    def within(self, name: str, value: ArrayLike, domain: Domain) -> Array:
        """Check for a domain of its own."""
        return _check_for(*domain)(self, name, value)

    number = _check_for(lambda x: x <= np.inf, "be a number")
    positive = _check_for(*POSITIVE)
    positive_or_infinite = _check_for(lambda x: x > 0, "be positive")
    non_negative = _check_for(lambda x: (x >= 0) & (x < np.inf), "be non-negative and finite")
    non_negative_or_infinite = _check_for(*NON_NEGATIVE_OR_INFINITE)
    probability = _check_for(*PROBABILITY)
    fraction = _check_for(lambda x: (x > 0) & (x <= 1), "lie in (0, 1]")
    inside = _check_for(*OPEN_PROBABILITY)
    finite = _check_for(lambda x: abs(x) < np.inf, "be finite")
    count = _check_for(*_integers(1, LARGEST_COUNT))
    count_or_zero = _check_for(*_integers(0, LARGEST_COUNT))

    def count_up_to(self, name: str, value: ArrayLike, largest: float) -> Array:
        """Check for an integer in [1, largest]."""
        return self.within(name, value, _integers(1, largest))

    def require(self, condition: Callable[..., Any], rule: str, **arguments: Array) -> None:
        """Check a condition between arguments, broadcast against each other."""
        if self.strict:
            given = arguments.values()
            if not any(map(NUM_AXES, given)) and condition(*map(float, given)):
                return
        elif self.refusals is None:
            return
        cells = broadcast(*arguments.values())
        if not self.strict:
            self._collect(rule, dict(zip(arguments, cells, strict=True)), condition)
            return
        good = np.asarray(condition(*cells))
        if good.all():
            return
        index = np.unravel_index(int(np.argmin(good)), good.shape)
        values = ", ".join(f"{name} = {cell[index]!s}" for name, cell in zip(arguments, cells, strict=True))
        where = f" in cell {tuple(map(int, index))}" if index else ""
        msg = f"{rule}, not {values}{where}"
        raise ValueError(msg)

    def map(self, function: CoreFunction, *arrays: Array) -> Result:
        """Evaluate a core function of as many numbers on the broadcast arrays; a scalar for scalars."""
        cells = broadcast(*arrays)
        try:
            return self.finish(function(cells, self.threads if cells[0].ndim else 1))
        except MemoryError:
            shape = cells[0].shape
            msg = f"no memory for a grid of shape {shape}: its results alone take {8 * math.prod(shape)} bytes"
            raise MemoryError(msg) from None

    def finish(self, result: Array) -> Result:
        """Return a result of the core, which must be a number in every cell that has passed the checks."""
        if self.strict and _any_nan(result):
            msg = "a cell that passed all checks has no value. This is a bug in hockeystick."
            raise RuntimeError(msg)
        return result[()]


class NumpyGrid(Grid):
    """The checks of an array function whose formula is in NumPy: it puts NaN where the core would."""

    def __init__(self, num_threads: int | None, on_error: OnError) -> None:
        super().__init__(num_threads, on_error)
        self.inside_domain: Any = np.True_

    def _check(self, name: str, value: ArrayLike, rule: Callable[[Array], Any], domain: str) -> Array:
        array = super()._check(name, value, rule, domain)
        self.inside_domain = self.inside_domain & np.asarray(rule(array))
        return array

    def require(self, condition: Callable[..., Any], rule: str, **arguments: Array) -> None:
        """Check a condition between arguments, broadcast against each other."""
        super().require(condition, rule, **arguments)
        self.inside_domain = self.inside_domain & np.asarray(condition(*broadcast(*arguments.values())))

    def finish(self, result: Array) -> Result:
        """Return the result, NaN in cells outside the domain."""
        return super().finish(np.where(self.inside_domain, result, np.nan))


class LateGrid(Grid):
    """The checks of a function of the core that is NaN outside its domain and nowhere else.

    Arrays are looked at, in the order of the arguments, where a NaN was found: looking first takes a quarter of the whole call.
    """

    def __init__(self, num_threads: int | None, on_error: OnError) -> None:
        super().__init__(num_threads, on_error)
        self.due: list[tuple[str, Array, Callable[[Any], Any], str]] = []

    def _look(self, name: str, array: Array, rule: Callable[[Any], Any], domain: str) -> None:
        if self.strict:
            self.due.append((name, array, rule, domain))
        else:
            super()._look(name, array, rule, domain)

    def finish(self, result: Array) -> Result:
        """Return the result, or raise for the first number outside the domain."""
        if not self.strict or not _any_nan(result):
            return result[()]
        for look in self.due:
            super()._look(*look)
        return super().finish(result)


STRICT = Grid(1, "raise")  # for formulas in NumPy: arrays broadcast, the first number outside the domain raises

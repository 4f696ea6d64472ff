"""Argument checks of the facade, one line per argument, in the order of the arguments."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
OnError: TypeAlias = Literal["raise", "nan"]
Choice = TypeVar("Choice", bound=str)
Result: TypeAlias = Any  # float64: a scalar for scalar arguments, else an array of the broadcast shape
CoreFunction: TypeAlias = Callable[[list[Array], int], Array]

LARGEST_COUNT = 2**53  # the last integer up to which doubles count exactly

Domain: TypeAlias = tuple[Callable[[Any], Any], str]  # a rule for numbers and arrays, and its words

POSITIVE: Domain = (lambda x: (x > 0) & (x < np.inf), "be positive and finite")
DELTA: Domain = (lambda x: (x >= 0) & (x < 1), "lie in [0, 1)")  # 1 asks for nothing
OPEN_PROBABILITY: Domain = (lambda x: (x > 0) & (x < 1), "lie in (0, 1)")
PROBABILITY: Domain = (lambda x: (x >= 0) & (x <= 1), "lie in [0, 1]")
NON_NEGATIVE_OR_INFINITE: Domain = (lambda x: x >= 0, "be non-negative")


def real(name: str, value: ArrayLike) -> Array:
    """Return `value` as float64 or raise TypeError; booleans, strings and complex numbers are not real numbers."""
    if type(value) is int:  # np.asarray makes objects of large ones
        return np.asarray(float(value) if abs(value) < 10**308 else np.inf if value > 0 else -np.inf)
    try:
        array = np.asarray(value)
        numeric = array.dtype.kind in "iuf" and not isinstance(
            value, np.ma.MaskedArray
        )  # it would be unmasked silently
    except ValueError:  # a ragged sequence
        numeric = False
    if not numeric:
        msg = f"{name} must be a real number or an array of real numbers, not {reprlib.repr(value)}"
        raise TypeError(msg)
    return array.astype(np.float64, copy=False)


def choice(name: str, value: Choice, choices: Sequence[str]) -> Choice:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str):
        msg = f"{name} must be a string, one of {', '.join(map(repr, choices))}, not {value!r}"
        raise TypeError(msg)
    if value not in choices:
        msg = f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}"
        raise ValueError(msg)
    return value


def scalar(name: str, value: float, rule: Callable[[float], bool], domain: str) -> float:
    """Return `value` as a float if it is one real number for which `rule` holds."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        msg = f"{name} must be a real number, not {value!r}"
        raise TypeError(msg)
    if not rule(float(value)):
        msg = f"{name} must {domain}, not {value!s}"
        raise ValueError(msg)
    return float(value)


def positive_scalar(name: str, value: float) -> float:
    """Return `value` if it is positive and finite."""
    return scalar(name, value, *POSITIVE)


def non_negative_scalar(name: str, value: float) -> float:
    """Return `value` if it is non-negative and finite."""
    return scalar(name, value, lambda x: 0 <= x < np.inf, "be non-negative and finite")


def probability_scalar(name: str, value: float) -> float:
    """Return `value` if it lies in [0, 1]."""
    return scalar(name, value, *PROBABILITY)


def count_scalar(name: str, value: int, smallest: int = 1) -> int:
    """Return `value` if it is an integer in [smallest, 2^53]."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        msg = f"{name} must be an integer, not {value!r}"
        raise TypeError(msg)
    if not smallest <= value <= LARGEST_COUNT:
        msg = f"{name} must be an integer in [{smallest}, {LARGEST_COUNT}], not {value}"
        raise ValueError(msg)
    return int(value)


def at_most(name: str, value: float, limit_name: str, limit: float) -> None:
    """Check one argument against another."""
    if value > limit:
        msg = f"{name} must be at most {limit_name} ({limit:g}), not {value:g}"
        raise ValueError(msg)


def distribution(name: str, value: ArrayLike) -> tuple[float, ...]:
    """Return `value` as a tuple if it is a sequence of probabilities that sum to 1 within 1e-12."""
    array = real(name, value)
    if array.ndim == 0:
        msg = f"{name} must be one-dimensional and not empty, not of shape {array.shape}"
        raise ValueError(msg)
    array = vector(name, array)
    if not ((array >= 0) & (array <= 1)).all() or abs(math.fsum(array) - 1.0) > 1e-12:
        msg = f"{name} must be probabilities in [0, 1] that sum to 1 within 1e-12, not {reprlib.repr(value)}"
        raise ValueError(msg)
    return tuple(array.tolist())


def thread_count(num_threads: int | None) -> int:
    """Return the number of threads to use; by default one per core that this process may run on."""
    if num_threads is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if isinstance(num_threads, bool) or not isinstance(num_threads, (int, np.integer)):
        msg = f"num_threads must be an integer or None, not {num_threads!r}"
        raise TypeError(msg)
    if num_threads < 1:
        msg = f"num_threads must be at least 1, not {num_threads}"
        raise ValueError(msg)
    return min(int(num_threads), 1024)


def broadcast(*arrays: Array) -> list[Array]:
    """Return the arrays broadcast against each other."""
    try:
        return list(np.broadcast_arrays(*arrays))
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        msg = f"arguments must broadcast against each other, not have the shapes {shapes} (in their order)"
        raise ValueError(msg) from None


def _first_bad(name: str, array: Array, good: NDArray[np.bool_]) -> tuple[str, Any]:
    """Return the name, with its index if `array` has one, and the value of the first element that is not good."""
    index = np.unravel_index(int(np.argmin(good)), good.shape)
    where = f"{name}[{', '.join(map(str, index))}]" if index else name
    return where, array[index]


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


def vector(name: str, array: Array) -> Array:
    """Return a checked array if it is one-dimensional (a scalar counts as one number) and not empty."""
    array = np.atleast_1d(array)
    if array.ndim != 1 or array.size == 0:
        msg = f"{name} must be one-dimensional and not empty, not of shape {array.shape}"
        raise ValueError(msg)
    return array


def same_length(**arrays: Array) -> list[Array]:
    """Return checked arrays as vectors of one length; a single number is repeated."""
    vectors = {name: vector(name, array) for name, array in arrays.items()}
    length = max(one.size for one in vectors.values())
    for name, one in vectors.items():
        if one.size not in {1, length}:
            msg = f"{name} must be one number or as long as the others ({length}), not of length {one.size}"
            raise ValueError(msg)
    return [np.broadcast_to(one, (length,)) for one in vectors.values()]


class Grid:
    """The checks and the one call of an array function.

    Numbers are checked in the order of the arguments, after `on_error`, `num_threads` and other choices, which decide what
    to check. With ``on_error="nan"`` only types are checked here: the core returns NaN in a cell outside its domain.
    """

    def __init__(self, num_threads: int | None, on_error: OnError) -> None:
        self.strict = choice("on_error", on_error, ("raise", "nan")) == "raise"
        self.threads = thread_count(num_threads)

    def _check(self, name: str, value: ArrayLike, rule: Callable[[Array], Any], domain: str) -> Array:
        array = real(name, value)
        if self.strict:
            good = np.asarray(rule(array))
            if not good.all():
                where, bad = _first_bad(name, array, good)
                msg = f"{where} must {domain}, not {bad!s}"
                raise ValueError(msg)
        return array

    def within(self, name: str, value: ArrayLike, domain: Domain) -> Array:
        """Check for a domain of its own."""
        return self._check(name, value, *domain)

    def number(self, name: str, value: ArrayLike) -> Array:
        """Check for a real number or plus or minus infinity."""
        return self._check(name, value, lambda x: ~np.isnan(x), "be a number")

    def positive(self, name: str, value: ArrayLike) -> Array:
        """Check for a positive finite number."""
        return self._check(name, value, *POSITIVE)

    def positive_or_infinite(self, name: str, value: ArrayLike) -> Array:
        """Check for a positive number or infinity."""
        return self._check(name, value, lambda x: x > 0, "be positive")

    def non_negative(self, name: str, value: ArrayLike) -> Array:
        """Check for a non-negative finite number."""
        return self._check(name, value, lambda x: (x >= 0) & (x < np.inf), "be non-negative and finite")

    def non_negative_or_infinite(self, name: str, value: ArrayLike) -> Array:
        """Check for a non-negative number or infinity."""
        return self._check(name, value, *NON_NEGATIVE_OR_INFINITE)

    def probability(self, name: str, value: ArrayLike) -> Array:
        """Check for a number in [0, 1]."""
        return self._check(name, value, *PROBABILITY)

    def fraction(self, name: str, value: ArrayLike) -> Array:
        """Check for a number in (0, 1]."""
        return self._check(name, value, lambda x: (x > 0) & (x <= 1), "lie in (0, 1]")

    def inside(self, name: str, value: ArrayLike) -> Array:
        """Check for a number in (0, 1)."""
        return self._check(name, value, lambda x: (x > 0) & (x < 1), "lie in (0, 1)")

    def finite(self, name: str, value: ArrayLike) -> Array:
        """Check for a finite number."""
        return self._check(name, value, np.isfinite, "be finite")

    def count(self, name: str, value: ArrayLike, largest: float = LARGEST_COUNT) -> Array:
        """Check for an integer in [1, largest]."""
        return self._check(
            name,
            value,
            lambda x: (x >= 1) & (x <= largest) & (x == np.floor(x)),
            f"be an integer in [1, {largest:.0f}]",
        )

    def count_or_zero(self, name: str, value: ArrayLike) -> Array:
        """Check for an integer in [0, 2^53]."""
        return self._check(
            name,
            value,
            lambda x: (x >= 0) & (x <= LARGEST_COUNT) & (x == np.floor(x)),
            f"be an integer in [0, {LARGEST_COUNT}]",
        )

    def require(self, condition: Callable[..., Any], rule: str, **arguments: Array) -> None:
        """Check a condition between arguments, broadcast against each other."""
        if not self.strict:
            return
        cells = broadcast(*arguments.values())
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
        return self.finish(function(broadcast(*arrays), self.threads))

    def finish(self, result: Array) -> Result:
        """Return a result of the core, which must be a number in every cell that has passed the checks."""
        if self.strict and np.isnan(result).any():
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


STRICT = Grid(1, "raise")  # for formulas in NumPy: arrays broadcast, the first number outside the domain raises

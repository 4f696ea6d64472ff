"""Checks of arguments: single ones, arrays, and the grids of array functions, whose refusals may be collected."""

from __future__ import annotations

import difflib
import functools
import math
import operator
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick._checks.shown import LARGEST_INTEGER, in_bits, listed, shown

OnError: TypeAlias = Literal["raise", "nan"]
Choice = TypeVar("Choice", bound=str)
LARGEST_COUNT = 2**53  # the last integer up to which doubles count exactly

Domain: TypeAlias = tuple[Callable[[Any], Any], str]  # a rule for numbers and arrays, and its words

POSITIVE: Domain = (lambda x: (x > 0) & (x < np.inf), "be positive and finite")
NON_NEGATIVE: Domain = (lambda x: (x >= 0) & (x < np.inf), "be non-negative and finite")
NON_NEGATIVE_OR_INFINITE: Domain = (lambda x: x >= 0, "be non-negative")


@functools.cache
def interval(text: str) -> Domain:
    """Return the domain of an interval that is written like "[0, 1)" or "[1/300, 1e9]"; a refusal shows it as it is written."""
    low, high = (float(Fraction(end)) for end in text[1:-1].split(","))
    rules: dict[str, Callable[[Any], Any]] = {
        "[]": lambda x: (x >= low) & (x <= high),
        "[)": lambda x: (x >= low) & (x < high),
        "(]": lambda x: (x > low) & (x <= high),
        "()": lambda x: (x > low) & (x < high),
    }
    return rules[text[0] + text[-1]], f"lie in {text}"


DELTA = interval("[0, 1)")  # 1 asks for nothing
FRACTION = interval("(0, 1]")
OPEN_PROBABILITY = interval("(0, 1)")
PROBABILITY = interval("[0, 1]")


def choice(name: str, value: Choice, choices: Sequence[str], also_called: Mapping[str, str] | None = None) -> Choice:
    """Return `value` if it is one of `choices`; the error names the one that was probably meant, also by another name."""
    is_text = isinstance(value, str)
    if is_text and value in choices:
        return value
    hint = _meant(value if is_text else getattr(value, "name", ""), choices, also_called or {})
    kind = "" if is_text else "a string, "
    raise (ValueError if is_text else TypeError)(
        f"{name} must be {kind}one of {listed(map(repr, choices))}, not {shown(value)}{hint}"
    )


def _meant(value: object, choices: Sequence[str], also_called: Mapping[str, str]) -> str:
    word = str(value).strip().casefold().replace("-", "_").replace(" ", "_")
    names = dict(also_called) | {choice.casefold().replace("-", "_"): choice for choice in choices}
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.8)
    return f"; did you mean {names[near[0]]!r}?" if near else ""


def scalar(name: str, value: float, rule: Callable[[float], bool], domain: str) -> float:
    """Return `value` as a float if it is one real number for which `rule` holds."""
    if type(value) is float and rule(value):  # most are
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a real number, not {shown(value)}")
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:  # float() may refuse it, and str() too
        raise ValueError(f"{name} must {domain}, and fit a double, not {in_bits(value)}")
    if not rule(float(value)):
        raise ValueError(f"{name} must {domain}, not {value!s}")
    return float(value)


def positive_scalar(name: str, value: float) -> float:
    """Return `value` if it is positive and finite."""
    return scalar(name, value, *POSITIVE)


def non_negative_scalar(name: str, value: float) -> float:
    """Return `value` if it is non-negative and finite."""
    return scalar(name, value, *NON_NEGATIVE)


def probability_scalar(name: str, value: float) -> float:
    """Return `value` if it lies in [0, 1]."""
    return scalar(name, value, *PROBABILITY)


def _require_integer(name: str, value: object, kind: str = "an integer") -> None:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be {kind}, not {shown(value)}")


def count_scalar(name: str, value: int, smallest: int = 1) -> int:
    """Return `value` if it is an integer in [smallest, 2^53]."""
    _require_integer(name, value)
    if not smallest <= value <= LARGEST_COUNT:
        given = value if abs(value) <= LARGEST_INTEGER else in_bits(int(value))
        raise ValueError(f"{name} must be an integer in [{smallest}, {LARGEST_COUNT}], not {given}")
    return int(value)


def checked_count(count: int, least: int = 0) -> int:
    """Return a count of steps if it is one; 1202.0, as an array of `dpsgd_steps` has it, is 1202."""
    if type(count) is int and 0 < count <= LARGEST_COUNT:  # most are
        return count
    if isinstance(count, float) and float(count).is_integer():
        count = int(count)
    return count_scalar("count", count, least)


def count_at_most(name: str, value: int, limit_name: str, limit: int) -> int:
    """Return `value` if it is an integer from 1 to another argument."""
    count = count_scalar(name, value)
    at_most(name, count, limit_name, limit)
    return count


def boolean_scalar(name: str, value: object) -> bool:
    """Return `value` if it is True or False, of Python or of NumPy; 0 and 1 are refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def seed_scalar(name: str, value: int) -> int:
    """Return `value` if it is an integer in [0, 2^64)."""
    _require_integer(name, value)
    if not 0 <= value < 2**64:
        raise ValueError(f"{name} must be an integer in [0, 2^64), not {shown(value)}")
    return int(value)


def random_generator(name: str, value: object) -> None:
    """Check that an argument is a generator of random numbers."""
    if not isinstance(value, np.random.Generator):
        raise TypeError(
            f"{name} must be a numpy.random.Generator, as numpy.random.default_rng(seed) makes one, not {shown(value)}"
        )


def at_most(name: str, value: float, limit_name: str, limit: float) -> None:
    """Check one argument against another."""
    if value > limit:
        most, given = (str(number) if isinstance(number, int) else f"{number:g}" for number in (limit, value))
        raise ValueError(f"{name} must be at most {limit_name} ({most}), not {given}")


def thread_count(num_threads: int | None) -> int:
    """Return the number of threads to use; by default one per core that this process may run on."""
    if num_threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    _require_integer("num_threads", num_threads, "an integer or None")
    if num_threads < 1:
        raise ValueError(f"num_threads must be at least 1, not {shown(num_threads)}")
    return min(int(num_threads), 1024)


@dataclass(frozen=True, eq=False)
class Refusal:
    """One check that some cells failed, in the shape of its own arguments, which broadcast to that of the cells."""

    rule: str  # "mu must be positive"
    arguments: Mapping[str, NDArray[np.float64]]  # one, or those of a condition between several, of one shape
    good: NDArray[np.bool_]

    def text(self, values: Sequence[object]) -> str:
        """Return the sentence for a cell with these values, in the order of the arguments."""
        if len(values) == 1:
            return f"{self.rule}, not {values[0]!s}"
        return f"{self.rule}, not {', '.join(f'{n} = {v!s}' for n, v in zip(self.arguments, values, strict=True))}"


EIGHT = 8  # bytes of an integer: with fewer it is a double exactly
LARGEST = 10**308
PLAIN = {int, float, np.float64, np.int64}

Array: TypeAlias = NDArray[np.float64]
Doubles: TypeAlias = NDArray[np.float64]
Result: TypeAlias = Any  # float64: a scalar for scalar arguments, else an array of the broadcast shape


def real(name: str, value: ArrayLike) -> Array:
    """Return `value` as float64 or raise TypeError; booleans, strings and complex numbers are not real numbers."""
    if type(value) is int:  # np.asarray makes objects of large ones
        return np.asarray(_double(value))
    try:
        numeric = type(value) is np.ndarray or not _is_misread(value)
        array = np.asarray(value) if numeric else np.empty(0)
        numeric = numeric and array.dtype.kind in "iuf"
    except (ValueError, TypeError, RuntimeError):  # a ragged sequence; a tensor with gradients; lists without end
        numeric = False
    if not numeric:
        hint = "; a tensor with gradients is given as tensor.detach()" if getattr(value, "requires_grad", False) else ""
        raise TypeError(f"{name} must be a real number or an array of real numbers, not {shown(value)}{hint}")
    if array.dtype.kind in "iu" and array.dtype.itemsize == EIGHT and array.size and not _are_doubles(array):
        return np.array([_double(int(number)) for number in array.ravel().tolist()]).reshape(array.shape)
    return array.astype(np.float64, copy=False)


def _double(value: int) -> float:
    """Return an integer as a double; one between two of them as the larger in size, so that it is not taken for the last that counts exactly."""
    if abs(value) >= LARGEST:
        return math.inf if value > 0 else -math.inf
    near = float(value)
    return near if abs(int(near)) >= abs(value) else math.nextafter(near, math.copysign(math.inf, near))


def _are_doubles(array: NDArray[Any]) -> bool:
    return bool(array.max() <= LARGEST_COUNT and array.min() >= -LARGEST_COUNT)


def _is_misread(value: object) -> bool:
    """Say whether NumPy takes something for numbers that are none: what a mask hides, and bytes; in lists too."""
    if isinstance(value, (list, tuple)):
        return not set(map(type, value)) <= PLAIN and any(map(_is_misread, value))
    if isinstance(value, memoryview):
        return value.format in {"b", "B", "c"}
    return isinstance(value, bytearray) or _is_masked(value)


def _is_masked(value: object) -> bool:
    """Say whether a value is a masked array. There is none before its module is imported.

    ``np.ma`` would import that module each time, and so take the lock of imports: one that another thread holds during a fork is never
    free in the child.
    """
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(value, getattr(masked, "MaskedArray", ()))


def distribution(name: str, value: ArrayLike) -> tuple[float, ...]:
    """Return `value` as a tuple if it is a sequence of probabilities that sum to 1 within 1e-12."""
    array = real(name, value)
    if array.ndim == 0:
        raise ValueError(f"{name} must be one-dimensional and not empty, not of shape {array.shape}")
    array = vector(name, array)
    if not ((array >= 0) & (array <= 1)).all() or abs(math.fsum(array) - 1.0) > 1e-12:
        raise ValueError(f"{name} must be probabilities in [0, 1] that sum to 1 within 1e-12, not {shown(value)}")
    return tuple(array.tolist())


def broadcast(*arrays: Array) -> list[Array]:
    """Return the arrays broadcast against each other."""
    if len({array.shape for array in arrays}) == 1:
        return list(arrays)
    try:
        return list(np.broadcast_arrays(*arrays))
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(
            f"arguments must broadcast against each other, not have the shapes {shapes} (in their order)"
        ) from None


def first_bad(name: str, array: Array, good: NDArray[np.bool_]) -> tuple[str, Any]:
    """Return the name, with its index if `array` has one, and the value of the first element that is not good."""
    index = np.unravel_index(int(np.argmin(good)), good.shape)
    where = f"{name}[{', '.join(map(str, index))}]" if index else name
    return where, array[index]


def vector(name: str, array: Array) -> Array:
    """Return a checked array if it is one-dimensional (a scalar counts as one number) and not empty."""
    array = np.atleast_1d(array)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be one-dimensional and not empty, not of shape {array.shape}")
    return array


def same_length(**arrays: Array) -> list[Array]:
    """Return checked arrays as vectors of one length; a single number is repeated."""
    vectors = {name: vector(name, array) for name, array in arrays.items()}
    length = max(one.size for one in vectors.values())
    for name, one in vectors.items():
        if one.size not in {1, length}:
            raise ValueError(f"{name} must be one number or as long as the others ({length}), not of length {one.size}")
    return [np.broadcast_to(one, (length,)) for one in vectors.values()]


NUM_AXES = operator.attrgetter("ndim")
CoreFunction: TypeAlias = Callable[[list[Array], int], Array]


def pmf(name: str, value: ArrayLike, tolerance: float = 1e-9) -> Array:
    """Return probabilities along the last axis, which must sum to 1 within the tolerance."""
    array = np.atleast_1d(STRICT.probability(name, value))
    total = array.sum(axis=-1)
    off = np.abs(total - 1.0)
    if array.size == 0 or off.max() > tolerance:
        raise ValueError(
            f"{name} must sum to 1 within {tolerance:g}, not to {total.ravel()[np.argmax(off)] if array.size else 0.0}"
        )
    return array


def matrix(name: str, value: ArrayLike, axes: str) -> Array:
    """Return finite numbers in two axes, which are named, at least one number."""
    array = STRICT.finite(name, value)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} must have the shape {axes} and not be empty, not {array.shape}")
    return array


def integers(smallest: int, largest: float) -> Domain:
    """Return the domain of integers from one to another."""

    def rule(x: Any) -> Any:
        return (x >= smallest) & (x <= largest) & (x.is_integer() if isinstance(x, float) else x == np.floor(x))

    return rule, f"be an integer in [{smallest}, {largest:.0f}]"


def _check_for(rule: Callable[[Any], Any], domain: str) -> Callable[[Checks, str, ArrayLike], Array]:
    """Return the check for a domain, a method of a grid. NumPy takes ten times as long for a number in an array as Python for the number."""

    def check(grid: Checks, name: str, value: ArrayLike) -> Array:
        if isinstance(value, float) or (type(value) is int and abs(value) <= LARGEST_COUNT):
            number = float(value)
            if rule(number):
                return np.asarray(number)
        return grid._check(name, value, rule, domain)

    return check


def _any_nan(result: Array) -> bool:
    return bool(np.isnan(result).any()) if result.ndim else math.isnan(result)


class Checks:
    """The checks and the one call of an array function.

    Numbers are checked in the order of the arguments, after `on_error`, `num_threads` and other choices, which decide what
    to check. With ``on_error="nan"`` only types are checked here: the core returns NaN in a cell outside its domain. A list for
    `on_error`, as sweeps give it, is the same, but that all checks are made and what they refuse is added to it, in their order.
    """

    def __init__(self, num_threads: int | None, on_error: OnError | list[Refusal]) -> None:
        self.refusals = on_error if isinstance(on_error, list) else None
        self.strict = not isinstance(on_error, list) and choice("on_error", on_error, ("raise", "nan")) == "raise"
        self._threads = None if num_threads is None else thread_count(num_threads)

    @property
    def threads(self) -> int:
        """Return the number of threads; the system is asked late, since a single cell needs one."""
        return self._threads or thread_count(None)

    def _check(self, name: str, value: ArrayLike, rule: Callable[[Any], Any], domain: str) -> Array:
        array = real(name, value)
        self._look(name, array, rule, domain)
        return array

    def _look(self, name: str, array: Array, rule: Callable[[Any], Any], domain: str) -> None:
        if self.strict:
            good = np.asarray(rule(array))
            if not good.all():
                where, bad = first_bad(name, array, good)
                raise ValueError(f"{where} must {domain}, not {bad!s}")
        else:
            self._collect(f"{name} must {domain}", {name: array}, rule)

    def _collect(self, rule: str, arguments: dict[str, Array], condition: Callable[..., Any]) -> None:
        """Collect what fails a check that does not raise, if that is asked. Values that an earlier check refused are no reason to warn."""
        if self.refusals is None:
            return
        with np.errstate(all="ignore"):
            good = np.asarray(condition(*arguments.values()))
        if not good.all():
            self.refusals.append(Refusal(rule, arguments, good))

    def within(self, name: str, value: ArrayLike, domain: Domain) -> Array:
        """Check for a domain of its own."""
        return _check_for(*domain)(self, name, value)

    number = _check_for(lambda x: x <= np.inf, "be a number")
    positive = _check_for(*POSITIVE)
    positive_or_infinite = _check_for(lambda x: x > 0, "be positive")
    non_negative = _check_for(*NON_NEGATIVE)
    non_negative_or_infinite = _check_for(*NON_NEGATIVE_OR_INFINITE)
    probability = _check_for(*PROBABILITY)
    fraction = _check_for(*FRACTION)
    inside = _check_for(*OPEN_PROBABILITY)
    finite = _check_for(lambda x: abs(x) < np.inf, "be finite")
    count = _check_for(*integers(1, LARGEST_COUNT))
    count_or_mean = _check_for(
        lambda x: (x >= 1) & (x < np.inf), "be at least 1 and finite"
    )  # of silos, a harmonic mean
    count_or_zero = _check_for(*integers(0, LARGEST_COUNT))

    def count_up_to(self, name: str, value: ArrayLike, largest: float) -> Array:
        """Check for an integer in [1, largest]."""
        return self.within(name, value, integers(1, largest))

    def require(self, condition: Callable[..., Any], rule: str, **arguments: Array) -> None:
        """Check a condition between arguments, broadcast against each other."""
        given = arguments.values()
        if self.strict and not any(map(NUM_AXES, given)) and condition(*map(float, given)):
            return
        cells = broadcast(*given)
        if not self.strict:
            self._collect(rule, dict(zip(arguments, cells, strict=True)), condition)
            return
        good = np.asarray(condition(*cells))
        if good.all():
            return
        index = np.unravel_index(int(np.argmin(good)), good.shape)
        values = ", ".join(f"{name} = {cell[index]!s}" for name, cell in zip(arguments, cells, strict=True))
        where = f" in cell {tuple(map(int, index))}" if index else ""
        raise ValueError(f"{rule}, not {values}{where}")

    def map(self, function: CoreFunction, *arrays: Array) -> Result:
        """Evaluate a core function of as many numbers on the broadcast arrays; a scalar for scalars."""
        cells = broadcast(*arrays)
        try:
            return self.finish(function(cells, self.threads if cells[0].ndim else 1))
        except MemoryError:
            shape = cells[0].shape
            raise MemoryError(
                f"no memory for a grid of shape {shape}: its results alone take {8 * math.prod(shape)} bytes"
            ) from None

    def finish(self, result: Array) -> Result:
        """Return a result of the core, which must be a number in every cell that has passed the checks."""
        if self.strict and _any_nan(result):
            raise RuntimeError("a cell that passed all checks has no value. This is a bug in hockeystick.")
        return result[()]


class NumpyChecks(Checks):
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


class ChecksOnNaN(Checks):
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


STRICT = Checks(1, "raise")  # for formulas in NumPy: arrays broadcast, the first number outside the domain raises

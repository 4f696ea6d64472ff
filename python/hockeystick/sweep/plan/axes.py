"""The axes of a plan: from lists, linspace, logspace and range tables to arrays of values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hockeystick.sweep.errors import PlanError

Values = NDArray[Any]  # (length,), float64, int64 or text

MAX_AXIS_LENGTH = 10**7  # all values of an axis are in memory, 80 MB here
INT64 = np.iinfo(np.int64)
MOST_POWER = 308.25  # of 10: the largest double is 10^308.2547


@dataclass(frozen=True, eq=False)
class Axis:
    """One or several arguments that move together."""

    names: tuple[str, ...]
    values: tuple[Values, ...]  # one array for each name, all of the same length
    spacing: str  # list, linspace, logspace, range or zip

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.values[0])


def parse_axis(name: str, given: object) -> Axis:
    """Return the axis that `[axes]` gives for one name."""
    key = f"axes.{name}"
    if isinstance(given, Mapping):
        spacing, values = _spaced(key, given)
        distinct = bool((values[1:] != values[:-1]).all())  # they only rise or only fall
    else:
        spacing, values = "list", listed(key, given)
        distinct = len(np.unique(values)) == len(values)
    if not distinct:
        message = f"{key} must have distinct values, not {shorten(given)}"
        raise PlanError(message)
    return Axis((name,), (values,), spacing)


def parse_zip(index: int, given: object) -> Axis:
    """Return the axis that one `[[zip]]` table gives."""
    key = f"zip[{index}]"
    if not isinstance(given, Mapping) or not given:
        message = f"{key} must be a table of equally long lists, not {shorten(given)}"
        raise PlanError(message)
    values = tuple(listed(f"{key}.{name}", entry) for name, entry in given.items())
    lengths = {name: len(array) for name, array in zip(given, values, strict=True)}
    if len(set(lengths.values())) > 1:
        message = f"{key} must have lists of one length, not " + ", ".join(f"{n} of {m}" for n, m in lengths.items())
        raise PlanError(message)
    return Axis(tuple(given), values, "zip")


def listed(key: str, given: object) -> Values:
    """Return the array of a list of numbers, or of a list of words."""
    if not isinstance(given, list | tuple):
        message = f"{key} must be a list, or a table with linspace, logspace or range, not {shorten(given)}"
        raise PlanError(message)
    if not given:
        message = f"{key} must have at least one value, not {shorten(given)}"
        raise PlanError(message)
    checked = [scalar(f"{key}[{index}]", value) for index, value in enumerate(given)]
    words = [isinstance(value, str) for value in checked]
    if any(words) and not all(words):
        message = f"{key} must hold numbers only or strings only, not {shorten(given)}"
        raise PlanError(message)
    if words[0]:
        return np.array(checked, dtype=np.str_)
    whole = all(isinstance(value, int) for value in checked)
    return np.array(checked, dtype=np.int64 if whole else np.float64)


def scalar(key: str, value: object) -> int | float | str:
    """Return a value that may stand in a cell: a finite number or a string."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"{key} must be a number or a string, not {shorten(value)}"
        raise PlanError(message)
    if isinstance(value, int) and not INT64.min <= value <= INT64.max:
        message = f"{key} must fit into 64 bits, not {value}"
        raise PlanError(message)
    if not math.isfinite(value):
        message = f"{key} must be finite, not {value}"
        raise PlanError(message)
    return value


def shorten(value: object, width: int = 100) -> str:
    """Return a text for a message, with its middle left out if it is long."""
    try:
        text = repr(value)
    except RecursionError:
        return "what is nested too deeply to be shown"
    return text if len(text) <= width else f"{text[: width - 20]} ... {text[-15:]}"


def _spaced(key: str, given: Mapping[str, Any]) -> tuple[str, Values]:
    kinds = {"linspace": {"linspace", "num"}, "logspace": {"logspace", "num"}, "range": {"range", "step"}}
    found = [kind for kind in kinds if kind in given]
    if len(found) != 1:
        message = f"{key} must have one of linspace, logspace and range, not {shorten(dict(given))}"
        raise PlanError(message)
    kind = found[0]
    for extra in given.keys() - kinds[kind]:
        message = f"{key}.{extra} is unknown; beside {kind} there may be {' '.join(kinds[kind] - {kind})}"
        raise PlanError(message)
    first, last = _ends(f"{key}.{kind}", given[kind])
    if kind == "range":
        return kind, _range(key, first, last, given.get("step", 1))
    num = _length(key, given.get("num"), first == last)
    if kind == "logspace" and (first <= 0 or last <= 0):
        message = f"{key}.logspace must have two positive ends (values, not exponents), not [{first}, {last}]"
        raise PlanError(message)
    if kind == "logspace":
        return kind, _geometric(first, last, num)
    with np.errstate(all="ignore"):  # told below
        values = np.linspace(first, last, num, dtype=np.float64)
    if not np.isfinite(values).all():
        message = (
            f"{key}.{kind} must have finite values between its ends, not [{first}, {last}]: the doubles end before"
        )
        raise PlanError(message)
    return kind, values


def _geometric(first: float, last: float, num: int) -> Values:
    """Return a geometric sequence, both ends exact.

    Python's power is the C library's. NumPy's has other last digits on machines with AVX-512 than on others, which would keep
    a table from being made by both.
    """
    powers = np.linspace(math.log10(first), math.log10(last), num)[1:-1]
    between = [10.0 ** min(power, MOST_POWER) for power in powers.tolist()]
    values: Values = np.array([first, *between, last][:num])
    return values.clip(min(first, last), max(first, last))


def _ends(key: str, given: object) -> tuple[Any, Any]:
    if not isinstance(given, list | tuple) or len(given) != 2 or any(isinstance(value, str) for value in given):
        message = f"{key} must be [first, last], two numbers, not {shorten(given)}"
        raise PlanError(message)
    return scalar(f"{key}[0]", given[0]), scalar(f"{key}[1]", given[1])


def _length(key: str, num: object, ends_equal: bool) -> int:
    least = 1 if ends_equal else 2  # both ends are included
    if type(num) is not int or not least <= num <= MAX_AXIS_LENGTH:
        message = f"{key}.num must be an integer between {least} and {MAX_AXIS_LENGTH}, not {shorten(num)}"
        raise PlanError(message)
    return num


def _whole(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        message = f"{key} must be an integer, not {shorten(value)}"
        raise PlanError(message)
    return value


def _range(key: str, first: object, last: object, step: object) -> Values:
    first, last = _whole(f"{key}.range[0]", first), _whole(f"{key}.range[1]", last)
    step = _whole(f"{key}.step", step)
    if last < first:
        message = f"{key}.range must not decrease, not [{first}, {last}]"
        raise PlanError(message)
    if step < 1 or (last - first) % step:
        message = f"{key}.step must be positive and divide {last - first}, so that both ends are included, not {step}"
        raise PlanError(message)
    length = (last - first) // step + 1
    if length > MAX_AXIS_LENGTH:
        message = f"{key}.range must have at most {MAX_AXIS_LENGTH} values, not {length}"
        raise PlanError(message)
    # Modulo 2^64, since a step may be longer than the integers of 64 bits are; the values themselves are between the ends.
    offsets = np.arange(length, dtype=np.uint64) * np.uint64(step % 2**64)
    return (offsets + np.uint64(first % 2**64)).view(np.int64)

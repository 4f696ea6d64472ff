"""Checks of single arguments: words, numbers, counts."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from hockeystick._checks.shown import LARGEST_INTEGER, in_bits, listed, shown

OnError: TypeAlias = Literal["raise", "nan"]
Choice = TypeVar("Choice", bound=str)
LARGEST_COUNT = 2**53  # the last integer up to which doubles count exactly

Domain: TypeAlias = tuple[Callable[[Any], Any], str]  # a rule for numbers and arrays, and its words

POSITIVE: Domain = (lambda x: (x > 0) & (x < np.inf), "be positive and finite")
NON_NEGATIVE: Domain = (lambda x: (x >= 0) & (x < np.inf), "be non-negative and finite")
DELTA: Domain = (lambda x: (x >= 0) & (x < 1), "lie in [0, 1)")  # 1 asks for nothing
FRACTION: Domain = (lambda x: (x > 0) & (x <= 1), "lie in (0, 1]")
OPEN_PROBABILITY: Domain = (lambda x: (x > 0) & (x < 1), "lie in (0, 1)")
PROBABILITY: Domain = (lambda x: (x >= 0) & (x <= 1), "lie in [0, 1]")
NON_NEGATIVE_OR_INFINITE: Domain = (lambda x: x >= 0, "be non-negative")


def choice(name: str, value: Choice, choices: Sequence[str], also_called: Mapping[str, str] | None = None) -> Choice:
    """Return `value` if it is one of `choices`; the error names the one that was probably meant, also by another name."""
    if not isinstance(value, str):
        hint = _meant(getattr(value, "name", ""), choices, also_called or {})
        msg = f"{name} must be a string, one of {listed(map(repr, choices))}, not {shown(value)}{hint}"
        raise TypeError(msg)
    if value not in choices:
        hint = _meant(value, choices, also_called or {})
        msg = f"{name} must be one of {listed(map(repr, choices))}, not {shown(value)}{hint}"
        raise ValueError(msg)
    return value


def _meant(value: object, choices: Sequence[str], also_called: Mapping[str, str]) -> str:
    word = str(value).strip().casefold().replace("-", "_").replace(" ", "_")
    names = dict(also_called) | {choice.casefold().replace("-", "_"): choice for choice in choices}
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.8)
    return f"; did you mean {names[near[0]]!r}?" if near else ""


def scalar(name: str, value: float, rule: Callable[[float], bool], domain: str) -> float:
    """Return `value` as a float if it is one real number for which `rule` holds."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        msg = f"{name} must be a real number, not {shown(value)}"
        raise TypeError(msg)
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:  # float() may refuse it, and str() too
        msg = f"{name} must {domain}, and fit a double, not {in_bits(value)}"
        raise ValueError(msg)
    if not rule(float(value)):
        msg = f"{name} must {domain}, not {value!s}"
        raise ValueError(msg)
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


def count_scalar(name: str, value: int, smallest: int = 1) -> int:
    """Return `value` if it is an integer in [smallest, 2^53]."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        msg = f"{name} must be an integer, not {shown(value)}"
        raise TypeError(msg)
    if not smallest <= value <= LARGEST_COUNT:
        given = value if abs(value) <= LARGEST_INTEGER else in_bits(int(value))
        msg = f"{name} must be an integer in [{smallest}, {LARGEST_COUNT}], not {given}"
        raise ValueError(msg)
    return int(value)


def count_at_most(name: str, value: int, limit_name: str, limit: int) -> int:
    """Return `value` if it is an integer from 1 to another argument."""
    count = count_scalar(name, value)
    if count > limit:
        msg = f"{name} must be at most {limit_name} ({limit}), not {count}"
        raise ValueError(msg)
    return count


def boolean_scalar(name: str, value: object) -> bool:
    """Return `value` if it is True or False, of Python or of NumPy; 0 and 1 are refused."""
    if not isinstance(value, (bool, np.bool_)):
        msg = f"{name} must be True or False, not {shown(value)}"
        raise TypeError(msg)
    return bool(value)


def seed_scalar(name: str, value: int) -> int:
    """Return `value` if it is an integer in [0, 2^64)."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        msg = f"{name} must be an integer, not {shown(value)}"
        raise TypeError(msg)
    if not 0 <= value < 2**64:
        msg = f"{name} must be an integer in [0, 2^64), not {shown(value)}"
        raise ValueError(msg)
    return int(value)


def random_generator(name: str, value: object) -> None:
    """Check that an argument is a generator of random numbers."""
    if not isinstance(value, np.random.Generator):
        msg = (
            f"{name} must be a numpy.random.Generator, as numpy.random.default_rng(seed) makes one, not {shown(value)}"
        )
        raise TypeError(msg)


def at_most(name: str, value: float, limit_name: str, limit: float) -> None:
    """Check one argument against another."""
    if value > limit:
        msg = f"{name} must be at most {limit_name} ({limit:g}), not {value:g}"
        raise ValueError(msg)


def thread_count(num_threads: int | None) -> int:
    """Return the number of threads to use; by default one per core that this process may run on."""
    if num_threads is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if isinstance(num_threads, bool) or not isinstance(num_threads, (int, np.integer)):
        msg = f"num_threads must be an integer or None, not {shown(num_threads)}"
        raise TypeError(msg)
    if num_threads < 1:
        msg = f"num_threads must be at least 1, not {shown(num_threads)}"
        raise ValueError(msg)
    return min(int(num_threads), 1024)

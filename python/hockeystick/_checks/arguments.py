"""Arguments by their names: `arguments.csv` says of each once what holds wherever nothing else is said, and the checks here read it.

A row of the table has the `domain`, a name of a check; the `unit`; the values in a plan to begin with (`example`: several for an
argument that is worth varying; these stand first); and other programs' `words` for it, which it shares with the
arguments that are `like` it. A function whose domain differs states it where it checks, None for what it checks by itself.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from hockeystick._checks import (
    FRACTION,
    NON_NEGATIVE_OR_INFINITE,
    OPEN_PROBABILITY,
    STRICT,
    Array,
    Checks,
    Domain,
    at_most,
    boolean_scalar,
    count_scalar,
    non_negative_scalar,
    positive_scalar,
    probability_scalar,
    scalar,
    seed_scalar,
)

Check: TypeAlias = str | Domain | Callable[[str, Any], Any]  # a name of a domain, one of its own, or a check
SINGLE: Mapping[str, Domain | Callable[[str, Any], Any]] = {  # what `Checks` has for arrays
    "boolean": boolean_scalar,
    "count": count_scalar,
    "count_or_mean": count_scalar,  # of one training
    "count_or_zero": functools.partial(count_scalar, smallest=0),
    "fraction": FRACTION,
    "inside": OPEN_PROBABILITY,
    "non_negative": non_negative_scalar,
    "non_negative_or_infinite": NON_NEGATIVE_OR_INFINITE,
    "positive": positive_scalar,
    "probability": probability_scalar,
    "seed": seed_scalar,
}


class Argument(NamedTuple):
    """What the table says of an argument."""

    domain: str = ""
    unit: str = ""
    example: str = ""
    like: str = ""
    words: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether every function takes an integer only, which the number of silos in a round need not be."""
        return self.domain in {"count", "count_or_zero"}


def rows(table: Path) -> list[tuple[str, list[str]]]:
    """Return the name and the other entries of each row of a table."""
    with table.open(encoding="utf-8", newline="") as file:
        return [(name, entries) for name, *entries in [*csv.reader(file)][1:]]


@functools.cache
def table() -> dict[str, Argument]:
    """Return what is known of arguments, by their names."""
    return {name: Argument(*entries) for name, entries in rows(Path(__file__).with_name("arguments.csv"))}


def notions() -> list[list[str]]:
    """Return what is meant by the same words: arguments, and after them other programs' words for them."""
    known = table()
    alike: dict[str, list[str]] = {}
    for name, row in known.items():
        alike.setdefault(row.like or name, []).append(name)
    return [[*names, *known[first].words.split()] for first, names in alike.items()]


def _domains(arguments: Mapping[str, Any], others: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the arguments that have a domain, with it, in their order."""
    known = table()
    for name in arguments:
        domain = others[name] if name in others else known[name].domain if name in known else None
        if domain:
            yield name, domain


def arrays(arguments: Mapping[str, Any], grid: Checks = STRICT, /, **others: str | Domain | None) -> dict[str, Array]:
    """Return the arguments that have a domain, each in the one given or that of its name, in their order.

    A function hands over ``locals()``, all that it was called with, before it gives names of its own.
    """
    found = {}
    for name, domain in _domains(arguments, others):
        check = getattr(grid, domain) if isinstance(domain, str) else functools.partial(grid.within, domain=domain)
        found[name] = check(name, arguments[name])
    return found


def scalars(
    arguments: Mapping[str, Any], pairs: Iterable[tuple[str, str]] = (), /, **others: Check | None
) -> list[Any]:
    """Return the same of functions whose arguments are single numbers; counts are integers. No first of a pair may exceed the second."""
    found = {}
    for name, domain in _domains(arguments, others):
        check = SINGLE[domain] if isinstance(domain, str) else domain
        value = arguments[name]
        found[name] = scalar(name, value, *check) if isinstance(check, tuple) else check(name, value)
    for small, large in pairs:
        if small in found and large in found:
            at_most(small, found[small], large, found[large])
    return list(found.values())

"""Arguments that are checked by their names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hockeystick._checks.array_checks import STRICT, Array, Checks
from hockeystick._checks.scalars import Domain


def in_domains(
    arguments: Mapping[str, Any], domains: Mapping[str, str | Domain], grid: Checks = STRICT
) -> dict[str, Array]:
    """Return the arguments that have a domain, each in that of its name, in their order.

    A domain is one of its own, or the name of a check of `Checks`. A function hands over ``locals()``, all that it was called
    with, before it gives names of its own.
    """
    arrays = {}
    for name, value in arguments.items():
        if name in domains:
            domain = domains[name]
            check = getattr(grid, domain) if isinstance(domain, str) else partial(grid.within, domain=domain)
            arrays[name] = check(name, value)
    return arrays

"""Tables of calls that a room refuses, a line each: the call, an arrow, and a pattern of the reason that is given."""

from __future__ import annotations

import builtins
from collections.abc import Mapping

import pytest


def rows(table: str) -> list:
    """Return the rows of a table as parameters of a test; what is indented goes on the line before."""
    pairs = [line.split(" -> ") for line in table.strip().replace("\n ", " ").splitlines()]
    return [pytest.param(call.strip(), reason.strip(), id=call[:60]) for call, reason in pairs]


def check(call: str, reason: str, names: Mapping[str, object]) -> None:
    """Check that a call is refused by a ValueError of this reason, or by the error that stands before it."""
    kind, _, pattern = reason.partition(": ")
    is_error = kind.isidentifier() and kind.endswith("Error")
    error = getattr(builtins, kind, names.get(kind)) if is_error else ValueError
    with pytest.raises(error, match=(pattern if is_error else reason) or None):
        eval(call, dict(names))

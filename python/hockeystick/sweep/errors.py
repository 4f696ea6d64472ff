"""What a sweep refuses."""

from __future__ import annotations

from hockeystick._checks.shown import shown


class PlanError(ValueError):
    """A plan that cannot be run; the message names the key, its value and its domain."""


class OutputError(ValueError):
    """An output directory that cannot be used; the message says why. Nothing was written."""


class CellError(ValueError):
    """A cell that a function refuses, in a strict run; the message names the cell, its inputs and the reason."""


class ClusterError(OSError):
    """A cluster that cannot be used or was lost; the message says why. What had been written stays."""


def require(condition: object, message: str, kind: type[Exception] = PlanError) -> None:
    """Refuse what does not meet a condition, by an error of this kind."""
    if not condition:
        raise kind(message)


def must(key: str, domain: str, given: object) -> str:
    """Return the text of a refusal: what something must be or have, and what was given."""
    return f"{key} must {domain}, not {shown(given)}"

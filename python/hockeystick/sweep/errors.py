"""What a sweep refuses."""

from __future__ import annotations


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


def shorten(value: object, width: int = 100) -> str:
    """Return a text for a message, with its middle left out if it is long."""
    try:
        text = repr(value)
    except RecursionError:
        return "what is nested too deeply to be shown"
    return text if len(text) <= width else f"{text[: width - 20]} ... {text[-15:]}"


def must(key: str, domain: str, given: object) -> str:
    """Return the text of a refusal: what something must be or have, and what was given."""
    return f"{key} must {domain}, not {shorten(given)}"

"""What the checks find outside the domain where ``on_error="nan"`` asks for NaN, for a caller who wants to say why."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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


_LISTENER: ContextVar[list[Refusal] | None] = ContextVar("_LISTENER", default=None)  # of each thread its own


@contextlib.contextmanager
def collected() -> Iterator[list[Refusal]]:
    """Give the list to which the checks of calls with ``on_error="nan"`` add what they refuse, in their order."""
    found: list[Refusal] = []
    token = _LISTENER.set(found)
    try:
        yield found
    finally:
        _LISTENER.reset(token)


def listener() -> list[Refusal] | None:
    """Return the list of the innermost `collected` of this thread, or None."""
    return _LISTENER.get()

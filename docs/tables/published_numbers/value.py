"""A number that others have published, what it is, and what hockeystick says to the same question."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Literal, NamedTuple

from hockeystick import Accountant, format_lower, format_upper
from hockeystick.mechanisms.base import Mechanism

Ends = tuple[float, float]
Kind = Literal["upper bound", "lower bound", "exact", "estimate"]


class Value(NamedTuple):
    """One row of docs/accounting/published_values.md."""

    question: str  # the setting and what is asked
    source: str  # paper with arXiv number, and the table, figure or file of its authors that has or computes the number
    theirs: str  # as printed there
    kind: Kind  # what theirs is
    ours: Callable[[], Ends]  # a lower and an upper end of the same quantity
    note: str = ""  # why the two differ, if they do

    @property
    def rounding(self) -> float:
        """Half a unit of the last digit that is published, or what a computation in doubles may be off."""
        return max(0.5 * 10.0 ** int(Decimal(self.theirs).as_tuple().exponent), 1e-9 * float(self.theirs))

    def row(self) -> str:
        """Return the row of the table, our ends rounded outward."""
        lower, upper = self.ours()
        below, above = format_lower(lower, ".4g"), format_upper(upper, ".4g")
        shown = f"at most {above}" if lower <= 0.0 < upper else f"[{below}, {above}]"
        return f"| {self.question} | {self.source} | {self.theirs}, {self.kind} | {shown} | {self.note} |"

    def possible(self) -> bool:
        """Tell whether what is published can be true beside our ends."""
        lower, upper = self.ours()
        least, most = float(self.theirs) - self.rounding, float(self.theirs) + self.rounding
        return (self.kind == "lower bound" or lower <= most) and (self.kind == "upper bound" or least <= upper)

    def improved(self) -> bool:
        """Tell whether our upper end is no larger than a published upper bound, as it must be where no note says why not."""
        return self.kind != "upper bound" or self.ours()[1] <= float(self.theirs) + self.rounding


def epsilon(delta: float, *steps: tuple[Mechanism, int], adjacency: str = "add_or_remove") -> Callable[[], Ends]:
    """Return a function that gives the ends of epsilon of a composition."""

    def ends() -> Ends:
        accountant = Accountant(adjacency)
        for mechanism, count in steps:
            accountant.compose(mechanism, count)
        return accountant.epsilon_bracket(delta)[:2]

    return ends


def delta(eps: float, *steps: tuple[Mechanism, int], adjacency: str = "add_or_remove") -> Callable[[], Ends]:
    """Return a function that gives the ends of delta of a composition."""

    def ends() -> Ends:
        accountant = Accountant(adjacency)
        for mechanism, count in steps:
            accountant.compose(mechanism, count)
        return accountant.delta_bracket(eps)[:2]

    return ends

"""A number that others have published, what it is, and what hockeystick says to the same question."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Literal, NamedTuple

from hockeystick import format_lower, format_upper

Ends = tuple[float, float]
Kind = Literal["upper bound", "lower bound", "exact", "estimate"]


class Value(NamedTuple):
    """One row of docs/accounting/published_values.md."""

    question: str  # the setting and what is asked
    source: str  # paper with arXiv number, and the table, figure, or file of its authors, that has the number
    theirs: str  # as printed there
    kind: Kind  # what theirs is
    ours: Callable[[], Ends]  # a lower and an upper end of the same quantity
    note: str = ""  # why the two differ, if they do

    def row(self) -> str:
        """Return the row of the table, our ends rounded outward."""
        lower, upper = self.ours()
        ends = (format_lower(lower, ".4g"), format_upper(upper, ".4g"))
        shown = ends[1] if lower == upper else f"[{ends[0]}, {ends[1]}]" if lower > 0 else f"at most {ends[1]}"
        return f"| {self.question} | {self.source} | {self.theirs}, {self.kind} | {shown} | {self.note} |"

    def agrees(self) -> bool:
        """Tell whether what is published can be true beside our ends, or is an upper bound that ours improves.

        A published number is known to half a unit of its last digit. An estimate agrees if it is no further from our ends than that.
        """
        lower, upper = self.ours()
        half = 0.5 * 10.0 ** int(Decimal(self.theirs).as_tuple().exponent)
        least, most = float(self.theirs) - half, float(self.theirs) + half
        if self.kind == "upper bound":
            return lower <= most and upper <= most
        if self.kind == "lower bound":
            return upper >= least
        return lower <= most and upper >= least

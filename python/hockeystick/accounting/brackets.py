"""A number between two certified ends, and how it was found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hockeystick._numeric.notebook import table
from hockeystick._numeric.printing import format_lower, format_upper

__all__ = ["Bracket", "Explanation"]

TOLERANCE = 1e-3  # width over upper end


class Bracket(NamedTuple):
    """A number between two ends.

    ``format(bracket, ".4f")`` is the upper end with four digits, rounded up as `format_upper` does.

    Attributes
    ----------
    lower, upper : float
        The ends.
    method : str
        How they were found.
    status : str
        "certified": the truth lies between the ends, rounding included. "estimate" if a mechanism was only estimated.

    Examples
    --------
    >>> import hockeystick as hs
    >>> bracket = hs.Bracket(6.841719014976, 6.841719014981, "contour", "certified")
    >>> bracket.upper
    6.841719014981
    >>> print(f"{bracket:.4f}")
    6.8418
    """

    lower: float
    upper: float
    method: str
    status: str

    def __format__(self, format_spec: str) -> str:
        """Return the upper end, rounded up; without a format the whole bracket."""
        return format_upper(self.upper, format_spec) if format_spec else str(self)

    def _repr_html_(self) -> str:
        """Return a table with few digits, each end rounded outwards, for a notebook."""
        ends = [("at least", format_lower(self.lower)), ("at most", format_upper(self.upper))]
        return table(f"Bracket, {self.status}", [*ends, ("method", self.method)])


def describe(upper: float, interval: float, *, coarsened: bool) -> str:
    """Return the method's name with what it chose."""
    method = f"pld, interval {interval:.3g}" if math.isfinite(upper) and interval > 0.0 else "pld"
    return method + (", wider than asked: limited by memory or rounding" if coarsened else "")


@dataclass(frozen=True, repr=False)
class Explanation:
    """How a number was found.

    Attributes
    ----------
    bracket : Bracket
        The number.
    method : str
        How the upper end was found.
    direction : str
        Which direction has the larger upper end: "remove" or "add"; "forward" or "reverse" of the pair under
        replacement; "both" where they are one.
    directions : mapping
        The bracket of each direction that was computed.
    shares : mapping
        Parts of the bracket's relative width, (upper - lower)/upper, by origin ("alias", "truncation", "rounding", "smoothing",
        "missing"), as far as the engine tells them apart; all together at most the width. "pairs" is the part that lies
        between what the dominating pairs leak and what is attained by pairs below: no computing narrows it. It is absent
        where both are the same, and where they are tables on either side of one law. "failure" is the part of a delta that is the
        probability that something fails.
    assumptions : tuple of str
        What must be true of the algorithm for the number to hold.
    tried : tuple of str
        What was tried in the winning direction, in order: strategies of the contour engine with what each gave, and whatever
        else moved an end, with the ends from then on.
    """

    bracket: Bracket
    method: str
    direction: str
    directions: Mapping[str, Bracket]
    shares: Mapping[str, float]
    assumptions: tuple[str, ...]
    tried: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return one line, each end rounded outwards; `print` gives all of it."""
        ends = f"between {format_lower(self.bracket.lower)} and {format_upper(self.bracket.upper)}"
        return f"<Explanation: {ends}, {self.bracket.status}; {self.method}>"

    def _repr_html_(self) -> str:
        """Return the lines of the text as a table, for a notebook."""
        first, *rest = str(self).split("\n")
        return table(first, [(name, value) for name, _, value in (line.partition(": ") for line in rest)])

    def __str__(self) -> str:
        """Return a line for each."""
        shares = ", ".join(f"{name} {format_upper(share, '.1e')}" for name, share in self.shares.items())
        lines = [
            f"between {format_lower(self.bracket.lower, '.17g')} and {format_upper(self.bracket.upper, '.17g')}, {self.bracket.status}",
            f"method: {self.method}",
            f"direction: {self.direction}",
            f"shares of the error: {shares or 'not told apart'}",
            *(f"tried: {strategy}" for strategy in self.tried),
            *(f"assumes: {assumption}" for assumption in self.assumptions),
        ]
        return "\n".join(lines)

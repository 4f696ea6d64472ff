"""A number between two certified ends."""

from __future__ import annotations

import math
from typing import NamedTuple

from hockeystick._numeric.notebook import table
from hockeystick._numeric.printing import format_lower, format_upper

__all__ = ["Bracket"]
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

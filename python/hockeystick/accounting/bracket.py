"""A number between two certified ends."""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["Bracket"]
TOLERANCE = 1e-3  # width over upper end


class Bracket(NamedTuple):
    """A number between two ends.

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
    >>> hs.Bracket(1.0, 1.5, "pld", "certified").upper
    1.5
    """

    lower: float
    upper: float
    method: str
    status: str


def describe(upper: float, interval: float, *, coarsened: bool) -> str:
    """Return the method's name with what it chose."""
    method = f"pld, interval {interval:.3g}" if math.isfinite(upper) and interval > 0.0 else "pld"
    return method + (", wider than asked: limited by memory or rounding" if coarsened else "")

"""Numerical methods in Python whose errors are known: searches, binomial tails, directed rounding."""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick._numeric.printing import format_lower, format_upper

__all__ = ["format_lower", "format_upper"]

open_room(__name__)

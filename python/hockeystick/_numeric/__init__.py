"""Numerical methods in Python whose errors are known: searches, binomial tails, directed rounding."""

from __future__ import annotations

from hockeystick._checks.hints import publish
from hockeystick._numeric.printing import format_lower, format_upper

__all__ = ["format_lower", "format_upper"]

publish(__name__)

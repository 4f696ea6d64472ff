"""The warning that false formulas come with."""

from __future__ import annotations

import warnings

from hockeystick._checks.doors import level


class UnsoundBoundWarning(UserWarning):
    """A published bound was evaluated that is false: the true privacy loss, or risk, can be larger than the value returned."""


def warn_unsound(what: str, instead: str, worth: str = "privacy guarantee") -> None:
    """Warn at the line that called the formula."""
    warnings.warn(f"{what}; the value is no {worth}, use {instead}", UnsoundBoundWarning, stacklevel=level(3))

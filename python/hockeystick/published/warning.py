"""The warning that false formulas come with."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from hockeystick._checks.doors import level

__all__ = ["UnsoundBoundWarning"]

T = TypeVar("T")


class UnsoundBoundWarning(UserWarning):
    """A published bound was evaluated that is false: the true privacy loss, or risk, can be larger than the value returned."""


def warn_unsound(what: str, instead: str, worth: str = "privacy guarantee") -> None:
    """Warn at the line that called the formula."""
    warnings.warn(f"{what}; the value is no {worth}, use {instead}", UnsoundBoundWarning, stacklevel=level(3))


def quietly(function: Callable[..., T], *arguments: object, **named: object) -> T:
    """Call a formula without its warning, where it has been given or what is false is the subject."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundBoundWarning)
        return function(*arguments, **named)

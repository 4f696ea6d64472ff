"""How tests call formulas that are known to be false."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from hockeystick.published import UnsoundBoundWarning

T = TypeVar("T")


def quietly(function: Callable[..., T], *arguments: object, **named: object) -> T:
    """Call a printed formula without its warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundBoundWarning)
        return function(*arguments, **named)

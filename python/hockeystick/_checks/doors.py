"""The doors of the package: public functions and methods compute in the floating-point environment that certified bounds need.

A thread may round downward or take subnormal numbers for zero; the compiled core sets that right for its own part
(``numeric/floating_environment.hpp``), and what is here for arithmetic in Python and NumPy. The caller's environment is restored.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from hockeystick._core import FloatingEnvironment, environment_is_right

TOP = __name__.partition(".")[0]  # the package


def kept(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does the same in the right environment."""

    @functools.wraps(call)
    def asked(*values: Any, **named: Any) -> Any:
        if environment_is_right():
            return call(*values, **named)
        with FloatingEnvironment():
            return call(*values, **named)

    return asked


def keep_class(owner: type, door: Callable[[FunctionType, str], Any] | None = None) -> None:
    """Put a door before the constructor, the public methods and the properties of a class."""
    for name in dir(owner):
        if name.startswith("_") and name not in {"__init__", "__call__"}:
            continue
        found = next(vars(base)[name] for base in owner.__mro__ if name in vars(base))
        if isinstance(found, property):
            if found.fget is not None and _is_ours(found.fget):
                type.__setattr__(owner, name, property(kept(found.fget), found.fset, found.fdel, found.__doc__))
        elif isinstance(found, classmethod | staticmethod):
            if _is_ours(found.__func__):
                type.__setattr__(owner, name, type(found)(kept(found.__func__)))
        elif _is_ours(found):
            type.__setattr__(owner, name, door(found, name) if door else kept(found))


def _is_ours(call: object) -> bool:
    return isinstance(call, FunctionType) and call.__module__.startswith("hockeystick") and call.__code__ != _DOOR


_DOOR = kept(lambda: None).__code__


def keep_module(name: str) -> None:
    """Put doors before the public functions and classes of a module, but for those found at the top, which have theirs."""
    namespace = vars(sys.modules[name])
    for public in map(namespace.get, namespace["__all__"]):
        if getattr(public, "__module__", TOP) == TOP:
            continue
        if isinstance(public, FunctionType):
            door = namespace[public.__name__] = kept(public)
            door.__module__ = name  # where a pickle finds it
        elif isinstance(public, type):
            keep_class(public)


def level(frames: int) -> int:
    """Return the `stacklevel` of a warning at the line that called the function so many frames up, which may stand behind a door."""
    return frames + (sys._getframe(frames).f_code == _DOOR)

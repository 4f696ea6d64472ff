"""The doors of the package: what stands before public functions, methods and classes, and the rooms that open them.

A thread may round downward or take subnormal numbers for zero; the compiled core sets that right for its own part
(``numeric/floating_environment.hpp``), and a door for arithmetic in Python and NumPy. The caller's environment is restored. A door
also says which argument was meant by one that a function has not.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from hockeystick._checks import hints
from hockeystick._core import FloatingEnvironment, environment_is_right

TOP = __name__.partition(".")[0]  # the package


def door(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function that does the same in the right environment, and whose errors call it by this name."""

    @functools.wraps(call)
    def asked(*values: Any, **named: Any) -> Any:
        try:
            if environment_is_right():
                return call(*values, **named)
            with FloatingEnvironment():
                return call(*values, **named)
        except TypeError:
            message = hints.unknown_argument(call, name, values, named)
            if message is None:
                raise
        raise TypeError(message)

    return asked


_DOOR = door(lambda: None, "").__code__


def open_class(owner: type) -> None:
    """Put a door before the constructor, the public methods and the properties of a class."""
    for name in dir(owner):
        if name.startswith("_") and name not in {"__init__", "__call__"}:
            continue
        found = next(vars(base)[name] for base in owner.__mro__ if name in vars(base))
        known = owner.__name__ if name == "__init__" else f"{owner.__name__}.{name}"
        if isinstance(found, property):
            if found.fget is not None and _is_ours(found.fget):
                type.__setattr__(owner, name, property(door(found.fget, known), found.fset, found.fdel, found.__doc__))
        elif isinstance(found, classmethod | staticmethod):
            if _is_ours(found.__func__):
                type.__setattr__(owner, name, type(found)(door(found.__func__, known)))
        elif _is_ours(found):
            type.__setattr__(owner, name, door(found, known))


def _is_ours(call: object) -> bool:
    return isinstance(call, FunctionType) and call.__module__.startswith("hockeystick") and call.__code__ != _DOOR


def opened(found: Any, name: str, home: str) -> Any:
    """Return what is public under a name with doors before it; a function is then found in its home, by pickles, tracebacks and pages."""
    if isinstance(found, type):
        open_class(found)
    elif _is_ours(found):
        found = door(found, name)
        found.__module__ = home
    return found


def open_room(room: str) -> None:
    """Put doors before the public names of a room, list them alone, and say of any other name what was probably meant.

    A room that does not list them has those of its modules that it imports. What users find at the top is named by it.
    """
    namespace, top = vars(sys.modules[room]), sys.modules[TOP]
    if "__all__" not in namespace:
        below = [module for name, module in [*sys.modules.items()] if name.startswith(f"{room}.")]
        listed = {name for module in below for name in getattr(module, "__all__", ())}
        namespace["__all__"] = sorted(listed & namespace.keys())
    at_top = room.partition(".")[2] in top._ROOMS
    home = TOP if at_top else room
    for name in namespace["__all__"]:
        found = namespace[name] = opened(namespace[name], name, home)
        if at_top and isinstance(found, type):
            found.__module__ = TOP
    namespace["__dir__"] = lambda: sorted(namespace["__all__"])
    namespace["__getattr__"] = hints.missing(room, namespace["__dir__"])


def level(frames: int) -> int:
    """Return the `stacklevel` of a warning at the line that called the function so many frames up, which may stand behind a door."""
    return frames + (sys._getframe(frames).f_code == _DOOR)

"""What the code of compiled functions says, so that two losses that agree wherever they were tried are still two."""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Any

import numpy as np

__all__ = ["told"]


def told(thing: Any, within: tuple[int, ...] = ()) -> str:  # noqa: PLR0911 - one for each kind
    """Return a text of a function's code and of all that it takes from around it: the same for code that is compiled anew.

    Of two functions with one text the bits may differ still, where they take something that is neither a number, a text, an array
    nor a function. Another version of Python has other code, and so another text.
    """
    if id(thing) in within:
        return "itself"
    within = (*within, id(thing))
    if hasattr(thing, "py_func"):  # compiled by numba, with its options: "fastmath" changes bits
        return f"{sorted(thing.targetoptions.items())!r} {told(thing.py_func, within)}"
    if inspect.isfunction(thing):
        around = inspect.getclosurevars(thing)
        taken = sorted({**around.globals, **around.nonlocals}.items())
        given = told(thing.__defaults__, within)
        return f"{told(thing.__code__, within)} {given} {[(name, told(value, within)) for name, value in taken]}"
    if isinstance(thing, CodeType):
        constants = [told(constant, within) for constant in thing.co_consts]
        return f"{thing.co_code.hex()} {thing.co_names} {thing.co_varnames} {constants}"
    if isinstance(thing, np.ndarray):
        return f"{thing.dtype} {thing.shape} {thing.tobytes().hex()}"
    if isinstance(thing, (tuple, list)):
        return f"{type(thing).__name__} {[told(one, within) for one in thing]}"
    if isinstance(thing, (bool, int, float, complex, str, bytes, np.generic, type(None))):
        return f"{type(thing).__name__} {thing!r}"
    return f"{type(thing).__name__} {getattr(thing, '__name__', '')}"

"""A user's own curve: a function of one number, in whatever language it was written, and what its values must satisfy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks.shown import shown

SIGNATURE = "double (double)"


def function_of_one_number(name: str, function: Any) -> Callable[[float], float]:
    """Return a Python function, a numba cfunc, a ctypes function or a scipy.LowLevelCallable as a Python function."""
    if type(function).__name__ == "LowLevelCallable":
        if function.signature.replace(" ", "") not in (SIGNATURE.replace(" ", ""), ""):
            raise ValueError(f"{name} must have the signature {shown(SIGNATURE)}, not {shown(function.signature)}")
        function = function.function
    if type(function).__name__ == "CFunc":  # numba's; called as it is, it runs in Python
        function = function.ctypes
    if type(function).__name__ == "PyCapsule":
        function = _of_capsule(name, function)
    if not callable(function):
        raise TypeError(
            f"{name} must be a function of one number, a numba cfunc or a scipy.LowLevelCallable, not {shown(function)}"
        )
    called: Callable[[float], float] = function
    return called


def _of_capsule(name: str, capsule: Any) -> Callable[[float], float]:
    """Return the function whose address a capsule holds under the name of its signature."""
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = get_name(capsule)
    if signature is None or signature.decode().replace(" ", "") != SIGNATURE.replace(" ", ""):
        raise ValueError(f"{name} must be a capsule named {shown(SIGNATURE)}, not {shown((signature or b'').decode())}")
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(get_pointer(capsule, signature))


def require_falling(name: str, axis: str, places: ArrayLike, values: ArrayLike, allowed: ArrayLike = 0.0) -> None:
    """Refuse values that rise from one place to the next by more than they may be wrong."""
    at, rise = np.asarray(places), np.diff(values)
    for i in np.flatnonzero(rise > allowed):
        raise ValueError(f"{name} must not rise, not by {rise[i]:g} from {axis} {at[i]:g} to {at[i + 1]:g}")


def require_convex(
    name: str, axis: str, places: ArrayLike, values: ArrayLike, allowed: ArrayLike, *, in_powers: bool = False
) -> None:
    """Refuse values above the chord of their neighbours, by more than they may be wrong; in powers of e, those places are the logarithms."""
    at, value = np.asarray(places), np.asarray(values)
    share, whole = at[1:-1] - at[:-2], at[2:] - at[:-2]
    if in_powers:  # beyond 700 all of the chord is at its right end
        share, whole = np.where(whole < 700.0, np.expm1(share), 0.0), np.expm1(np.minimum(whole, 700.0))
    excess = value[1:-1] - ((1.0 - share / whole) * value[:-2] + share / whole * value[2:])
    for i in np.flatnonzero(excess > allowed):
        how = f" in e^{axis}" if in_powers else ""
        chord = f"{excess[i]:g} above the chord of {at[i]:g} and {at[i + 2]:g}"
        raise ValueError(f"{name} must be convex{how}; at {axis} {at[i + 1]:g} it is {chord}")

"""Functions of one number that were written in something else."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from hockeystick._checks.shown import shown

SIGNATURE = "double (double)"


def function_of_one_number(name: str, function: Any) -> Callable[[float], float]:
    """Return a Python function, a numba cfunc, a ctypes function or a scipy.LowLevelCallable as a Python function."""
    if type(function).__name__ == "LowLevelCallable":
        if function.signature.replace(" ", "") not in (SIGNATURE.replace(" ", ""), ""):
            msg = f"{name} must have the signature {shown(SIGNATURE)}, not {shown(function.signature)}"
            raise ValueError(msg)
        function = function.function
    if type(function).__name__ == "CFunc":  # numba's; called as it is, it runs in Python
        function = function.ctypes
    if type(function).__name__ == "PyCapsule":
        function = _of_capsule(name, function)
    if not callable(function):
        msg = (
            f"{name} must be a function of one number, a numba cfunc or a scipy.LowLevelCallable, not {shown(function)}"
        )
        raise TypeError(msg)
    called: Callable[[float], float] = function
    return called


def _of_capsule(name: str, capsule: Any) -> Callable[[float], float]:
    """Return the function whose address a capsule holds under the name of its signature."""
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = get_name(capsule)
    if signature is None or signature.decode().replace(" ", "") != SIGNATURE.replace(" ", ""):
        msg = f"{name} must be a capsule named {shown(SIGNATURE)}, not {shown((signature or b'').decode())}"
        raise ValueError(msg)
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(get_pointer(capsule, signature))

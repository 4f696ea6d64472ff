"""Checks of arrays, and how they broadcast."""

from __future__ import annotations

import math
import sys
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick._checks.shown import shown

EXACT, EIGHT = 2**53, 8  # integers up to the first are doubles; only those of 8 bytes are larger
LARGEST = 10**308
PLAIN = {int, float, np.float64, np.int64}

Array: TypeAlias = NDArray[np.float64]
Doubles: TypeAlias = NDArray[np.float64]
Result: TypeAlias = Any  # float64: a scalar for scalar arguments, else an array of the broadcast shape


def real(name: str, value: ArrayLike) -> Array:
    """Return `value` as float64 or raise TypeError; booleans, strings and complex numbers are not real numbers."""
    if type(value) is int:  # np.asarray makes objects of large ones
        return np.asarray(_double(value))
    try:
        numeric = not _is_misread(value)
        array = np.asarray(value) if numeric else np.empty(0)
        numeric = numeric and array.dtype.kind in "iuf"
    except (ValueError, TypeError, RuntimeError):  # a ragged sequence; a tensor with gradients; lists without end
        numeric = False
    if not numeric:
        hint = "; a tensor with gradients is given as tensor.detach()" if getattr(value, "requires_grad", False) else ""
        msg = f"{name} must be a real number or an array of real numbers, not {shown(value)}{hint}"
        raise TypeError(msg)
    if array.dtype.kind in "iu" and array.dtype.itemsize == EIGHT and array.size and not _are_doubles(array):
        return np.array([_double(int(number)) for number in array.ravel().tolist()]).reshape(array.shape)
    return array.astype(np.float64, copy=False)


def _double(value: int) -> float:
    """Return an integer as a double; one between two of them as the larger in size, so that it is not taken for the last that counts exactly."""
    if abs(value) >= LARGEST:
        return math.inf if value > 0 else -math.inf
    near = float(value)
    return near if abs(int(near)) >= abs(value) else math.nextafter(near, math.copysign(math.inf, near))


def _are_doubles(array: NDArray[Any]) -> bool:
    return bool(array.max() <= EXACT and array.min() >= -EXACT)


def _is_misread(value: object) -> bool:
    """Say whether NumPy takes something for numbers that are none: what a mask hides, and bytes; in lists too."""
    if isinstance(value, (list, tuple)):
        return not set(map(type, value)) <= PLAIN and any(map(_is_misread, value))
    if isinstance(value, memoryview):
        return value.format in {"b", "B", "c"}
    return isinstance(value, bytearray) or _is_masked(value)


def _is_masked(value: object) -> bool:
    """Say whether a value is a masked array. There is none before its module is imported.

    ``np.ma`` would import that module each time, and so take the lock of imports: one that another thread holds during a fork is never
    free in the child.
    """
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(value, getattr(masked, "MaskedArray", ()))


def distribution(name: str, value: ArrayLike) -> tuple[float, ...]:
    """Return `value` as a tuple if it is a sequence of probabilities that sum to 1 within 1e-12."""
    array = real(name, value)
    if array.ndim == 0:
        msg = f"{name} must be one-dimensional and not empty, not of shape {array.shape}"
        raise ValueError(msg)
    array = vector(name, array)
    if not ((array >= 0) & (array <= 1)).all() or abs(math.fsum(array) - 1.0) > 1e-12:
        msg = f"{name} must be probabilities in [0, 1] that sum to 1 within 1e-12, not {shown(value)}"
        raise ValueError(msg)
    return tuple(array.tolist())


def broadcast(*arrays: Array) -> list[Array]:
    """Return the arrays broadcast against each other."""
    if len({array.shape for array in arrays}) == 1:
        return list(arrays)
    try:
        return list(np.broadcast_arrays(*arrays))
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        msg = f"arguments must broadcast against each other, not have the shapes {shapes} (in their order)"
        raise ValueError(msg) from None


def first_bad(name: str, array: Array, good: NDArray[np.bool_]) -> tuple[str, Any]:
    """Return the name, with its index if `array` has one, and the value of the first element that is not good."""
    index = np.unravel_index(int(np.argmin(good)), good.shape)
    where = f"{name}[{', '.join(map(str, index))}]" if index else name
    return where, array[index]


def vector(name: str, array: Array) -> Array:
    """Return a checked array if it is one-dimensional (a scalar counts as one number) and not empty."""
    array = np.atleast_1d(array)
    if array.ndim != 1 or array.size == 0:
        msg = f"{name} must be one-dimensional and not empty, not of shape {array.shape}"
        raise ValueError(msg)
    return array


def same_length(**arrays: Array) -> list[Array]:
    """Return checked arrays as vectors of one length; a single number is repeated."""
    vectors = {name: vector(name, array) for name, array in arrays.items()}
    length = max(one.size for one in vectors.values())
    for name, one in vectors.items():
        if one.size not in {1, length}:
            msg = f"{name} must be one number or as long as the others ({length}), not of length {one.size}"
            raise ValueError(msg)
    return [np.broadcast_to(one, (length,)) for one in vectors.values()]

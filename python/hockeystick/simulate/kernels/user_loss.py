"""Losses of the user's own: functions that the compiled loops call by their address.

All have one signature in C: double f(double* model, int64 size, double* features, int64 width, double label, double* out). The loops are
told addresses, which are numbers, and so are compiled once for all losses, and kept on disk.

A user's function cannot write to model or record, which numba refuses when it compiles. What it raises, and a gradient of another
length, makes the result NaN: nothing crosses the loops, and a clipped gradient that is NaN is 0 (`clients.clip`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import cfunc, njit, types
from numba.core.registry import CPUDispatcher
from numba.np.numpy_support import carray

from hockeystick._checks.shown import shown
from hockeystick.simulate.kernels import intrinsic

VECTOR = types.Array(types.float64, 1, "C", readonly=True)
RECORD = (VECTOR, VECTOR, types.float64)  # model, features, label
POINTER = types.CPointer(types.float64)
IN_C = types.float64(POINTER, types.int64, POINTER, types.int64, types.float64, POINTER)
REASON_LINES = 4  # of numba's, that are shown
RETURNS: dict[str, tuple[Callable[[Any], bool], str]] = {  # whether a type is right, and how it is called
    "value": (lambda kind: bool(kind == types.float64), "a float (float64)"),
    "gradient": (
        lambda kind: isinstance(kind, types.Array) and kind.ndim == 1 and bool(kind.dtype == types.float64),
        "a vector of float64",
    ),
    "predict": (lambda kind: isinstance(kind, types.Integer), "an integer"),
}


@intrinsic
def call(typing_context, function, model, features, label, out):  # noqa: ARG001
    """Call a function by its address."""

    def generate(context, builder, signature, arguments):
        number, size = ir.DoubleType(), ir.IntType(64)
        pointer = number.as_pointer()
        kind = ir.FunctionType(number, [pointer, size, pointer, size, number, pointer])
        arrays = [context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (1, 2, 4)]
        given = [arrays[0].data, arrays[0].nitems, arrays[1].data, arrays[1].nitems, arguments[3], arrays[2].data]
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), given)

    return types.float64(function, model, features, label, out), generate


@intrinsic
def _read_only(typing_context, array):  # noqa: ARG001
    """Return an array that nobody may write to."""
    target = array.copy(readonly=True)

    def generate(context, builder, signature, arguments):
        return context.cast(builder, arguments[0], signature.args[0], signature.return_type)

    return target(array), generate


def as_numba(name: str, function: Callable[..., Any], **options: Any) -> Any:
    """Return a numba function, which is compiled with what calls it; TypeError says what cannot be one."""
    if isinstance(function, CPUDispatcher):
        return function
    if not inspect.isfunction(function):
        msg = f"{name} must be a Python function, or one compiled by numba.njit, not {shown(function)}"
        raise TypeError(msg)
    return njit(error_model="numpy", boundscheck=True, **options)(function)


def compiled(name: str, function: Callable[..., Any]) -> Any:
    """Return "value", "gradient" or "predict", compiled for models and records; TypeError says why it cannot be."""
    dispatcher = as_numba(name, function, nogil=True)
    if dispatcher.targetoptions.get("parallel"):
        msg = f"{name} must not be compiled with parallel=True: many threads call it at once"
        raise ValueError(msg)
    given = RECORD[:2] if name == "predict" else RECORD
    try:
        dispatcher.compile(given)
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines()]
        told = [line for line in lines if line and not line.startswith("Failed in")][:REASON_LINES]
        msg = f"{name} must be a function that numba compiles: {' | '.join(told)}"
        raise TypeError(msg) from error
    kind, (good, domain) = dispatcher.overloads[given].signature.return_type, RETURNS[name]
    if not good(kind):
        msg = f"{name} must return {domain}, not {kind}"
        raise TypeError(msg)
    return dispatcher


def call_value(value: Any) -> Any:
    """Return a loss in C."""

    @cfunc(IN_C, error_model="numpy")
    def in_c(model, size, features, width, label, out):  # noqa: ARG001
        result = np.nan
        try:
            result = value(_read_only(carray(model, size)), _read_only(carray(features, width)), label)
        except Exception:  # noqa: BLE001 - compiled code catches all or none
            result = np.nan
        return result

    return in_c


def call_gradient(gradient: Any) -> Any:
    """Return a gradient in C."""

    @cfunc(IN_C, error_model="numpy")
    def in_c(model, size, features, width, label, out):
        target = carray(out, size)
        for j in range(size):
            target[j] = np.nan
        try:
            found = gradient(_read_only(carray(model, size)), _read_only(carray(features, width)), label)
            if found.size == size:
                for j in range(size):
                    target[j] = found[j]
        except Exception:  # noqa: BLE001, S110 - as above
            pass
        return 0.0

    return in_c


def call_predict(predict: Any) -> Any:
    """Return a class in C; NaN is none."""

    @cfunc(IN_C, error_model="numpy")
    def in_c(model, size, features, width, label, out):  # noqa: ARG001
        result = np.nan
        try:
            result = float(predict(_read_only(carray(model, size)), _read_only(carray(features, width))))
        except Exception:  # noqa: BLE001 - as above
            result = np.nan
        return result

    return in_c


def score_functions(value: Any, slope: Any) -> tuple[Any, Any]:
    """Return value and gradient of a loss of the score <x, w>, given as functions of score and label."""

    @njit(error_model="numpy", boundscheck=True)
    def score_value(model, features, label):
        return float(value(_score(model, features), label))

    @njit(error_model="numpy", boundscheck=True)
    def score_gradient(model, features, label):
        return float(slope(_score(model, features), label)) * features

    return score_value, score_gradient


@njit(error_model="numpy", boundscheck=True)
def _score(model, features):
    if model.size != features.size:
        raise ValueError("a loss of the score has as many numbers in a model as there are features")  # noqa: EM101
    total = 0.0
    for j in range(model.size):
        total += model[j] * features[j]
    return total


def envelope(value: Any, slope: Any, curvature: float) -> tuple[Any, Any]:
    """Return value and slope of the Moreau envelope of a convex function of the score: the least of h(s) + curvature/2 (s - score)^2.

    Its minimum p is where f(s) = slope(s) + curvature (s - score) changes its sign. Slopes do not fall, so that f rises by at least
    curvature times what s does, and p lies between the score and score - slope(score)/curvature. Bisection ends at two neighbouring
    doubles. The envelope's slope is curvature (score - p), and lies between the loss's slopes at both, where rounding is not to move it.
    """

    @njit(error_model="numpy", boundscheck=True)
    def nearest(score, label):
        first = slope(score, label)
        other = score - first / curvature
        low, high = min(score, other), max(score, other)
        while True:
            middle = low + 0.5 * (high - low)
            if not low < middle < high:
                return low, high
            if slope(middle, label) + curvature * (middle - score) > 0.0:
                high = middle
            else:
                low = middle

    @njit(error_model="numpy", boundscheck=True)
    def envelope_value(score, label):
        at = nearest(score, label)[0]
        return value(at, label) + 0.5 * curvature * (score - at) ** 2

    @njit(error_model="numpy", boundscheck=True)
    def envelope_slope(score, label):
        low, high = nearest(score, label)
        least, most = slope(low, label), slope(high, label)
        return min(max(curvature * (score - low), least), most)

    return envelope_value, envelope_slope

"""Losses of the user's own: functions that numba compiles, and that the compiled loops call by their address.

An address is a number, so that the loops are compiled once for all losses, and kept on disk. A user's function cannot write to model or
record, which numba refuses when it compiles. Where it raises, and where a gradient has another length, the result is NaN: nothing crosses the
loops, and a clipped gradient that is NaN is 0 (`clients.clip`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.registry import CPUDispatcher

from hockeystick._checks.shown import shown
from hockeystick.simulate.kernels import core, internal, intrinsic, njit
from hockeystick.simulate.kernels.core import pointer
from hockeystick.simulate.running.rule import OWN

VECTOR = types.Array(types.float64, 1, "C", readonly=True)
RECORD = (VECTOR, VECTOR, types.float64)  # model, features, label
ANY_VECTOR = types.Array(types.float64, 1, "A")  # a gradient, however it lies in memory
SCORE = (types.float64, types.float64)  # score, label
NO_CLASS = -(2**63)
REASON_LINES = 4  # of numba's, that are shown
RETURNS: dict[str, tuple[Callable[[Any], bool], str]] = {  # whether a type is right, and how it is called
    "value": (lambda kind: bool(kind == types.float64), "a float (float64)"),
    "gradient": (
        lambda kind: isinstance(kind, types.Array) and kind.ndim == 1 and bool(kind.dtype == types.float64),
        "a vector of float64",
    ),
    "slope": (lambda kind: bool(kind == types.float64), "a float (float64)"),
    "predict": (lambda kind: isinstance(kind, types.Integer), "an integer"),
}


def _caller(result: Any, failed: Any) -> Any:
    """Return a function (address, arguments) that calls what numba compiled to return `result`; what raises returns `failed`."""

    @intrinsic
    def call(typing_context, address, given):  # noqa: ARG001
        def generate(context, builder, signature, arguments):  # noqa: ARG001
            kind = context.call_conv.get_function_type(result, tuple(given))
            found = cgutils.alloca_once_value(builder, kind.args[0].pointee(failed))
            reason = cgutils.alloca_once(builder, kind.args[1].pointee)  # of what it raises
            packer = context.call_conv._get_arg_packer(tuple(given))
            values = packer.as_arguments(builder, cgutils.unpack_tuple(builder, arguments[1], len(given)))
            builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [found, reason, *values])
            return context.get_returned_value(builder, result, builder.load(found))

        return result(address, given), generate

    return call


call_value = _caller(types.float64, math.nan)
call_gradient = _caller(ANY_VECTOR, None)  # an empty one
call_predict = _caller(types.int64, NO_CLASS)


@internal
def take(found, out):
    """Copy a gradient; one of another length is NaN."""
    for j in range(out.size):
        out[j] = found[j] if found.size == out.size else math.nan


@internal
def write_gradient(data, w, row, units, out):
    """Write the gradient of a record's loss; `units` has room for hidden units and outputs."""
    if data.kind == OWN:
        take(call_gradient(data.gradient, (w, data.features[row], data.labels[row])), out)
    else:
        core.record_gradient(pointer(data), pointer(w), row, pointer(units), pointer(out))


@internal
def written_value(data, w, row, units):
    """Return the loss of a record."""
    if data.kind == OWN:
        return call_value(data.value, (w, data.features[row], data.labels[row]))
    return core.record_value(pointer(data), pointer(w), row, pointer(units))


@internal
def predicted(data, w, row, units):
    """Return the class that a model gives a record; where a function of the user's own raises, none that is a label."""
    if data.predict != 0:
        return call_predict(data.predict, (w, data.features[row]))
    return core.record_class(pointer(data), pointer(w), row, pointer(units))


def as_numba(name: str, function: Callable[..., Any]) -> Any:
    """Return a numba function, which is compiled with what calls it; TypeError says what cannot be one."""
    if isinstance(function, CPUDispatcher):
        return function
    if not inspect.isfunction(function):
        raise TypeError(f"{name} must be a Python function, or one compiled by numba.njit, not {shown(function)}")
    return _checked(function)


def compiled(name: str, function: Callable[..., Any], given: tuple[Any, ...] = RECORD) -> Any:
    """Return a function that is compiled for its arguments, by default model and record; TypeError says why it cannot be."""
    dispatcher = as_numba(name, function)
    if dispatcher.targetoptions.get("parallel"):
        raise ValueError(f"{name} must not be compiled with parallel=True: many threads call it at once")
    try:
        dispatcher.compile(given)
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines()]
        told = [line for line in lines if line and not line.startswith("Failed in")][:REASON_LINES]
        raise TypeError(f"{name} must be a function that numba compiles: {' | '.join(told)}") from error
    kind, (good, domain) = dispatcher.overloads[given].signature.return_type, RETURNS[name]
    if not good(kind):
        raise TypeError(f"{name} must return {domain}, not {kind}")
    if name == "predict" and kind != types.int64:
        return compiled(name, lambda model, features: types.int64(dispatcher(model, features)), given)
    return dispatcher


def compiled_of_score(name: str, function: Any) -> Any:
    """Return a function of score and label that is compiled for floats, whose default arguments and kind of number the loops need not know."""
    return compiled(name, lambda score, label: float(function(score, label)), SCORE)


def address(function: Any) -> int:
    """Return where the machine code of a compiled function lies, 0 for none."""
    if function is None:
        return 0
    (overload,) = (made for given, made in function.overloads.items() if given in (RECORD, RECORD[:2], SCORE))
    return int(overload.library.get_pointer_to_function(overload.fndesc.llvm_func_name))


# Indices are checked, and nothing in C is asked for.
_checked: Any = njit(error_model="numpy", boundscheck=True, no_cfunc_wrapper=True)


def envelope(value: Any, slope: Any, curvature: float) -> tuple[Any, Any]:
    """Return value and slope of the Moreau envelope of a convex function of the score: the least of h(s) + curvature/2 (s - score)^2.

    Its minimum p is where f(s) = slope(s) + curvature (s - score) changes its sign. Slopes do not fall, so that f rises by at least
    curvature times what s does, and p lies between the score and score - slope(score)/curvature. Bisection ends at two neighbouring
    doubles. The envelope's slope is curvature (score - p), and lies between the loss's slopes at both, where rounding is not to move it.
    """

    @_checked
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

    @_checked
    def envelope_value(score, label):
        at = nearest(score, label)[0]
        return value(at, label) + 0.5 * curvature * (score - at) ** 2

    @_checked
    def envelope_slope(score, label):
        low, high = nearest(score, label)
        least, most = slope(low, label), slope(high, label)
        return min(max(curvature * (score - low), least), most)

    return envelope_value, envelope_slope

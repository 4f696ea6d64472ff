"""What compiled Python and the C++ core share: named tuples as words that both read, and functions by their address.

A named tuple is passed as the address of its words: an integer or a double is one, an array is the address of its numbers and its lengths. So a
function has no argument for each array, and numba counts no references to them, which threads that share data would do in every step. Whoever
makes the words keeps the arrays.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import cfunc, types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr_generic, models, register_model
from numba.np.arrayobj import populate_array

from hockeystick.simulate.kernels import OPTIONS, intrinsic
from hockeystick.simulate.running.rule import ADDRESSES, SIGNATURES, Data, UpdateRule

_NUMBA = {"p": types.intp, "i": types.int64, "w": types.uint64, "d": types.float64, "v": types.void}


def _external(name: str) -> Any:
    """Return a function of the core for compiled Python, which finds it by its name, so that machine code on disk stays valid."""
    result, given = SIGNATURES[name]
    llvmlite.binding.add_symbol(f"hockeystick_{name}", ADDRESSES[name])
    return types.ExternalFunction(f"hockeystick_{name}", _NUMBA[result](*(_NUMBA[kind] for kind in given)))


record_gradient, record_value, record_class, add_batch = map(
    _external, ("record_gradient", "record_value", "record_class", "add_batch")
)
norm, copy, clear, scale, add, clip, add_clipped = map(
    _external, ("norm", "copy", "clear", "scale", "add", "clip", "add_clipped")
)
project, step, residual, keep_within, all_finite = map(
    _external, ("project", "step", "residual", "keep_within", "all_finite")
)
start_stream, below, add_laplace, add_normals = map(_external, ("start_stream", "below", "add_laplace", "add_normals"))
encode_vector, remaining, draw = map(_external, ("encode_vector", "remaining", "draw"))


# Named tuples

_KINDS = {
    "int": types.int64,
    "bool": types.int64,
    "float": types.float64,
    "Vector": types.Array(types.float64, 1, "C"),
    "Matrix": types.Array(types.float64, 2, "C"),
    "States": types.Array(types.float64, 3, "C"),
    "Integers": types.Array(types.int64, 1, "C"),
    "Words": types.Array(types.uint64, 1, "C"),
}
_DTYPES: dict[Any, Any] = {types.float64: np.float64, types.int64: np.int64, types.uint64: np.uint64}


@functools.cache
def _kinds(named: Any) -> dict[str, Any]:
    """Return the type of each field, from its annotation."""
    texts = ((name, getattr(kind, "__forward_arg__", kind)) for name, kind in named.__annotations__.items())
    return {name: _KINDS[text] for name, text in texts}


def words(named: Any) -> np.ndarray:
    """Return the words of a named tuple, whose arrays must outlive them."""
    found: list[int] = []
    of: Any = type(named)
    for value, kind in zip(named, _kinds(of).values(), strict=True):
        if isinstance(kind, types.Array):
            if value.ndim != kind.ndim or value.dtype != _DTYPES[kind.dtype] or not value.flags.c_contiguous:
                raise TypeError(
                    f"an array of {type(named).__name__} must be {kind}, not {value.dtype} of shape {value.shape}"
                )
            found += [value.ctypes.data, *value.shape]
        else:
            found.append(struct.unpack("q", struct.pack("d", value))[0] if kind is types.float64 else int(value))
    return np.array(found, np.int64)


class Fields(types.Type):
    """The words of a named tuple, which are read field by field."""

    def __init__(self, named: type) -> None:
        self.kinds, self.places, place = _kinds(named), {}, 0
        for name, kind in self.kinds.items():
            self.places[name] = place
            place += 1 + getattr(kind, "ndim", 0)
        super().__init__(f"Fields({named.__name__})")


register_model(Fields)(models.OpaqueModel)  # a pointer


@infer_getattr
class _FieldTypes(AttributeTemplate):
    key = Fields

    def generic_resolve(self, ty: Any, attr: str) -> Any:  # type: ignore[override]  # the base refuses
        return ty.kinds[attr]


@lower_getattr_generic(Fields)
def _field(context: Any, builder: Any, kind: Any, pointer: Any, name: str) -> Any:
    field, place = kind.kinds[name], kind.places[name]
    base = builder.bitcast(pointer, cgutils.intp_t.as_pointer())
    word, *lengths = (
        builder.load(cgutils.gep_inbounds(builder, base, place + i)) for i in range(1 + getattr(field, "ndim", 0))
    )
    if not isinstance(field, types.Array):
        return builder.bitcast(word, context.get_value_type(field))
    array, strides = context.make_array(field)(context, builder), [cgutils.intp_t(8)]
    for length in reversed(lengths[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(word, array.data.type)
    populate_array(array, data=data, shape=lengths, strides=strides, itemsize=cgutils.intp_t(8), meminfo=None)
    return array._getvalue()


def fields(named: type) -> Any:
    """Return a function of compiled Python that gives the `Fields` at an address."""
    kind = Fields(named)

    @intrinsic
    def at(typing_context, address):  # noqa: ARG001
        def generate(context, builder, signature, arguments):  # noqa: ARG001
            return builder.inttoptr(arguments[0], cgutils.voidptr_t)

        return kind(types.int64), generate

    return at


@intrinsic
def pointer(typing_context, thing):  # noqa: ARG001
    """Return where the numbers of an array, or the words of `Fields`, lie."""

    def generate(context, builder, signature, arguments):
        (kind,), (value,) = signature.args, arguments
        if isinstance(kind, types.Array):
            value = context.make_array(kind)(context, builder, value).data
        return builder.ptrtoint(value, cgutils.intp_t)

    return types.intp(thing), generate


@intrinsic
def row(typing_context, matrix, index):  # noqa: ARG001
    """Return where a row of a matrix lies."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        offset = builder.mul(arguments[1], builder.extract_value(array.shape, 1))
        return builder.ptrtoint(builder.gep(array.data, [offset]), cgutils.intp_t)

    return types.intp(matrix, types.int64), generate


# Parts of a round that few runs need. Each is compiled by itself when the first run needs it, and called by its address.

data_at, rule_at = fields(Data), fields(UpdateRule)
_PART = types.int64(*[types.int64] * 6, types.uint64)


def part(body: Callable[..., Any]) -> Callable[[], int]:
    """Return a function that compiles body(data, rule, work, r, client, rnd, seed), all of them integers, and gives its address."""

    @functools.cache
    def made() -> Any:  # kept, and with it the machine code
        return cfunc(_PART, cache=True, **OPTIONS)(body)

    return lambda: int(made().address)


@intrinsic
def call_part(typing_context, address, data, rule, work, r, client, rnd, seed):  # noqa: ARG001
    """Call a part, and return what it does: whether the run may go on."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        place, *given = arguments
        values = [builder.ptrtoint(one, cgutils.intp_t) for one in given[:3]] + given[3:]
        kind = ir.FunctionType(cgutils.intp_t, [cgutils.intp_t] * len(values))
        return builder.call(builder.inttoptr(place, kind.as_pointer()), values)

    integers = [types.int64] * 3
    return types.int64(types.int64, data, rule, work, *integers, types.uint64), generate

"""What numba has no words for, written down as instructions: products of rows, views without owners, bits of numbers.

Products of a few rows of a matrix with vectors are in vectors of eight numbers, since the order of a sum must not be the compiler's choice: lane
l of a row's inner product adds the terms l, l + 8, l + 16, ..., and the eight lanes are added as ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)). A
row's sum is thus the same whichever rows are taken together with it. The last vector of a row whose length is no multiple of eight begins eight
numbers before the end of the row; its numbers that have been met before count as 0. Rows are therefore at least eight numbers long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr_generic, models, register_model

from hockeystick.simulate.kernels import intrinsic

LANES = 8

_DOUBLE, _WORD, _BYTES = ir.DoubleType(), ir.IntType(64), ir.IntType(8).as_pointer()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = ir.Constant(_VECTOR, [_DOUBLE(0.0)] * LANES)
# A product and a sum are one instruction where the processor has it.
_FUSED = ("contract",)


def _lanes(builder: Any, a: Any, b: Any, places: list[int]) -> Any:
    """Return the numbers of two vectors at these places, from 0 to 15."""
    return builder.shuffle_vector(
        a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), [ir.IntType(32)(place) for place in places])
    )


def _spread(builder: Any, number: Any, like: ir.VectorType) -> Any:
    """Return a vector of equal numbers."""
    first = builder.insert_element(ir.Constant(like, ir.Undefined), number, ir.IntType(32)(0))
    return _lanes(builder, first, first, [0] * LANES)


def _at(builder: Any, pointer: Any, index: Any) -> Any:
    """Return where the vector that begins at an index lies."""
    return builder.bitcast(builder.gep(pointer, [index]), _VECTOR.as_pointer())


def _load(builder: Any, pointer: Any, index: Any) -> Any:
    return builder.load(_at(builder, pointer, index), align=8)


def _store(builder: Any, value: Any, pointer: Any, index: Any) -> None:
    builder.store(value, _at(builder, pointer, index), align=8)


def _add_product(builder: Any, a: Any, b: Any, total: Any) -> Any:
    return builder.fadd(total, builder.fmul(a, b, flags=_FUSED), flags=_FUSED)


def _contiguous(*arrays: Any) -> None:
    """Refuse arrays whose numbers do not lie one after another; the compiler does not ask again."""
    for array in arrays:
        if not isinstance(array, types.Array) or array.layout != "C" or array.dtype not in {types.float64, types.int64}:
            msg = f"products are of contiguous arrays of doubles and of row numbers, not of {array}"
            raise TypingError(msg)


def _each_vector(builder: Any, size: Any, body: Callable[[Any, Any], None]) -> None:
    """Call body(index, new) for every vector of a row: `new` is None, or says which lanes of the last one have not been met."""
    rest = builder.and_(size, _WORD(LANES - 1))
    whole = builder.sub(size, rest)
    with cgutils.for_range_slice(builder, _WORD(0), whole, _WORD(LANES)) as (index, _):
        body(index, None)
    with builder.if_then(builder.icmp_signed(">", rest, _WORD(0))):
        words = ir.VectorType(_WORD, LANES)
        met = _spread(builder, builder.sub(_WORD(LANES), rest), words)
        new = builder.icmp_signed(">=", ir.Constant(words, list(range(LANES))), met)
        body(builder.sub(size, _WORD(LANES)), new)


def _where(builder: Any, new: Any, vector: Any) -> Any:
    """Return a vector with 0 in the lanes that have been met."""
    return vector if new is None else builder.select(new, vector, _ZERO)


def _sum_lanes(builder: Any, vectors: list[Any]) -> Any:
    """Return the sums of the lanes of eight vectors, as one vector: neighbours first, then pairs, then halves."""
    for half, low, high in (
        (4, [0, 8, 2, 10, 4, 12, 6, 14], [1, 9, 3, 11, 5, 13, 7, 15]),
        (2, [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]),
        (1, [0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]),
    ):
        pairs = [(vectors[2 * i], vectors[2 * i + 1]) for i in range(half)]
        vectors = [builder.fadd(_lanes(builder, a, b, low), _lanes(builder, a, b, high)) for a, b in pairs]
    return vectors[0]


def _row_starts(builder: Any, matrix: Any, rows: Any) -> list[Any]:
    """Return where eight rows of a matrix begin."""
    length = builder.extract_value(matrix.shape, 1)
    numbers = [builder.load(builder.gep(rows.data, [_WORD(k)])) for k in range(LANES)]
    return [builder.gep(matrix.data, [builder.mul(number, length)]) for number in numbers]


def _arrays(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """Return an array, or those of a tuple, as structures with the fields `data` and `shape`."""
    if isinstance(kind, types.BaseTuple):
        parts = zip(iter(kind), cgutils.unpack_tuple(builder, value, len(kind)), strict=True)  # type: ignore[call-overload]
        return [array for part in parts for array in _arrays(context, builder, *part)]
    return [context.make_array(kind)(context, builder, value)]


def _write_dots(builder: Any, matrix: Any, rows: Any, vectors: list[Any], outs: list[Any]) -> None:
    """Write the inner products of eight rows with each vector; a row is read once for all of them."""
    starts = _row_starts(builder, matrix, rows)
    totals = [[cgutils.alloca_once_value(builder, _ZERO) for _ in starts] for _ in vectors]

    def body(index, new):
        factors = [_where(builder, new, _load(builder, vector.data, index)) for vector in vectors]
        for k, start in enumerate(starts):
            row = _load(builder, start, index)
            for factor, mine in zip(factors, totals, strict=True):
                builder.store(_add_product(builder, row, factor, builder.load(mine[k])), mine[k])

    _each_vector(builder, builder.extract_value(vectors[0].shape, 0), body)
    for mine, out in zip(totals, outs, strict=True):
        _store(builder, _sum_lanes(builder, [builder.load(total) for total in mine]), out.data, _WORD(0))


def _add_rows(builder: Any, factors: list[Any], matrix: Any, rows: Any, outs: list[Any]) -> None:
    """Add multiples of eight rows to each vector, one row after another; a row is read once for all of them."""
    starts = _row_starts(builder, matrix, rows)
    multiples = [
        [_spread(builder, builder.load(builder.gep(mine.data, [_WORD(i)])), _VECTOR) for i in range(LANES)]
        for mine in factors
    ]

    def body(index, new):
        totals = [_load(builder, out.data, index) for out in outs]
        for k, start in enumerate(starts):
            row = _where(builder, new, _load(builder, start, index))
            totals = [_add_product(builder, row, mine[k], total) for mine, total in zip(multiples, totals, strict=True)]
        for total, out in zip(totals, outs, strict=True):
            _store(builder, total, out.data, index)

    _each_vector(builder, builder.extract_value(outs[0].shape, 0), body)


@intrinsic
def dot_eight(typing_context, matrix, rows, vectors, outs):  # noqa: ARG001
    """Write the inner products of eight rows of a matrix with each vector of a tuple."""
    _contiguous(matrix, rows, *vectors, *outs)

    def generate(context, builder, signature, arguments):
        (m,), (k,), v, o = (_arrays(context, builder, *one) for one in zip(signature.args, arguments, strict=True))
        _write_dots(builder, m, k, v, o)
        return context.get_dummy_value()

    return types.void(matrix, rows, vectors, outs), generate


@intrinsic
def add_eight(typing_context, factors, matrix, rows, outs):  # noqa: ARG001
    """Add multiples of eight rows of a matrix, one after another, to each vector of a tuple; each has its own factors."""
    _contiguous(*factors, matrix, rows, *outs)

    def generate(context, builder, signature, arguments):
        f, (m,), (k,), o = (_arrays(context, builder, *one) for one in zip(signature.args, arguments, strict=True))
        _add_rows(builder, f, m, k, o)
        return context.get_dummy_value()

    return types.void(factors, matrix, rows, outs), generate


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    view = context.make_array(kind)(context, builder, value)
    view.meminfo = cgutils.get_null_value(view.meminfo.type)
    view.parent = cgutils.get_null_value(view.parent.type)
    return view._getvalue()


@intrinsic
def without_refcount(typing_context, array):  # noqa: ARG001
    """Return the same array without owner, who must outlive it: a function that is not inlined counts what it is given, see `Fields`."""

    def generate(context, builder, signature, arguments):
        return _without_owner(context, builder, signature.args[0], arguments[0])

    return array(array), generate


class Fields(types.Type):
    """A named tuple behind a pointer, which is read field by field, and whose arrays have no owners; the caller's must outlive it.

    As values, tuples of many arrays take most of the time to compile. And numba counts the references to every array that it takes from a
    tuple; the counters are atomic, so that threads which share data wait for each other in every step.
    """

    def __init__(self, named: Any) -> None:
        self.named = named
        super().__init__(f"Fields({named})")


register_model(Fields)(models.OpaqueModel)  # a pointer


@infer_getattr
class _FieldTypes(AttributeTemplate):
    key = Fields

    def generic_resolve(self, ty: Any, attr: str) -> Any:  # type: ignore[override]  # the base refuses
        return ty.named.types[ty.named.fields.index(attr)]


@lower_getattr_generic(Fields)
def _field(context: Any, builder: Any, kind: Any, pointer: Any, name: str) -> Any:
    place = kind.named.fields.index(name)
    offset = context.get_value_type(kind.named).get_element_offset(context.target_data, place)
    field = kind.named.types[place]
    address = builder.bitcast(builder.gep(pointer, [_WORD(offset)]), context.get_value_type(field).as_pointer())
    value = builder.load(address)
    return _without_owner(context, builder, field, value) if isinstance(field, types.Array) else value


@intrinsic
def by_reference(typing_context, named):  # noqa: ARG001
    """Return the `Fields` of a named tuple."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        return builder.bitcast(cgutils.alloca_once_value(builder, arguments[0]), _BYTES)

    return Fields(named)(named), generate


@intrinsic(prefer_literal=True)
def scratch(typing_context, count):  # noqa: ARG001
    """Return a pointer to `count` numbers, a constant, on the caller's stack."""
    size = count.literal_value

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        return cgutils.alloca_once(builder, context.get_value_type(types.float64), size=size)

    return types.CPointer(types.float64)(count), generate


@intrinsic
def multiply_high(typing_context, a, b):  # noqa: ARG001
    """Return the upper half of the product of two words; numba has no integers of 128 bits."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate

"""Conditions on the rows of a table, such as "epsilon <= 2 and 10 <= steps < 1000", from text to the rows for which they hold.

The text is parsed by Python's grammar and never evaluated: what is not a comparison of a column with a number or a quoted
word, `and`, `or`, `not` or parentheses is refused.

NaN is a value that is not known. A comparison with it is neither true nor false, nor is the negation of one; `and` and `or`
follow Kleene's logic, and a row is taken only where the condition is true. So `not epsilon > 2` does not take a cell that
failed. An infinite value is compared like any other.
"""

from __future__ import annotations

import ast
import difflib
import functools
import math
import re
import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks.hints import needs
from hockeystick._checks.shown import shown
from hockeystick.sweep.errors import must, require

with needs("sweep", "a sweep needs pyarrow"):
    import pyarrow as pa
    import pyarrow.compute as pc

_SINGLE = re.compile(r"(?<![<>=!:])=(?!=)")
MAX_LENGTH = 2000  # characters, far more than a condition needs, and few enough for any parser
MAX_DEPTH = 50  # levels of the syntax tree, few enough for functions that call themselves
_INT64 = np.iinfo(np.int64)
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}  # of a comparison with the sides exchanged
_SYMBOLS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_COMPARE = {
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "==": pc.equal,
    "!=": pc.not_equal,
}
GRAMMAR = "comparisons of a column with a number or a quoted word, and, or, not, parentheses"


def column_type(name: str, schema: pa.Schema, key: str) -> pa.DataType:
    """Return the type of a column; refuse a name that is none, and tell the nearest."""
    if name not in schema.names:
        near = difflib.get_close_matches(name, schema.names) or difflib.get_close_matches(
            name, schema.names, cutoff=0.0
        )
        raise ValueError(f"{key} must name columns of the table, not {shown(name)}; did you mean {' or '.join(near)}?")
    return schema.field(name).type


def columns_of(expression: ast.expr) -> set[str]:
    """Return the columns that a parsed condition names."""
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def parsed(where: object) -> ast.expr:
    """Return the syntax tree of a condition, of which nothing is known yet but that it is short."""
    if not isinstance(where, str):
        raise TypeError(must("where", f"be a text, {GRAMMAR}", where))
    most = f"where must have at most {MAX_LENGTH} characters, not {len(where)}"
    require(len(where) <= MAX_LENGTH, most, ValueError)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Python takes "2or x" with a warning
            tree = ast.parse(where.strip(), mode="eval").body
        _check_depth(tree)
    except (SyntaxError, Warning, ValueError, MemoryError, RecursionError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or "it is nested too deeply"
        hint = "; equality is ==" if _SINGLE.search(where) else ""
        raise ValueError(f"where must be {GRAMMAR}, not {shown(where)}: {reason.splitlines()[0]}{hint}") from None
    return tree


def _check_depth(tree: ast.expr) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise RecursionError("it is nested too deeply")


def where_true(tree: ast.expr, table: pa.Table) -> NDArray[np.bool_]:
    """Return for which rows of a table a parsed condition is true."""
    found: NDArray[np.bool_] = _truth(tree, table).fill_null(False).to_numpy()
    return found


def _truth(tree: ast.expr, table: pa.Table) -> pa.ChunkedArray:
    """Return of each row whether a condition is true, null where that is not known."""
    if isinstance(tree, ast.BoolOp):
        join = pc.and_kleene if isinstance(tree.op, ast.And) else pc.or_kleene
        return functools.reduce(join, [_truth(part, table) for part in tree.values])
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return pc.invert(_truth(tree.operand, table))
    if isinstance(tree, ast.Compare):
        operands = [tree.left, *tree.comparators]
        pairs = zip(operands, tree.ops, operands[1:], strict=False)
        return functools.reduce(pc.and_kleene, [_comparison(*pair, table) for pair in pairs])
    raise _refused(tree)


def _comparison(left: ast.expr, sign: ast.cmpop, right: ast.expr, table: pa.Table) -> pa.ChunkedArray:
    symbol = _SYMBOLS.get(type(sign), "")
    if not symbol or isinstance(left, ast.Name) == isinstance(right, ast.Name):
        raise _refused(ast.Compare(left, [sign], [right]))
    if isinstance(right, ast.Name):
        left, right, symbol = right, left, _MIRRORED.get(symbol, symbol)
    assert isinstance(left, ast.Name)
    kind, value = column_type(left.id, table.schema, "where"), _literal(right)
    column = table[left.id]
    wanted = "a quoted word" if pa.types.is_string(kind) else "a number"
    fits = pa.types.is_string(kind) == isinstance(value, str)
    require(fits, must("where", f"compare {left.id} with {wanted}", value), ValueError)
    if isinstance(value, str):
        rule = f"where must compare the words of {left.id} by == or !=, not {symbol}"
        require(symbol in ("==", "!="), rule, ValueError)
    elif pa.types.is_integer(kind):
        return _whole(column, symbol, value)
    else:
        column, value = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column), float(value)
    return _COMPARE[symbol](column, value)


def _whole(column: pa.ChunkedArray, symbol: str, value: float) -> pa.ChunkedArray:
    """Compare integers with any number exactly, where Arrow would round those beyond 2^53: as a range of integers."""
    if symbol == "!=":
        return pc.invert(_whole(column, "==", value))
    least = {"<": _INT64.min, "<=": _INT64.min, ">": math.floor(value) + 1}.get(symbol, math.ceil(value))
    most = {">": _INT64.max, ">=": _INT64.max, "<": math.ceil(value) - 1}.get(symbol, math.floor(value))
    least, most = max(least, int(_INT64.min)), min(most, int(_INT64.max))
    if least > most:  # no integer is
        return pc.is_null(column)
    return pc.and_(pc.greater_equal(column, least), pc.less_equal(column, most))


def _literal(node: ast.expr) -> float | str:
    """Return the number or the word that a comparison has beside its column."""
    sign = 1
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign = -sign if isinstance(node.op, ast.USub) else sign
        node = node.operand
    value: Any = node.value if isinstance(node, ast.Constant) else None
    if type(value) is str and sign == 1:
        return value
    if type(value) not in (int, float):
        raise _refused(node)
    finite = abs(value) <= sys.float_info.max
    require(finite, must("where", "have numbers that are finite doubles", ast.unparse(node)), ValueError)
    return sign * value  # type: ignore[no-any-return]


def _refused(node: ast.expr) -> ValueError:
    return ValueError(f"where must be {GRAMMAR}, not {shown(ast.unparse(node))}")

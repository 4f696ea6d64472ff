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
import math
import re
import warnings
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.sweep.errors import must, needs, shorten

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
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
# Of each row: whether it is true, and whether it is false; neither where a value is not known.
Truth: TypeAlias = tuple[NDArray[np.bool_], NDArray[np.bool_]]
GRAMMAR = "comparisons of a column with a number or a quoted word, and, or, not, parentheses"


def column_type(name: str, schema: pa.Schema, key: str) -> pa.DataType:
    """Return the type of a column; refuse a name that is none, and tell the nearest."""
    if name not in schema.names:
        near = difflib.get_close_matches(name, schema.names) or difflib.get_close_matches(
            name, schema.names, cutoff=0.0
        )
        message = f"{key} must name columns of the table, not {shorten(name)}; did you mean {' or '.join(near)}?"
        raise ValueError(message)
    return schema.field(name).type


def columns_of(expression: ast.expr) -> set[str]:
    """Return the columns that a parsed condition names."""
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def parsed(where: object) -> ast.expr:
    """Return the syntax tree of a condition, of which nothing is known yet but that it is short."""
    if not isinstance(where, str):
        raise TypeError(must("where", f"be a text, {GRAMMAR}", where))
    if len(where) > MAX_LENGTH:
        message = f"where must have at most {MAX_LENGTH} characters, not {len(where)}"
        raise ValueError(message)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Python takes "2or x" with a warning
            tree = ast.parse(where.strip(), mode="eval").body
        _check_depth(tree)
    except (SyntaxError, Warning, ValueError, MemoryError, RecursionError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or "it is nested too deeply"
        hint = "; equality is ==" if _SINGLE.search(where) else ""
        message = f"where must be {GRAMMAR}, not {shorten(where)}: {reason.splitlines()[0]}{hint}"
        raise ValueError(message) from None
    return tree


def _check_depth(tree: ast.expr) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise RecursionError("it is nested too deeply")  # noqa: EM101 - told by the caller


def truth(tree: ast.expr, table: pa.Table) -> Truth:
    """Return for which rows of a table a parsed condition is true, and for which it is false."""
    if isinstance(tree, ast.BoolOp):
        return _joined([truth(part, table) for part in tree.values], all_of=isinstance(tree.op, ast.And))
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        true, false = truth(tree.operand, table)
        return false, true
    if isinstance(tree, ast.Compare):
        operands = [tree.left, *tree.comparators]
        pairs = zip(operands, tree.ops, operands[1:], strict=False)
        return _joined([_comparison(*pair, table) for pair in pairs], all_of=True)
    raise _refused(tree)


def _joined(parts: list[Truth], *, all_of: bool) -> Truth:
    true, false = zip(*parts, strict=True)
    if all_of:
        return np.logical_and.reduce(true), np.logical_or.reduce(false)
    return np.logical_or.reduce(true), np.logical_and.reduce(false)


def _comparison(left: ast.expr, sign: ast.cmpop, right: ast.expr, table: pa.Table) -> Truth:
    symbol = _SYMBOLS.get(type(sign), "")
    if not symbol or isinstance(left, ast.Name) == isinstance(right, ast.Name):
        raise _refused(ast.Compare(left, [sign], [right]))
    if isinstance(right, ast.Name):
        left, right, symbol = right, left, _MIRRORED.get(symbol, symbol)
    assert isinstance(left, ast.Name)
    kind, value = column_type(left.id, table.schema, "where"), _literal(right)
    column = table[left.id]
    known: NDArray[np.bool_] = np.ones(len(table), np.bool_)
    if pa.types.is_string(kind) != isinstance(value, str):
        wanted = "a quoted word" if pa.types.is_string(kind) else "a number"
        raise ValueError(must("where", f"compare {left.id} with {wanted}", value))
    if isinstance(value, str):
        if symbol not in ("==", "!="):
            message = f"where must compare the words of {left.id} by == or !=, not {symbol}"
            raise ValueError(message)
        known, equal = column.is_valid().to_numpy(), pc.fill_null(pc.equal(column, value), fill_value=False).to_numpy()
        true: NDArray[np.bool_] = equal if symbol == "==" else ~equal
    elif pa.types.is_integer(kind):
        true = _whole(column.to_numpy(), symbol, value)
    else:
        known = ~np.isnan(column.to_numpy())
        true = _COMPARE[symbol](column.to_numpy(), float(value))
    return known & true, known & ~true


def _whole(values: NDArray[np.int64], symbol: str, value: float) -> NDArray[np.bool_]:
    """Compare integers with any number exactly, where NumPy would round those beyond 2^53: as a range of integers."""
    if symbol == "!=":
        return ~_whole(values, "==", value)
    least = {"<": _INT64.min, "<=": _INT64.min, ">": math.floor(value) + 1}.get(symbol, math.ceil(value))
    most = {">": _INT64.max, ">=": _INT64.max, "<": math.ceil(value) - 1}.get(symbol, math.floor(value))
    least, most = max(least, int(_INT64.min)), min(most, int(_INT64.max))
    if least > most:  # no integer is
        return np.zeros(len(values), np.bool_)
    return (values >= least) & (values <= most)


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
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite:
        raise ValueError(must("where", "have numbers that are finite doubles", ast.unparse(node)))
    return sign * value  # type: ignore[no-any-return]


def _refused(node: ast.expr) -> ValueError:
    return ValueError(f"where must be {GRAMMAR}, not {shorten(ast.unparse(node))}")

"""Tables of values that a specification gives, a line each: the call, an arrow, and what it must return, None where nothing is said."""

from collections.abc import Mapping

import numpy as np

import refused_calls

rows = refused_calls.rows


def check(call: str, expected: str, names: Mapping[str, object], rel: float = 1e-6, least: float = 0.0) -> None:
    """Compare numbers, tuples of them, or the value of a rate, which must say that it is one of order."""
    value, wanted = eval(call, dict(names)), eval(expected, dict(names))
    if hasattr(value, "order_only"):
        assert value.order_only is True
        value = value if isinstance(wanted, tuple) else value.value
    if isinstance(wanted, tuple):
        value, wanted = zip(*((x, y) for x, y in zip(value, wanted, strict=True) if y is not None), strict=True)
    np.testing.assert_allclose(np.asarray(value, dtype=float), np.asarray(wanted, dtype=float), rtol=rel, atol=least)

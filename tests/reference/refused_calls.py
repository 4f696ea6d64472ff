"""Tables of calls that a room refuses, a line each: the call, an arrow, and a pattern of the reason that is given."""

import ast
import builtins
import contextlib
import doctest
import functools
import importlib
import inspect
import math
import re
from collections.abc import Callable, Mapping
from types import ModuleType

import numpy as np
import pytest

import hockeystick as hs

# The modules that a user need not import by themselves, and those whose names only the package lists.
ROOMS = [*filter(inspect.ismodule, (getattr(hs, name) for name in hs.__all__)), hs._config, hs._numeric]
ADAPTERS = ("dp_accounting", "events", "flower", "jax_privacy", "opacus", "opake", "pfl", "prv", "riskcal")


def public_modules() -> list[ModuleType]:
    """Return the modules whose `__all__` are the public names."""
    others = ("simulate", *(f"interop.{name}" for name in ADAPTERS))
    return [*ROOMS, *(importlib.import_module(f"hockeystick.{name}") for name in others)]


def rows(table: str) -> list:
    """Return the rows of a table as parameters of a test; what is indented goes on the line before."""
    pairs = [line.split(" -> ") for line in table.strip().replace("\n ", " ").splitlines()]
    return [pytest.param(call.strip(), reason.strip(), id=call[:60]) for call, reason in pairs]


def check(call: str, reason: str, names: Mapping[str, object]) -> None:
    """Check that a call is refused by a ValueError of this reason, or by the error that stands before it."""
    kind, _, pattern = reason.partition(": ")
    is_error = kind.isidentifier() and kind.endswith("Error")
    error = getattr(builtins, kind, names.get(kind)) if is_error else ValueError
    with pytest.raises(error, match=(pattern if is_error else reason) or None):
        eval(call, dict(names))


ANYTHING = {"client_ids", "stages", "value"}  # of lists and of what is printed
FROM_ZERO = {"bits", "dropouts", "noise_bits", "seed"}
SIGNED = {
    "best_utility", "covariance", "direction", "features", "gradients", "image_high", "image_low", "inverse", "losses",
    "mean", "means", "neighbour", "noise", "parameters", "point", "predictions", "record", "samples", "scores", "scores_in",
    "scores_out", "start", "strategy", "targets", "utilities", "vectors", "w", "w_previous", "w_protected", "w_star",
}  # fmt: skip


def arguments(room: ModuleType, kind: Callable[[object], bool] = inspect.isfunction) -> list:
    """Return the functions, or classes, of a room with each number, or array of them, that the example of its docstring hands over."""
    return [
        pytest.param(room, name, argument, id=f"{name}-{argument}")
        for name in room.__all__
        if kind(getattr(room, name))
        for argument, value in example(room, name).items()
        if argument not in ANYTHING and _is_number(value)
    ]


def check_argument(room: ModuleType, name: str, argument: str) -> None:
    """Check that the call of a docstring's example is refused with the argument's name if it is text, NaN, or outside its domain."""
    given = example(room, name)
    numbers = [math.nan, *_outside(getattr(room, name).__doc__, argument)]
    for value in ["some", "1", *(np.full(np.shape(given[argument]), number).tolist() for number in numbers)]:
        with pytest.raises((ValueError, TypeError), match=rf"\b{argument}\b"):
            getattr(room, name)(**given | {argument: value})


def _outside(docstring: str, argument: str) -> list[float]:
    """Return numbers that are outside of what a docstring says of an argument: negative, not positive, no integers, ends of an interval."""
    described = re.search(
        rf"^((?:\w+, )*{argument}(?:, \w+)*) : (.*\n(?:    .*\n)+)", inspect.cleandoc(docstring), re.MULTILINE
    )
    if not described:
        return []
    alone, text = described[1] == argument, described[2]
    may_be_negative = argument in SIGNED or "any real" in text or re.search(r"\b[iI]n \[-", text)
    found = [] if may_be_negative else [-1.0]
    if alone and re.search(r"(?<!-)\b[pP]ositive\b(?! for)", text):
        found += [0.0, *([] if "infin" in text else [math.inf])]
    whole = (text.startswith("int") or "positive integer" in text) and ">= 0" not in text
    found += [0, 1.5] if alone and whole and argument not in FROM_ZERO else []
    for left, low, high, right in re.findall(
        rf"{'' if alone else argument + ' '}[iI]n ([\[(])(\d[\d.]*), (\d[\d.]*)([\])])", text
    ):
        found += [float(low) - (left == "[") / 8, float(high) + (right == "]") / 8]
    return found


def _is_number(value: object) -> bool:
    try:
        return not isinstance(value, (bool, str)) and np.asarray(value).dtype.kind in "iuf"
    except ValueError:
        return False


@functools.cache
def example(room: ModuleType, name: str) -> dict[str, object]:
    """Return the arguments of the first call of a function in its docstring's examples, after what stands before it."""
    function, known = inspect.unwrap(getattr(room, name)), dict[str, object]()
    signature = inspect.signature(function)
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(function) or ""):
        for node in ast.walk(ast.parse(example.source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name:
                with contextlib.suppress(NameError):  # of a loop
                    return eval(
                        f"bound({ast.unparse(node).partition('(')[2]}", known | {"bound": signature.bind}
                    ).arguments
        with contextlib.redirect_stdout(None):
            exec(example.source, known)  # noqa: S102, docstrings are ours
    return {}

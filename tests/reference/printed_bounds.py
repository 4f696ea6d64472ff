"""Whether the bounds that a text's code prints are rounded outward: the code runs, and every number that it formats is compared.

What the package returns is noted, upper ends and lower ends apart. Then every f-string, `str.format`, `round` and printed array of
the code is looked at: a formatted number that equals a noted upper end must not, read exactly, be below it, nor one that equals a
lower end above it. A text with all digits of a double is that double.
"""

import ast
import functools
import inspect
import re
import string
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import accounting, audit, correlated_noise, federated, isrl, last_iterate, risk, simulate, utility
from hockeystick.interop import opacus, pfl, prv, riskcal

METHODS = {
    *("epsilon", "delta", "log_delta", "advantage", "rdp", "epsilon_curve", "get_epsilon", "compute_epsilon"),
    *("epsilon_bracket", "delta_bracket", "explain", "trade_off", "_search"),
}
CLASSES = (
    *(hs.Accountant, hs.PrivacyLossDistribution, hs.GaussianFilter, hs.RenyiFilter, hs.RenyiOdometer),
    *(opacus.HockeyStickAccountant, pfl.PrivacyAccountant, prv.PRVAccountant, simulate.Result),
)
MODULES = (hs, accounting, audit, correlated_noise, federated, isrl, last_iterate, risk, utility, prv, riskcal)
AT_THE_TOP = {
    name for room in hs._ROOMS for name in getattr(hs, room).__all__
}  # most of them are listed by their rooms alone
FROM_BELOW = re.compile(
    r"audit\.|(steps|sampling_rate|trade_off|theta_inverse|remaining|bayes_risk|beta_for_dpsgd)$"
)  # what these return is rounded down
# No bounds of privacy, or what was given.
NEITHER = re.compile(
    r"show_config|_parameters|batch_size|rounds$|step_size|(?<!sampling)_rate(_|$)"
    r"|harmonic|reweighted|envelope|excess_risk|format_|averaging"
)
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)")


class Printed:
    """What was returned while some code ran, and what of it was printed to the wrong side."""

    def __init__(self) -> None:
        self.uppers: set[float] = set()
        self.lowers: set[float] = set()
        self.faults: list[str] = []
        self.compared = 0

    def note(self, value: Any, upper: bool) -> None:
        """Note the numbers in what a function returned."""
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            (self.uppers if upper else self.lowers).update(value.ravel().tolist())
        elif isinstance(value, float):
            (self.uppers if upper else self.lowers).add(float(value))
        elif isinstance(value, Mapping):
            for one in value.values():
                self.note(one, upper)
        else:
            for name, one in _fields(value):
                self.note(one, upper and name not in {"lower", "false_negative_rate"})

    def compare(self, value: Any, text: str, where: str) -> None:
        """Compare a number with the text that it became."""
        if not isinstance(value, float) or not np.isfinite(value) or len(found := NUMBER.findall(text)) != 1:
            return
        number, exact = float(value), Decimal(float(value))
        shown = Decimal(found[0]).scaleb(-2 if text.rstrip().endswith("%") else 0)
        known = (number in self.uppers) + (number in self.lowers)
        self.compared += known > 0
        if float(shown) == number or not known:
            return
        if not (number in self.uppers and shown >= exact) and not (number in self.lowers and shown <= exact):
            self.faults.append(f"{where}: {text.strip()} for {number!r}")


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a tuple with names, or of one of our data classes that is a result."""
    if hasattr(value, "_fields"):
        yield from zip(value._fields, value, strict=True)
    elif isinstance(value, (list, tuple)):
        yield from (("", one) for one in value)
    elif hasattr(value, "__dataclass_fields__"):
        yield from ((name, getattr(value, name)) for name in value.__dataclass_fields__)


class _Formats(ast.NodeTransformer):
    """Sends what is formatted through functions that compare."""

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        if node.format_spec is None or node.conversion != -1:
            return node
        source = ast.Constant(ast.unparse(node.value))
        call = ast.Call(ast.Name("_formatted", ast.Load()), [node.value, node.format_spec, source], [])
        return ast.FormattedValue(call, -1, None)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        source = ast.Constant(ast.unparse(node))
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in {"format", "round"}:
            arguments = [function.value, ast.Constant(function.attr), source, *node.args]
            return ast.Call(ast.Name("_method", ast.Load()), arguments, node.keywords)
        if isinstance(function, ast.Name) and function.id in {"round", "print"}:
            return ast.Call(ast.Name(f"_{function.id}", ast.Load()), [source, *node.args], node.keywords)
        return node


def _hooks(printed: Printed) -> dict[str, Callable[..., Any]]:
    """Return the functions that the transformed code calls."""

    def formatted(value: Any, spec: str, source: str) -> str:
        text = format(value, spec)
        printed.compare(value, text, source)
        return text

    class Formatter(string.Formatter):
        def format_field(self, value: Any, format_spec: str) -> str:
            return formatted(value, format_spec, "str.format")

    def array(value: Any, rounded: Any, source: str) -> None:
        for one, short in zip(np.ravel(value).tolist(), np.ravel(rounded).tolist(), strict=True):
            printed.compare(one, str(short), source)

    def method(target: Any, name: str, source: str, *args: Any, **options: Any) -> Any:
        if name == "format" and isinstance(target, str):
            return Formatter().format(target, *args, **options)
        result = getattr(target, name)(*args, **options)
        if name == "round" and isinstance(target, (np.ndarray, np.floating)):
            array(target, result, source)
        return result

    def rounded(source: str, value: Any, *digits: Any) -> Any:
        result = round(value, *digits)
        printed.compare(value, str(result), source)
        return result

    def shown(source: str, *args: Any, **options: Any) -> None:
        for one in args:
            if isinstance(one, np.ndarray) and one.dtype.kind == "f" and one.size < 1000:
                array(one, [float(text) for text in NUMBER.findall(str(one))], source)
        print(*args, **options)

    return {"_formatted": formatted, "_method": method, "_round": rounded, "_print": shown}


def run(code: str, space: dict[str, Any], printed: Printed, mode: str = "exec") -> None:
    """Run code in a namespace, and compare what it formats; in the mode "single" the value of an expression is printed."""
    tree = ast.fix_missing_locations(_Formats().visit(ast.parse(code, mode=mode)))
    space |= _hooks(printed)
    exec(compile(tree, "<text>", mode), space)  # noqa: S102, the text is ours


def watch(monkeypatch: pytest.MonkeyPatch) -> Printed:
    """Note from now on what the package returns to those who call its public functions and methods."""
    printed = Printed()
    for module in MODULES:
        for name in module.__all__:
            function = getattr(module, name)
            if (inspect.isfunction(function) or name == "gaussian_epsilon") and not NEITHER.search(name):
                at_the_top = name in AT_THE_TOP and getattr(hs, name) is function
                noting = _noting(function, f"{module.__name__}.{name}", printed)
                for home in {module, hs} if at_the_top else {module}:
                    monkeypatch.setattr(home, name, noting)
    for kind in CLASSES:
        for name in METHODS & set(dir(kind)):
            member = inspect.getattr_static(kind, name)
            if isinstance(member, property) and member.fget:
                monkeypatch.setattr(kind, name, property(_noting(member.fget, name, printed)))
            elif inspect.isfunction(member):
                monkeypatch.setattr(kind, name, _noting(member, name, printed))
    return printed


def _noting(function: Callable[..., Any], name: str, printed: Printed) -> Callable[..., Any]:
    upper = not FROM_BELOW.search(name)

    @functools.wraps(function)
    def noting(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        printed.note(result, upper)
        return result

    return noting

"""What the documentation of a registered function says of its arguments and values, for the command line.

The docstrings are the only source: they are in numpydoc's form, which the tests of the whole package hold them to.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

from hockeystick.sweep.plan import units
from hockeystick.sweep.plan.functions import COSTLY, TRAININGS, Function, lookup

# Functions whose documentation refers to that of another for the arguments that they share.
_SHARED = {
    f"federated.{name}_{value}": f"federated.{name}_gdp"
    for name in ("fedavg", "fedprox")
    for value in ("delta", "epsilon")
}
_ENTRY = re.compile(r"(?P<names>\w+(?:, \w+)*) : .*")


@dataclass(frozen=True)
class Argument:
    """One argument of a function, as a plan sees it."""

    name: str
    required: bool
    default: str  # as Python writes it; empty where there is none
    unit: str  # empty if it is the user's
    kind: str  # "number", "whole number" or the words
    domain: str  # what the documentation says

    @property
    def label(self) -> str:
        """Return what kind of value it is, with its unit."""
        return self.kind if self.unit in ("", "count") else f"{self.kind}, {self.unit}"


def summary(name: str) -> str:
    """Return the first sentence of a function's documentation, without "Return"."""
    lines = (inspect.getdoc(lookup(name).call) or "").split("\n\n")
    # The documentation of a ufunc begins with its signature.
    text = " ".join(lines[1 if lookup(name).is_ufunc else 0].split())
    return text.removeprefix("Return ").replace("`", "")


def returns(name: str) -> str:
    """Return what a function's documentation says of its values."""
    section = _section(lookup(name).call, "Returns")
    return _joined(section[1:])


def cost(name: str) -> str:
    """Return the class of cost of a function."""
    return "training" if name in TRAININGS else "costly" if name in COSTLY else "cheap"


def arguments(name: str) -> list[Argument]:
    """Return the arguments of a function that a plan may give, in the function's order."""
    function = lookup(name)
    told = _entries(_section(function.call, "Parameters"))
    if name in TRAININGS:
        told = _of_trainings() | told
    if name in _SHARED:
        told = _entries(_section(lookup(_SHARED[name]).call, "Parameters")) | told
    return [
        Argument(
            argument,
            argument in function.required,
            _default(function, argument),
            units.of_argument(argument),
            _kind(function, argument),
            told.get(argument, ""),
        )
        for argument in function.parameters
    ]


def _of_trainings() -> dict[str, str]:
    """Return the domains of the settings of trainings: those of the algorithms' fields, and of what is beside them."""
    from hockeystick.sweep.trainings.settings import algorithms, training  # noqa: PLC0415 - the simulator is for such plans only

    told: dict[str, str] = {}
    for algorithm in reversed(algorithms().values()):
        for base in reversed(algorithm.__mro__[:-1]):
            told |= _entries(_section(base, "Parameters"))
    return told | _entries(_section(training, "Parameters"))


def _kind(function: Function, argument: str) -> str:
    if argument in function.choices:
        return f"one of {', '.join(function.choices[argument])}"
    return "whole number" if argument in function.integers else "number"


def _default(function: Function, argument: str) -> str:
    if function.is_ufunc or argument in function.required or function.name in TRAININGS:
        return ""
    value = inspect.signature(function.call).parameters[argument].default
    return "" if value is None else repr(value)


def _section(documented: object, title: str) -> list[str]:
    """Return the lines of a section of the documentation, up to the next one."""
    lines = (inspect.getdoc(documented) or "").splitlines()
    starts = [at for at in range(len(lines) - 1) if lines[at + 1].startswith("---")]
    start = next((at for at in starts if lines[at] == title), None)
    if start is None:
        return []
    stop = min((at for at in starts if at > start), default=len(lines))
    return lines[start + 2 : stop]


def _entries(lines: list[str]) -> dict[str, str]:
    """Return name -> text for the entries of a section of parameters."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry:
            names = entry["names"].split(", ")
            found.update({name: [] for name in names})
        else:
            for name in names:
                found[name].append(line)
    return {name: _joined(text) for name, text in found.items()}


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split()).replace("`", "")

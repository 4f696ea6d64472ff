"""What the documentation of a registered function says of its arguments and values, and plans to begin with.

The docstrings are the only source: they are in numpydoc's form, which the tests of the whole package hold them to. A plan to
begin with is small and runs as it is, with a comment above every value.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hockeystick.sweep.functions import ARGUMENTS, TRAININGS, Function, lookup, unit_of_argument
from hockeystick.sweep.plan import Value

# Functions whose documentation refers to that of another for the arguments that they share.
_SHARED = {
    f"federated.{name}_{value}": f"federated.{name}_gdp"
    for name in ("fedavg", "fedprox")
    for value in ("delta", "epsilon")
}
FIXED = "[fixed] # the same in all cells"
AXES = "[axes] # every combination; also { linspace = [0.5, 2.0], num = 4 }, logspace, { range = [1, 9], step = 2 }"
_ENTRY = re.compile(r"(?P<names>\w+(?:, \w+)*) : .*")
# Arguments that may be left out, but of which these functions need one; or that their usual case needs.
_OF_A_TRAINING = (
    *("learning_rate", "clip_norm", "noise_std", "local_steps"),
    *("record_loss", "records_per_silo", "num_features", "num_runs"),
)
_BESIDE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(TRAININGS, _OF_A_TRAINING),
    "federated.trusted_aggregator": ("smoothness",),
    "federated.trusted_aggregator_random_stop": ("smoothness",),
    "last_iterate.best": ("noise_std",),
    "last_iterate.projected_contraction": ("noise_std",),
}


@dataclass(frozen=True)
class DescribedArgument:
    """One argument of a function, as a plan sees it."""

    name: str
    required: bool
    default: str  # as Python writes it; empty where there is none
    label: str  # "number", "whole number" or the words, with the unit
    domain: str  # what the documentation says


def summary(name: str) -> str:
    """Return the first sentence of a function's documentation, without "Return"."""
    function = lookup(name)
    paragraphs = (inspect.getdoc(function.call) or "").split("\n\n")
    # The documentation of a ufunc begins with its signature.
    return _joined(paragraphs[1 if function.is_ufunc else 0].splitlines()).removeprefix("Return ")


def returns(name: str) -> str:
    """Return what a function's documentation says of its values."""
    return _joined(_section(lookup(name).call, "Returns")[1:])


def arguments(name: str) -> list[DescribedArgument]:
    """Return the arguments of a function that a plan may give, in the function's order."""
    function = lookup(name)
    told = _entries(function.call)
    if name in TRAININGS:
        told = _of_trainings() | told
    if name in _SHARED:
        told = _entries(lookup(_SHARED[name]).call) | told
    return [
        DescribedArgument(
            argument,
            argument in function.required,
            _default(function, argument),
            _label(function, argument),
            told.get(argument, ""),
        )
        for argument in function.parameters
    ]


def example(functions: Sequence[str]) -> str:
    """Return the text of a plan file that computes these functions on a small grid."""
    needed: dict[str, DescribedArgument] = {}
    for name in functions:
        for argument in arguments(name):
            if argument.required or argument.name in _BESIDE.get(name, ()):
                needed.setdefault(argument.name, argument)
    axes = [name for name in ARGUMENTS if name in needed and len(_values(name)) > 1][:2]
    lines = ['title = "A first sweep"', "", "[outputs] # a column of the table, and the function that computes it"]
    for column, name in zip(_columns(functions), functions, strict=True):
        lines += [f"# {summary(name)}", f"{column} = {json.dumps(name)}"]
    for head, names in ((FIXED, [name for name in needed if name not in axes]), (AXES, axes)):
        lines += ["", head] if names else []
        for name in names:
            values = _values(name)
            given = values if name in axes else values[len(values) // 2]
            lines += [f"# {needed[name].label}: {needed[name].domain}", f"{name} = {json.dumps(given)}"]
    return "\n".join(lines) + "\n"


def _values(argument: str) -> list[Value]:
    """Return the values of an argument in plans to begin with, several if it is varied."""
    return [word if word.isalpha() else json.loads(word) for word in ARGUMENTS[argument].example.split()]


def _of_trainings() -> dict[str, str]:
    """Return the domains of the settings of trainings: those of the algorithms' fields, and of what is beside them."""
    from hockeystick.sweep.training_settings import algorithms, training  # noqa: PLC0415 - the simulator is for such plans only

    told: dict[str, str] = {}
    for algorithm in reversed(algorithms().values()):
        for base in reversed(algorithm.__mro__[:-1]):
            told |= _entries(base)
    return told | _entries(training)


def _label(function: Function, argument: str) -> str:
    if argument in function.choices:
        kind = f"one of {', '.join(function.choices[argument])}"
    else:
        kind = "whole number" if argument in function.integers else "number"
    unit = unit_of_argument(argument)
    return kind if unit in ("", "count") else f"{kind}, {unit}"


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


def _entries(documented: object) -> dict[str, str]:
    """Return name -> text for the documented parameters."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in _section(documented, "Parameters"):
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


def _columns(functions: Sequence[str]) -> list[str]:
    """Return a name for each output: the last part of the function's, and the whole where that is taken."""
    last = [name.rpartition(".")[2] for name in functions]
    arguments_too = {argument.name for name in functions for argument in arguments(name)}
    return [
        name.replace(".", "_") if last.count(short) > 1 else f"value_{short}" if short in arguments_too else short
        for name, short in zip(functions, last, strict=True)
    ]

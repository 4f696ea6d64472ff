"""The functions that a plan may name, and what their documentation says. The table is closed: a name in a plan is a key here, never a path to import.

``functions.csv`` has a row for each function, which is written by hand: a new function has none until somebody has looked.

- `module`, below ``hockeystick``; the last part of the plan's name is the function's name there;
- `cost`: a cell of a cheap function mostly takes less than one microsecond, of a costly one from tens of microseconds to tens
  of milliseconds; of a training it may take minutes;
- `worth`: what its values are worth, a key of `MEANING`;
- `unit`, in which they are measured; empty where the user's model has units of its own, as a loss has;
- `rounded`: how they are shown with few digits, so that bounds stay bounds.

What is said of arguments and values is from the docstrings alone, which are in numpydoc's form. A plan to begin with is small and runs as it
is, with a comment above every value. Units of arguments, which of them are whole numbers, and values in plans to begin with are in the table of `_checks.arguments`.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hockeystick._checks.arguments import Argument, rows, table
from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick.federated.arguments import LOSSES, SCHEDULES
from hockeystick.kernels import PARAMETERS
from hockeystick.sweep.errors import PlanError


class Registered(NamedTuple):
    """What the table says of a function."""

    module: str
    cost: str = "cheap"
    worth: str = "unlabelled"
    unit: str = ""
    rounded: str = "up"

    @property
    def printer(self) -> Callable[[float, str], str]:
        """What prints the values with few digits: bounds stay bounds."""
        return {"up": format_upper, "down": format_lower, "nearest": format}[self.rounded]


ARGUMENTS = table()
_FUNCTIONS = {
    name: Registered(f"hockeystick.{module}", *more)
    for name, (module, *more) in rows(Path(__file__).with_name("functions.csv"))
}

# The arguments of trainings are the settings of the simulator, whatever the column.
TRAININGS = {name: row for name, row in _FUNCTIONS.items() if row.cost == "training"}
REGISTERED = {name: row for name, row in _FUNCTIONS.items() if row.cost != "training"}
INTEGERS = frozenset(name for name, row in ARGUMENTS.items() if row.is_whole)
CHOICES: dict[str, tuple[str, ...]] = {"loss": LOSSES, "schedule": SCHEDULES}  # the arguments that are words

MEANING = {
    "exact": "the value of a closed form, up to the rounding that its documentation states",
    "certified": "a bound with a proof, under the assumptions of its documentation",
    "simulated": "an estimate from runs on these data with these seeds, rounded to the nearest; no bound",
    "risk bound": "a bound of the excess risk under the assumptions of its documentation; says nothing about privacy",
    "unsound": "a published formula as printed, whose proof does not hold: no privacy guarantee",
    "unlabelled": "nothing is claimed here about these values; see the documentation",
}

# Without it the last axis of an array would be the round, where a sweep's axes are constants.
ALSO_REQUIRED = {"contraction_sum": ("rounds",)}

# How a call is carried out is not the plan's business; a switch is no number (ball_dimension = 1 says the same).
_CONTROLS = ("num_threads", "on_error", "one_dimensional")

# The last axis of an array given for one of these to these functions is the round.
_PER_ROUND = frozenset({"learning_rate", "noise_std", "lipschitz", "radius", "smoothness", "strong_convexity"})
_OVER_ROUNDS = ("federated.trusted_aggregator", "federated.trusted_aggregator_random_stop", "federated.best")


def registered(name: str) -> Registered:
    """Return what the table says of a function, of an unknown one that nothing is claimed."""
    return TRAININGS.get(name) or REGISTERED.get(name) or Registered("")


def unit_of_argument(name: str) -> str:
    """Return the unit of an argument, empty if it is the user's."""
    return ARGUMENTS.get(name, Argument()).unit


def with_unit(name: str, unit: str) -> str:
    """Return the text at an axis."""
    return f"{name} ({unit})" if unit else name


@dataclass(frozen=True)
class Function:
    """One registered function: what to call, and with which arguments."""

    name: str
    call: Callable[..., Any]
    parameters: tuple[str, ...]
    required: tuple[str, ...]
    is_ufunc: bool = False
    per_round: frozenset[str] = frozenset()
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: CHOICES)  # of the arguments that are words
    integers: frozenset[str] = INTEGERS


def lookup(name: str, rule: str = "function must be a registered one") -> Function:
    """Return the registered function of that name; refuse another one by this rule, with the nearest names, or all."""
    known = REGISTERED | TRAININGS
    if name not in known:
        near = difflib.get_close_matches(name, known)
        hint = f"did you mean {' or '.join(near)}?" if near else f"registered are {', '.join(sorted(known))}"
        raise PlanError(f"{rule}, not {name!r}; {hint}")
    call = getattr(importlib.import_module(known[name].module), name.rpartition(".")[2])
    if name in PARAMETERS:
        return Function(name, call, PARAMETERS[name], PARAMETERS[name], is_ufunc=True)
    parameters, required = _parameters(call)
    if name in TRAININGS:
        return _training(name, call, parameters, required)
    per_round = _PER_ROUND if name in _OVER_ROUNDS else frozenset()
    return Function(name, call, parameters, required + ALSO_REQUIRED.get(name, ()), per_round=per_round)


def _training(name: str, call: Callable[..., Any], own: tuple[str, ...], required: tuple[str, ...]) -> Function:
    """Return a function of a training, which takes the settings that the simulator's algorithms have."""
    from hockeystick.sweep.training_settings import OF_EPSILON, REQUIRED, kinds  # noqa: PLC0415 - the simulator is for such plans only

    words = {setting: kind for setting, kind in (kinds() | OF_EPSILON).items() if isinstance(kind, tuple)}
    whole = frozenset(setting for setting, kind in kinds().items() if kind is int)
    return Function(name, call, (*kinds(), *own), (*REQUIRED, *required), choices=words, integers=whole)


def _parameters(call: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of all and of the required arguments."""
    signature = inspect.signature(call).parameters.values()
    wanted = [given for given in signature if given.name not in _CONTROLS and given.kind is not given.VAR_KEYWORD]
    required = [given.name for given in wanted if given.default is given.empty]
    return tuple(given.name for given in wanted), tuple(required)


# What the documentation says of arguments and values, and plans to begin with.

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


def _values(argument: str) -> list[Any]:
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

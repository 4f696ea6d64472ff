"""The functions that a plan may name, and their arguments. The table is closed: a name in a plan is a key here, never a path to import.

``functions.csv`` has a row for each function, which is written by hand: a new function has none until somebody has looked.

- `module`, below ``hockeystick``; the last part of the plan's name is the function's name there;
- `cost`: a cell of a cheap function mostly takes less than one microsecond, of a costly one from tens of microseconds to tens
  of milliseconds; of a training it may take minutes;
- `worth`: what its values are worth, a key of `MEANING`;
- `unit`, in which they are measured; empty where the user's model has units of its own, as a loss has;
- `rounded`: how they are shown with few digits, so that bounds stay bounds.

Units of arguments, which of them are whole numbers, and values in plans to begin with are in the table of `_checks.arguments`.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hockeystick._checks.arguments import Argument, rows, table
from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick.federated.arguments import LOSSES, SCHEDULES
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

# A ufunc has no signature that can be asked for.
UFUNC_PARAMETERS = {
    "q": ("x",),
    "log_q": ("x",),
    "q_inv": ("p",),
    "theta": ("epsilon", "r"),
    "log_theta": ("epsilon", "r"),
    "theta_inverse": ("epsilon", "delta"),
    "gaussian_epsilon": ("r", "delta"),
    "laplace_theta": ("epsilon", "r"),
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
    if name in UFUNC_PARAMETERS:
        return Function(name, call, UFUNC_PARAMETERS[name], UFUNC_PARAMETERS[name], is_ufunc=True)
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

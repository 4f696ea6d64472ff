"""The functions that a plan may name. The table is closed: a name in a plan is a key here, never a path to import."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick.accounting.dpsgd import __all__ as DPSGD
from hockeystick.accounting.gaussian_dp import __all__ as GAUSSIAN_DP
from hockeystick.federated import __all__ as FEDERATED
from hockeystick.federated.arguments import LOSSES, SCHEDULES
from hockeystick.last_iterate import __all__ as LAST_ITERATE

# A ufunc has no signature that can be asked for.
UFUNC_PARAMETERS = {
    "q": ("x",),
    "log_q": ("x",),
    "q_inv": ("p",),
    "theta": ("eps", "r"),
    "log_theta": ("eps", "r"),
    "theta_inverse": ("eps", "delta"),
    "gaussian_epsilon": ("r", "delta"),
    "laplace_theta": ("eps", "r"),
}

# What these are, take or return is no column: a type, brackets, a batch size for each round, and the steps of a round. The last digits of
# iteration_rdp depend on NumPy's instructions, and a plan's bytes must not.
_STEPS = {"accumulated_step_size", "data_sensitivity", "model_sensitivity", "step_sizes"}
_NO_ARRAYS = frozenset({"Best", "chain_delta", "iteration_rdp", "trusted_aggregator_batches"}) | _STEPS

# Plan name -> module. The last part of the plan name is the function's name in that module.
REGISTERED: dict[str, str] = {
    **dict.fromkeys(UFUNC_PARAMETERS, "hockeystick.kernels"),
    **dict.fromkeys((*GAUSSIAN_DP, *DPSGD), "hockeystick.accounting"),
    "contraction_sum": "hockeystick._hidden_states.contraction",
    **{f"last_iterate.{name}": "hockeystick.last_iterate" for name in LAST_ITERATE if name not in _NO_ARRAYS},
    **{f"federated.{name}": "hockeystick.federated" for name in FEDERATED if name not in _NO_ARRAYS},
    "isrl.mb_sgd_risk_bound": "hockeystick.isrl",
    "isrl.noisy_mb_sgd_epsilon": "hockeystick.isrl",
    "utility.trusted_aggregator_delta": "hockeystick.utility",
    "utility.trusted_aggregator_excess_risk": "hockeystick.utility",
    "published.fedavg_gdp": "hockeystick.published",
    "published.fedprox_gdp": "hockeystick.published",
}

# Their arguments are the settings of a training, whatever the column; a cell of them may take minutes.
TRAININGS: dict[str, str] = {
    f"training.{name}": "hockeystick.sweep.trainings.functions"
    for name in (
        *("loss", "loss_half_width", "loss_on_test", "accuracy", "accuracy_half_width"),
        *("epsilon", "sensitivity", "data_sensitivity", "model_sensitivity"),
    )
}

# What a value is worth. Each function is listed by hand: a new one has no label until somebody has looked.
_STATUS = {
    "exact": (*UFUNC_PARAMETERS, *GAUSSIAN_DP, "contraction_sum", "last_iterate.projected_contraction"),
    "certified": (
        *(f"dpsgd_{name}" for name in ("delta", "epsilon", "noise_multiplier", "sampling_rate", "steps")),
        "last_iterate.ball_contraction",
        "last_iterate.pnsgd_lipschitz",
        *(f"last_iterate.pnsgd_{name}" for name in ("gaussian", "gaussian_random_stop", "laplace", "rdp")),
        *(f"federated.{name}_{value}" for name in ("fedavg", "fedprox") for value in ("delta", "epsilon", "gdp")),
        *(f"last_iterate.{name}" for name in ("best", "best_cyclic", "best_random_stop", "best_sampled")),
        *(f"federated.{name}" for name in ("best", "best_sampled")),
        "federated.trusted_aggregator",
        "federated.trusted_aggregator_random_stop",
        "isrl.noisy_mb_sgd_epsilon",
        "utility.trusted_aggregator_delta",
        "training.epsilon",
    ),
    "simulated": tuple(name for name in TRAININGS if name != "training.epsilon"),
    "risk bound": ("isrl.mb_sgd_risk_bound", "utility.trusted_aggregator_excess_risk"),
    "unsound": ("published.fedavg_gdp", "published.fedprox_gdp"),
}
MEANING = {
    "exact": "the value of a closed form, up to the rounding that its documentation states",
    "certified": "a bound with a proof, under the assumptions of its documentation",
    "simulated": "an estimate from runs on these data with these seeds, rounded to the nearest; no bound",
    "risk bound": "a bound of the excess risk under the assumptions of its documentation; says nothing about privacy",
    "unsound": "a published formula as printed, whose proof does not hold: no privacy guarantee",
    "unlabelled": "nothing is claimed here about these values; see the documentation",
}


def status(name: str) -> str:
    """Return what the values of a registered function are worth, a key of `MEANING`."""
    return next((label for label, names in _STATUS.items() if name in names), "unlabelled")


# What a budget allows at most, and the misses that no test goes below: shown with few digits, these are rounded down.
_ROUNDED_DOWN = frozenset({"dpsgd_sampling_rate", "dpsgd_steps", "gdp_trade_off", "theta_inverse"})


def printer(name: str) -> Callable[[float, str], str]:
    """Return what prints the values of a registered function with few digits: bounds stay bounds."""
    if status(name) == "simulated":
        return format
    return format_lower if name in _ROUNDED_DOWN else format_upper


# Pictures and summaries say that their values are no privacy guarantee.
UNSOUND = frozenset(name for name in REGISTERED if status(name) == "unsound")

# A cell of these takes from tens of microseconds to tens of milliseconds, of the others mostly less than one microsecond.
COSTLY = frozenset(
    {*DPSGD, "federated.best", "federated.best_sampled"}
    | {f"last_iterate.{name}" for name in LAST_ITERATE if name.startswith("best_")}
    | TRAININGS.keys()
)

# The arguments that are words, and the words.
CHOICES: dict[str, tuple[str, ...]] = {"loss": LOSSES, "schedule": SCHEDULES}

# The arguments that every function takes as an integer only; the number of silos in a round may be a mean.
INTEGERS = frozenset(
    {
        *(
            "ball_dimension",
            "batch_size",
            "dimension",
            "index",
            "local_steps",
            "num_clients",
            "num_records",
            "num_silos",
        ),
        *("num_users", "period", "rounds", "steps"),
    }
)

# Without it the last axis of an array would be the round, where a sweep's axes are constants.
ALSO_REQUIRED = {"contraction_sum": ("rounds",)}

# How a call is carried out is not the plan's business; a switch is no number (ball_dimension = 1 says the same).
_CONTROLS = ("num_threads", "on_error", "one_dimensional")

# The last axis of an array given for one of these to these functions is the round.
_PER_ROUND = frozenset({"learning_rate", "noise_std", "lipschitz", "radius", "smoothness", "strong_convexity"})
_OVER_ROUNDS = ("federated.trusted_aggregator", "federated.trusted_aggregator_random_stop", "federated.best")


@dataclass(frozen=True)
class Function:
    """One registered function: what to call, and with which arguments."""

    name: str
    call: Callable[..., Any]
    parameters: tuple[str, ...]
    required: tuple[str, ...]
    is_ufunc: bool
    per_round: frozenset[str]
    choices: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: CHOICES
    )  # the words of arguments that are words
    integers: frozenset[str] = INTEGERS


class UnknownFunctionError(KeyError):
    """A name that is not in the table; its text lists the nearest names, or all."""

    def __str__(self) -> str:
        """Give the text itself, where a KeyError would quote it."""
        return str(self.args[0])


def lookup(name: str) -> Function:
    """Return the registered function of that name."""
    known = REGISTERED | TRAININGS
    if name not in known:
        near = difflib.get_close_matches(name, known)
        message = f"did you mean {' or '.join(near)}?" if near else f"registered are {', '.join(sorted(known))}"
        raise UnknownFunctionError(message)
    if name in TRAININGS:
        return _training(name)
    call = getattr(importlib.import_module(REGISTERED[name]), name.rpartition(".")[2])
    if name in UFUNC_PARAMETERS:
        parameters = required = UFUNC_PARAMETERS[name]
    else:
        parameters, required = _parameters(call)
        required += ALSO_REQUIRED.get(name, ())
    per_round = _PER_ROUND if name in _OVER_ROUNDS else frozenset()
    return Function(name, call, parameters, required, name in UFUNC_PARAMETERS, per_round)


def _training(name: str) -> Function:
    """Return a function of a training, which takes the settings that the simulator's algorithms have."""
    from hockeystick.sweep.trainings.settings import OF_EPSILON, REQUIRED, kinds  # noqa: PLC0415 - the simulator is for such plans only

    call = getattr(importlib.import_module(TRAININGS[name]), name.rpartition(".")[2])
    own, required = _parameters(call)
    words = {setting: kind for setting, kind in (kinds() | OF_EPSILON).items() if isinstance(kind, tuple)}
    whole = frozenset(setting for setting, kind in kinds().items() if kind is int)
    return Function(name, call, (*kinds(), *own), (*REQUIRED, *required), False, frozenset(), words, whole)


def _parameters(call: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of all and of the required arguments."""
    signature = inspect.signature(call).parameters.values()
    wanted = [
        parameter
        for parameter in signature
        if parameter.name not in _CONTROLS and parameter.kind is not parameter.VAR_KEYWORD
    ]
    required = [parameter.name for parameter in wanted if parameter.default is parameter.empty]
    return tuple(parameter.name for parameter in wanted), tuple(required)

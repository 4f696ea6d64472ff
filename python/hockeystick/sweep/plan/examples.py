"""Plans to begin with: for any registered functions a small one that runs as it is, with a comment above every value."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hockeystick.sweep.errors import PlanError
from hockeystick.sweep.plan.description import Argument, arguments, summary
from hockeystick.sweep.plan.functions import TRAININGS, UnknownFunctionError, lookup
from hockeystick.sweep.plan.plan import Value

# Arguments that are varied, the most interesting first; two of them become axes.
VARIED: dict[str, tuple[Value, ...]] = {
    "noise_multiplier": (0.8, 1.0, 1.5),
    "noise_std": (0.5, 1.0, 2.0),
    "noise_scale": (0.5, 1.0, 2.0),
    "steps": (100, 1000, 10000),
    "rounds": (10, 20, 50),
    "mu": (0.5, 1.0, 2.0),
    "r": (0.5, 1.0, 2.0),
    "eps": (0.5, 1.0, 2.0),
    "epsilon": (0.5, 1.0, 2.0),
    "order": (2.0, 4.0, 8.0),
    "fpr": (0.01, 0.05, 0.1),
    "x": (0.0, 2.0, 5.0),
    "p": (1e-9, 1e-5, 0.1),
    "delta": (1e-6, 1e-5, 1e-4),
    "sampling_rate": (0.005, 0.01, 0.02),
    "learning_rate": (0.05, 0.1, 0.2),
}
HELD: dict[str, Value] = {
    "algorithm": "NoisyFedAvg",
    "data": "synthetic",
    "record_loss": "logistic",
    "records_per_silo": 20,
    "num_features": 5,
    "num_runs": 3,
    "seed": 1,
    "batch_size": 10,
    "clip_norm": 1.0,
    "diameter": 2.0,
    "dimension": 10,
    "distance": 1.0,
    "eta": 0.9,
    "first": 0.1,
    "gradient_bound": 1.0,
    "gradient_std": 1.0,
    "image_high": 0.5,
    "image_low": -0.5,
    "image_radius": 0.5,
    "index": 10,
    "lipschitz": 1.0,
    "local_steps": 5,
    "loss": "convex",
    "num_clients": 50,
    "num_records": 100,
    "num_silos": 25,
    "num_users": 100,
    "period": 10,
    "prox": 2.0,
    "radius": 1.0,
    "silos_per_round": 25,
    "smoothness": 1.0,
    "strong_convexity": 0.5,
}
# Arguments that may be left out, but of which these functions need one; or that their usual case needs.
_TRAINING = (
    "learning_rate",
    "clip_norm",
    "noise_std",
    "local_steps",
    "record_loss",
    "records_per_silo",
    "num_features",
)
BESIDE = {
    **dict.fromkeys(TRAININGS, (*_TRAINING, "num_runs")),
    "federated.trusted_aggregator": ("smoothness",),
    "federated.trusted_aggregator_random_stop": ("smoothness",),
    "last_iterate.best": ("noise_std",),
    "last_iterate.projected_contraction": ("noise_std",),
}


def example(functions: Sequence[str]) -> str:
    """Return the text of a plan file that computes these functions on a small grid."""
    needed: dict[str, Argument] = {}
    for name in functions:
        try:
            lookup(name)
        except UnknownFunctionError as error:
            message = f"function must be a registered one, not {name!r}; {error}"
            raise PlanError(message) from None
        for argument in arguments(name):
            if argument.required or argument.name in BESIDE.get(name, ()):
                needed.setdefault(argument.name, argument)
    axes = [name for name in VARIED if name in needed][:2]
    lines = ['title = "A first sweep"', "", "[outputs] # a column of the table, and the function that computes it"]
    for column, name in zip(_columns(functions), functions, strict=True):
        lines += [f"# {summary(name)}", f"{column} = {json.dumps(name)}"]
    fixed = {name: HELD[name] if name in HELD else VARIED[name][1] for name in needed if name not in axes}
    if fixed:
        lines += ["", "[fixed] # the same in all cells"]
        for name, value in fixed.items():
            lines += [_comment(needed[name]), f"{name} = {json.dumps(value)}"]
    lines += [
        "",
        "[axes] # every combination; also { linspace = [0.5, 2.0], num = 4 }, logspace, { range = [1, 9], step = 2 }",
    ]
    for name in axes:
        lines += [_comment(needed[name]), f"{name} = {json.dumps(VARIED[name])}"]
    return "\n".join(lines) + "\n"


def _comment(argument: Argument) -> str:
    return f"# {argument.label}: {argument.domain}"


def _columns(functions: Sequence[str]) -> list[str]:
    """Return a name for each output: the last part of the function's, and the whole where that is taken."""
    last = [name.rpartition(".")[2] for name in functions]
    arguments_too = {argument.name for name in functions for argument in arguments(name)}
    return [
        name.replace(".", "_") if last.count(short) > 1 else f"value_{short}" if short in arguments_too else short
        for name, short in zip(functions, last, strict=True)
    ]

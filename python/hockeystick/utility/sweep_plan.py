"""The settings of a plan as the sweep plan around them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hockeystick.utility.settings import Problem, Setting, Trust


def sweep_plan(trust: Trust, problem: Problem, settings: Sequence[Setting]) -> dict[str, Any]:
    """Return a sweep plan of the array functions behind the settings of a plan."""
    if trust == "shuffle":
        msg = "trust must not be 'shuffle' for a sweep: no array function accounts for given noise there"
        raise ValueError(msg)
    noises = [setting.noise_std for setting in settings]
    spread = {"logspace": [min(noises) / 2.0, max(noises) * 2.0], "num": 25}
    fixed: dict[str, Any] = {
        "dimension": problem.dimension,
        "lipschitz": problem.lipschitz,
        "smoothness": problem.smoothness,
        "strong_convexity": problem.strong_convexity,
    }
    axes: dict[str, Any] = {"noise_std": spread}
    sizes = sorted({setting.batch_size for setting in settings})
    if trust == "last-iterate":
        outputs: dict[str, Any] = {
            "delta": "utility.trusted_aggregator_delta",
            "risk": {
                "function": "utility.trusted_aggregator_excess_risk",
                "arguments": {"gradient_bound": problem.lipschitz, "gradient_std": 0.0},
            },
        }
        fixed |= {"eps": problem.epsilon, "num_users": problem.num_silos, "radius": problem.diameter / 2.0}
        axes["batch_size"] = sorted({setting.silos_per_round for setting in settings})
    else:
        central = trust == "central"
        outputs = {"epsilon": "isrl.noisy_mb_sgd_epsilon", "risk": "isrl.mb_sgd_risk_bound"}
        fixed |= {
            "delta": problem.delta,
            "diameter": problem.diameter,
            "num_records": problem.num_records * (problem.num_silos if central else 1),
            "num_silos": 1 if central else problem.num_silos,
            "silos_per_round": 1 if central else problem.silos_per_round,
        }
        axes |= {"rounds": sorted({setting.rounds for setting in settings}), "batch_size": sizes}
    return {"title": f"Around a plan for {trust}", "outputs": outputs, "fixed": fixed, "axes": axes}


def toml(source: dict[str, Any]) -> str:
    """Return a sweep plan's mapping as TOML."""
    lines = [f"title = {json.dumps(source['title'])}"]
    for section in ("outputs", "fixed", "axes"):
        lines += ["", f"[{section}]"]
        lines += [f"{name} = {_value(value)}" for name, value in source[section].items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_value(item)}" for name, item in value.items()) + " }"
    return json.dumps(value)

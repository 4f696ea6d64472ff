"""``hockeystick calibrate`` for federated averaging: the noise, the rounds or the local steps that a budget allows."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from functools import partial

from hockeystick._core import __version__
from hockeystick._numeric.printing import format_upper
from hockeystick._numeric.search import last_whole
from hockeystick.cli import arguments

NO_ANSWER = 4  # the exit code where nothing meets the budget
OPTIONS: dict[str, tuple[Callable[[str], float], str, str]] = {
    "clients": (arguments.count, "M", "number of clients, all of which take part in every round"),
    "rounds": (arguments.count, "R", "communication rounds, a positive integer"),
    "local-steps": (arguments.count, "K", "local steps of a client in a round, a positive integer"),
    "clip-norm": (arguments.positive, "C", "norm to which each local gradient is clipped, positive"),
    "learning-rate": (arguments.positive, "ETA", "step size of the local steps, positive"),
    "noise-std": (arguments.positive, "SIGMA", "noise that each client adds to the model that it uploads, positive"),
}
TARGETS = ("noise-std", "rounds", "local-steps")
MOST = {"rounds": 10**9, "local_steps": 10**9}
DIGITS = ".8g"


def add_federated(parser: argparse.ArgumentParser) -> None:
    """Add what is known of federated averaging."""
    group = parser.add_argument_group(
        "federated averaging",
        "with one of the targets noise-std, rounds and local-steps: clients clip each local gradient to C and add noise to the model that "
        "they upload; steps of constant size, only the last model is seen, one record of one client is replaced. Nothing need be convex.",
    )
    for name, (kind, letter, text) in OPTIONS.items():
        group.add_argument(f"--{name}", type=kind, metavar=letter, help=text)


def calibrate(chosen: argparse.Namespace) -> int:
    """Find the target, and write it with the epsilon that it spends."""
    target = chosen.target.replace("-", "_")
    given = _given(chosen, target)
    if not 0 < chosen.delta < 1:
        chosen.refuse(f"argument --delta: must be in (0, 1) for {chosen.target}, not {chosen.delta}")
    spent = partial(_epsilon, chosen.delta, given, target)
    if target == "noise_std":
        found: float = _least_noise(lambda noise: spent(noise) - chosen.epsilon)
    else:
        found = last_whole(lambda count: spent(int(count)) - chosen.epsilon, MOST[target])
    if found == 0 or not math.isfinite(found):
        words = ", ".join(f"{name.replace('_', ' ')} {value!r}" for name, value in given.items())
        least = "not one step" if target == "local_steps" else "not one round" if target == "rounds" else "no noise"
        sys.stderr.write(
            f"hockeystick calibrate: {least} meets epsilon = {chosen.epsilon!r} at delta = {chosen.delta!r} for {words}; "
            "allow a larger epsilon, or more noise or clients, or smaller steps\n"
        )
        return NO_ANSWER
    _write(chosen, target, given | {target: found}, spent(found))
    return 0


def _given(chosen: argparse.Namespace, target: str) -> dict[str, float]:
    """Return the settings but the target; what is missing or too much is refused."""
    names = [name.replace("-", "_") for name in OPTIONS]
    missing = [name for name in names if name != target and getattr(chosen, name) is None]
    if missing:
        listed = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        chosen.refuse(f"the following arguments are required: {listed}")
    if getattr(chosen, target) is not None:
        chosen.refuse(f"argument --{chosen.target}: not allowed, since it is the target")
    others = ("noise_multiplier", "steps", "sampling_rate", "records", "batch_size", "epochs", "sampling")
    for name in others:
        if getattr(chosen, name) is not None:
            chosen.refuse(f"argument --{name.replace('_', '-')}: not allowed with --target {chosen.target}")
    return {name: getattr(chosen, name) for name in names if name != target}


def _epsilon(delta: float, given: dict[str, float], target: str, value: float) -> float:
    from hockeystick.federated import fedavg_epsilon  # noqa: PLC0415 - imports are paid for by this command only

    settings = given | {target: value}
    settings["num_clients"] = settings.pop("clients")
    # Steps of constant size on an unbounded domain: the smoothness does not matter.
    return float(fedavg_epsilon(delta, smoothness=0.0, **settings))  # type: ignore[arg-type]


def _least_noise(excess: Callable[[float], float]) -> float:
    """Return the least noise, to 1e-12, at which the excess was computed and is not positive; infinity if there is none."""
    good = 1.0
    while excess(good) > 0.0:
        good *= 2.0
        if good > 1e150:
            return math.inf
    bad = 0.5 * good
    while excess(bad) <= 0.0:
        good, bad = bad, 0.5 * bad
        if bad < 1e-150:
            return good
    while good - bad > 1e-12 * good:
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if excess(middle) <= 0.0 else (good, middle)
    return good


def _write(chosen: argparse.Namespace, target: str, settings: dict[str, float], epsilon: float) -> None:
    if chosen.json:
        answer = {
            "target": target,
            target: settings[target],
            "epsilon": epsilon,
            "delta": chosen.delta,
            "status": "certified",
            "adjacency": "replace",
            "algorithm": "federated averaging, last model",
            "version": __version__,
            "inputs": {"epsilon": chosen.epsilon} | {name: value for name, value in settings.items() if name != target},
        }
        sys.stdout.write(json.dumps(answer, allow_nan=False) + "\n")
        return
    # A printed noise is no smaller than what was computed: it spends no more.
    shown = format_upper(settings[target], DIGITS) if target == "noise_std" else f"{int(settings[target])}"
    rest = ", ".join(f"{name.replace('_', ' ')} {value!r}" for name, value in settings.items() if name != target)
    sys.stdout.write(
        f"{target.replace('_', ' ')} = {shown}: epsilon = {format_upper(epsilon, DIGITS)} at delta = {chosen.delta!r} for federated "
        f"averaging, {rest}: a certified upper bound; one record is replaced, only the last model is seen\n"
    )

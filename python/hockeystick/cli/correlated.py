"""Correlated noise in a command's options: a strategy, and which steps a record is in."""

from __future__ import annotations

import argparse
from typing import Any

from hockeystick.cli import arguments

STRATEGIES = {"square-root": "", "band": "coefficients", "buffers": "decays scales", "tree": ""}
PARTICIPATIONS = {"single": "", "cyclic": "separation", "min-separation": "separation"} | {
    "poisson": "sampling_rate failure",
    "cyclic-poisson": "separation sampling_rate",
    "min-separated-poisson": "separation sampling_rate",
    "balls-in-bins": "separation",
}
NEEDS = STRATEGIES | PARTICIPATIONS
MAY_HAVE = {"square-root": "bands", "min-separation": "max_participations", "min-separated-poisson": "warm_start"}
FUNCTIONS = {  # of `correlated_noise`, for records that are drawn; the others have a sensitivity
    "poisson": "conditional_composition",
    "cyclic-poisson": "cyclic_poisson",
    "min-separated-poisson": "min_separated_poisson",
    "balls-in-bins": "balls_in_bins",
}
CHOICES = ("strategy", "participation")
NUMBERS = ("coefficients", "decays", "scales", "bands", "separation", "max_participations", "failure", "warm_start")
OPTIONS = (*CHOICES, *NUMBERS)
OF_BATCHES = ("num_records", "batch_size", "epochs", "drop_last", "sampling", "certificate")
OF_CLIENTS = ("num_clients", "clients_per_round", "rounds")


def is_asked(chosen: argparse.Namespace) -> bool:
    """Say whether noise is correlated; if not, refuse the options that are about it."""
    asked = getattr(chosen, "strategy", None) is not None
    arguments.refuse(chosen, [name for name in OPTIONS if hasattr(chosen, name) and not asked], "needs --strategy")
    return asked


def settle(chosen: argparse.Namespace) -> None:
    """Refuse what is missing or of no use."""
    arguments.refuse(chosen, (*OF_BATCHES, *OF_CLIENTS), "not allowed with --strategy")
    arguments.require(chosen, ["participation", "steps"])
    asked = (chosen.strategy, chosen.participation)
    arguments.require(chosen, " ".join(NEEDS[one] for one in asked).split())
    used = {*CHOICES, *_names(chosen.strategy), *_names(chosen.participation)}
    useless = [name for name in (*OPTIONS, "sampling_rate") if name not in used]
    arguments.refuse(chosen, useless, "not allowed with --strategy {} --participation {}".format(*asked))


def guarantee(chosen: argparse.Namespace, noise_multiplier: float) -> Any:
    """Return what is certified of the training: an `Accountant`, or an `AmplifiedGuarantee`."""
    from hockeystick import correlated_noise  # noqa: PLC0415 - imports are paid for when needed
    from hockeystick.accounting.accountant import Accountant  # noqa: PLC0415

    how, tree = chosen.participation, chosen.strategy == "tree"
    given: dict[str, Any] = {name: getattr(chosen, name) for name in _names(how)}
    if not tree or how not in ("poisson", "balls-in-bins"):  # a matrix has its steps
        given["steps"] = chosen.steps
    if how not in FUNCTIONS:
        given["participation"] = how.replace("-", "_")
        sensitivity = correlated_noise.tree_sensitivity if tree else correlated_noise.matrix_sensitivity
        found = sensitivity(*() if tree else (_strategy(chosen),), **given)
        return Accountant().compose(found.mechanism(noise_multiplier))
    if how == "balls-in-bins":
        given["bins"] = given.pop("separation")
    made = getattr(correlated_noise, FUNCTIONS[how])(_strategy(chosen), noise_multiplier=noise_multiplier, **given)
    return Accountant().compose(*made) if how == "cyclic-poisson" else made


def _names(one: str) -> list[str]:
    """Return the options of a strategy or a participation."""
    return f"{NEEDS[one]} {MAY_HAVE.get(one, '')}".split()


def _strategy(chosen: argparse.Namespace) -> Any:
    """Return the coefficients, or the matrix."""
    from hockeystick import correlated_noise  # noqa: PLC0415

    if chosen.strategy == "buffers":
        return correlated_noise.buffered_coefficients(chosen.decays, chosen.scales, steps=chosen.steps)
    if chosen.strategy == "square-root":
        return correlated_noise.square_root_coefficients(chosen.bands or chosen.steps)
    return correlated_noise.tree_strategy(chosen.steps) if chosen.strategy == "tree" else chosen.coefficients

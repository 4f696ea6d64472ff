"""The command ``hockeystick plan``: feasible settings of a federated training."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from hockeystick._core import __version__
from hockeystick.cli import arguments

AddParser = Callable[..., argparse.ArgumentParser]

REQUIRED = (
    ("silos", "num_silos", arguments.count, "N", "silos, or users"),
    ("records", "num_records", arguments.count, "n", "records of each silo"),
    ("dimension", "dimension", arguments.count, "d", "parameters of the model"),
    (
        "lipschitz",
        "lipschitz",
        arguments.positive,
        "L",
        "Lipschitz constant of the loss, to which gradients are clipped",
    ),
    ("diameter", "diameter", arguments.positive, "D", "diameter of the ball of models"),
    ("smoothness", "smoothness", arguments.positive, "BETA", "Lipschitz constant of the gradient"),
    ("epsilon", "epsilon", arguments.positive, "E", "target, positive"),
    ("delta", "delta", arguments.probability, "DELTA", "target, in (0, 1)"),
    ("rounds", "max_rounds", arguments.count, "T", "largest number of rounds"),
)
OPTIONAL = (
    ("silos-per-round", "silos_per_round", arguments.count, "M", "silos in each round; all if not given"),
    ("batch-size", "max_batch_size", arguments.count, "K", "most records of a silo in a round; all if not given"),
)


def add_plan(add: AddParser) -> None:
    """Add ``plan``."""
    parser = add(
        "plan",
        help="noise, rounds, batch and participation of a federated training, from a budget",
        description="Feasible settings of a federated training, certified for a budget, by their bound on the excess risk.",
        epilog="The risk bounds assume convex, Lipschitz and smooth losses and independent records; the privacy does not, but under last-iterate.",
    )
    trust = ("central", "inter-silo", "shuffle", "last-iterate")
    parser.add_argument("--trust", choices=trust, required=True, help="whom the budget protects against")
    for options, required in ((REQUIRED, True), (OPTIONAL, False)):
        for name, target, kind, letter, text in options:
            parser.add_argument(
                f"--{name}", dest=target, type=kind, required=required, metavar=letter, help=text, default=None
            )
    parser.add_argument(
        "--strong-convexity", type=arguments.nonnegative, default=0.0, metavar="MU", help="0 if not given"
    )
    parser.add_argument(
        "--top", type=arguments.count, default=10, metavar="COUNT", help="settings to show; 10 if not given"
    )
    parser.add_argument(
        "--simulate",
        type=arguments.count,
        metavar="RUNS",
        help="add the mean loss of so many simulated trainings on synthetic logistic regression (central, inter-silo)",
    )
    parser.add_argument("--sweep", type=Path, metavar="FILE", help="write a sweep plan around the settings")
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.set_defaults(handler=_plan)


def _plan(chosen: argparse.Namespace) -> None:
    from hockeystick.utility import plan  # noqa: PLC0415 - imports are paid for by this command only

    names = [target for _, target, *_ in (*REQUIRED, *OPTIONAL)]
    found = plan(
        trust=chosen.trust,
        strong_convexity=chosen.strong_convexity,
        num_settings=chosen.top,
        **{name: getattr(chosen, name) for name in names},
    )
    if chosen.sweep is not None:
        chosen.sweep.write_text(found.sweep_toml(), encoding="utf-8")
    losses = None if chosen.simulate is None else found.simulated_loss(num_runs=chosen.simulate)
    if chosen.json:
        simulated = {} if losses is None else {"simulated_loss": losses.tolist()}
        sys.stdout.write(json.dumps(found.to_dict() | simulated | {"version": __version__}, allow_nan=False) + "\n")
        return
    sys.stdout.write(f"{found.table(losses)}\n")
    if chosen.sweep is not None:
        sys.stdout.write(f"sweep plan written to {chosen.sweep}\n")

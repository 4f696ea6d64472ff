"""The command ``hockeystick plan``: feasible settings of a federated training, or all algorithms and trust models side by side."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hockeystick._checks import setting_warnings
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


SECONDS = 2.0  # between two lines of progress


def add_plan(add: AddParser) -> None:
    """Add ``plan``."""
    parser = add(
        "plan",
        help="noise, rounds, batch and participation of a federated training, from a budget",
        description="Feasible settings of a federated training, certified for a budget, by their bound on the excess risk.",
        epilog="The risk bounds assume convex, Lipschitz and smooth losses and independent records; what the privacy assumes is printed.",
    )
    trust = ("central", "inter-silo", "shuffle", "last-iterate")
    parser.add_argument(
        "--trust",
        choices=trust,
        help="whom the budget protects against; without it the best setting of all algorithms under all trust models",
    )
    _add_problem(parser)
    parser.add_argument(
        "--top",
        type=arguments.count,
        metavar="COUNT",
        help="settings to find; 10 if not given, all algorithms without --trust; fewer take less time",
    )
    parser.add_argument(
        "--simulate",
        type=arguments.count,
        metavar="RUNS",
        help="add the mean loss of so many simulated trainings on synthetic logistic regression (central, inter-silo)",
    )
    parser.add_argument(
        "--sweep", type=Path, metavar="FILE", help="write a sweep plan around the settings of one --trust"
    )
    parser.add_argument(
        "--local-steps",
        type=arguments.count,
        metavar="STEPS",
        help="of FedAvg and FedProx, without --trust; 5 if not given",
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.set_defaults(handler=_plan)


def _add_problem(parser: argparse.ArgumentParser) -> None:
    """Add what is to be trained, for which budget."""
    for options, required in ((REQUIRED, True), (OPTIONAL, False)):
        for name, target, kind, letter, text in options:
            parser.add_argument(
                f"--{name}", dest=target, type=kind, required=required, metavar=letter, help=text, default=None
            )
    parser.add_argument(
        "--strong-convexity", type=arguments.nonnegative, default=0.0, metavar="MU", help="0 if not given"
    )


def _plan(chosen: argparse.Namespace) -> None:
    (_compare if chosen.trust is None else _one_trust)(chosen)


def _problem(chosen: argparse.Namespace) -> dict[str, Any]:
    names = [target for _, target, *_ in (*REQUIRED, *OPTIONAL)]
    return {name: getattr(chosen, name) for name in (*names, "strong_convexity")}


def _compare(chosen: argparse.Namespace) -> None:
    from hockeystick.utility import compare  # noqa: PLC0415 - imports are paid for by this command only

    for option in ("sweep", "simulate"):
        if getattr(chosen, option) is not None:
            msg = f"--{option} needs --trust, one of central, inter-silo, shuffle and last-iterate"
            raise ValueError(msg)
    steps = {} if chosen.local_steps is None else {"local_steps": chosen.local_steps}
    arguments.tell(chosen, setting_warnings.large_delta(chosen.delta, chosen.num_records * chosen.num_silos))
    found = compare(**_problem(chosen), num_rows=chosen.top, report=_reporter(), **steps)
    text = json.dumps(found.to_dict() | {"version": __version__}, allow_nan=False) if chosen.json else str(found)
    sys.stdout.write(f"{text}\n")


def _reporter() -> Callable[[int, int], None]:
    """Return a callback that writes to standard error how far the search is, where it takes long enough to be asked."""
    last = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS:
            last = time.monotonic()
            sys.stderr.write(f"hockeystick plan: {done} of {total} settings\n")

    return report


def _one_trust(chosen: argparse.Namespace) -> None:
    from hockeystick.utility import plan  # noqa: PLC0415
    from hockeystick.utility.planning import num_protected  # noqa: PLC0415

    if chosen.local_steps is not None:
        msg = f"--local-steps must not be given with --trust {chosen.trust}, whose algorithm has none"
        raise ValueError(msg)
    arguments.tell(
        chosen,
        setting_warnings.large_delta(chosen.delta, num_protected(chosen.trust, chosen.num_silos, chosen.num_records)),
    )
    found = plan(trust=chosen.trust, num_settings=chosen.top or 10, report=_reporter(), **_problem(chosen))
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

"""The command ``hockeystick plan``: feasible settings of a federated training, or all algorithms and trust models side by side."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from hockeystick._checks import setting_warnings
from hockeystick._core import __version__
from hockeystick.cli import arguments

SECONDS = 2.0  # between two lines of progress
# Of the options of a plan, those that are arguments of the same name.
SAME = (
    *("num_silos", "num_records", "silos_per_round", "dimension", "epsilon", "delta"),
    *("lipschitz", "diameter", "smoothness", "strong_convexity"),
)


def run(chosen: argparse.Namespace) -> None:
    """Write feasible settings under one trust model, or the best ones of all algorithms under all."""
    (_compare if chosen.trust is None else _one_trust)(chosen)


def _problem(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return what is to be trained, for which budget, by the names of the functions."""
    same = {name: getattr(chosen, name) for name in SAME}
    return same | {"max_rounds": chosen.rounds, "max_batch_size": chosen.batch_size}


def _compare(chosen: argparse.Namespace) -> None:
    from hockeystick.utility import compare  # noqa: PLC0415 - imports are paid for by this command only

    needed = "needs --trust, one of central, inter-silo, shuffle and last-iterate"
    arguments.refuse(chosen, ("sweep", "simulate"), needed)
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

    arguments.refuse(chosen, ["local_steps"], f"not allowed with --trust {chosen.trust}, whose algorithm has none")
    if chosen.trust == "last-iterate":
        arguments.refuse(chosen, ["batch_size"], "not allowed with --trust last-iterate, under which a user sends all")
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

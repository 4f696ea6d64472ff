"""The command ``hockeystick plot``: pictures of what a training leaks."""

from __future__ import annotations

import argparse
import sys

from hockeystick.cli import arguments, samplings

DELTA = 1e-5  # unless given


def run(chosen: argparse.Namespace) -> None:
    """Draw one picture."""
    from hockeystick import plot  # noqa: PLC0415 - matplotlib is asked for when needed

    samplings.settle(chosen)
    kinds = samplings.kinds(chosen)
    if chosen.kind != "epsilon":
        arguments.refuse(chosen, ("delta", "budget"), f"not allowed with {chosen.kind}, only with epsilon")
    elif "shuffled" in kinds:
        chosen.refuse(
            f"argument --sampling: {chosen.sampling} has no ε after a step, only after a pass; plot profile and trade-off have it"
        )
    accountants = {
        "all records" if each == "none" else f"{each} batches": samplings.accountant(chosen, each) for each in kinds
    }
    rate = "" if chosen.sampling_rate is None else f", sampling rate {chosen.sampling_rate:g}"
    known = "" if chosen.num_records is None else f", batches of {chosen.batch_size} of {chosen.num_records} records"
    title = f"noise multiplier {chosen.noise_multiplier:g}{known or rate}, {chosen.steps} steps"
    if chosen.kind == "epsilon":
        delta = DELTA if chosen.delta is None else chosen.delta
        figure = plot.epsilon_over_steps(accountants, delta=delta, budget=chosen.budget, title=title)
    elif chosen.kind == "profile":
        figure = plot.privacy_profile(accountants, title=title)
    else:
        figure = plot.trade_off(accountants, title=title)
    figure.savefig(chosen.out, dpi=plot.DOTS_PER_INCH)
    sys.stdout.write(f"{chosen.out}\n")

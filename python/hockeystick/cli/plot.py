"""The command ``hockeystick plot``: pictures of what a training leaks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hockeystick.cli import arguments, samplings
from hockeystick.cli.budget import AddParser
from hockeystick.training.dpsgd_setup import KNOWN

KINDS = {
    "epsilon": "ε after every step, at D",
    "profile": "δ over ε",
    "trade-off": "what no attack can beat: false negatives over false positives",
}


def add_plot(add: AddParser) -> None:
    """Add ``plot``."""
    parser = add(
        "plot",
        help="pictures of what a training leaks: ε over steps, δ over ε, attacks",
        description="Draws certified bounds of Gaussian noise or DP-SGD.",
    )
    parser.add_argument("kind", choices=tuple(KINDS), help="; ".join(f"{name}: {text}" for name, text in KINDS.items()))
    parser.add_argument("--noise-multiplier", type=arguments.positive, required=True, metavar="S", help="positive")
    parser.add_argument(
        "--sampling-rate", type=arguments.probability, metavar="Q", help="of Poisson samples; 1 if not given"
    )
    parser.add_argument("--steps", type=arguments.count, metavar="T", help="number of steps, a positive integer")
    parser.add_argument("--delta", type=arguments.probability, default=1e-5, metavar="D", help="1e-5 if not given")
    parser.add_argument("--budget", type=arguments.nonnegative, metavar="E", help="an ε at which a line is drawn")
    samplings.add_words(parser, "how batches are made; poisson if not given")
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path("hockeystick_plot.png"),
        metavar="FILE",
        help="the picture (.png, .svg, .pdf)",
    )
    parser.set_defaults(handler=_plot, refuse=parser.error)


def _plot(chosen: argparse.Namespace) -> None:
    from hockeystick import plot  # noqa: PLC0415 - matplotlib is asked for when needed

    samplings.settle(chosen)
    if chosen.steps is None:
        chosen.refuse("the following arguments are required: --steps, or --epochs with --records and --batch-size")
    kind = samplings.kind(chosen)
    if chosen.kind == "epsilon" and kind in ("shuffled", "unknown"):
        chosen.refuse(
            f"argument --sampling: {kind} has no ε after a step, only after a pass; plot profile and trade-off have it"
        )
    if kind == "unknown":
        kinds: tuple[str, ...] = KNOWN
    else:
        kinds = (kind,)
    accountants = {
        "all records" if each == "none" else f"{each} batches": samplings.accountant(chosen, each) for each in kinds
    }
    rate = "" if chosen.sampling_rate is None else f", sampling rate {chosen.sampling_rate:g}"
    known = "" if chosen.records is None else f", batches of {chosen.batch_size} of {chosen.records} records"
    title = f"noise multiplier {chosen.noise_multiplier:g}{known or rate}, {chosen.steps} steps"
    if chosen.kind == "epsilon":
        figure = plot.epsilon_over_steps(accountants, delta=chosen.delta, budget=chosen.budget, title=title)
    else:
        figure = (
            plot.privacy_profile(accountants, title=title)
            if chosen.kind == "profile"
            else plot.trade_off(accountants, title=title)
        )
    figure.savefig(chosen.out, dpi=plot.DOTS_PER_INCH)
    sys.stdout.write(f"{chosen.out}\n")

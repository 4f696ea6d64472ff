"""The command ``hockeystick statement``: a privacy statement of DP-SGD, to paste."""

from __future__ import annotations

import argparse
import sys

from hockeystick._statements import FORMATS
from hockeystick.cli import arguments
from hockeystick.cli.budget import AddParser
from hockeystick.training.batches import SAMPLINGS

EXAMPLE = """\
example:
  hockeystick statement --records 60000 --batch-size 256 --epochs 15 --noise-multiplier 1.1 --delta 1e-5 --sampling shuffled
"""


def add_statement(add: AddParser) -> None:
    """Add ``statement``."""
    parser = add(
        "statement",
        help="a privacy statement of DP-SGD, to paste into a model card, a paper or a registry",
        description="Writes what a training by DP-SGD promises, to whom, under which assumptions, what ε would be if batches were made in "
        "another way, and what is not covered.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, letter, text in (
        ("--records", "N", "number of records of the training data"),
        ("--batch-size", "B", "records in the batch of one optimiser step"),
    ):
        parser.add_argument(name, type=arguments.count, required=True, metavar=letter, help=text)
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--epochs", type=arguments.positive, metavar="E", help="passes over the data, positive")
    length.add_argument("--steps", type=arguments.count, metavar="T", help="optimiser steps, a positive integer")
    parser.add_argument(
        "--noise-multiplier",
        type=arguments.positive,
        required=True,
        metavar="S",
        help="noise on the sum of the clipped gradients over the clip norm, positive",
    )
    parser.add_argument(
        "--clip-norm", type=arguments.positive, metavar="C", help="to be named; ε does not depend on it"
    )
    parser.add_argument("--delta", type=arguments.probability, required=True, metavar="D", help="in (0, 1)")
    parser.add_argument(
        "--sampling",
        choices=SAMPLINGS,
        default="poisson",
        help="how batches are made; poisson if not given",
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="text if not given; json is a registry entry")
    parser.set_defaults(handler=_statement)


def _statement(chosen: argparse.Namespace) -> None:
    from hockeystick.training import privacy_statement  # noqa: PLC0415

    names = (
        "records",
        "batch_size",
        "epochs",
        "steps",
        "noise_multiplier",
        "clip_norm",
        "delta",
        "sampling",
        "format",
    )
    sys.stdout.write(privacy_statement(**{name: getattr(chosen, name) for name in names}) + "\n")

"""The command ``hockeystick statement``: a privacy statement of DP-SGD, to paste."""

from __future__ import annotations

import argparse
import sys

from hockeystick._checks import setting_warnings
from hockeystick._statements import FORMATS
from hockeystick.cli import arguments
from hockeystick.cli.budget import AddParser
from hockeystick.training.dpsgd_setup import SAMPLINGS

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
    _add_batches(parser)
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


def _add_batches(parser: argparse.ArgumentParser) -> None:
    """Add what is known of the batches, and how many there are."""
    parser.add_argument(
        "--records",
        "--dataset-size",
        type=arguments.count,
        required=True,
        metavar="N",
        help="number of records of the training data",
    )
    parser.add_argument(
        "--batch-size",
        type=arguments.count,
        metavar="B",
        help="records in the batch of one optimiser step; needed unless the sampling rate and the steps are given",
    )
    parser.add_argument(
        "--sampling-rate",
        type=arguments.probability,
        metavar="Q",
        help="probability of each record in a step's Poisson sample, in (0, 1]; B/N if not given; that of Opacus is 1/len(data_loader)",
    )
    parser.add_argument(
        "--drop-last",
        action="store_true",
        help="the data loader drops the last, smaller batch of a pass; the rate is one over the batches of a pass, as in Opacus",
    )
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--epochs", type=arguments.positive, metavar="E", help="passes over the data, positive")
    length.add_argument("--steps", type=arguments.count, metavar="T", help="optimiser steps, a positive integer")


def _statement(chosen: argparse.Namespace) -> None:
    from hockeystick.training import privacy_statement  # noqa: PLC0415

    arguments.tell(chosen, setting_warnings.large_delta(chosen.delta, chosen.records))
    names = (
        "records",
        "batch_size",
        "sampling_rate",
        "drop_last",
        "epochs",
        "steps",
        "noise_multiplier",
        "clip_norm",
        "delta",
        "sampling",
        "format",
    )
    sys.stdout.write(privacy_statement(**{name: getattr(chosen, name) for name in names}) + "\n")

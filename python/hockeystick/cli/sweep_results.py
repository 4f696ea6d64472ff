"""The commands ``hockeystick sweep best`` and ``merge``: tables that are there."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Mapping
from typing import Any

NO_CELL = 4  # the exit code where no cell satisfies the condition


def add_best(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``best``."""
    parser.description = (
        "Exit code 0, or 4 where no cell satisfies the condition, 1 for a failure, 2 for a wrong argument or table."
    )
    parser.add_argument("out", help="directory or URL of a sweep")
    parser.add_argument(
        "--where", metavar="CONDITION", help="such as 'epsilon <= 2 and 10 <= steps < 1000'; every cell if not given"
    )
    best = parser.add_mutually_exclusive_group(required=True)
    best.add_argument("--maximise", metavar="COLUMN", help="show the cell where this is largest")
    best.add_argument("--minimise", metavar="COLUMN", help="show the cell where this is smallest")
    parser.add_argument("--partial", action="store_true", help="take a table of which cells are missing")
    parser.set_defaults(handler=_best)


def add_merge(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``merge``."""
    parser.description = "Checks every part of the shares and copies it. The outcome is byte for byte that of one run."
    parser.add_argument("out", help="directory or URL of the whole table")
    parser.add_argument("shares", nargs="+", metavar="share", help="directories or URLs of `sweep run --shards i/n`")
    parser.set_defaults(handler=_merge)


def _best(chosen: argparse.Namespace) -> int:
    from hockeystick.sweep import open as open_sweep  # noqa: PLC0415 - imports are paid for by this command only

    table = open_sweep(chosen.out)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        row = table.best(chosen.where, maximise=chosen.maximise, minimise=chosen.minimise, partial=chosen.partial)
    sys.stderr.writelines(f"warning: {warning.message}\n" for warning in caught)
    if table.missing_cells:
        sys.stderr.write(f"warning: {table.missing_cells:,} of {table.num_cells:,} cells are missing\n")
    if row is None:
        sys.stderr.write(f"hockeystick sweep: no cell satisfies {chosen.where or 'that: all values are NaN'}\n")
        return NO_CELL
    sys.stdout.writelines(f"{line}\n" for line in _lines(row, table.plan))
    return 0


def _lines(row: Mapping[str, Any], source: Mapping[str, Any]) -> list[str]:
    """Return the row for a reader: inputs with all their digits, bounds rounded so that they stay bounds."""
    from hockeystick.sweep.plan import units  # noqa: PLC0415
    from hockeystick.sweep.plan.functions import printer, status  # noqa: PLC0415
    from hockeystick.sweep.plan.plan import parse  # noqa: PLC0415

    functions = {output.column: output.function.name for output in parse(source).outputs}
    lines = []
    for name, value in row.items():
        if name in functions:
            function = functions[name]
            unit = units.of_value(function)
            worth = ", ".join(text for text in (unit, status(function)) if text)
            lines.append(f"{name} = {printer(function)(value, '.6g')} ({worth})")
        elif value is not None:
            lines.append(f"{name} = {value}")
    return lines


def _merge(chosen: argparse.Namespace) -> None:
    from hockeystick.sweep import merge  # noqa: PLC0415
    from hockeystick.sweep import open as open_sweep  # noqa: PLC0415

    merge(chosen.shares, chosen.out)
    sys.stdout.write(f"{open_sweep(chosen.out)} of {len(chosen.shares)} directories\nwritten to {chosen.out}\n")

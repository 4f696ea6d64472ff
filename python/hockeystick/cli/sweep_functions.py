"""The commands ``hockeystick sweep functions``, ``describe`` and ``init``: what a plan may compute, and a plan to begin with."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

DEFAULT = "dpsgd_epsilon"
COSTS = {
    "cheap": ", mostly below a microsecond a cell",
    "costly": ", from tens of microseconds to tens of milliseconds a cell",
    "training": ", from milliseconds to minutes a cell; columns of one cell share its runs",
}


def add_functions(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``functions``."""
    parser.description = (
        "One line for each function: name, cost, what its values are worth, their unit, and what they are."
    )
    parser.set_defaults(handler=_functions)


def add_describe(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``describe``."""
    parser.add_argument("function", help="a name that `hockeystick sweep functions` lists")
    parser.set_defaults(handler=_describe)


def add_init(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``init``."""
    parser.description = "Writes a small plan that runs as it is, with a comment above every value."
    parser.add_argument(
        "file",
        type=Path,
        nargs="?",
        default=Path("plan.toml"),
        help="the file to write, a new one; plan.toml if not given",
    )
    parser.add_argument(
        "--function",
        action="append",
        metavar="FUNCTION",
        help=f"what the plan computes (repeatable); {DEFAULT} if not given",
    )
    parser.set_defaults(handler=_init)


def _functions(_chosen: argparse.Namespace) -> None:
    from hockeystick.sweep.plan import units  # noqa: PLC0415 - imports are paid for by this command only
    from hockeystick.sweep.plan.description import cost, summary  # noqa: PLC0415
    from hockeystick.sweep.plan.functions import REGISTERED, TRAININGS, status  # noqa: PLC0415

    rows = [
        (name, cost(name), status(name), units.of_value(name) or "-", summary(name))
        for name in sorted(REGISTERED | TRAININGS)
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=False))
        sys.stdout.write(f"{'  '.join(cells)}  {row[4]}\n")


def _describe(chosen: argparse.Namespace) -> None:
    from hockeystick.sweep.plan import units  # noqa: PLC0415
    from hockeystick.sweep.plan.description import arguments, cost, returns, summary  # noqa: PLC0415
    from hockeystick.sweep.plan.examples import example  # noqa: PLC0415
    from hockeystick.sweep.plan.functions import MEANING, status  # noqa: PLC0415

    name = chosen.function
    plan = example([name])  # refuses what is not registered
    unit = units.of_value(name)
    lines = [
        f"{name}: {summary(name)}",
        f"value{f' ({unit})' if unit else ''}: {returns(name)}",
        f"worth: {status(name)}, {MEANING[status(name)]}",
        f"cost: {cost(name)}" + (COSTS[cost(name)]),
        "",
        "arguments:",
    ]
    for argument in arguments(name):
        need = (
            ""
            if argument.required
            else f", {argument.default} if not given"
            if argument.default
            else ", may be left out"
        )
        lines.append(f"  {argument.name} ({argument.label}{need}): {argument.domain}")
    sys.stdout.write("\n".join([*lines, "", "a plan:", "", plan]))


def _init(chosen: argparse.Namespace) -> None:
    from hockeystick.sweep.plan.examples import example  # noqa: PLC0415

    text = example(list(dict.fromkeys(chosen.function or [DEFAULT])))
    try:
        with chosen.file.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        message = f"file must be a new one, not {chosen.file}: it is there, and would be replaced"
        raise ValueError(message) from None
    sys.stdout.write(f"written to {chosen.file}; run it: hockeystick sweep run {chosen.file} -o out\n")

"""The commands ``hockeystick sweep``: what a plan may compute, where it is computed, and tables that are there."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hockeystick.cli.arguments import count, port, shards

if TYPE_CHECKING:
    import distributed

FAILED_CELLS = 3  # the exit code where the table is there, and cells of it have an error
NO_CELL = 4  # the exit code where no cell satisfies the condition
DEFAULT = "dpsgd_epsilon"
LISTED = "One line for each function: name, cost, what its values are worth, their unit, and what they are."
COSTS = {
    "cheap": ", mostly below a microsecond a cell",
    "costly": ", from tens of microseconds to tens of milliseconds a cell",
    "training": ", from milliseconds to minutes a cell; columns of one cell share its runs",
}


def add_sweep(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add ``sweep`` and its commands."""
    sweeps = add("sweep", help="evaluate a plan of cells, and show what came out")
    actions = sweeps.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_run(actions.add_parser("run", help="evaluate a plan; started again, it resumes"))
    _add_plot(actions.add_parser("plot", help="draw heat maps with iso-lines"))
    _add_report(actions.add_parser("report", help="write one page of HTML with pictures, tables and the plan"))
    _add_best(actions.add_parser("best", help="show the best cell under a condition"))
    _add_merge(actions.add_parser("merge", help="make one table of the shares of a job array"))
    actions.add_parser("functions", help="list what a plan may compute", description=LISTED).set_defaults(
        handler=_functions
    )
    _add_describe(actions.add_parser("describe", help="show the arguments of a function and a plan for it"))
    _add_init(actions.add_parser("init", help="write a plan to begin with"))


def _add_run(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Exit code 0, or 3 where cells have an error, 1 for a failure, 2 for a wrong plan or argument."
    parser.add_argument("plan", type=Path, help="a TOML file")
    parser.add_argument("-o", "--out", required=True, help="directory or URL of the table; an earlier run is resumed")
    parser.add_argument(
        "--num-threads", type=count, metavar="N", help="threads of the computation; all cores if not given"
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first cell that has an error")
    parser.add_argument(
        "--shards", type=shards, metavar="I/N", help="compute share I of N, counted from 1, into a directory of its own"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress and no summary")
    places = parser.add_mutually_exclusive_group()
    places.add_argument("--scheduler", metavar="ADDRESS", help="compute on the Dask cluster at, say, tls://host:8786")
    places.add_argument(
        "--workers",
        type=count,
        metavar="N",
        help="compute in N processes, a Dask cluster that only this machine reaches",
    )
    parser.add_argument(
        "--dashboard", type=port, metavar="PORT", help="with --workers: Dask's page of the cluster, at 127.0.0.1:PORT"
    )
    tls = parser.add_argument_group("TLS of the cluster", "all three, each the path of a PEM file")
    for name, what in (("ca-file", "the authority"), ("cert", "this side's certificate"), ("key", "its private key")):
        tls.add_argument(f"--tls-{name}", type=_file, metavar="FILE", help=what)
    parser.set_defaults(handler=_run)


def _run(chosen: argparse.Namespace) -> int:
    from hockeystick.sweep import CellError, run  # noqa: PLC0415
    from hockeystick.sweep.running import bar, lines  # noqa: PLC0415

    with contextlib.ExitStack() as stack:
        client = stack.enter_context(_client(chosen))
        progress = None
        if not chosen.quiet:
            progress = stack.enter_context(bar() if sys.stderr.isatty() else lines())
        try:
            summary = run(
                chosen.plan,
                chosen.out,
                num_threads=chosen.num_threads,
                progress=progress,
                client=client,
                strict=chosen.strict,
                shards=chosen.shards,
            )
        except CellError as error:
            sys.stderr.write(f"hockeystick sweep: {error}\n")
            return FAILED_CELLS
    if chosen.quiet:
        sys.stderr.writelines(f"warning: {text}\n" for text in summary.warnings)
    else:
        sys.stdout.write(f"{summary}\nwritten to {chosen.out}\n")
    if not summary.errors:
        return 0
    sys.stderr.write(f"hockeystick sweep: {summary.errors:,} cells have an error; the first is {summary.first_error}\n")
    return FAILED_CELLS


def _client(chosen: argparse.Namespace) -> contextlib.AbstractContextManager[distributed.Client | None]:
    """Return the cluster that was asked for, or none."""
    tls = [chosen.tls_ca_file, chosen.tls_cert, chosen.tls_key]
    if any(tls) and not all(tls):
        message = "--tls-ca-file, --tls-cert and --tls-key must be given together"
        raise ValueError(message)
    if any(tls) and not (chosen.scheduler or chosen.workers):
        message = "--tls-ca-file must go with --scheduler or --workers"
        raise ValueError(message)
    if chosen.dashboard and not chosen.workers:
        message = "--dashboard must go with --workers; a cluster elsewhere has its own"
        raise ValueError(message)
    if not chosen.scheduler and not chosen.workers:
        return contextlib.nullcontext()
    from hockeystick.sweep import cluster  # noqa: PLC0415 - Dask is asked for when first needed

    for name in ("distributed", "distributed.client"):  # they have levels of their own
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what is lost for good is told in one line
    security = cluster.tls(*map(str, tls)) if any(tls) else None
    if chosen.scheduler:
        return cluster.connected(chosen.scheduler, security)
    chosen.num_threads = cluster.threads(chosen.num_threads, chosen.workers)
    return cluster.local(chosen.workers, security, chosen.dashboard)


def _file(text: str) -> Path:
    if not Path(text).is_file():
        message = f"must be a file, not {text}"
        raise argparse.ArgumentTypeError(message)
    return Path(text)


def _add_best(parser: argparse.ArgumentParser) -> None:
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


def _add_merge(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``merge``."""
    parser.description = "Checks every part of the shares and copies it. The outcome is byte for byte that of one run."
    parser.add_argument("out", help="directory or URL of the whole table")
    parser.add_argument("shares", nargs="+", metavar="share", help="directories or URLs of `sweep run --shards i/n`")
    parser.set_defaults(handler=_merge)


def _add_plot(parser: argparse.ArgumentParser) -> None:
    _add_view(parser, "directory of a sweep")
    parser.add_argument("--value", metavar="OUTPUT", help="the output to draw; all if not given")
    parser.add_argument("--budget", type=float, metavar="B", help="draw the border of the cells that are at most B")
    parser.add_argument("--format", choices=("png", "svg"), default="png")
    parser.add_argument(
        "-o", "--destination", type=Path, metavar="DIR", help="directory of the pictures; OUT/_views if not given"
    )
    parser.set_defaults(handler=_plot)


def _add_report(parser: argparse.ArgumentParser) -> None:
    _add_view(parser, "directory or URL of a sweep")
    parser.add_argument(
        "-o", "--destination", type=Path, metavar="FILE", help="the page to write; OUT/_views/report.html if not given"
    )
    parser.set_defaults(handler=_report)


def _add_view(parser: argparse.ArgumentParser, out: str) -> None:
    """Add what of a sweep is drawn."""
    parser.add_argument("out", help=out)
    parser.add_argument("--x", metavar="AXIS", help="argument on the horizontal axis; by default the longest")
    parser.add_argument("--y", metavar="AXIS", help="argument on the vertical axis; by default the next")
    parser.add_argument(
        "--slice",
        type=_assignment,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="hold an argument (repeatable)",
    )


def _plot(chosen: argparse.Namespace) -> None:
    from hockeystick.plot import plot_sweep  # noqa: PLC0415

    pictures = plot_sweep(
        chosen.out,
        x=chosen.x,
        y=chosen.y,
        value=chosen.value,
        slices=dict(chosen.slice),
        budget=chosen.budget,
        format=chosen.format,
        destination=chosen.destination,
    )
    sys.stdout.writelines(f"{picture}\n" for picture in pictures)


def _report(chosen: argparse.Namespace) -> None:
    from hockeystick.report import report_sweep  # noqa: PLC0415

    page = report_sweep(chosen.out, chosen.destination, x=chosen.x, y=chosen.y, slices=dict(chosen.slice))
    sys.stdout.write(f"{page}\n")


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        message = f"must be NAME=VALUE, not {text}"
        raise argparse.ArgumentTypeError(message)
    return name, value


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
    from hockeystick.sweep.functions import printer, status, unit_of_value  # noqa: PLC0415
    from hockeystick.sweep.plan import parse  # noqa: PLC0415

    functions = {output.column: output.function.name for output in parse(source).outputs}
    lines = []
    for name, value in row.items():
        if name in functions:
            function = functions[name]
            unit = unit_of_value(function)
            worth = ", ".join(text for text in (unit, status(function)) if text)
            lines.append(f"{name} = {printer(function)(value, '.6g')} ({worth})")
        elif value is not None:
            lines.append(f"{name} = {value}")
    return lines


def _merge(chosen: argparse.Namespace) -> None:
    from hockeystick.sweep import merge  # noqa: PLC0415
    from hockeystick.sweep import open as open_sweep  # noqa: PLC0415 - imports are paid for by this command only

    merge(chosen.shares, chosen.out)
    sys.stdout.write(f"{open_sweep(chosen.out)} of {len(chosen.shares)} directories\nwritten to {chosen.out}\n")


def _add_describe(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``describe``."""
    parser.add_argument("function", help="a name that `hockeystick sweep functions` lists")
    parser.set_defaults(handler=_describe)


def _add_init(parser: argparse.ArgumentParser) -> None:
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
    from hockeystick.sweep.function_help import cost, summary  # noqa: PLC0415
    from hockeystick.sweep.functions import REGISTERED, TRAININGS, status, unit_of_value  # noqa: PLC0415

    rows = [
        (name, cost(name), status(name), unit_of_value(name) or "-", summary(name))
        for name in sorted(REGISTERED | TRAININGS)
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=False))
        sys.stdout.write(f"{'  '.join(cells)}  {row[4]}\n")


def _describe(chosen: argparse.Namespace) -> None:
    from hockeystick.sweep.function_help import arguments, cost, example, returns, summary  # noqa: PLC0415
    from hockeystick.sweep.functions import MEANING, status, unit_of_value  # noqa: PLC0415

    name = chosen.function
    plan = example([name])  # refuses what is not registered
    unit = unit_of_value(name)
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
    from hockeystick.sweep.function_help import example  # noqa: PLC0415

    text = example(list(dict.fromkeys(chosen.function or [DEFAULT])))
    try:
        with chosen.file.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        message = f"file must be a new one, not {chosen.file}: it is there, and would be replaced"
        raise ValueError(message) from None
    sys.stdout.write(f"written to {chosen.file}; run it: hockeystick sweep run {chosen.file} -o out\n")

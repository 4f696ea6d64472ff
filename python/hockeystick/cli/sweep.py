"""The commands ``hockeystick sweep``: what a plan may compute, where it is computed, and tables that are there."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hockeystick.cli import arguments

if TYPE_CHECKING:
    import distributed

FAILED_CELLS = 3  # the exit code where the table is there, and cells of it have an error
NO_CELL = 4  # the exit code where no cell satisfies the condition
TLS = ("tls_ca_file", "tls_cert", "tls_key")
DEFAULT = "dpsgd_epsilon"
COSTS = {
    "cheap": ", mostly below a microsecond a cell",
    "costly": ", from tens of microseconds to tens of milliseconds a cell",
    "training": ", from milliseconds to minutes a cell; columns of one cell share its runs",
}


def run(chosen: argparse.Namespace) -> int:
    """Evaluate a plan."""
    from hockeystick.sweep import CellError  # noqa: PLC0415
    from hockeystick.sweep import run as run_sweep  # noqa: PLC0415
    from hockeystick.sweep.running import bar, lines  # noqa: PLC0415

    with contextlib.ExitStack() as stack:
        client = stack.enter_context(_client(chosen))
        progress = None
        if not chosen.quiet:
            progress = stack.enter_context(bar()) if sys.stderr.isatty() else lines()
        try:
            summary = run_sweep(
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
    tls = [getattr(chosen, name) for name in TLS]
    if not all(tls):
        arguments.refuse(chosen, TLS, "--tls-ca-file, --tls-cert and --tls-key must be given together")
    if not (chosen.scheduler or chosen.workers):
        arguments.refuse(chosen, TLS, "must go with --scheduler or --workers")
    if not chosen.workers:
        arguments.refuse(chosen, ["dashboard"], "must go with --workers; a cluster elsewhere has its own")
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


def plot(chosen: argparse.Namespace) -> None:
    """Draw heat maps."""
    from hockeystick.plot import plot_sweep  # noqa: PLC0415

    pictures = plot_sweep(
        chosen.out,
        x=chosen.x,
        y=chosen.y,
        value=chosen.value,
        slices=dict(chosen.slice or ()),
        budget=chosen.budget,
        format=chosen.format,
        destination=chosen.destination,
    )
    sys.stdout.writelines(f"{picture}\n" for picture in pictures)


def report(chosen: argparse.Namespace) -> None:
    """Write one page of HTML."""
    from hockeystick.report import report_sweep  # noqa: PLC0415

    page = report_sweep(chosen.out, chosen.destination, x=chosen.x, y=chosen.y, slices=dict(chosen.slice or ()))
    sys.stdout.write(f"{page}\n")


def best(chosen: argparse.Namespace) -> int:
    """Write the best row."""
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
    from hockeystick.sweep.functions import registered  # noqa: PLC0415
    from hockeystick.sweep.plan import parse  # noqa: PLC0415

    functions = {output.column: output.function.name for output in parse(source).outputs}
    lines = []
    for name, value in row.items():
        if name in functions:
            known = registered(functions[name])
            worth = ", ".join(filter(None, (known.unit, known.worth)))
            lines.append(f"{name} = {known.printer(value, '.6g')} ({worth})")
        elif value is not None:
            lines.append(f"{name} = {value}")
    return lines


def merge(chosen: argparse.Namespace) -> None:
    """Make one table of shares."""
    from hockeystick.sweep import merge as merge_shares  # noqa: PLC0415 - imports are paid for by this command only
    from hockeystick.sweep import open as open_sweep  # noqa: PLC0415

    merge_shares(chosen.shares, chosen.out)
    sys.stdout.write(f"{open_sweep(chosen.out)} of {len(chosen.shares)} directories\nwritten to {chosen.out}\n")


def functions(_chosen: argparse.Namespace) -> None:
    """Write a line for each function."""
    from hockeystick.sweep.functions import REGISTERED, TRAININGS, summary  # noqa: PLC0415

    known = sorted((REGISTERED | TRAININGS).items())
    arguments.write_rows([(name, row.cost, row.worth, row.unit or "-", summary(name)) for name, row in known])


def describe(chosen: argparse.Namespace) -> None:
    """Write what a function takes and returns, and a plan for it."""
    from hockeystick.sweep import functions as table  # noqa: PLC0415

    name = chosen.function
    plan = table.example([name])  # refuses what is not registered
    known = table.registered(name)
    lines = [
        f"{name}: {table.summary(name)}",
        f"value{f' ({known.unit})' if known.unit else ''}: {table.returns(name)}",
        f"worth: {known.worth}, {table.MEANING[known.worth]}",
        f"cost: {known.cost}{COSTS[known.cost]}",
        "",
        "arguments:",
    ]
    for argument in table.arguments(name):
        left_out = f", {argument.default} if not given" if argument.default else ", may be left out"
        need = "" if argument.required else left_out
        lines.append(f"  {argument.name} ({argument.label}{need}): {argument.domain}")
    sys.stdout.write("\n".join([*lines, "", "a plan:", "", plan]))


def init(chosen: argparse.Namespace) -> None:
    """Write a plan to begin with."""
    from hockeystick.sweep.functions import example  # noqa: PLC0415

    text = example(list(dict.fromkeys(chosen.function or [DEFAULT])))
    try:
        with chosen.file.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ValueError(f"file must be a new one, not {chosen.file}: it is there, and would be replaced") from None
    sys.stdout.write(f"written to {chosen.file}; run it: hockeystick sweep run {chosen.file} -o out\n")

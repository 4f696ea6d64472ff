"""The command ``hockeystick sweep run``: a plan, where it is computed, and how the outcome is told."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hockeystick.cli.arguments import count, port, shards

if TYPE_CHECKING:
    import distributed

FAILED_CELLS = 3  # the exit code where the table is there, and cells of it have an error


def add_run(parser: argparse.ArgumentParser) -> None:
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
    from hockeystick.sweep.running.progress import bar, lines  # noqa: PLC0415

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
    from hockeystick.sweep.running import cluster, worker  # noqa: PLC0415 - Dask is asked for when first needed

    for name in ("distributed", "distributed.client"):  # they have levels of their own
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what is lost for good is told in one line
    security = cluster.tls(*map(str, tls)) if any(tls) else None
    if chosen.scheduler:
        return cluster.connected(chosen.scheduler, security)
    chosen.num_threads = worker.threads(chosen.num_threads, chosen.workers)
    return cluster.local(chosen.workers, security, chosen.dashboard)


def _file(text: str) -> Path:
    if not Path(text).is_file():
        message = f"must be a file, not {text}"
        raise argparse.ArgumentTypeError(message)
    return Path(text)

"""The command ``hockeystick figures``: the figures and tables of the papers, as data and pictures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from hockeystick.cli import arguments

AddParser = Callable[..., argparse.ArgumentParser]


def add_figures(add: AddParser) -> None:
    """Add ``figures``."""
    parser = add(
        "figures",
        help="the figures and tables of the papers, as data (CSV) and pictures",
        description="Lists the figures and tables of the papers, or computes some: data as CSV, pictures as PNG and SVG.",
        epilog="Runs are seeded: the same command writes the same data.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="as listed, such as 002/2; or all")
    parser.add_argument("-o", "--out", type=Path, default=Path(), metavar="DIR", help="this folder if not given")
    parser.add_argument("--runs", type=arguments.count, metavar="COUNT", help="repetitions of experiments")
    parser.set_defaults(handler=_figures)


def _figures(chosen: argparse.Namespace) -> None:
    from hockeystick.figures import catalogue, find, write  # noqa: PLC0415 - imports are paid for by this command only

    if not chosen.names:
        _list()
        return
    try:
        chosen.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"--out must be a folder, or one that can be made, not {chosen.out}: {error.strerror}"
        raise ValueError(msg) from None
    entries = catalogue() if "all" in chosen.names else [find(name) for name in chosen.names]
    missing: ImportError | None = None
    for entry in entries:
        sys.stderr.write(f"{entry.name}: {entry.shows}, about {entry.seconds} s\n")
        try:
            files = write(entry, chosen.out, runs=chosen.runs)
        except ImportError as error:  # the others may need less: an extra that draws, trains, or has data
            missing = error
            continue
        sys.stdout.writelines(f"{file}\n" for file in files)
    if missing is not None:
        raise missing


def _list() -> None:
    from hockeystick.figures import catalogue  # noqa: PLC0415

    rows = [
        (entry.name, f"{entry.seconds:4} s", entry.paper, entry.shows + (f" ({entry.data})" if entry.data else ""))
        for entry in catalogue()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=False))
        sys.stdout.write(f"{'  '.join(cells)}  {row[3]}\n")

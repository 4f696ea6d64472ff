"""The command ``hockeystick figures``: the figures and tables of the papers, as data and pictures."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hockeystick.cli import arguments


def run(chosen: argparse.Namespace) -> None:
    """List the figures, or compute some."""
    from hockeystick.figures import catalogue, find, write  # noqa: PLC0415 - imports are paid for by this command only

    if chosen.names in ([], ["list"]):
        arguments.refuse(chosen, ("out", "runs"), "not allowed without names, which say what is computed")
        _list()
        return
    entries = catalogue() if "all" in chosen.names else [find(name) for name in chosen.names]
    if not any(entry.data for entry in entries):
        arguments.refuse(chosen, ["runs"], "not allowed, since none of these is an experiment")
    folder = chosen.out or Path()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        chosen.refuse(f"argument --out: must be a folder, or one that can be made, not {folder}: {error.strerror}")
    missing: ImportError | None = None
    for entry in entries:
        sys.stderr.write(f"{entry.name}: {entry.shows}, about {entry.seconds} s\n")
        try:
            files = write(entry, folder, runs=chosen.runs)
        except ImportError as error:  # the others may need less: an extra that draws, trains, or has data
            missing = error
            continue
        sys.stdout.writelines(f"{file}\n" for file in files)
    if missing is not None:
        raise missing


def _list() -> None:
    from hockeystick.figures import catalogue  # noqa: PLC0415

    rows = [
        (
            entry.name,
            f"{entry.seconds:4} s",
            entry.paper,
            entry.shows + (f" ({entry.data}; needs the extra data)" if entry.data else ""),
        )
        for entry in catalogue()
    ]
    arguments.write_rows(rows)

"""The command ``hockeystick completion``: commands and options at the tab key."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial

SHELLS = ("bash", "zsh", "tcsh")
MISSING = 'hockeystick completion needs shtab: pip install ".[completion]" in a clone'


def add_completion(add: Callable[..., argparse.ArgumentParser], whole: argparse.ArgumentParser) -> None:
    """Add ``completion``."""
    parser = add(
        "completion",
        help="a script that completes commands and options in a shell",
        description="Writes a script to source, or to put where the shell looks for completions.",
    )
    parser.add_argument("shell", choices=SHELLS, help="whose script to write")
    parser.set_defaults(handler=partial(_completion, whole))


def _completion(whole: argparse.ArgumentParser, chosen: argparse.Namespace) -> None:
    try:
        import shtab  # noqa: PLC0415 - needed by this command only
    except ImportError as error:
        raise ImportError(MISSING) from error
    sys.stdout.write(shtab.complete(whole, shell=chosen.shell) + "\n")

"""The command ``hockeystick``: single numbers of Gaussian noise and of DP-SGD, plans, sweeps, and a demo."""

from __future__ import annotations

import argparse
import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from hockeystick.cli import commands

INTERRUPTED = {signal.SIGINT: 130, signal.SIGTERM: 143}  # 128 + signal, as shells report it


class Terminated(BaseException):
    """The request of SIGTERM to end, which must pass through every `except Exception` as Ctrl-C does."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line without the program's name; that of the process if not given.

    Returns
    -------
    int
        0, or 1 for a failure, 2 for a wrong argument, 3 where cells of a sweep have an error, 4 where none satisfies a condition or nothing meets a budget,
        130 and 143 after SIGINT and SIGTERM.

    Examples
    --------
    >>> from hockeystick.cli import main
    >>> main(["delta", "--noise-multiplier", "2", "--steps", "4", "--epsilon", "1"])
    delta = 0.12693674 at epsilon = 1 for 4 Gaussian releases with noise multiplier 2: a certified upper bound; one record is added or removed
    0
    """
    chosen = commands.parser().parse_args(arguments)
    handler: Callable[[argparse.Namespace], int | None] = chosen.handler
    with _logging():
        try:
            with _sigterm():
                return handler(chosen) or 0
        except (KeyboardInterrupt, Terminated) as request:
            return _interrupted(chosen, signal.SIGTERM if isinstance(request, Terminated) else signal.SIGINT)
        except (ValueError, ImportError, OSError) as error:
            sys.stderr.write(f"hockeystick {chosen.command}: {error}\n")
            return 2 if isinstance(error, ValueError) else 1


def _interrupted(chosen: argparse.Namespace, by: signal.Signals) -> int:
    resumes = getattr(chosen, "action", "") in ("run", "merge") or getattr(chosen, "checkpoint", None) is not None
    hint = "; resume with the same command" if resumes else ""
    sys.stderr.write(f"\nhockeystick {chosen.command}: interrupted{hint}\n")
    return INTERRUPTED[by]


@contextlib.contextmanager
def _sigterm() -> Iterator[None]:
    """Make SIGTERM an exception, as Ctrl-C is one. Only the main thread may; elsewhere signals are the caller's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(_signal: int, _frame: object) -> NoReturn:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _logging() -> Iterator[None]:
    logger = logging.getLogger("hockeystick")
    handler = logging.StreamHandler(sys.stderr)
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)

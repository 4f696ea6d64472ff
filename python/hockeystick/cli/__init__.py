"""The command ``hockeystick``: single numbers of Gaussian noise and of DP-SGD, plans, sweeps, and a demo."""

from __future__ import annotations

import argparse
import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from hockeystick._core import __version__
from hockeystick.cli import arguments, budget, completion, examples, figures, plan, plot, simulate, statement, sweep

INTERRUPTED = {signal.SIGINT: 130, signal.SIGTERM: 143}  # 128 + signal, as shells report it


class Terminated(BaseException):
    """The request of SIGTERM to end, which must pass through every `except Exception` as Ctrl-C does."""


class _Parser(argparse.ArgumentParser):
    """Argparse, but with errors of one line, and without abbreviated options, which a later option would break."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False} | settings)

    def error(self, message: str) -> NoReturn:
        """Write the message and end with the exit code for wrong usage."""
        hint = f"; see {self.prog} --help" if "are required" in message else ""
        self.exit(2, f"{self.prog}: {message}{hint}\n")


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
    chosen = _parser().parse_args(arguments)
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


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="hockeystick", description="A compiled privacy accountant.")
    parser.add_argument("--version", action="version", version=f"hockeystick {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    budget.add_query(commands.add_parser, "epsilon")
    budget.add_query(commands.add_parser, "delta")
    budget.add_calibrate(commands.add_parser)
    statement.add_statement(commands.add_parser)
    plot.add_plot(commands.add_parser)
    plan.add_plan(commands.add_parser)
    figures.add_figures(commands.add_parser)
    simulate.add_simulate(commands.add_parser)
    _add_demo(commands.add_parser("demo", help="a table and a picture that show what this is for, in seconds"))
    sweep.add_sweep(commands.add_parser)
    completion.add_completion(commands.add_parser, parser)
    examples.add_examples(parser)
    return parser


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.description = "Compares what is published, certified and exact, times a million cells, and draws all of it."
    parser.add_argument(
        "-o",
        "--out",
        type=arguments.picture,
        default=Path("hockeystick_demo.png"),
        metavar="FILE",
        help="the picture (.png, .svg, .pdf); hockeystick_demo.png if not given",
    )
    parser.set_defaults(handler=_demo)


def _demo(chosen: argparse.Namespace) -> None:
    from hockeystick.cli.demo import run  # noqa: PLC0415

    run(chosen.out)


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

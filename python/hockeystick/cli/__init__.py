"""The command ``hockeystick``: ``COMMANDS`` says what each command is for, ``options.csv`` what it is given.

A row of the table is an option, or an argument by its place where no dash begins it. Its kind is a key of `KINDS`; without one it is
the domain of the argument of that name (`_checks.arguments`). Its letter stands for the value in the help. Of the commands that have
it, `!` marks those that require it; a default stands behind `=`.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import itertools
import logging
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from hockeystick._checks.arguments import table
from hockeystick._checks.hints import meant, needs
from hockeystick._core import __version__
from hockeystick._statements import FORMATS
from hockeystick.cli import arguments, budget, correlated, figures, papers, plan, plot, simulate, sweep
from hockeystick.training.dpsgd_setup import SAMPLINGS

KINDS: dict[str, dict[str, Any]] = {
    "text": {},
    "flag": {"action": "store_true"},
    "integer": {"type": int},
    "real": {"type": float},
    "path": {"type": Path},
    **{word: {"type": getattr(arguments, word)} for word in ("positive", "nonnegative", "probability")},
    **{
        word: {"type": getattr(arguments, word)}
        for word in ("count", "count_or_zero", "port", "file", "picture", "shards")
    },
    "assignment": {"type": arguments.assignment, "action": "append"},
    "repeated": {"action": "append"},
    "several": {"nargs": "+"},
    "numbers": {"nargs": "+", "type": arguments.real},
    "any number": {"nargs": "*"},
    "word": {"nargs": "?"},
    "new file": {"type": Path, "nargs": "?"},
    "target": {"choices": [name.replace("_", "-") for name in (*budget.TARGETS, *budget.FEDERATED_TARGETS)]},
    "sampling": {"choices": SAMPLINGS},
    "strategy": {"choices": tuple(correlated.STRATEGIES)},
    "participation": {"choices": tuple(correlated.PARTICIPATIONS)},
    "trust": {"choices": ("central", "inter-silo", "shuffle", "last-iterate")},
    "picture of a training": {"choices": ("epsilon", "profile", "trade-off")},
    "format of a picture": {"choices": ("png", "svg")},
    "format of a statement": {"choices": FORMATS},
    "shell": {"choices": ("bash", "zsh", "tcsh")},
}
FEDERATED = (
    "with one of the targets noise-std, rounds and local-steps: clients clip each local gradient to C and add noise to the model that "
    "they upload; steps of constant size, only the last model is seen, one record of one client is replaced. Nothing need be convex."
)
CLIENTS = (
    "in place of records: clients are drawn by --sampling poisson or fixed, each sends an update that is clipped as a whole, and the sum gets "
    "noise of S times that norm. One client with all its records is protected against who sees all models; the server is trusted."
)
CORRELATED = "with T: C x + z is released, or what is computed from it, with a strategy matrix C and noise z of S clip norms; the place of a record that is taken out stays empty."
GROUPS = {
    "training": ("the training in your words", None),
    "clients": ("federated training, whole clients", CLIENTS),
    "correlated": ("correlated noise, matrix mechanisms", CORRELATED),
    "federated": ("federated averaging", FEDERATED),
    "tls": ("TLS of the cluster", "all three, each the path of a PEM file"),
}
ONE_OF = {"one place": False, "one column": True}  # options that exclude each other, and whether one is required
JSON_NOTE = "JSON has no infinity: an infinite number is null there."
NO_CHECKER = "hockeystick-check must be installed: pip install ./checker in a clone"


class Command(NamedTuple):
    """What is said of a command, and what it does; without that, others stand below it."""

    help: str
    examples: tuple[str, ...] = ()
    run: Callable[[argparse.Namespace], int | None] | None = None
    description: str | None = None
    epilog: str = ""


def _demo(chosen: argparse.Namespace) -> None:
    from hockeystick.cli.demo import run  # noqa: PLC0415 - a third of the package

    run(chosen.out)


def _completion(chosen: argparse.Namespace) -> None:
    with needs("completion", "hockeystick completion needs shtab"):
        import shtab  # noqa: PLC0415 - needed by this command only
    sys.stdout.write(shtab.complete(parser(), shell=chosen.shell) + "\n")


def _check(chosen: argparse.Namespace) -> int:
    try:
        from hockeystick_check import main as prove  # noqa: PLC0415 - a package of its own
    except ImportError as error:
        raise ImportError(NO_CHECKER) from error
    limit = [] if chosen.limit is None else ["--limit", chosen.limit]
    return int(prove([*limit, "--", str(chosen.file)]))


def _query(asked: str, examples: tuple[str, ...]) -> Command:
    return Command(
        f"{asked} of Gaussian noise or DP-SGD after several steps",
        examples,
        budget.query,
        f"A certified upper bound on the {asked} of Gaussian noise of multiplier S composed T times, on Poisson samples "
        "of rate Q or B/N if these are given; one record is added or removed. Shuffled batches and batches of fixed size: --sampling.",
        JSON_NOTE,
    )


COMMANDS = {
    "epsilon": _query(
        "epsilon",
        (
            "epsilon --num-records 60000 --batch-size 256 --epochs 15 --noise-multiplier 1.1 --delta 1e-5",
            "epsilon --num-records 60000 --batch-size 256 --epochs 15 --noise-multiplier 1.1 --delta 1e-5 --sampling unknown",
            "epsilon --noise-multiplier 1 --sampling-rate 256/60000 --steps 1e4 --delta 1e-5",
            "epsilon --strategy square-root --bands 8 --participation balls-in-bins --separation 200 --steps 2000 --noise-multiplier 8 --delta 1e-6",
        ),
    ),
    "delta": _query(
        "delta",
        (
            "delta --num-records 60000 --batch-size 256 --epochs 15 --noise-multiplier 1.1 --epsilon 1",
            "delta --noise-multiplier 2 --steps 4 --epsilon 1",
        ),
    ),
    "calibrate": Command(
        "noise, steps, sampling rate, rounds or local steps that a budget allows",
        (
            "calibrate --num-records 60000 --batch-size 256 --epochs 15 --epsilon 1 --delta 1e-5",
            "calibrate --target steps --num-records 60000 --batch-size 256 --noise-multiplier 1.1 --epsilon 2 --delta 1e-5",
            "calibrate --strategy tree --participation cyclic --separation 100 --steps 1000 --epsilon 2 --delta 1e-6",
            "calibrate --num-clients 100000 --clients-per-round 1000 --rounds 500 --epsilon 2 --delta 1e-6",
            "calibrate --target rounds --num-clients 1000 --local-steps 5 --clip-norm 1 --learning-rate 0.1 --noise-std 1 --epsilon 2 --delta 1e-5",
        ),
        budget.calibrate,
        "The least noise multiplier, or the most steps, or the largest sampling rate of Gaussian noise or "
        "DP-SGD whose certified epsilon at D is at most E; one record is added or removed. Or the least noise, the most rounds, or "
        "the most local steps of federated averaging. Exit code 4, with the reason, where nothing meets the budget.",
        "All but the target must be given; the sampling rate is 1 if neither Q nor N and B are. " + JSON_NOTE,
    ),
    "statement": Command(
        "a privacy statement of DP-SGD, to paste into a model card, a paper or a registry",
        (
            "statement --num-records 60000 --batch-size 256 --epochs 15 --noise-multiplier 1.1 --delta 1e-5 --sampling shuffled",
        ),
        budget.statement,
        "Writes what a training by DP-SGD promises, to whom, under which assumptions, what ε would be if batches were made in "
        "another way, and what is not covered.",
    ),
    "check": Command(
        "prove the claim of a certificate, by a program that shares no code with this one",
        ("check training.json",),
        _check,
        "Calls hockeystick-check. Exit code 0 if the claim is proved, 1 if it is not, or if there is no hockeystick-check, 2 if the file is no certificate.",
    ),
    "plot": Command(
        "pictures of what a training leaks: ε over steps, δ over ε, attacks",
        (
            "plot epsilon --num-records 60000 --batch-size 256 --epochs 15 --noise-multiplier 1.1 --delta 1e-5 --budget 2 -o epsilon.png",
            "plot trade-off --noise-multiplier 1 --sampling-rate 0.01 --steps 1000 -o attacks.svg",
        ),
        plot.run,
        "Draws certified bounds of Gaussian noise or DP-SGD.",
    ),
    "plan": Command(
        "noise, rounds, batch and participation of a federated training, from a budget",
        (
            "plan --num-silos 25 --num-records 99 --dimension 50 --lipschitz 1 --diameter 2 --smoothness 1 --epsilon 2 --delta 1e-6 --rounds 500",
        ),
        plan.run,
        "Feasible settings of a federated training, certified for a budget, by their bound on the excess risk.",
        "The risk bounds assume convex, Lipschitz and smooth losses and independent records; what the privacy assumes is printed.",
    ),
    "figures": Command(
        "the figures and tables of the papers, as data (CSV) and pictures",
        ("figures 002/2 -o figures",),
        figures.run,
        "Lists the figures and tables of the papers, or computes some: data as CSV, pictures as PNG and SVG.",
        "Runs are seeded: the same command writes the same data.",
    ),
    "papers": Command(
        "what five papers state, statement by statement: verdicts, and numbers at your settings",
        ("papers 003", 'papers 003 "Theorem F.1" --set epsilon=2'),
        papers.run,
        "Lists the papers, or the statements of one; or writes a statement's verdict, what its formula gives, what is certified, and a "
        "counterexample to what is false.",
        "A number whose status is published but unsound is no guarantee.",
    ),
    "simulate": Command(
        "run a plan of one training, and say what it reaches and what is certified",
        ("simulate examples/training/digits.toml -o rounds.parquet",),
        simulate.run,
        "Runs the training whose settings are the table [fixed] of a TOML file, as in a sweep's plan.",
        "Runs are seeded: the same command gives the same numbers.",
    ),
    "demo": Command(
        "a table and a picture that show what this is for, in seconds",
        ("demo -o demo.svg",),
        _demo,
        "Compares what is published, certified and exact, times a million cells, and draws all of it.",
    ),
    "sweep": Command("evaluate a plan of cells, and show what came out"),
    "sweep run": Command(
        "evaluate a plan; started again, it resumes",
        ("sweep run examples/dpsgd_grid.toml -o out",),
        sweep.run,
        "Exit code 0, or 3 where cells have an error, 1 for a failure, 2 for a wrong plan or argument.",
    ),
    "sweep plot": Command(
        "draw heat maps with iso-lines", ("sweep plot out --x steps --y noise_multiplier",), sweep.plot
    ),
    "sweep report": Command(
        "write one page of HTML with pictures, tables and the plan", ("sweep report out -o report.html",), sweep.report
    ),
    "sweep best": Command(
        "show the best cell under a condition",
        ("sweep best out --where 'epsilon <= 2' --maximise steps",),
        sweep.best,
        "Exit code 0, or 4 where no cell satisfies the condition, 1 for a failure, 2 for a wrong argument or table.",
    ),
    "sweep merge": Command(
        "make one table of the shares of a job array",
        ("sweep merge out share_1 share_2",),
        sweep.merge,
        "Checks every part of the shares and copies it. The outcome is byte for byte that of one run.",
    ),
    "sweep functions": Command(
        "list what a plan may compute",
        ("sweep functions",),
        sweep.functions,
        "One line for each function: name, cost, what its values are worth, their unit, and what they are.",
    ),
    "sweep describe": Command(
        "show the arguments of a function and a plan for it", ("sweep describe dpsgd_epsilon",), sweep.describe
    ),
    "sweep init": Command(
        "write a plan to begin with",
        ("sweep init plan.toml --function dpsgd_epsilon",),
        sweep.init,
        "Writes a small plan that runs as it is, with a comment above every value.",
    ),
    "completion": Command(
        "a script that completes commands and options in a shell",
        ("completion bash > ~/.local/share/bash-completion/completions/hockeystick",),
        _completion,
        "Writes a script to source, or to put where the shell looks for completions.",
    ),
}


class Parser(argparse.ArgumentParser):
    """Argparse, but with errors of one line, and without abbreviated options, which a later option would break."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=Help, **settings)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse an option that the command does not have and say which one was meant, before argparse says which others are required."""
        options = {name.lstrip("-").replace("-", "_"): name for name in self._option_string_actions}
        words = [] if self._subparsers else itertools.takewhile(lambda word: word != "--", args or ())
        for word in (word.partition("=")[0] for word in words if word.startswith("--")):
            if word not in self._option_string_actions:
                found = meant(word[2:].replace("-", "_"), options)
                self.error(f"no option {word}" + (f"; did you mean {options[found]}?" if found else ""))
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Write the message and end with the exit code for wrong usage."""
        hint = f"; see {self.prog} --help" if "are required" in message else ""
        self.exit(2, f"{self.prog}: {message}{hint}\n")


class Help(argparse.HelpFormatter):
    """Argparse's help, in which a line that begins with two blanks stays as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        filled = super()._fill_text
        return "\n".join(
            indent + line if line.startswith("  ") else filled(line, width, indent) for line in text.splitlines()
        )


def parser() -> Parser:
    """Return the parser of the whole command line."""
    whole = Parser(prog="hockeystick", description="A compiled privacy accountant.")
    whole.add_argument("--version", action="version", version=f"hockeystick {__version__}")
    below = {"": whole.add_subparsers(dest="command", required=True, metavar="command")}
    with Path(__file__).with_name("options.csv").open(encoding="utf-8", newline="") as table:
        options = [*csv.reader(table)][1:]
    for name, command in COMMANDS.items():
        above, _, word = name.rpartition(" ")
        examples = [f"example{'s' * (len(command.examples) > 1)}:", *(f"  hockeystick {e}" for e in command.examples)]
        epilog = "\n".join(filter(None, [command.epilog, *examples])) if command.examples else None
        one = below[above].add_parser(word, help=command.help, description=command.description, epilog=epilog)
        if command.run is None:
            below[name] = one.add_subparsers(dest="action", required=True, metavar="ACTION")
        else:
            one.set_defaults(handler=command.run, refuse=one.error)
            _add_options(one, name, options)
    return whole


def _add_options(one: argparse.ArgumentParser, command: str, options: list[list[str]]) -> None:
    """Add the options of a command."""
    groups: dict[str, Any] = {"": one}
    for names, kind, letter, commands, group, words in options:
        default_of = dict(entry.partition("=")[::2] for entry in commands.split("; "))
        required = f"{command}!" in default_of
        if not required and command not in default_of:
            continue
        if group in ONE_OF and group not in groups:
            groups[group] = one.add_mutually_exclusive_group(required=ONE_OF[group])
        elif group not in groups:
            groups[group] = one.add_argument_group(*GROUPS[group])
        more = {"metavar": letter, "required": required, "default": default_of.get(command)}
        argument = names.rpartition("--")[2].replace("-", "_")
        settings = KINDS[kind or table()[argument].domain] | {name: value for name, value in more.items() if value}
        groups[group].add_argument(*names.split(), help=words, **settings)


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
    chosen = parser().parse_args(arguments)
    handler: Callable[[argparse.Namespace], int | None] = chosen.handler
    with _logging():
        try:
            with _sigterm():
                return handler(chosen) or 0
        except (KeyboardInterrupt, Terminated) as request:
            return _interrupted(chosen, signal.SIGTERM if isinstance(request, Terminated) else signal.SIGINT)
        except (ValueError, ImportError, OSError) as error:
            sys.stderr.write(f"hockeystick {chosen.command}: {_in_options(chosen, str(error))}\n")
            return 2 if isinstance(error, ValueError) else 1


def _in_options(chosen: argparse.Namespace, message: str) -> str:
    """Return a message of the library, which names its arguments, with the options that were given in their place."""
    for action in chosen.refuse.__self__._actions:
        if action.option_strings and getattr(chosen, action.dest, None) is not None:
            name, option = action.dest, action.option_strings[-1]
            message = re.sub(rf"^{name} (?=must|needs|has)", f"argument {option}: ", message)
            message = re.sub(rf"\b{name}='?([\w.-]+)'?", rf"{option} \1", message)
            if "_" in name:
                message = re.sub(rf"\b{name}\b", option, message)
    return message


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

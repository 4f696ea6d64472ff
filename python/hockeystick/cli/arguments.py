"""Arguments of commands: each parser of a number names the domain and what it was given; and what is said of settings that nearly nobody means."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from hockeystick._checks import LARGEST_COUNT, NON_NEGATIVE, POSITIVE, PROBABILITY, Domain


def _value(text: str) -> float:
    """Return the number, 256/60000 being a division as in Python; NaN if it is none."""
    numerator, slash, denominator = text.partition("/")
    try:
        return float(numerator) / float(denominator) if slash else float(text)
    except (ValueError, ZeroDivisionError):
        return math.nan


def _number(domain: Domain) -> Callable[[str], float]:
    """Return what reads a number of a domain."""
    rule, words = domain

    def read(text: str) -> float:
        value = _value(text)
        if not rule(value):
            message = f"must {words}, not {text}"
            raise argparse.ArgumentTypeError(message)
        return value

    return read


positive, nonnegative, probability = map(_number, (POSITIVE, NON_NEGATIVE, PROBABILITY))


def count(text: str) -> int:
    """Return an integer in [1, 2^53]."""
    return _integer(text, LARGEST_COUNT)


def port(text: str) -> int:
    """Return the number of a TCP port."""
    return _integer(text, 65535)


def picture(text: str) -> Path:
    """Return the path of a picture."""
    if not text.endswith((".png", ".svg", ".pdf")):
        message = f"must end in .png, .svg or .pdf, not {text}"
        raise argparse.ArgumentTypeError(message)
    return Path(text)


def file(text: str) -> Path:
    """Return the path of a file that there is."""
    if not Path(text).is_file():
        message = f"must be a file, not {text}"
        raise argparse.ArgumentTypeError(message)
    return Path(text)


def assignment(text: str) -> tuple[str, str]:
    """Return the name and the value of NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        message = f"must be NAME=VALUE, not {text}"
        raise argparse.ArgumentTypeError(message)
    return name, value


def shards(text: str) -> tuple[int, int]:
    """Return a share of so many jobs, "3/100" for the third of a hundred."""
    number, slash, jobs = text.partition("/")
    if not (slash and number.isascii() and number.isdigit() and jobs.isascii() and jobs.isdigit()) or len(text) > 20:
        message = f"must be I/N, two integers, not {text}"
        raise argparse.ArgumentTypeError(message)
    if not 1 <= int(number) <= int(jobs):
        message = f"must be I/N with 1 <= I <= N, not {text}"
        raise argparse.ArgumentTypeError(message)
    return int(number), int(jobs)


def _integer(text: str, largest: int) -> int:
    try:
        value = int(text)
    except ValueError:
        number = _value(text)  # 1e4 and 1202.0 are counts, too
        value = int(number) if number.is_integer() and number < LARGEST_COUNT else 0
    if not 1 <= value <= largest:
        message = f"must be an integer in [1, {largest}], not {text}"
        raise argparse.ArgumentTypeError(message)
    return value


def option(name: str) -> str:
    """Return how an argument is given."""
    return f"--{name.replace('_', '-')}"


def refuse(chosen: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Refuse options that are given: what was chosen does not use them."""
    for name in names:
        if getattr(chosen, name) not in (None, False):
            message = f"argument {option(name)}: {why}"
            raise ValueError(message)


def tell(chosen: argparse.Namespace, *doubts: str | None) -> None:
    """Write the first doubt, one line."""
    text = next(filter(None, doubts), None)
    if text:
        sys.stderr.write(f"hockeystick {chosen.command}: warning: {text}\n")

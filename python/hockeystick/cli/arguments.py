"""Arguments of commands: parsers, which name the domain and what they were given; and what commands share: refusals, warnings, tables."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from hockeystick._checks import LARGEST_COUNT, NON_NEGATIVE, POSITIVE, PROBABILITY, Domain


def _require(is_right: bool, words: str, text: str) -> None:
    """Refuse a text that is not what it must be."""
    if not is_right:
        raise argparse.ArgumentTypeError(f"must {words}, not {text}")


def real(text: str) -> float:
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
        value = real(text)
        _require(rule(value), words, text)
        return value

    return read


def _integer(smallest: int, largest: int) -> Callable[[str], int]:
    """Return what reads an integer of an interval."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            number = real(text)  # 1e4 and 1202.0 are counts, too
            value = int(number) if number.is_integer() and number < LARGEST_COUNT else -1
        _require(smallest <= value <= largest, f"be an integer in [{smallest}, {largest}]", text)
        return value

    return read


positive, nonnegative, probability = map(_number, (POSITIVE, NON_NEGATIVE, PROBABILITY))
count, count_or_zero, port = map(_integer, (1, 0, 1), (LARGEST_COUNT, LARGEST_COUNT, 65535))


def picture(text: str) -> Path:
    """Return the path of a picture."""
    _require(text.endswith((".png", ".svg", ".pdf")), "end in .png, .svg or .pdf", text)
    return Path(text)


def file(text: str) -> Path:
    """Return the path of a file that there is."""
    _require(Path(text).is_file(), "be a file", text)
    return Path(text)


def assignment(text: str) -> tuple[str, str]:
    """Return the name and the value of NAME=VALUE."""
    name, equals, value = text.partition("=")
    _require(bool(equals and name), "be NAME=VALUE", text)
    return name, value


def shards(text: str) -> tuple[int, int]:
    """Return a share of so many jobs, "3/100" for the third of a hundred."""
    _require(re.fullmatch(r"[0-9]+/[0-9]+", text) is not None and len(text) <= 20, "be I/N, two integers", text)
    number, jobs = map(int, text.split("/"))
    _require(1 <= number <= jobs, "be I/N with 1 <= I <= N", text)
    return number, jobs


def option(name: str) -> str:
    """Return the option of an argument: --batch-size of batch_size."""
    return f"--{name.replace('_', '-')}"


def require(chosen: argparse.Namespace, names: Iterable[str]) -> None:
    """Refuse options that are not given."""
    missing = [option(name) for name in names if getattr(chosen, name) is None]
    if missing:
        chosen.refuse(f"the following arguments are required: {', '.join(missing)}")


def refuse(chosen: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Refuse options that are given: what was chosen does not use them."""
    for name in names:
        value = getattr(chosen, name)
        if value is not None and value is not False:  # 0 is given, and equals False
            raise ValueError(f"argument {option(name)}: {why}")


def tell(chosen: argparse.Namespace, *doubts: str | None) -> None:
    """Write the first doubt, one line."""
    text = next(filter(None, doubts), None)
    if text:
        sys.stderr.write(f"hockeystick {chosen.command}: warning: {text}\n")


def write_rows(rows: Sequence[Sequence[str]]) -> None:
    """Write a table, with columns as wide as their longest text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        sys.stdout.write(f"{line.rstrip()}\n")

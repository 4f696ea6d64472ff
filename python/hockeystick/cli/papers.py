"""The command ``hockeystick papers``: what five papers state, with verdicts, and numbers at the reader's settings."""

from __future__ import annotations

import argparse
import ast
import math
import sys
from typing import Any

from hockeystick.cli import arguments


def run(chosen: argparse.Namespace) -> None:
    """List the papers, or the statements of one, or write one statement."""
    from hockeystick.published import statements  # noqa: PLC0415 - imports are paid for by this command only

    if chosen.statement is None:
        arguments.refuse(chosen, ["set"], "not allowed without a statement, whose numbers it is about")
        lines: list[tuple[str, ...]]
        if chosen.paper is None:
            found = {number: statements.rows(number) for number in statements.PAPERS}
            lines = [
                (paper, f"{len(rows)} statements", f"{sum(row.false for row in rows)} false", *statements.PAPERS[paper])
                for paper, rows in found.items()
            ]
        else:
            lines = [(row.name, row.says, row.verdict) for row in statements.rows(statements.number_of(chosen.paper))]
        arguments.write_rows(lines)
        return
    settings = {name: _value(text) for name, text in chosen.set or ()}
    try:
        sys.stdout.write(f"{statements.statement(chosen.paper, chosen.statement, **settings)}\n")
    except TypeError as error:  # of a setting
        raise ValueError(str(error)) from error


def _value(text: str) -> Any:
    """Return a number, 1/60000 being a division, or a list as Python writes it; other text as it is."""
    value = arguments.real(text)
    if not math.isnan(value):
        return int(text) if text.lstrip("-").isdecimal() else value
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text

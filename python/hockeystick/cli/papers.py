"""The command ``hockeystick papers``: what the papers state, and what it is worth."""

from __future__ import annotations

import argparse
import ast
import sys
from typing import Any

from hockeystick.cli import arguments


def run(chosen: argparse.Namespace) -> None:
    """List the papers, the statements of one, or print a statement."""
    from hockeystick.published.statements import PAPERS, statement, table  # noqa: PLC0415 - paid for by this command only

    if chosen.statement is None:
        arguments.refuse(chosen, ["set"], "not allowed without a statement")
    if chosen.paper is None:
        arguments.write_rows([(number, page, authors) for number, (page, authors) in PAPERS.items()])
    elif chosen.statement is None:
        known = {name: number for number, (page, _) in PAPERS.items() for name in (number, page)}
        if chosen.paper not in known:
            chosen.refuse(f"argument paper: must be one of {', '.join(known)}, not {chosen.paper}")
        arguments.write_rows([(row.name, row.verdict) for row in table() if row.paper == known[chosen.paper]])
    else:
        settings = {name: _value(text) for name, text in chosen.set or []}
        sys.stdout.write(f"{statement(chosen.paper, chosen.statement, **settings)}\n")


def _value(text: str) -> Any:
    """Return a number or a word."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text

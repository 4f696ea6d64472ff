"""What chooses, in a ledger beside what adds noise: its statement, and the code in it, which is run."""

from __future__ import annotations

import contextlib
import io

import pytest

import hockeystick as hs
from hockeystick import selection

CHOICES = [selection.AboveThreshold(5.0, 20.0, 2), selection.OptimalPartitions(0.3, 1e-8, 2), hs.Staircase(0.2)]


@pytest.mark.slow
@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: type(choice).__name__)
def test_the_statement_can_be_made_again(choice):
    """The code that a statement ends with prints the same statement."""
    statement = hs.Accountant().compose(choice).statement(1e-6)
    lines = str(statement).split("Again:\n")[1]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec("\n".join(line.strip() for line in lines.splitlines()), {})  # noqa: S102
    assert printed.getvalue().strip() == str(statement).strip()

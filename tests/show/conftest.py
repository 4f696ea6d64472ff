"""The command line: a fixture that runs one, and one that reads its JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import NamedTuple

import pytest

from hockeystick.cli import main


class Told(NamedTuple):
    """What a command ended with and wrote."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[[str], Told]:
    """Return a function that runs a command line."""

    def told(line: str) -> Told:
        try:
            code = main(shlex.split(line))
        except SystemExit as end:
            code = end.code
        return Told(code, *capsys.readouterr())

    return told


@pytest.fixture
def ask(run: Callable[[str], Told]) -> Callable[[str], dict]:
    """Return a function that runs a command line and returns its JSON, in which infinity and NaN are none."""

    def answer(line: str) -> dict:
        code, out, _ = run(f"{line} --json")
        assert code == 0
        return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    return answer

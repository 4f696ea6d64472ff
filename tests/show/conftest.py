"""The command line: fixtures that run one, read its JSON, and check that it is refused; and a folder to run it in."""

import json
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

import drawn_plans
from hockeystick import sweep
from hockeystick.cli import main


class Told(NamedTuple):
    """What a command ended with and wrote."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    """Return a function that runs a command line."""

    def told(line):
        try:
            code = main(shlex.split(line))
        except SystemExit as end:
            code = end.code
        return Told(code, *capsys.readouterr())

    return told


@pytest.fixture
def written(run):
    """Return a function that runs a command line, which succeeds, and returns what it writes."""

    def out(line):
        told = run(line)
        assert told.code == 0, told.err
        return told.out

    return out


@pytest.fixture
def refused(run):
    """Return a function that checks that a command line ends with an exit code, writes nothing, and says why in one line.

    A reason that names the program stands at the beginning of that line, another one anywhere in it.
    """

    def check(line, reason, code=2):
        told = run(line)
        assert (told.code, told.out, told.err.count("\n")) == (code, "", 1)
        assert told.err.startswith(reason) if reason.startswith("hockeystick ") else reason in told.err

    return check


@pytest.fixture
def folder(tmp_path, monkeypatch, request):
    """Return the folder in which commands run; it has the small plan of the file."""
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(request.module.PLAN)
    return tmp_path


@pytest.fixture(scope="session")
def theta(tmp_path_factory):
    """Return the folder of the sweep of theta, which is run once."""
    out = tmp_path_factory.mktemp("theta")
    sweep.run(drawn_plans.THETA, out)
    return out


@pytest.fixture
def ask(written):
    """Return a function that runs a command line and returns its JSON, in which infinity and NaN are none."""

    def answer(line):
        return json.loads(written(f"{line} --json"), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    return answer

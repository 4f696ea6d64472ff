"""The stages of continuous integration: two together run every test, the first is README.md's command; the night runs all."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import processes

ROOT = Path(__file__).parents[2]


def selection(words: list[str]) -> tuple[str, set[str]]:
    """Return the marks that pytest is asked for, and the options and paths that could leave tests out."""
    marks = [words[i + 1] for i, word in enumerate(words) if word == "-m"]
    options = ("-k", "--ignore", "--deselect", "--lf", "--last-failed", "--ff", "-x", "--maxfail", "--co")
    left_out = {word for word in words if word.startswith(options) or re.match(r"(tests|bench)\b", word)}
    return (marks[-1] if marks else ""), left_out


def test_stages_run_everything(pytestconfig: pytest.Config) -> None:
    """By default what is not slow runs, in .ci/run then what is slow, at night both, and nothing else is left out."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = re.search(r"<!-- test -->\n```sh\n.* -m pytest(.*)\n```", readme)
    second = re.findall(r"^\S+ -m pytest(.*)$", script, re.MULTILINE)
    assert command is not None
    assert selection(pytestconfig.getini("addopts")) == ("not slow", set())
    assert selection(shlex.split(command.group(1))) == ("", set())
    assert [selection(shlex.split(words)) for words in second] == [("slow", set())]
    assert pytestconfig.getini("testpaths") == ["tests", "bench"]
    night = re.findall(r" -m pytest(.*)$", (ROOT / ".ci" / "nightly").read_text(encoding="utf-8"), re.MULTILINE)
    assert [selection(shlex.split(words)) for words in night] == [("slow or not slow", set())]


def test_every_test_file_is_found() -> None:
    """No file of tests has a name that pytest passes over."""
    for folder in ("tests", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            assert path.name.startswith("test_") == ("\ndef test_" in path.read_text(encoding="utf-8")), path


CHILD = """
import signal, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])  # holds the pipes open
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, flush=True)
time.sleep(1000)
"""


def test_children_end_with_their_test() -> None:
    """A child that waits for ever, and has a child of its own, hears Ctrl-C and is killed when its time is over."""
    with processes.child([sys.executable, "-c", CHILD]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
    assert process.returncode == -9
    with pytest.raises(subprocess.TimeoutExpired):
        processes.python(CHILD, limit=0.5 / processes.PATIENCE)

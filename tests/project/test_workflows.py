"""Continuous integration: workflows that are valid, with actions pinned and no path that is not there; stages that run every test; children that end."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import processes

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def violations(path):
    """Return what the vendored schema of GitHub workflows finds wrong, without a network."""
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
    done = processes.run(command, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_all_are_there():
    """Tests, the night, wheels, docs and benchmarks each have a workflow of that name."""
    assert {"tests", "nightly", "wheels", "docs", "benchmarks"} <= {path.stem for path in WORKFLOWS}
    for path in WORKFLOWS:
        assert re.search(rf"^name: {path.stem}$", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.share(3)
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_schema(path):
    """A workflow is valid."""
    assert violations(path) == ""


def test_schema_finds_mistakes(tmp_path):
    """The check would see a job without a machine to run on."""
    broken = tmp_path / "broken.yml"
    broken.write_text("name: broken\non: push\njobs:\n  one:\n    steps:\n      - run: true\n")
    assert "one" in violations(broken)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned(path):
    """Each action is named by a commit, with its version beside it; a workflow may only read unless a job says otherwise, and ends some time."""
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (.+)", text)
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action) for action in used)
    assert "\npermissions:\n  contents: read\n" in text
    assert text.count("runs-on:") == text.count("timeout-minutes:")


def test_an_action_has_one_version():
    """All workflows use the same commit of an action."""
    used = {line for path in WORKFLOWS for line in re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))}
    assert len({line.split("@")[0] for line in used}) == len(used)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_scripts_are_there(path):
    """A script that a workflow runs is in the repository, and so is every extra that it installs."""
    text = path.read_text(encoding="utf-8")
    for script in re.findall(r"(?:change/)?((?:bench|docs|tests)/\w+\.py|\.ci/\w+)", text):
        assert (ROOT / script).is_file(), script
    extras = re.search(r"\[project.optional-dependencies\](.*?)\n\[", (ROOT / "pyproject.toml").read_text(), re.DOTALL)
    for names in re.findall(r"\.\[([\w,-]+)\]", text):
        for name in names.split(","):
            assert re.search(rf"^{name} = \[", extras.group(1), re.MULTILINE), name


def selection(words):
    """Return the marks that pytest is asked for, and the options and paths that could leave tests out."""
    marks = [words[i + 1] for i, word in enumerate(words) if word == "-m"]
    options = ("-k", "--ignore", "--deselect", "--lf", "--last-failed", "--ff", "-x", "--maxfail", "--co")
    left_out = {word for word in words if word.startswith(options) or re.match(r"(tests|bench)\b", word)}
    return (marks[-1] if marks else ""), left_out


def test_stages_run_everything(pytestconfig):
    """By default what is not slow runs, in .ci/run then what is slow, at night both, and nothing else is left out."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = re.search(r"<!-- test -->\n```sh\n.* -m pytest(.*)\n```", readme)
    second = re.findall(r"^\S+ -m pytest(.*)$", script, re.MULTILINE)
    assert selection(pytestconfig.getini("addopts")) == ("not slow", set())
    assert selection(shlex.split(command.group(1))) == ("", set())
    assert [selection(shlex.split(words)) for words in second] == [("slow", set())]
    assert pytestconfig.getini("testpaths") == ["tests", "bench"]
    night = re.findall(r" -m pytest(.*)$", (ROOT / ".ci" / "nightly").read_text(encoding="utf-8"), re.MULTILINE)
    assert [selection(shlex.split(words)) for words in night] == [("slow or not slow", set())]


def test_every_test_file_is_found():
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


def test_children_end_with_their_test():
    """A child that waits for ever, and has a child of its own, hears Ctrl-C and is killed when its time is over."""
    with processes.child([sys.executable, "-c", CHILD]) as process:
        assert process.stdout.readline() == "True\n"
    assert process.returncode == -9
    with pytest.raises(subprocess.TimeoutExpired):
        processes.python(CHILD, limit=0.5 / processes.PATIENCE)

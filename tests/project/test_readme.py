"""README.md does what it says: its Python block runs, and its commands name files and options that exist."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

import processes

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
def test_python_blocks_run(block, capsys):
    """Every Python block runs and prints numbers."""
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102, the text is ours
    assert re.search(r"\d\.\d", capsys.readouterr().out)


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)\)", TEXT))
def test_links_lead_somewhere(target):
    """Every relative link names a file of the repository."""
    assert (ROOT / target).exists()


@pytest.mark.parametrize("path", re.findall(r"(?:python )((?:docs|bench)/\S+\.py)", TEXT))
def test_named_scripts_exist(path):
    """Every script that is named exists."""
    assert (ROOT / path).exists()


def test_main_job_runs(tmp_path):
    """The commands of the main job, without the installation, run on the plan that ships."""
    block = re.search(r"<!-- main job -->\n```sh\n(.*?)```", TEXT, re.DOTALL).group(1)
    commands = [line.strip().removesuffix("&&").strip() for line in block.splitlines()[1:]]
    assert len(commands) == 2
    for command in commands:
        words = shlex.split(command.replace(" out", f" {tmp_path / 'out'}"))
        assert words[0] == ".venv/bin/hockeystick"
        processes.run([sys.executable, "-m", "hockeystick", *words[1:]], cwd=ROOT)
    assert list((tmp_path / "out" / "cells").glob("*.parquet"))
    assert list((tmp_path / "out").rglob("*.png"))


def test_command_line_example():
    """The one-line example prints JSON."""
    command = re.search(r"`hockeystick (epsilon [^`]+)`", TEXT).group(1)
    result = processes.run([sys.executable, "-m", "hockeystick", *shlex.split(command)])
    assert '"epsilon"' in result.stdout


def test_continuous_integration_runs_the_test_command():
    """.ci/run takes its command from README.md."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "<!-- test -->" in script
    assert "<!-- test -->\n```sh\n" in TEXT


@pytest.mark.parametrize(
    ("heading", "page"),
    [("kernel", "accounting/accuracy"), ("question, one thread", "project/benchmarks")],
    ids=["accuracy", "speed"],
)
def test_tables_repeat_what_was_measured(heading, page):
    """Every measured number of the two tables stands on the page that has them all."""
    rows = re.search(rf"\| {heading} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT).group(1)
    measured = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    numbers = re.findall(r"\d[\d.]*e-\d+|\d[\d.]* (?:ns|µs|ms|s)\b", rows)
    assert len(numbers) >= 3
    assert all(number in measured for number in numbers), numbers

"""README.md does what it says: its commands name files and options that exist; `test_printed_bounds` runs its Python blocks."""

import re
import shlex
import sys
from pathlib import Path

import hockeystick as hs
import processes
from hockeystick import federated

ROOT = Path(__file__).parents[2]
FEDERATION = {"num_clients": 100, "clip_norm": 1.0, "learning_rate": 0.01, "smoothness": 1.0}  # of the example plan
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_lead_somewhere():
    """Every relative link, and every script that a command runs, names a file of the repository."""
    named = re.findall(r"\]\((?!http)([^)#]+)\)", TEXT) + re.findall(r"python ((?:docs|bench)/\S+\.py)", TEXT)
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_main_job_runs(tmp_path):
    """The commands of the main job, without the installation, run on the plan that ships."""
    block = re.search(r"<!-- main job -->\n```sh\n(.*?)```", TEXT, re.DOTALL).group(1)
    commands = [line.strip().removesuffix("&&").strip() for line in block.splitlines()[1:]]
    assert len(commands) == 3
    for command in commands:
        words = [str(tmp_path / "out") if word == "out" else word for word in shlex.split(command)]
        assert words[0] == ".venv/bin/hockeystick"
        told = processes.run([sys.executable, "-m", "hockeystick", *words[1:]], cwd=ROOT).stdout
    shown = float(re.search(r"^epsilon = ([\d.]+)", told, re.MULTILINE).group(1))
    assert 1 <= shown <= 8
    exact = federated.fedavg_epsilon(1e-5, noise_std=0.35, rounds=200, local_steps=10, **FEDERATION)
    assert exact <= shown <= exact + 1e-5  # rounded up
    assert f"ε ≤ {shown}" in TEXT
    assert list((tmp_path / "out" / "cells").glob("*.parquet"))
    assert list((tmp_path / "out").rglob("*.png"))


def test_statement_example():
    """The one-line example prints what the text says, and the text's numbers are rounded outward."""
    command = re.search(r"<!-- statement -->\n```sh\n\.venv/bin/hockeystick (.*?)```", TEXT, re.DOTALL).group(1)
    told = processes.run([sys.executable, "-m", "hockeystick", *shlex.split(command)]).stdout
    upper = hs.format_upper(hs.dpsgd_epsilon(1.1, 256 / 60_000, 3525, 1e-5), ".3f")
    assert f"ε ≤ {upper} holds" in TEXT
    assert f"ε = {upper}" in told
    shuffled = hs.shuffled_batches_epsilon_bracket(1e-5, noise_multiplier=1.1, num_batches=235, epochs=15)
    lower, upper = hs.format_lower(shuffled.lower, ".2f"), hs.format_upper(shuffled.upper, ".2f")
    assert f"Shuffled batches: proven ε ≤ {upper}; with batches of one size at least {lower} in the worst case." in TEXT


def test_what_was_measured_is_repeated():
    """Every time of the table stands on the page that has them all; the error of the kernels is the largest of theirs, rounded up."""
    rows = re.search(r"\| question, one thread \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT).group(1)
    measured = (ROOT / "docs" / "project" / "benchmarks.md").read_text(encoding="utf-8")
    times = re.findall(r"\d[\d.]* (?:ns|µs|ms|s)\b", rows)
    assert len(times) >= 3
    assert all(time in measured for time in times), times
    named, said = re.search(r"((?:`\w+`(?:, | and )?)+) have errors of at most ([\d.e-]+),", TEXT).groups()
    table = (ROOT / "docs" / "guide" / "numbers.md").read_text(encoding="utf-8")
    kernels = re.findall(r"\w+", named.replace(" and ", " "))
    found = [re.search(rf"^\| `{kernel}` \|.*$", table, re.MULTILINE).group() for kernel in kernels]
    errors = re.findall(r"[\d.]+e-\d+", "\n".join(found))
    assert len(errors) == 4 * len(kernels)
    assert hs.format_upper(max(map(float, errors)), ".1e") == said

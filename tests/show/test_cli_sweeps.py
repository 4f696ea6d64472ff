"""The commands around a sweep: what may be computed, a first plan, the best cell, shares and their merge."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.cli import main
from hockeystick.sweep.functions import REGISTERED, TRAININGS, status

PLAN = """
shard_rows = 2
outputs = { epsilon = "dpsgd_epsilon", published = { function = "published.fedavg_gdp" } }
[fixed]
delta = 1e-5
sampling_rate = 0.01
rounds = 10
local_steps = 2
num_clients = 5
clip_norm = 1.0
noise_std = 1.0
smoothness = 1.0
learning_rate = 0.1
schedule = "constant"
[axes]
noise_multiplier = [-1.0, 0.8, 1.2]
steps = [500, 1000, 2000]
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished table, a third of whose cells failed."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("cli")
    (folder / "plan.toml").write_text(PLAN)
    assert main(["sweep", "run", str(folder / "plan.toml"), "-o", str(folder / "out"), "--quiet"]) == 3
    return folder / "out"


def test_functions(capsys: pytest.CaptureFixture[str]) -> None:
    """Every registered function has a line that begins with its name and tells what it is worth."""
    assert main(["sweep", "functions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(REGISTERED | TRAININGS)
    assert all(f"  {status(line.split()[0])}  " in line + "  " for line in lines)
    assert all(re.search(r"  (cheap   |costly  |training)  ", line) for line in lines)


def test_describe(capsys: pytest.CaptureFixture[str]) -> None:
    """Arguments with units, domains and defaults, what the value is worth, and a plan; an unknown name is one line."""
    assert main(["sweep", "describe", "federated.fedavg_gdp"]) == 0
    text = capsys.readouterr().out
    for part in (
        "worth: certified, a bound with a proof",
        "  rounds (whole number): Communication rounds T, a positive integer",
        "\nclip_norm = 1.0\n",
        "  schedule (one of constant, cyclic, stagewise, continuous, 'constant' if not given): ",
        "  diameter (number, may be left out): ",
        'fedavg_gdp = "federated.fedavg_gdp"',
    ):
        assert part in text
    assert main(["sweep", "describe", "os.system"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("hockeystick sweep: function must be a registered one, not 'os.system'; ")
    assert captured.err.count("\n") == 1


def test_first_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`init` writes a plan that `run` takes, and replaces nothing."""
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "init"]) == 0
    assert capsys.readouterr().out == "written to plan.toml; run it: hockeystick sweep run plan.toml -o out\n"
    assert main(["sweep", "run", "plan.toml", "-o", "out", "--quiet"]) == 0
    assert main(["sweep", "init", "two.toml", "--function", "gdp_delta", "--function", "theta"]) == 0
    assert main(["sweep", "run", "two.toml", "-o", "two", "--quiet"]) == 0
    capsys.readouterr()
    before = Path("plan.toml").read_bytes()
    assert main(["sweep", "init", "--function", "theta"]) == 2
    assert capsys.readouterr().err == (
        "hockeystick sweep: file must be a new one, not plan.toml: it is there, and would be replaced\n"
    )
    assert Path("plan.toml").read_bytes() == before
    assert main(["sweep", "init", "new.toml", "--function", "thetta"]) == 2
    assert not Path("new.toml").exists()


def test_best(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The row has its inputs in full and its bounds rounded up, with what they are worth."""
    assert main(["sweep", "best", str(out), "--where", "epsilon <= 2", "--maximise", "steps"]) == 0
    captured = capsys.readouterr()
    value = float(hs.dpsgd_epsilon(1.2, 0.01, 2000, 1e-5))
    assert value <= 2
    lines = captured.out.splitlines()
    assert lines[:3] == ["cell = 8", "noise_multiplier = 1.2", "steps = 2000"]
    assert f"epsilon = {hs.format_upper(value, '.6g')} (nats, certified)" in lines
    assert any(line.startswith("published = ") and line.endswith("(μ, Gaussian DP, unsound)") for line in lines)
    assert captured.err == ""
    assert main(["sweep", "best", str(out), "--where", "published < 1e9", "--minimise", "epsilon"]) == 0
    assert "warning: published = published.fedavg_gdp: " in capsys.readouterr().err


def test_no_best(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No cell is exit code 4; a wrong condition or an unfinished table is one line and 2."""
    assert main(["sweep", "best", str(out), "--where", "epsilon < 0", "--maximise", "steps"]) == 4
    assert capsys.readouterr().err == "hockeystick sweep: no cell satisfies epsilon < 0\n"
    for where, message in (
        ("epsilon <", "where must be"),
        ("epsilom < 1", "did you mean epsilon"),
        ("x" * 9999, "at most"),
    ):
        assert main(["sweep", "best", str(out), "--where", where, "--maximise", "steps"]) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.err.count("\n") == 1
    (tmp_path / "plan.toml").write_text(PLAN)
    share = str(tmp_path / "share")
    assert main(["sweep", "run", str(tmp_path / "plan.toml"), "-o", share, "--shards", "1/2", "--quiet"]) == 3
    capsys.readouterr()
    assert main(["sweep", "best", share, "--maximise", "steps"]) == 2
    assert "without 4 of 9" in capsys.readouterr().err
    assert main(["sweep", "best", share, "--maximise", "steps", "--partial"]) == 0
    assert "warning: 4 of 9 cells are missing" in capsys.readouterr().err


def test_shares(tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two shares, a merge too early, and a merge that has the bytes of one run."""
    (tmp_path / "plan.toml").write_text(PLAN)
    run = ["sweep", "run", str(tmp_path / "plan.toml"), "-o"]
    shares = [str(tmp_path / f"share-{number}") for number in (1, 2)]
    assert main([*run, shares[0], "--shards", "1/2"]) == 3
    assert capsys.readouterr().out.startswith("share 1 of 2: 5 cells\n")
    assert main(["sweep", "merge", str(tmp_path / "out"), *shares[:1]]) == 2
    assert "share 2 of 2 is not among them" in capsys.readouterr().err
    assert main([*run, shares[1], "--shards", "2/2", "--quiet"]) == 3
    capsys.readouterr()
    assert main(["sweep", "merge", str(tmp_path / "out"), *shares]) == 0
    assert capsys.readouterr().out == f"9 cells of 2 directories\nwritten to {tmp_path / 'out'}\n"
    files = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    assert files == sorted(
        path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*") if path.is_file()
    )
    assert all((tmp_path / "out" / path).read_bytes() == (out / path).read_bytes() for path in files)


@pytest.mark.parametrize(
    ("share", "message"),
    [
        ("0/4", "with 1 <= I <= N, not 0/4"),
        ("5/4", "not 5/4"),
        ("1", "two integers, not 1"),
        ("-1/4", "two integers"),
        ("a/b", "not a/b"),
    ],
)
def test_bad_shares(capsys: pytest.CaptureFixture[str], share: str, message: str) -> None:
    """A share that is none is refused with the option's name."""
    with pytest.raises(SystemExit) as caught:
        main(["sweep", "run", "plan.toml", "-o", "out", f"--shards={share}"])
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert "argument --shards: must be I/N" in error
    assert message in error

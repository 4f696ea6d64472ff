"""The command for one training: the numbers of `simulate.run` by hand, bounds rounded up, wrong plans named."""

from __future__ import annotations

import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import processes
from hockeystick.cli import main

pytest.importorskip("numba", reason="needs numba")
pq = pytest.importorskip("pyarrow.parquet")

from hockeystick import simulate

PLAN = """
title = "Clients of a logistic regression"
[fixed]
algorithm = "NoisyFedAvg"
data = "synthetic"
record_loss = "logistic"
records_per_silo = 12
num_features = 4
num_silos = 6
local_steps = 2
clip_norm = 1.0
learning_rate = 0.5
noise_std = 0.2
clients_per_round = 3
rounds = 40
num_runs = 4
seed = 3
delta = 1e-5
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Return the plan in a file."""
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def by_hand(seed: int) -> simulate.Result:
    """Return what the plan says, by hand."""
    algorithm = simulate.NoisyFedAvg(
        learning_rate=0.5, local_steps=2, clip_norm=1.0, noise_std=0.2, clients=simulate.FixedSize(3)
    )
    problem = simulate.synthetic("logistic", sizes=[12] * 6, num_features=4, seed=1)
    return simulate.run(algorithm, problem, rounds=40, seed=seed, num_runs=4, record_every=2)


def test_what_is_released_is_a_setting(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The certified line is that of the view which the plan names; a word that is none is refused."""
    plan.write_text(f'{PLAN}released = "messages"\n')
    assert main(["simulate", str(plan)]) == 0
    told = capsys.readouterr().out
    guarantee = by_hand(3).guarantee(released="messages")
    epsilon = re.search(r"epsilon <= (\S+) at delta = 1e-05", told)
    assert epsilon is not None
    assert 0 <= float(epsilon[1]) - guarantee.epsilon(40, 1e-5) < 1e-2
    assert f"covers {guarantee.released}; adjacency replace" in told
    plan.write_text(f'{PLAN}released = "all"\n')
    assert main(["simulate", str(plan)]) == 2
    assert "fixed: released must be one of 'messages', " in capsys.readouterr().err


@pytest.mark.parametrize(("option", "hint"), [([], ""), (["--checkpoint", "run"], "; resume with the same command")])
def test_ctrl_c_before_the_first_round(
    plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: list[str], hint: str
) -> None:
    """Ctrl-C while the loops are compiled says whether the same command goes on."""

    def pressed(*_args: object, **_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(plan.parent)
    monkeypatch.setattr(simulate, "run", pressed)
    assert main(["simulate", str(plan), *option]) == 130
    assert capsys.readouterr().err == f"\nhockeystick simulate: interrupted{hint}\n"


@pytest.mark.parametrize("seed", [3, 8])
def test_one_training(plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    """Loss, accuracy and certified epsilon, with what it covers, and every recorded round in a file."""
    given = ["--seed", str(seed)] if seed != 3 else []
    assert main(["simulate", str(plan), "-o", str(tmp_path / "rounds.parquet"), *given]) == 0
    told = capsys.readouterr().out
    result = by_hand(seed)
    found = re.search(r"accuracy = (\S+) \+- (\S+) \(95 % interval of the mean of 4 runs\)", told)
    assert found is not None
    accuracy = result.accuracy()[-1]
    assert float(found[1]) == pytest.approx(accuracy.mean(), rel=1e-3)
    assert float(found[2]) == pytest.approx(3.182446305284263 * accuracy.std(ddof=1) / 2, rel=0.05)  # t of 3, 97.5 %
    epsilon = re.search(r"epsilon <= (\S+) at delta = 1e-05", told)
    assert epsilon is not None
    assert 0 <= float(epsilon[1]) - result.epsilon(1e-5)[-1] < 1e-3
    assert f"covers {result.guarantee().released}; adjacency replace\n  by {result.guarantee().source}\n" in told
    rows = pq.read_table(tmp_path / "rounds.parquet").to_pydict()
    assert len(rows["round"]) == 20 * 4
    np.testing.assert_array_equal(rows["loss"], result.loss().ravel())
    np.testing.assert_array_equal(rows["epsilon"], np.repeat(result.epsilon(1e-5), 4))


def test_no_guarantee(plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without noise the reason stands in place of a number, and the file has no such column; without delta likewise."""
    for old, new, reason in (
        ("noise_std = 0.2", "noise_std = 0.0", "epsilon: none is certified: nothing is certified without noise"),
        ("delta = 1e-5", "", "epsilon: the plan has no delta"),
    ):
        plan.write_text(PLAN.replace(old, new))
        assert main(["simulate", str(plan), "-o", str(tmp_path / "rounds.parquet")]) == 0
        assert reason in capsys.readouterr().out
        assert "epsilon" not in pq.read_table(tmp_path / "rounds.parquet").column_names


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("clients_per_round = 3", "clients_per_round = 7", "fixed: clients must draw at most 6"),
        ("seed = 3", "", "fixed: a training needs seed"),
        ("seed = 3", "seed = -3", "fixed: seed must be an integer in [0, 2^64), not -3"),
        (
            "noise_std = 0.2",
            "noise_sdt = 0.2",
            "fixed.noise_sdt is no setting of a training; they are delta, released, algorithm",
        ),
        ("noise_std = 0.2", "prox = 0.2", "fixed.prox must be left out: neither NoisyFedAvg nor these data have it"),
        ("num_runs = 4", "num_runs = 1000000000000", "fixed: num_runs must be small enough for 4 GiB"),
        ("num_runs = 4", "num_runs = 4.5", "fixed: num_runs must be an integer, not 4.5"),
        ("delta = 1e-5", "delta = -1e-5", "fixed: delta must"),
        ("[fixed]", "[axes]", "axes must be left out: a plan of one training has title and fixed; hockeystick sweep"),
        ("[fixed]", "[other]", "other must be left out: a plan of one training has title and fixed"),
        ("rounds = 40", "rounds = [40]", "fixed.rounds must be a number or a string, not [40]"),
        ('"NoisyFedAvg"', '"FedAvg"', "fixed: algorithm must be"),
    ],
)
def test_wrong_plans(plan: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str) -> None:
    """One line, exit code 2, and no file."""
    tmp_path = plan.parent
    plan.write_text(PLAN.replace(old, new))
    assert main(["simulate", str(plan), "-o", str(tmp_path / "rounds.parquet")]) == 2
    told = capsys.readouterr()
    assert told.err.startswith("hockeystick simulate: " + message)
    assert told.err.count("\n") == 1
    assert told.out == ""
    assert not (tmp_path / "rounds.parquet").exists()


def test_wrong_options(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong seed, and a place that is not there."""
    assert main(["simulate", str(plan), "--seed", "-1"]) == 2
    assert "seed must be an integer in [0, 2^64), not -1" in capsys.readouterr().err
    assert main(["simulate", str(plan), "-o", str(plan.parent / "none/rounds.parquet")]) == 2
    assert "--out must be a file in a folder that there is" in capsys.readouterr().err


def test_picture_and_checkpoint(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rounds are drawn; a finished run is read from its checkpoint, and the file has the same bytes; another seed is refused."""
    pytest.importorskip("matplotlib")
    files = {name: plan.parent / name for name in ("one.parquet", "two.parquet", "rounds.png", "run.npz")}
    for out in ("one.parquet", "two.parquet"):
        given = ["-o", str(files[out]), "--checkpoint", str(files["run.npz"]), "--plot", str(files["rounds.png"])]
        assert main(["simulate", str(plan), *given]) == 0
    assert files["one.parquet"].read_bytes() == files["two.parquet"].read_bytes()
    assert files["rounds.png"].read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert main(["simulate", str(plan), "--seed", "4", "--checkpoint", str(files["run.npz"])]) == 2
    assert "checkpoint" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["simulate", str(plan), "--plot", "rounds.txt"])
    assert "must end in .png, .svg or .pdf, not rounds.txt" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_killed_and_resumed(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was interrupted by Ctrl-C ends with exit code 130 and goes on with the same bits."""
    plan.write_text(PLAN.replace("rounds = 40", "rounds = 40000").replace("num_runs = 4", "num_runs = 40"))
    monkeypatch.chdir(plan.parent)
    assert main(["simulate", "plan.toml", "-o", "whole.parquet"]) == 0
    resumed = ["simulate", "plan.toml", "-o", "resumed.parquet", "--checkpoint", "run.npz"]
    with processes.child([sys.executable, "-m", "hockeystick", *resumed]) as process:
        while not (plan.parent / "run.npz").exists():  # it is made before the first round
            time.sleep(0.01)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=processes.seconds(60))
    assert process.returncode == 130
    assert (plan.parent / "run.npz").exists()
    assert main(resumed) == 0
    assert (plan.parent / "whole.parquet").read_bytes() == (plan.parent / "resumed.parquet").read_bytes()


def test_the_example_of_the_help_runs(tmp_path: Path) -> None:
    """The plan that the help names is a training, and is certified."""
    pytest.importorskip("sklearn")
    example = Path(__file__).parents[2] / "examples" / "training" / "digits.toml"
    assert main(["simulate", str(example), "-o", str(tmp_path / "rounds.parquet")]) == 0
    assert (tmp_path / "rounds.parquet").stat().st_size > 0

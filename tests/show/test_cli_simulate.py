"""The command for one training: the numbers of `simulate.run` by hand, bounds rounded up, wrong plans named."""

import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import processes
import refused_calls

pytest.importorskip("numba", reason="needs numba")
pq = pytest.importorskip("pyarrow.parquet")

from hockeystick import simulate

pytestmark = pytest.mark.usefixtures("folder")
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


def by_hand(seed):
    """Return what the plan says, by hand."""
    algorithm = simulate.NoisyFedAvg(
        learning_rate=0.5, local_steps=2, clip_norm=1.0, noise_std=0.2, clients=simulate.FixedSize(3)
    )
    problem = simulate.synthetic("logistic", sizes=[12] * 6, num_features=4, seed=1)
    return simulate.run(algorithm, problem, rounds=40, seed=seed, num_runs=4, record_every=2)


def epsilon_of(text):
    """Return the certified epsilon that is printed."""
    return float(re.search(r"epsilon <= (\S+) at delta = 1e-05", text)[1])


def test_what_is_released_is_a_setting(written, refused):
    """The certified line is that of the view which the plan names; a word that is none is refused."""
    Path("plan.toml").write_text(f'{PLAN}released = "messages"\n')
    told = written("simulate plan.toml")
    guarantee = by_hand(3).guarantee(released="messages")
    assert 0 <= epsilon_of(told) - guarantee.epsilon(40, 1e-5) < 1e-2
    assert f"covers {guarantee.released}; adjacency replace" in told
    Path("plan.toml").write_text(f'{PLAN}released = "all"\n')
    refused("simulate plan.toml", "fixed: released must be one of 'messages', ")


@pytest.mark.parametrize(("option", "hint"), [("", ""), ("--checkpoint run", "; resume with the same command")])
def test_ctrl_c_before_the_first_round(run, monkeypatch, option, hint):
    """Ctrl-C while the loops are compiled says whether the same command goes on."""

    def pressed(*_args, **_more):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate, "run", pressed)
    assert run(f"simulate plan.toml {option}") == (130, "", f"\nhockeystick simulate: interrupted{hint}\n")


@pytest.mark.parametrize(("option", "seed"), [("", 3), ("--seed 8", 8)])
def test_one_training(written, option, seed):
    """Loss, accuracy and certified epsilon, with what it covers, and every recorded round in a file."""
    told = written(f"simulate plan.toml -o rounds.parquet {option}")
    result = by_hand(seed)
    mean, half_width = re.search(r"accuracy = (\S+) \+- (\S+) \(95 % interval of the mean of 4 runs\)", told).groups()
    accuracy = result.accuracy()[-1]
    assert float(mean) == pytest.approx(accuracy.mean(), rel=1e-3)
    assert float(half_width) == pytest.approx(3.182446305284263 * accuracy.std(ddof=1) / 2, rel=0.05)  # t of 3, 97.5 %
    assert 0 <= epsilon_of(told) - result.epsilon(1e-5)[-1] < 1e-3
    assert f"covers {result.guarantee().released}; adjacency replace\n  by {result.guarantee().source}\n" in told
    rows = pq.read_table("rounds.parquet").to_pydict()
    assert len(rows["round"]) == 20 * 4
    np.testing.assert_array_equal(rows["loss"], result.loss().ravel())
    np.testing.assert_array_equal(rows["epsilon"], np.repeat(result.epsilon(1e-5), 4))


def test_budget(written, refused):
    """A training stops before the first round that the budget does not allow."""
    allowed = by_hand(3).epsilon(1e-5)[9]
    told = written(f"simulate plan.toml --budget {allowed}")
    assert "20 of 40 rounds, 4 runs, stopped: budget" in told
    assert epsilon_of(told) == pytest.approx(allowed, rel=1e-5)
    Path("plan.toml").write_text(PLAN.replace("delta = 1e-5", ""))
    refused("simulate plan.toml --budget 3", "--budget must be left out where the plan has no delta")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("noise_std = 0.2", "noise_std = 0.0", "none is certified: nothing is certified without noise"),
        ("delta = 1e-5", "", "the plan has no delta"),
    ],
)
def test_no_guarantee(written, old, new, reason):
    """Without noise the reason stands in place of a number, and the file has no such column; without delta likewise."""
    Path("plan.toml").write_text(PLAN.replace(old, new))
    assert f"epsilon: {reason}" in written("simulate plan.toml -o rounds.parquet")
    assert "epsilon" not in pq.read_table("rounds.parquet").column_names


WRONG = """
clients_per_round = 3 => clients_per_round = 7 -> fixed: clients must draw at most 6
seed = 3 => -> fixed: a training needs seed
noise_std = 0.2 => noise_sdt = 0.2
    -> fixed.noise_sdt is no setting of a training; they are delta, released, algorithm
noise_std = 0.2 => prox = 0.2 -> fixed.prox must be left out: neither NoisyFedAvg nor these data have it
[fixed] => [axes] -> axes must be left out: a plan of one training has title and fixed; hockeystick sweep
[fixed] => [other] -> other must be left out: a plan of one training has title and fixed
rounds = 40 => rounds = [40] -> fixed.rounds must be a number or a string, not [40]
"NoisyFedAvg" => "FedAvg" -> fixed: algorithm must be
"""


@pytest.mark.parametrize(("change", "message"), refused_calls.rows(WRONG))
def test_wrong_plans(refused, change, message):
    """One line, exit code 2, and no file."""
    old, _, new = change.partition(" =>")
    assert old in PLAN
    Path("plan.toml").write_text(PLAN.replace(old, new.strip()))
    refused("simulate plan.toml -o rounds.parquet", f"hockeystick simulate: {message}")
    assert not Path("rounds.parquet").exists()


def test_wrong_options(refused):
    """A wrong seed, and a place that is not there."""
    refused("simulate plan.toml --seed -1", "--seed: must be an integer in [0, 2^64), not -1")
    refused("simulate plan.toml -o none/rounds.parquet", "--out must be a file in a folder that there is")


def test_picture_and_checkpoint(written, refused):
    """The rounds are drawn; a finished run is read from its checkpoint, and the file has the same bytes; another seed is refused."""
    pytest.importorskip("matplotlib")
    for out in ("one.parquet", "two.parquet"):
        written(f"simulate plan.toml -o {out} --checkpoint run.npz --plot rounds.png")
    assert Path("one.parquet").read_bytes() == Path("two.parquet").read_bytes()
    assert Path("rounds.png").read_bytes().startswith(b"\x89PNG")
    refused("simulate plan.toml --seed 4 --checkpoint run.npz", "checkpoint")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_killed_and_resumed(run):
    """A run that was interrupted by Ctrl-C ends with exit code 130 and goes on with the same bits."""
    Path("plan.toml").write_text(PLAN.replace("rounds = 40", "rounds = 40000").replace("num_runs = 4", "num_runs = 40"))
    assert run("simulate plan.toml -o whole.parquet").code == 0
    resumed = "simulate plan.toml -o resumed.parquet --checkpoint run.npz"
    with processes.child([sys.executable, "-m", "hockeystick", *resumed.split()]) as process:
        while not Path("run.npz").exists():  # it is made before the first round
            time.sleep(0.01)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=processes.seconds(60))
    assert process.returncode == 130
    assert Path("run.npz").exists()
    assert run(resumed).code == 0
    assert Path("whole.parquet").read_bytes() == Path("resumed.parquet").read_bytes()


def test_the_example_of_the_help_runs(run):
    """The plan that the help names is a training, and is certified."""
    pytest.importorskip("sklearn")
    example = Path(__file__).parents[2] / "examples" / "training" / "digits.toml"
    assert run(f"simulate {example} -o rounds.parquet").code == 0
    assert Path("rounds.parquet").stat().st_size > 0

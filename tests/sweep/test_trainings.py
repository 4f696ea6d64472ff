"""Plans whose cells are trainings: the numbers of `simulate.run` by hand, refused before the first cell, the same bytes."""

import math
import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from hockeystick.sweep import PlanError, run, trainings
from hockeystick.sweep.plan import load
from hockeystick.sweep.trainings import check_trainings
from sweep_plans import TRAINING, content

pytest.importorskip("numba", reason="needs numba")
pq = pytest.importorskip("pyarrow.parquet")

from hockeystick import simulate
from hockeystick.simulate.problem.problem import LOSSES

T_OF_THREE = math.sqrt(2) * 0.95 / math.sqrt(1 - 0.95**2)  # 97.5 % of Student's t with two degrees of freedom
PLAN = {
    "outputs": {
        "loss": "training.loss",
        "loss_half": "training.loss_half_width",
        "accuracy": "training.accuracy",
        "epsilon": {"function": "training.epsilon", "arguments": {"delta": 1e-5}},
        "moved": "training.data_sensitivity",
        "kept": "training.model_sensitivity",
        "gap": "training.sensitivity",
    },
    "fixed": TRAINING["fixed"],
    "axes": {"noise_std": [0.1, 0.5], "rounds": [3, 5], "clients_per_round": [2, 6]},
}


def changed(plan, **fixed):
    """Return a plan with other fixed settings; None leaves one out."""
    merged = {name: value for name, value in {**plan["fixed"], **fixed}.items() if value is not None}
    return {**plan, "fixed": merged}


def table(out):
    """Return the rows of a finished table."""
    return pq.read_table(out / "cells").to_pylist()


def problem_by_hand(silos=6):
    """Return the data of the plan, made by the simulator alone."""
    return simulate.synthetic("logistic", sizes=[12] * silos, num_features=4, seed=1)


def fedavg(noise_std, **more):
    """Return the algorithm of the plan, made by the simulator alone."""
    return simulate.NoisyFedAvg(learning_rate=0.5, local_steps=2, clip_norm=1.0, noise_std=noise_std, **more)


def test_numbers_are_those_by_hand(tmp_path):
    """Every column of every cell is what the simulator gives by hand."""
    summary_ = run(PLAN, tmp_path / "out")
    assert (summary_.rows, summary_.errors) == (8, 0)
    problem = problem_by_hand()
    features, labels = problem.data.features, problem.data.labels
    other = problem.replace_record(0, -features[0], labels[0])
    for row in table(tmp_path / "out"):
        algorithm = fedavg(row["noise_std"], clients=simulate.FixedSize(row["clients_per_round"]))
        how = {"rounds": row["rounds"], "seed": 3, "num_runs": 3}
        result = simulate.run(algorithm, problem, **how)
        scores = result.models[-1] @ features.T
        loss = np.logaddexp(0, scores) - labels * scores  # (runs, records)
        np.testing.assert_allclose(row["loss"], loss.mean(), rtol=1e-13)
        half = T_OF_THREE * loss.mean(axis=1).std(ddof=1) / math.sqrt(3)
        np.testing.assert_allclose(row["loss_half"], half, rtol=1e-10)
        np.testing.assert_allclose(row["accuracy"], ((scores > 0) == labels).mean(), rtol=1e-13)
        assert row["epsilon"] == result.epsilon(1e-5)[-1]
        gap = simulate.sensitivity(algorithm, problem, other, **how)
        assert row["moved"] == gap.data[-1].mean()
        assert row["moved"] > 0 or row["clients_per_round"] < 6  # else its client takes part in the last round
        assert (row["kept"], row["gap"]) == (gap.model[-1].mean(), gap.total[-1].mean())


@pytest.mark.parametrize("loss", LOSSES)
def test_a_record_that_is_turned_around_moves_the_model(loss):
    """Data and total sensitivity of every named loss are positive where the record is used in every round."""
    settings = TRAINING["fixed"] | {"record_loss": loss, "noise_std": 0.1, "rounds": 3, "num_runs": 1}
    settings |= {"hidden": 3} if loss == "network" else {}
    assert trainings.sensitivity(**settings) > 0
    assert trainings.data_sensitivity(**settings) > 0


@pytest.mark.parametrize(
    ("loss", "features", "label", "zero"),
    [
        ("least_squares", [1.0], 0.0, "label"),
        ("absolute", [1.0], 0.0, "label"),
        ("logistic", [0.0], 1.0, "features"),
        ("quadratic", [0.0], 0.0, "features"),
    ],
)
def test_a_record_that_stays_as_it_is_is_refused(loss, features, label, zero):
    """Where turning the features around changes no gradient, there is no pair, and not a sensitivity of 0."""
    problem = simulate.Problem(loss, [features, [1.0]], [label, 1.0], feature_bound=1.0)
    with pytest.raises(ValueError, match=f"first record must change .* its {zero} must not be 0"):
        trainings.adjacent(problem)


def test_epsilon_of_what_is_released(tmp_path):
    """What may be seen is a setting of epsilon alone: a column's own, or an axis beside columns that do not have it; the summary says it."""
    own = {"function": "training.epsilon", "arguments": {"delta": 1e-5, "released": "messages"}}
    axes = {"noise_std": [0.1], "rounds": [3]}
    run({**TRAINING, "axes": axes | {"released": ["messages", "every_model", "last_model"]}}, tmp_path / "axis")
    rows = table(tmp_path / "axis")
    for row in rows:
        by_hand = fedavg(0.1).guarantee(problem_by_hand(), rounds=3, released=row["released"])
        assert row["epsilon"] == by_hand.epsilon(3, 1e-5)
    assert len({row["epsilon"] for row in rows}) >= 2
    assert len({row["loss"] for row in rows}) == 1
    told = run({**TRAINING, "outputs": {"loss": "training.loss", "epsilon": own}, "axes": axes}, tmp_path / "own")
    assert [row["epsilon"] for row in table(tmp_path / "own")] == [rows[0]["epsilon"]]
    seen = fedavg(0.1).guarantee(problem_by_hand(), rounds=3, released="messages")
    assert told.warnings == (f"epsilon: covers {seen.released}, adjacency replace, by {seen.source}",)
    assert seen.released.startswith("every message of every client")


def test_a_view_without_a_proof_is_a_reason(tmp_path):
    """Where nothing is certified for what is released there is no number; a word that is no view is refused."""
    settings = {"algorithm": "TrustedAggregator", "radius": 1.0, "batch_size": 2, "records_per_silo": 1}
    plan = changed({**PLAN, "outputs": {"epsilon": PLAN["outputs"]["epsilon"]}}, **settings, local_steps=None)
    plan["axes"] = {"released": ["messages", "last_model"], "noise_std": [1.0], "rounds": [3]}
    assert run(plan, tmp_path / "out").errors == 1
    messages, last = table(tmp_path / "out")
    assert "nothing is certified for released='messages'" in messages["error"]
    assert math.isnan(messages["epsilon"])
    assert last["epsilon"] > 0
    plan["axes"]["released"] = ["all"]
    with pytest.raises(PlanError, match=r"axes.released must be one of messages, .*, not 'all'"):
        run(plan, tmp_path / "other")


def test_shipped_data_and_their_test_records(tmp_path):
    """A data set that ships with scikit-learn, split by label; accuracy is on its test records."""
    pytest.importorskip("sklearn")
    given = {"data": "wine", "concentration": 0.5, "test_share": 0.25, "data_seed": 4, "num_silos": 3}
    given |= dict.fromkeys(("record_loss", "records_per_silo", "num_features"))
    plan = changed({**PLAN, "outputs": {"accuracy": "training.accuracy", "loss": "training.loss_on_test"}}, **given)
    plan["axes"] = {"batch_size": [2, 4], "rounds": [6]}
    plan["fixed"] |= {"noise_std": 0.01, "records": "WithReplacement"}
    run(plan, tmp_path / "out")
    train, test = simulate.load("wine", num_silos=3, concentration=0.5, seed=4, test_share=0.25)
    for row in table(tmp_path / "out"):
        algorithm = fedavg(0.01, records=simulate.WithReplacement(row["batch_size"]))
        result = simulate.run(algorithm, train, rounds=6, seed=3, num_runs=3)
        assert row["accuracy"] == result.accuracy(test)[-1].mean()
        assert row["loss"] == result.loss(test)[-1].mean()


LEARNT = {"algorithm": "AdaptiveClippingSGD", "num_silos": 1, "batch_rate": 0.25, "rounds": 6}
LEARNT |= {"clip_rate": 0.2, "noise_multiplier": 1.0, "count_noise": 2.0, "local_steps": None}


def test_learnt_clip_norms(tmp_path):
    """A clip norm may be learnt, with its settings as axes; too many to keep, or too little noise on the count, are refused."""
    plan = {**changed(TRAINING, **LEARNT), "axes": {"quantile": [0.3, 0.7]}}
    assert run(plan, tmp_path / "out").errors == 0
    settings = ("learning_rate", "clip_norm", "clip_rate", "noise_multiplier", "count_noise")
    same = {name: plan["fixed"][name] for name in settings}
    for row in table(tmp_path / "out"):
        algorithm = simulate.AdaptiveClippingSGD(**same, quantile=row["quantile"], records=simulate.Poisson(0.25))
        result = simulate.run(algorithm, problem_by_hand(1), rounds=6, seed=3, num_runs=3)
        assert (row["loss"], row["epsilon"]) == (result.loss()[-1].mean(), result.epsilon(1e-5)[-1])
    for changes, message in (
        ({"rounds": 10**9}, r"cell 0 .* num_runs must be small enough for 4 GiB, not 3: 22\.4 GiB"),
        ({"count_noise": 0.5}, r"cell 0 .* count_noise must be above half the noise_multiplier \(1\.0\), not 0\.5"),
        ({"num_silos": 2}, r"cell 0 .* AdaptiveClippingSGD is for one silo, not 2"),
    ):
        with pytest.raises(PlanError, match=message):
            run(changed(plan, **changes), tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients_per_round": [2, 7]}, r"cell 1 \(.*clients_per_round = 7\): clients must draw at most 6, .* not 7"),
        ({"num_runs": [1, 2**40]}, r"num_runs must be small enough for 4 GiB, not 1099511627776: 1.31e\+05 GiB"),
        ({"num_silos": [6, 2**40]}, r"records_per_silo must be small enough for 4 GiB, not 12: .* GiB are needed"),
        ({"noise_std": [0.1, -1.0]}, r"cell 4 \(.*noise_std = -1.0.*\): noise_std must be non-negative and finite"),
        ({"prox": [1.0]}, r"prox must be left out: no algorithm and no data of this plan have it"),
        ({"moment": [1.0]}, r"axes.moment is not an argument of any output; they take .*local_steps"),
        ({"rounds": [2.5]}, r"axes.rounds must be an integer, not 2.5"),
        ({"clipping": ["batch", "recrod"]}, r"axes.clipping must be one of batch, record, not 'recrod'"),
        ({"algorithm": ["NoisyFedAvg", "os.system"]}, r"algorithm must be one of .*NoisyFedAvg.*, not 'os.system'"),
        ({"algorithm": ["NoisyFedProx"]}, r"cell 0 \(.*\): algorithm = 'NoisyFedProx' needs prox"),
        ({"algorithm": ["NoisyMinibatchSGD"]}, r"cell 0 \(.*\): algorithm = 'NoisyMinibatchSGD' needs batch_size"),
        ({"data": ["wine"], "clients": ["Poisson"]}, r"cell 0 \(.*\): clients = 'Poisson' needs client_rate"),
        ({"data": ["iris"]}, r"axes.data must be one of synthetic, digits, .*, not 'iris'"),
        ({"num_features": None}, r"cell 0 .*: data = 'synthetic' needs num_features"),
        ({"seed": None}, r"outputs.loss = training.loss needs seed; in axes"),
    ],
)
def test_refused_before_the_first_cell(tmp_path, changes, message):
    """A plan of which one training cannot be is refused with the cell and the setting, and nothing is written."""
    fixed = {name: value for name, value in TRAINING["fixed"].items() if name not in changes}
    axes = {name: values for name, values in {**PLAN["axes"], **changes}.items() if values}
    plan = {**PLAN, "fixed": fixed, "axes": axes}
    with pytest.raises(PlanError, match=message):
        run(plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_settings_of_some_algorithms(tmp_path):
    """An axis of algorithms takes settings that only one of them has."""
    plan = changed(PLAN, algorithm=None, prox=0.5)
    plan["axes"] = {"algorithm": ["NoisyFedAvg", "NoisyFedProx"], "rounds": [3], "noise_std": [0.1]}
    assert run(plan, tmp_path / "out").errors == 0
    one, other = table(tmp_path / "out")
    assert one["loss"] != other["loss"]


def test_cells_without_a_value(tmp_path):
    """A run that does not stay finite, an interval of one run, and a guarantee that nobody has: NaN, and the reason."""
    plan = changed(PLAN, num_runs=1, record_loss="least_squares")
    plan = {**plan, "outputs": {name: PLAN["outputs"][name] for name in ("loss", "loss_half", "accuracy", "epsilon")}}
    plan["axes"] = {"noise_std": [0.0, 1e308], "rounds": [5]}
    assert run(plan, tmp_path / "out").errors == 2
    still, wild = table(tmp_path / "out")
    assert still["loss"] > 0
    assert all(math.isnan(still[name]) for name in ("loss_half", "accuracy", "epsilon"))
    assert "loss_half: num_runs must be at least 2 for an interval, not 1" in still["error"]
    assert "accuracy: accuracy is for losses of classes" in still["error"]
    assert "epsilon: nothing is certified without noise: noise_std is 0" in still["error"]
    assert all(math.isnan(wild[name]) for name in ("loss", "loss_half", "accuracy"))
    assert "loss: 1 of 1 runs became non-finite, the first in round" in wild["error"]


def test_a_cell_runs_once(tmp_path, monkeypatch):
    """All columns of a cell share its runs."""
    calls = []
    real = simulate.run
    trainings._run.cache_clear()
    monkeypatch.setattr(simulate, "run", lambda *args, **more: (calls.append(1), real(*args, **more))[1])
    run({**PLAN, "axes": {"noise_std": [0.1, 0.2], "rounds": [3]}}, tmp_path / "out")
    assert len(calls) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_ctrl_c_is_heard_within_a_training(tmp_path, monkeypatch):
    """Ctrl-C ends a run after the round that is being computed; the training does not go on to its end."""
    real, before = simulate.run, signal.signal(signal.SIGINT, signal.default_int_handler)

    def begun(*given, **options):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        return real(*given, **options)

    monkeypatch.setattr(simulate, "run", begun)
    trainings._run.cache_clear()
    try:
        with pytest.raises(KeyboardInterrupt):
            run({**TRAINING, "axes": {"noise_std": [0.1], "rounds": [300_000]}}, tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert trainings._run.cache_info().currsize == 0


def test_same_bytes_for_threads(tmp_path):
    """One thread, two, anew or from what is kept: the same bytes, a part for each training, since a kill loses what is under way."""
    for name, threads in (("one", 1), ("two", 2), ("kept", 2)):
        if name != "kept":
            trainings._run.cache_clear()
        run(PLAN, tmp_path / name, num_threads=threads)
    assert content(tmp_path / "one") == content(tmp_path / "two") == content(tmp_path / "kept")
    assert len(content(tmp_path / "one/cells")) == 8


def test_the_manifest_names_the_processor(tmp_path):
    """Digits depend on the processor and on the libraries, so a plan of trainings is resumed with the same ones only."""
    run({**PLAN, "axes": {"noise_std": [0.1], "rounds": [2]}}, tmp_path / "out")
    text = (tmp_path / "out/_manifest.json").read_text()
    assert '"simulator"' in text
    (tmp_path / "out/_manifest.json").write_text(text.replace('"processor": "', '"processor": "other '))
    with pytest.raises(ValueError, match=r"simulator.*processor.*other"):
        run({**PLAN, "axes": {"noise_std": [0.1], "rounds": [2]}}, tmp_path / "out")


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.share(2)
@pytest.mark.parametrize(("name", "cells"), [("trajectories", 24), ("trajectories_large", 10)])
def test_examples(tmp_path, name, cells):
    """The two examples are plans as they stand, and run with fewer rounds and steps."""
    pytest.importorskip("sklearn")
    whole = load(EXAMPLES / f"{name}.toml")
    assert whole.num_cells == cells
    check_trainings(whole)
    (moving,) = whole.source["zip"]
    if name == "trajectories_large":  # 10^9 client steps a cell, as its page says
        columns = [moving[key] for key in ("num_silos", "local_steps", "rounds")]
        assert {math.prod(one) * whole.source["fixed"]["num_runs"] for one in zip(*columns, strict=True)} == {10**9}
        assert [max(column) for column in columns] == [1000, 10**4, 10**5]
    short = {key: [2, 3] for key in moving}
    assert run({**whole.source, "zip": [short]}, tmp_path / "out").errors == 0
    for row in table(tmp_path / "out"):
        assert row["epsilon"] > 0
        assert row["final_loss"] > 0

"""Data of the simulator: tables of results, data sets, silos and files."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest

from small_runs import SGD, SILOS, run

pytest.importorskip("numba")

from hockeystick import simulate


def test_table_has_what_the_result_has(tmp_path):
    """The Parquet table has one row for each record and run, with loss, accuracy and epsilon, and names the algorithm."""
    parquet = pytest.importorskip("pyarrow.parquet")
    result = run(SGD, num_runs=2, record_every=3)
    result.to_parquet(tmp_path / "run.parquet", delta=1e-5, test=SILOS.pooled())
    table = parquet.read_table(tmp_path / "run.parquet")
    assert table.column_names == ["run", "round", "loss", "accuracy", "epsilon"]
    assert table["round"].to_pylist() == [3, 3, 6, 6]
    assert table["loss"].to_numpy() == pytest.approx(result.loss().ravel())
    assert table["epsilon"].to_numpy() == pytest.approx(np.repeat(result.epsilon(1e-5), 2))
    assert table.schema.metadata[b"algorithm"].decode() == repr(SGD)


def test_loss_and_accuracy_are_means():
    """Loss and accuracy are what NumPy makes of the released models."""
    result = run(SGD, num_runs=2, record_every=3)
    scores = result.models @ SILOS.data.features.T
    y = SILOS.data.labels
    assert result.loss() == pytest.approx(np.mean(np.logaddexp(0, scores) - y * scores, axis=-1), rel=1e-12)
    assert result.accuracy() == pytest.approx(np.mean((scores > 0) == y, axis=-1), rel=1e-12)


@pytest.mark.parametrize("name", ["digits", "diabetes", "breast_cancer", "wine"])
def test_data_sets_train(name):
    """Each data set trains to a loss below that of the first model, on records that it was not trained on."""
    pytest.importorskip("sklearn")
    train, test = simulate.load(name, num_silos=4, concentration=0.5, seed=1)
    assert np.linalg.norm(train.data.features, axis=1).max() <= 1.0
    sgd = simulate.NoisyMinibatchSGD(learning_rate=1.0, clip_norm=math.inf, records=simulate.EveryRound())
    start = run(sgd, train, rounds=1).loss(test)[0, 0]  # the mean of the models before round 1 is the first
    assert run(sgd, train, rounds=60).loss(test)[-1, 0] < 0.95 * start


def test_network_learns():
    """A network on wine reaches 90 % of its test records; its dimension is that of two layers."""
    pytest.importorskip("sklearn")
    train, test = simulate.load("wine", num_silos=2, seed=1, hidden=6)
    assert train.dimension == 6 * (14 + 1) + 3 * (6 + 1)
    fedavg = simulate.NoisyFedAvg(learning_rate=1.0, local_steps=20, clip_norm=10.0, noise_std=0.01)
    assert run(fedavg, train, rounds=30).accuracy(test)[-1, 0] > 0.9


def test_dirichlet_silos_are_a_partition():
    """Every record is in one silo, none is empty, and a small concentration separates the classes."""
    labels = np.repeat(np.arange(4), 25)
    for concentration in (0.01, 1.0, 1e6):
        silos = simulate.dirichlet_silos(labels, num_silos=10, concentration=concentration, seed=2)
        assert sorted(np.concatenate(silos).tolist()) == list(range(100))
        assert min(map(len, silos)) >= 1
    assert {len(silo) for silo in silos} <= {8, 9, 10, 11, 12}


def test_files_are_read(tmp_path):
    """CSV and NPZ files give the problem that they describe, silos in order."""
    text = "silo,x,label,y\n1,0.5,1,1.0\n0,-0.5,0,0.25\n1,0.125,0,2.0\n"
    np.savez(tmp_path / "data.npz", features=[[0.5, 1.0], [-0.5, 0.25], [0.125, 2.0]], label=[1, 0, 0], silo=[1, 0, 1])
    for source in (io.StringIO(text), tmp_path / "data.npz"):
        problem = simulate.read(source, "logistic")  # type: ignore[arg-type]
        assert problem.sizes == (1, 2)
        assert problem.data.features.tolist() == [[-0.5, 0.25], [0.5, 1.0], [0.125, 2.0]]
        assert problem.data.labels.tolist() == [0.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="must be finite"):
        simulate.read(io.StringIO("x,label\n1,0\nnan,1\n"), "logistic")

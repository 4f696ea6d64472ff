"""What is learned: data sets, silos and files, silos of different weight, and what a result says of its models."""

import dataclasses
import io
import math

import numpy as np
import pytest

from small_runs import EVERYONE, LEARNT, SGD, SILOS, gradient, run

pytest.importorskip("numba")

from hockeystick import isrl, simulate


def test_table_has_what_the_result_has(tmp_path):
    """The Parquet table has one row for each record and run, with loss, accuracy, epsilon and a learnt clip norm, and names the algorithm."""
    parquet = pytest.importorskip("pyarrow.parquet")
    result = run(SGD, num_runs=2, record_every=3)
    result.to_parquet(tmp_path / "run.parquet", delta=1e-5, test=SILOS.pooled())
    assert (result.loss(SILOS.replace_record(0, np.zeros(5), 0.0)) != result.loss()).all()
    table = parquet.read_table(tmp_path / "run.parquet")
    assert table.column_names == ["run", "round", "loss", "accuracy", "epsilon"]
    assert table["round"].to_pylist() == [3, 3, 6, 6]
    assert table["loss"].to_numpy() == pytest.approx(result.loss().ravel())
    assert table["epsilon"].to_numpy() == pytest.approx(np.repeat(result.epsilon(1e-5), 2))
    assert table.schema.metadata[b"algorithm"].decode() == repr(SGD)
    result.to_parquet(tmp_path / "run.parquet", models=True)
    models = parquet.read_table(tmp_path / "run.parquet")["model"].to_pylist()
    assert np.array_equal(np.array(models).reshape(result.models.shape), result.models)
    learnt = run(LEARNT, SILOS.pooled(), num_runs=2, record_every=3)
    learnt.to_parquet(tmp_path / "run.parquet")
    rows = parquet.read_table(tmp_path / "run.parquet").to_pylist()
    assert [row["clip_norm"] for row in rows] == [learnt.clip_norm[row["run"], row["round"] - 1] for row in rows]
    assert [file.name for file in tmp_path.iterdir()] == ["run.parquet"]


@pytest.mark.parametrize("name", ["digits", "diabetes", "breast_cancer", "wine"])
def test_data_sets_train(name):
    """Each data set trains to a loss below that of the first model, on records that it was not trained on."""
    pytest.importorskip("sklearn")
    train, test = simulate.load(name, num_silos=4, concentration=0.5, seed=1)
    assert np.linalg.norm(train.data.features, axis=1).max() <= 1.0
    start = run(EVERYONE, train, rounds=1).loss(test)[0, 0]  # the mean of the models before round 1 is the first
    assert run(EVERYONE, train, rounds=60).loss(test)[-1, 0] < 0.95 * start


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


@pytest.mark.parametrize(
    ("text", "arrays"),
    [
        ("1,0.5,1,1.0\n0,-0.5,0,0.25\n1,0.125,0,2.0\n", {"label": [1, 0, 0], "silo": [1, 0, 1]}),
        (
            "b,0.5,True,1.0\na,-0.5,FALSE,0.25\nb,0.125,true,2.0\n",
            {"label": [True, False, True], "silo": ["b", "a", "b"]},
        ),
    ],
    ids=["numbers", "names and truth values"],
)
def test_files_are_read(tmp_path, text, arrays):
    """CSV, NPZ and Parquet files give the problem that they describe, silos in order; true is 1 and false is 0, in text and in arrays."""
    np.savez(tmp_path / "data.npz", features=[[0.5, 1.0], [-0.5, 0.25], [0.125, 2.0]], **arrays)
    table = pytest.importorskip("pyarrow").table({"x": [0.5, -0.5, 0.125], "y": [1.0, 0.25, 2.0], **arrays})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "data.parquet")
    files = (simulate.read(tmp_path / f"data.{kind}", "logistic") for kind in ("npz", "parquet"))
    for problem in (of_text(f"silo,x,label,y\n{text}"), *files):
        assert problem.sizes == (1, 2)
        assert problem.data.features.tolist() == [[-0.5, 0.25], [0.5, 1.0], [0.125, 2.0]]
        assert problem.data.labels.tolist() == [0.0, 1.0, float(arrays["label"][2])]


def of_text(text, **options):
    """Return the logistic problem of a CSV file with this text."""
    return simulate.read(io.StringIO(text), "logistic", **options)


@pytest.mark.parametrize(
    ("silos", "sizes", "features"),
    [
        (["hospital_B", "hospital_A", "hospital_B"], (1, 2), [2.0, 1.0, 3.0]),
        (["hospital #2", "hospital #1", "Hospital #1"], (1, 1, 1), [3.0, 2.0, 1.0]),
        (['"a, c"', '"a, b"', '"a, c"'], (1, 2), [2.0, 1.0, 3.0]),
        (["10", "9", "10"], (1, 2), [2.0, 1.0, 3.0]),
        ([2**53 + 1, 2**53, 2**53 + 1], (1, 2), [2.0, 1.0, 3.0]),
        (["true", "false", "true"], (1, 2), [2.0, 1.0, 3.0]),
    ],
    ids=["names", "number signs and capitals", "quoted", "numbers", "large numbers", "truth values"],
)
def test_every_silo_is_one(silos, sizes, features):
    """Records of one name or number are one silo, those of others another, in the order of numbers or of the alphabet."""
    rows = "".join(f"{number},{silo},1\n" for number, silo in enumerate(silos, 1))
    problem = of_text(f"x,silo,label\n{rows}")
    assert problem.sizes == sizes
    assert problem.data.features[:, 0].tolist() == features


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x,Silo,label\n1,2,0\n2,3,1\n", {}, "silo must be a column as it is spelt, .*: say silo='Silo'"),
        ("x,silo,Label\n1,2,0\n2,3,1\n", {}, "label must be a column as it is spelt, .*: say label='Label'"),
        ("x,label\n1,0\n2,1\n", {"silo": "hospital"}, "silo must be one of 'x', 'label', not 'hospital'"),
        ("x,silo,label\n1,,0\n2,3,1\n", {}, r"silo\[0\] must be a number or a name, not ''"),
        ("x,silo,label\n1,3,0\n2,nan,1\n", {}, r"silo\[1\] must be a number or a name, not 'nan'"),
        ("x,silo,label\n1,1,0\n2,01,1\n", {}, "silo must be written in one way, not both 1 and 01"),
        ("x,label\n1,cat\n2,dog\n", {}, "labels must be numbers, or all true or false; .*'cat'"),
        ("x,label\n1,true\n2,1\n", {}, "labels must be numbers, or all true or false; .*'true'"),
        (
            "x,silo,label\n1,north,0\n",
            {"silo": None},
            r"features must be numbers, in all of the columns .*line 2.*'north'",
        ),
        ("x,label\n1\n", {}, "line 2 of .* must have 2 values, as the header has, not 1"),
        ("x,label\n1,0\nnan,1\n", {}, "must be finite"),
        ('x,label\n"1,0\n', {}, "must be comma-separated values"),
        ("label\n1\n", {}, "must be features and others, each once"),
        ("x,x,label\n1,2,0\n", {}, "must be features and others, each once"),
        ("", {}, "must be features and others, each once"),
    ],
)
def test_files_that_could_be_misread(text, options, message):
    """What could be read as something else than is meant is refused, with the column and the value."""
    with pytest.raises(ValueError, match=message):
        of_text(text, **options)


@pytest.mark.parametrize(
    ("silo", "message"),
    [
        ([1.0, np.nan, np.nan], "silo must be one number for each record, not NaN"),
        ([1, 2], r"Length of 'silo' \(2\) must match number of records \(3\)"),
        ([[1], [2], [2]], "silo must be one number for each record"),
        (["a", "", "b"], r"silo\[1\] must be a number or a name"),
    ],
)
def test_arrays_that_could_be_misread(tmp_path, silo, message):
    """Silos that are missing are refused; no record is dropped."""
    np.savez(tmp_path / "data.npz", features=[[1.0], [2.0], [3.0]], label=[1, 0, 1], silo=silo)
    with pytest.raises(ValueError, match=message):
        simulate.read(tmp_path / "data.npz", "logistic")


# Silos of different weight: the losses N p_i f_i of Appendix H of Lowy and Razaviyayn 2023


FEATURES = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, -1.0], [0.2, 0.1], [-0.6, 0.3]])
LABELS = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
SIZES, WEIGHTS, MODEL = [2, 2, 1], [0.5, 0.3, 0.2], np.array([0.3, -0.2])


def problem(loss="logistic", **more):
    """Return three silos."""
    return simulate.Problem(loss, FEATURES, LABELS, SIZES, feature_bound=1.0, **more)


def gradients(factors, clip):
    """Return the mean over silos of the means of clipped gradients of factor times logistic loss, by definition."""
    score = FEATURES @ MODEL
    each = (1 / (1 + np.exp(-score)) - LABELS)[:, None] * FEATURES * np.repeat(factors, SIZES)[:, None]
    each *= np.minimum(1.0, clip / np.linalg.norm(each, axis=1))[:, None]
    return np.mean([part.mean(axis=0) for part in np.split(each, np.cumsum(SIZES)[:-1])], axis=0)


def test_steps_follow_the_weighted_objective():
    """A full batch's step is the gradient of sum p_i F_i; gradients are clipped after they are weighted."""
    factors = 3 * np.array(WEIGHTS)
    weighted = problem(weights=WEIGHTS)
    for clip in (math.inf, 0.3):
        np.testing.assert_allclose(gradient(weighted, MODEL, clip), gradients(factors, clip), rtol=1e-12)
    assert (gradient(problem(weights=[1 / 3] * 3), MODEL) == gradient(problem(), MODEL)).all()


def test_constants_are_those_of_the_weighted_losses():
    """Smoothness, strong convexity and Lipschitz constant are `isrl.reweighted_constants`; the guarantee is that of the clip norm."""
    weighted, plain = problem(weights=WEIGHTS), problem()
    expected = isrl.reweighted_constants(WEIGHTS, lipschitz=1.0, smoothness=0.25)
    assert (weighted.smoothness, weighted.lipschitz) == pytest.approx((expected.smoothness, expected.lipschitz))
    quadratic = simulate.Problem("quadratic", FEATURES, None, SIZES, curvature=2.0, weights=WEIGHTS)
    expected = isrl.reweighted_constants(WEIGHTS, lipschitz=1.0, strong_convexity=2.0, smoothness=2.0)
    found = (quadratic.smoothness, quadratic.strong_convexity)
    assert found == pytest.approx((expected.smoothness, expected.strong_convexity))
    noisy = dataclasses.replace(EVERYONE, clip_norm=1.0, noise_std=4.0)
    spent = [noisy.guarantee(silos, rounds=3).epsilon(3, 1e-5) for silos in (weighted, plain)]
    assert spent[0] == spent[1]

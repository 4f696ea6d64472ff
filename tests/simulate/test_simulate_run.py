"""Runs of the simulator: reproducibility, adjacency, guarantees and budgets, data, and what is refused."""

from __future__ import annotations

import io
import math
import pickle
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import processes

pytest.importorskip("numba")

import hockeystick as hs
from hockeystick import federated, simulate
from hockeystick.simulate.algorithms import ftrl
from hockeystick.simulate.running import engine

SILOS = simulate.synthetic("logistic", sizes=[20, 35, 15, 30], num_features=5, seed=1, heterogeneity=0.5)
SGD = simulate.NoisyMinibatchSGD(learning_rate=0.5, clip_norm=1.0, noise_std=0.2, records=simulate.FixedSize(5))
FEDAVG = simulate.NoisyFedAvg(
    learning_rate=0.1,
    local_steps=3,
    clip_norm=1.0,
    noise_std=0.3,
    records=simulate.FixedSize(5),
    clients=simulate.FixedSize(3),
)


def run(algorithm: simulate.Algorithm, problem: simulate.Problem = SILOS, **arguments: Any) -> simulate.Result:
    """Run on one thread, by default 6 rounds."""
    return simulate.run(algorithm, problem, **({"rounds": 6, "seed": 7, "num_threads": 1} | arguments))


# Reproducibility


@pytest.mark.parametrize("algorithm", [SGD, FEDAVG], ids=["sgd", "fedavg"])
def test_threads_change_no_bit(algorithm, monkeypatch):
    """Runs shared by 1, 2, 3 and 7 threads, and one run whose clients are, have the same bits."""
    alone = run(algorithm, num_runs=9, record_every=2).models
    for threads in (2, 3, 7):
        assert np.array_equal(run(algorithm, num_runs=9, record_every=2, num_threads=threads).models, alone)
    monkeypatch.setattr(engine, "ROUND_SECONDS", 0.0)  # clients are handed out from the second round on
    for threads in (2, 3, 7):
        assert np.array_equal(run(algorithm, record_every=2, num_threads=threads).models[:, 0], alone[:, 0])


def test_pieces_and_parts_change_no_bit():
    """Neither how often is recorded nor how runs are split into calls changes anything."""
    whole = run(FEDAVG, num_runs=4, record_every=1)
    assert np.array_equal(run(FEDAVG, num_runs=4).models[-1], whole.models[-1])
    parts = [run(FEDAVG, num_runs=2, first_run=i).models[-1] for i in (0, 2)]
    assert np.array_equal(np.concatenate(parts), whole.models[-1])
    assert whole.recorded.tolist() == [1, 2, 3, 4, 5, 6]
    assert run(FEDAVG, record_every=4).recorded.tolist() == [4, 6]


def test_seeds_and_runs_are_independent():
    """Other seeds and other runs have other noise, uncorrelated over 3000 runs."""
    problem = simulate.Problem("linear", [[0.5]])
    algorithm = simulate.ProjectedNoisySGD(learning_rate=1.0, clip_norm=1.0, noise_std=1.0)
    one, other = (run(algorithm, problem, num_runs=3000, seed=seed).last_iterates[:, 0] for seed in (1, 2))
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / math.sqrt(3000)
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 4 / math.sqrt(3000)
    assert np.unique(one).size == 3000


@pytest.mark.parametrize(
    "algorithm",
    [
        SGD,
        FEDAVG,
        simulate.NoisyFedProx(learning_rate=0.1, local_steps=2, clip_norm=1.0, prox=2.0),
        simulate.ProjectedNoisySGD(learning_rate=0.1, clip_norm=1.0, noise="laplace", random_stop=True),
        simulate.TrustedAggregator(learning_rate=0.1, clip_norm=1.0, batch_size=2, radius=1.0),
        simulate.TreeFTRL(learning_rate=0.1, clip_norm=1.0, records=simulate.Shuffled(5), restart=True),
        simulate.MultistageMinibatchSGD(stages=((2, 3.0),), clip_norm=1.0, records=simulate.Poisson(0.1)),
        simulate.ShuffledMinibatchSGD(learning_rate=0.1, clip_norm=1.0, protocol=simulate.BinomialNoise(2, 3, 0.5)),
    ],
    ids=lambda algorithm: type(algorithm).__name__,
)
def test_repr_rebuilds(algorithm):
    """The repr of an algorithm, and its pickle, are the algorithm."""
    assert eval(repr(algorithm), vars(simulate) | {"inf": math.inf}) == algorithm
    assert pickle.loads(pickle.dumps(algorithm)) == algorithm


# Adjacent problems


@pytest.mark.parametrize(
    ("algorithm", "schedule"), [("fedavg", "constant"), ("fedavg", "continuous"), ("fedprox", "constant")]
)
def test_sensitivity_is_below_its_bounds(algorithm, schedule):
    """Data sensitivity is at most gamma_t, model sensitivity at most rho_t times the gap before, and their sum bounds the gap."""
    rate, local, rounds = 0.4, 4, 12
    problem = simulate.synthetic("logistic", sizes=[3] * 4, num_features=4, seed=3)
    adjacent = problem.replace_record(0, -problem.data.features[0], problem.data.labels[0])
    settings: dict[str, Any] = {"learning_rate": rate, "local_steps": local, "clip_norm": 0.4, "noise_std": 0.1}
    smoothness, prox = 0.25, 2.0
    step = np.arange(rounds)[:, np.newaxis] * local + np.arange(1, local + 1)
    rates = rate / step if schedule == "continuous" else np.full((rounds, local), rate)
    if algorithm == "fedprox":
        tested: simulate.NoisyFedAvg = simulate.NoisyFedProx(**settings, prox=prox)
        rho = np.ones(rounds)
        for _ in range(local):
            rho = (1 - rate * (prox - smoothness)) * rho + rate * prox
    else:
        tested = simulate.NoisyFedAvg(**settings, schedule=schedule)
        rho = np.prod(1 + rates * smoothness, axis=1)
    gap = simulate.sensitivity(tested, problem, adjacent, rounds=rounds, seed=1, num_runs=5, num_threads=1)
    gamma = tested.data_sensitivity(rounds, 4)[:, np.newaxis]
    if algorithm == "fedavg":
        assert gamma[:, 0] == pytest.approx(2 * 0.4 / 4 * rates.sum(axis=1), rel=1e-12)
    assert np.all(gap.data <= gamma * (1 + 1e-12))
    assert np.all(gap.model[1:] <= rho[1:, np.newaxis] * gap.total[:-1] * (1 + 1e-9))
    assert np.all(gap.total <= (gap.data + gap.model) * (1 + 1e-9))
    assert gap.data.min() > 0
    here, there = (run(tested, p, rounds=rounds, seed=1, num_runs=5).last_iterates for p in (problem, adjacent))
    assert gap.total[-1] == pytest.approx(np.linalg.norm(here - there, axis=1), rel=1e-12)


def test_linear_losses_attain_the_data_sensitivity():
    """Opposite records at the clip norm move the model by exactly gamma_t every round, and the gap is their sum."""
    problem = simulate.Problem("linear", [[3.0], [0.1]], sizes=[1, 1])
    algorithm = simulate.NoisyFedAvg(learning_rate=0.5, local_steps=2, clip_norm=1.0, schedule="stagewise")
    gap = simulate.sensitivity(algorithm, problem, problem.replace_record(0, [-2.0]), rounds=5, seed=1)
    gamma = algorithm.data_sensitivity(5, 2)
    assert gap.data[:, 0] == pytest.approx(gamma, rel=1e-12)
    assert gap.total[:, 0] == pytest.approx(np.cumsum(gamma), rel=1e-12)


# Guarantees


def test_minibatch_sgd_is_a_composition_of_the_worst_silo():
    """Every silo is charged for all rounds with its own size, and the largest epsilon counts."""
    result = run(SGD, record_every=2)
    silos = [hs.FixedSizeSampled(hs.Gaussian(0.2 * 5), n, 5, replacement=False) for n in SILOS.sizes]
    worst = [max(hs.Accountant("replace").compose(s, t).epsilon(1e-5) for s in silos) for t in (2, 4, 6)]
    assert result.epsilon(1e-5) == pytest.approx(worst, rel=1e-12)
    ledger = result.accountant(1e-5)
    assert ledger is not None
    assert ledger.ledger == {silos[2]: 6}
    assert result.guarantee().adjacency == "replace"


@pytest.mark.parametrize(
    ("records", "mechanism", "adjacency", "uses"),
    [
        (simulate.Poisson(0.1), hs.PoissonSampled(hs.Gaussian(0.2 * 2.0), 0.1), "add_or_remove", 6),
        (simulate.EveryRound(), hs.Gaussian(0.2 * 20), "replace", 6),
        (simulate.Cyclic(5), hs.Gaussian(0.2 * 5), "replace", 2),  # two passes of four
        (simulate.Shuffled(5), hs.Gaussian(0.2 * 5), "replace", 2),
        (simulate.Shuffled(3), hs.Gaussian(0.2 * 3), "replace", 1),
    ],
    ids=repr,
)
def test_samplers_have_their_mechanisms(records, mechanism, adjacency, uses):
    """What a batch leaks is the mechanism of its sampler, under its adjacency; batches of one pass are disjoint."""
    problem = simulate.synthetic("logistic", sizes=[20], num_features=3, seed=1)
    algorithm = simulate.NoisyMinibatchSGD(learning_rate=0.5, clip_norm=1.0, noise_std=0.2, records=records)
    guarantee = algorithm.guarantee(problem, rounds=6)
    expected = hs.Accountant(adjacency).compose(mechanism, uses)
    assert guarantee.adjacency == adjacency
    assert guarantee.epsilon(6, 1e-5) == pytest.approx(expected.epsilon(1e-5), rel=1e-12)


@pytest.mark.parametrize("sizes", [(2**15, 2**15 + 1), (2**15 + 1, 2**15)])
def test_silos_that_agree_after_many_rounds_may_differ_before(sizes):
    """After 2^15 + 1 rounds of single records the smaller silo is in its second pass, and pays for two, listed first or last."""
    problem = simulate.Problem("linear", np.ones((sum(sizes), 1)), sizes=sizes)
    expected = hs.Accountant("replace").compose(hs.Gaussian(5.0), 2)
    for records in (simulate.Cyclic(1), simulate.Shuffled(1)):
        algorithm = simulate.NoisyMinibatchSGD(learning_rate=0.1, clip_norm=1.0, noise_std=5.0, records=records)
        guarantee = algorithm.guarantee(problem, rounds=2**15 + 1)
        assert guarantee.epsilon(2**15 + 1, 1e-5) == pytest.approx(expected.epsilon(1e-5), rel=1e-12)
        spent = guarantee.accountant(2**15 + 1, 1e-5)
        assert spent is not None
        assert spent.ledger == expected.ledger


@pytest.mark.parametrize("loss", ["least_squares", "quadratic"])
@pytest.mark.parametrize("clipping", ["batch", "record"])
def test_no_record_makes_a_clipped_run_diverge(loss, clipping):
    """A gradient that overflows is clipped to 0: a model that is not finite would tell of the record, whatever the noise."""
    labels = [1.0, 1.0, 1.0] if loss == "least_squares" else None
    problem = simulate.Problem(loss, [[1e308, 1e308], [1.0, 1.0], [2.0, 1.0]], labels, curvature=10.0)
    algorithm = simulate.NoisyFedAvg(
        learning_rate=1.0, local_steps=2, clip_norm=1.0, noise_std=5.0, clipping=clipping, clients=simulate.FixedSize(1)
    )
    result = run(algorithm, problem, rounds=4, num_runs=20)
    assert np.isfinite(result.last_iterates).all()
    assert abs(result.last_iterates).max() < 100


@pytest.mark.parametrize(("rounds", "error"), [(-1, ValueError), (2.0, TypeError), (True, TypeError)])
def test_guarantees_count_rounds(rounds, error):
    """Only whole numbers of rounds cost something."""
    for algorithm in (SGD, FEDAVG):
        guarantee = algorithm.guarantee(SILOS, rounds=6)
        with pytest.raises(error, match="rounds"):
            guarantee.epsilon(rounds, 1e-5)
        with pytest.raises(error, match="rounds"):
            guarantee.accountant(rounds, 1e-5)
    with pytest.raises(ValueError, match=r"rounds must be at most those planned \(6\), not 7"):
        FEDAVG.guarantee(SILOS, rounds=6).epsilon(7, 1e-5)


def test_local_sgd_composes_every_step():
    """K local steps a round are K mechanisms on single records."""
    algorithm = simulate.LocalSGD(learning_rate=0.1, local_steps=3, clip_norm=2.0, noise_std=4.0)
    problem = simulate.Problem("linear", np.ones((20, 1)))
    step = hs.FixedSizeSampled(hs.Gaussian(2.0), 20, 1, replacement=False)
    expected = hs.Accountant("replace").compose(step, 12).epsilon(1e-5)
    assert algorithm.guarantee(problem, rounds=4).epsilon(4, 1e-5) == pytest.approx(expected, rel=1e-12)


def test_fedavg_has_its_bound():
    """With a public smoothness and all clients the guarantee is fedavg_gdp's or fedprox_gdp's; else rounds are composed."""
    settings: dict[str, Any] = {"learning_rate": 0.1, "local_steps": 3, "clip_norm": 1.0, "noise_std": 0.3}
    shared = settings | {"rounds": 6, "num_clients": 4, "smoothness": 0.25}
    hidden = simulate.NoisyFedAvg(**settings, schedule="stagewise").guarantee(SILOS, rounds=6)
    assert hidden.epsilon(6, 1e-5) == federated.fedavg_epsilon(1e-5, **shared, schedule="stagewise")
    prox = simulate.NoisyFedProx(**settings, prox=2.0).guarantee(SILOS, rounds=6)
    assert prox.epsilon(6, 1e-5) == federated.fedprox_epsilon(1e-5, **shared, prox=2.0)
    private = simulate.Problem("logistic", SILOS.features, SILOS.labels, SILOS.sizes)
    composed = simulate.NoisyFedAvg(**settings, schedule="stagewise").guarantee(private, rounds=6)
    mu = math.sqrt(sum((2 / 4 * 0.1 * 3 / (t + 1) * 2 / 0.3) ** 2 for t in range(6)))
    assert composed.epsilon(6, 1e-5) == pytest.approx(hs.gdp_epsilon(mu, 1e-5), rel=1e-12)
    assert composed.epsilon(6, 1e-5) >= hidden.epsilon(6, 1e-5)


def test_poisson_batches_are_not_as_smooth():
    """A Poisson batch may be larger than its divisor, so that its mean gradient's Lipschitz constant is not the records': no hidden states."""
    algorithm = simulate.NoisyFedAvg(
        learning_rate=0.1,
        local_steps=3,
        clip_norm=1.0,
        noise_std=0.3,
        schedule="stagewise",
        records=simulate.Poisson(0.3),
    )
    guarantee = algorithm.guarantee(SILOS, rounds=6)
    assert guarantee.released == "the averaged model of every round"


def test_trusted_aggregator_has_its_bound():
    """The certified epsilon is where the smallest certified delta, times the share that took part, meets delta."""
    problem = simulate.synthetic("logistic", sizes=[1] * 40, num_features=3, seed=1)
    algorithm = simulate.TrustedAggregator(learning_rate=0.5, clip_norm=1.0, noise_std=1.5, batch_size=4, radius=1.0)
    settings: dict[str, Any] = {
        "batch_size": 4,
        "learning_rate": 0.5,
        "noise_std": 1.5,
        "lipschitz": 1.0,
        "radius": 1.0,
    }
    for rounds in (3, 10):
        epsilon = algorithm.guarantee(problem, rounds=10).epsilon(rounds, 1e-4)
        best = federated.best(epsilon, num_users=4 * rounds, loss="convex", smoothness=0.25, **settings)
        assert best.delta * rounds / 10 == pytest.approx(1e-4, rel=1e-6)
        assert best.delta * rounds / 10 <= 1e-4


def test_tree_sensitivity_by_hand():
    """One pass over 8 rounds: the first is in all 4 nodes that prefixes use; two passes over 4: twice in the upper ones."""
    assert ftrl.tree_sensitivity(8, 8) == 4
    assert ftrl.tree_sensitivity(7, 7) == 3
    # rounds 1 and 5 of 8: own nodes {1}, {5}; {1,2}, {5,6}; {1..4}; {1..8} twice
    assert ftrl.tree_sensitivity(8, 4) == 2 * 1 + 2 * 1 + 1 + 4


def brute_tree(rounds: int, period: int) -> int:
    """Return the sensitivity from the nodes of every prefix, one by one."""
    nodes = {(level, n >> level) for n in range(1, rounds + 1) for level in range(n.bit_length()) if n >> level & 1}
    worst = 0
    for residue in range(min(period, rounds)):
        mine = range(residue + 1, rounds + 1, period)
        worst = max(worst, sum(sum((k - 1) << j < t <= k << j for t in mine) ** 2 for j, k in nodes))
    return worst


@pytest.mark.parametrize(("rounds", "period"), [(1, 1), (5, 5), (11, 4), (23, 3), (32, 8), (33, 33)])
def test_tree_sensitivity_counts_nodes(rounds, period):
    """The sensitivity of tree noise is the sum over nodes that its prefixes are made of."""
    assert ftrl.tree_sensitivity(rounds, period) == brute_tree(rounds, period)


@pytest.mark.parametrize(
    ("algorithm", "problem"),
    [
        (
            simulate.NoisyMinibatchSGD(learning_rate=0.5, clip_norm=1.0, records=simulate.FixedSize(5)),
            SILOS,
        ),  # no noise
        (
            simulate.NoisyMinibatchSGD(
                learning_rate=0.5, clip_norm=math.inf, noise_std=1.0, records=simulate.FixedSize(5)
            ),
            SILOS,
        ),
        (
            simulate.NoisyMinibatchSGD(
                learning_rate=0.5, clip_norm=1.0, noise_std=1.0, records=simulate.WithReplacement(5)
            ),
            SILOS,
        ),
        (
            simulate.ShuffledMinibatchSGD(learning_rate=0.1, clip_norm=1.0, protocol=simulate.BinomialNoise(2, 3, 0.5)),
            SILOS,
        ),
        (simulate.NoisyFedProx(learning_rate=0.9, local_steps=2, clip_norm=1.0, noise_std=1.0, prox=2.0), SILOS),
        (simulate.NoisyFedProx(learning_rate=0.1, local_steps=2, clip_norm=1.0, noise_std=1.0, prox=0.1), SILOS),
        (
            simulate.NoisyFedAvg(
                learning_rate=0.1,
                local_steps=2,
                clip_norm=1.0,
                noise_std=1.0,
                clipping="record",
                records=simulate.Poisson(0.3),
            ),
            SILOS,
        ),
    ],
    ids=[
        "no noise",
        "no clipping",
        "with replacement",
        "binomial",
        "steps too long for prox",
        "prox below smoothness",
        "Poisson batches clipped by record",
    ],
)
def test_nothing_is_certified_without_a_proof(algorithm, problem):
    """Where no bound covers the settings, asking for one says so."""
    with pytest.raises(simulate.NoGuaranteeError):
        algorithm.guarantee(problem, rounds=3)
    with pytest.raises(simulate.NoGuaranteeError):
        run(algorithm, problem, budget=(1.0, 1e-5))


def test_binomial_noise_of_accelerated_sgd_is_not_certified():
    """A protocol in place of Gaussian noise has no guarantee either."""
    protocol = simulate.BinomialNoise(2, 3, 0.5)
    algorithm = simulate.AcceleratedMinibatchSGD(
        scale=2.0, clip_norm=1.0, records=simulate.FixedSize(1), protocol=protocol
    )
    with pytest.raises(simulate.NoGuaranteeError):
        algorithm.guarantee(SILOS, rounds=3)


def test_budget_stops_before_it_is_exceeded():
    """The last round keeps the budget, one more would not; a budget that allows no round, or is spent, is refused."""
    guarantee = SGD.guarantee(SILOS, rounds=50)
    result = run(SGD, rounds=50, budget=(20.0, 1e-5))
    assert result.stopped == "budget"
    assert guarantee.epsilon(result.completed, 1e-5) <= 20.0 < guarantee.epsilon(result.completed + 1, 1e-5)
    assert result.recorded[-1] == result.completed
    assert run(SGD, budget=(1000.0, 1e-5)).stopped == "rounds"
    for spent in (0.0, 0.1):
        with pytest.raises(ValueError, match="budget must allow one round"):
            run(SGD, budget=(spent, 1e-5))


# Divergence


def test_divergence_keeps_what_was_computed():
    """A run that overflows stops, with its round named; what it recorded before is kept, and other runs go on."""
    problem = simulate.Problem("quadratic", [[1.0]])
    algorithm = simulate.ProjectedNoisySGD(learning_rate=1e60, clip_norm=math.inf)
    with pytest.warns(RuntimeWarning, match="1 of 1 runs became non-finite, the first in round 6"):
        result = run(algorithm, problem, rounds=100, record_every=2)  # 1e60, 1e120, ..., 1e300, overflow
    assert (result.stopped, result.completed, result.recorded.tolist()) == ("diverged", 5, [2, 4])
    assert np.isfinite(result.models).all()
    assert abs(result.last_iterates[0, 0]) == pytest.approx(1e300, rel=1e-9)
    # noise so large that it overflows in about half of the runs
    noisy = simulate.ProjectedNoisySGD(learning_rate=1.0, clip_norm=1.0, noise_std=1.5e308)
    with pytest.warns(RuntimeWarning, match="of 20 runs became non-finite"):
        result = run(noisy, problem, rounds=2, num_runs=20, record_every=1)
    lost = result.diverged > 0
    assert 0 < lost.sum() < 20
    assert np.isfinite(result.models[:, ~lost]).all()
    assert np.isnan(result.models[1, lost]).all()
    assert np.isnan(result.loss()[1, lost]).all()


# Data


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


def test_page_runs(capsys):
    """The examples of docs/simulate/simulate.md run, and the budget stops the first of them."""
    pytest.importorskip("sklearn")
    page = Path(__file__).parents[2] / "docs" / "simulate" / "simulate.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    exec(compile("\n".join(blocks), "simulate.md", "exec"), {})  # noqa: S102, the text is ours
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].endswith("budget")
    assert printed[-1] == "True"


LONG = """
from hockeystick import simulate
a = simulate.ProjectedNoisySGD(learning_rate=0.1, clip_norm=1.0, noise_std=1.0)
p = simulate.Problem("linear", [[1.0]])
print("started", flush=True)
simulate.run(a, p, rounds=10**6, seed=1, num_runs=10**5)
"""


def test_ctrl_c_ends_a_long_run():
    """An interrupt ends a run of 10^11 steps within seconds, with KeyboardInterrupt."""
    with processes.child([sys.executable, "-c", LONG]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=processes.seconds(60))[1]
    assert "KeyboardInterrupt" in errors


def test_extra_is_asked_for_by_name():
    """Without numba the module imports, settings can be made, and a run asks for the extra."""
    code = "import sys\nsys.modules['numba'] = None\n" + LONG.replace("10**6", "1").replace("10**5", "1")
    told = processes.python(code, check=False)
    assert told.stdout.startswith("started")
    assert "pip install 'hockeystick[simulate]'" in told.stderr


def test_a_million_rounds():
    """A million rounds, or ten thousand local steps, need no more memory than one."""
    problem = simulate.Problem("quadratic", [[1.0], [3.0]])
    sgd = simulate.ProjectedNoisySGD(learning_rate=0.1, clip_norm=math.inf)
    result = run(sgd, problem, rounds=10**6)
    fixed_point = (0.1 * 3.0 + 0.9 * 0.1 * 1.0) / (1 - 0.9**2)  # of a step to 1 and then one to 3
    assert result.last_iterates[0, 0] == pytest.approx(fixed_point, rel=1e-12)
    fedavg = simulate.NoisyFedAvg(learning_rate=0.01, local_steps=10**4, clip_norm=math.inf)
    assert run(fedavg, problem, rounds=2).last_iterates[0, 0] == pytest.approx(2.0, rel=1e-9)


# What is refused


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"sizes": [3, 0]}, ValueError),  # an empty silo
        ({"sizes": [1, 1]}, ValueError),  # records left over
        ({"sizes": [1.5, 1.5]}, TypeError),
        ({"features": np.empty((0, 2)), "labels": []}, ValueError),  # no records
        ({"features": [[1.0, np.nan]] * 3}, ValueError),
        ({"features": [[1.0, np.inf]] * 3}, ValueError),
        ({"features": [1.0, 2.0, 3.0]}, ValueError),  # not a matrix
        ({"labels": [0, 1]}, ValueError),  # too few
        ({"labels": [0, 1, 2]}, ValueError),  # no class of logistic regression
        ({"labels": [0, 1, -1]}, ValueError),
        ({"labels": [0, 1, 0.5]}, ValueError),
        ({"labels": [0, 1, np.nan]}, ValueError),
        ({"labels": None}, ValueError),
        ({"loss": "softmax", "num_classes": 2, "labels": [0, 1, 2]}, ValueError),
        ({"loss": "softmax", "num_classes": 1}, ValueError),
        ({"loss": "network"}, ValueError),  # without hidden units
        ({"loss": "hinge"}, ValueError),
        ({"loss": 3}, TypeError),
        ({"feature_bound": 0.1}, ValueError),  # below a record's norm
        ({"curvature": 0.0}, ValueError),
    ],
)
def test_bad_problems(arguments, error):
    """A problem that is not one is refused, not trained on."""
    good: dict[str, Any] = {"loss": "logistic", "features": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], "labels": [0, 1, 1]}
    simulate.Problem(**good)
    with pytest.raises(error):
        simulate.Problem(**(good | arguments))


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"learning_rate": 0.0}, ValueError),
        ({"learning_rate": math.nan}, ValueError),
        ({"learning_rate": "0.1"}, TypeError),
        ({"clip_norm": -1.0}, ValueError),
        ({"noise_std": -0.1}, ValueError),
        ({"noise_std": math.inf}, ValueError),
        ({"noise_std": (0.1, -0.1)}, ValueError),
        ({"radius": 0.0}, ValueError),
        ({"local_steps": 0}, ValueError),
        ({"local_steps": -1}, ValueError),
        ({"local_steps": 2.0}, TypeError),
        ({"local_steps": True}, TypeError),
        ({"schedule": "linear"}, ValueError),
        ({"clipping": "silo"}, ValueError),
        ({"records": 5}, TypeError),
        ({"clients": (simulate.EveryRound(),)}, TypeError),
    ],
)
def test_bad_settings(settings, error):
    """Settings outside their domains are refused when they are made."""
    good: dict[str, Any] = {"learning_rate": 0.1, "local_steps": 2, "clip_norm": 1.0, "noise_std": 0.1}
    with pytest.raises(error):
        simulate.NoisyFedAvg(**(good | settings))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"rounds": 0}, ValueError),
        ({"rounds": -3}, ValueError),
        ({"rounds": 2.5}, TypeError),
        ({"rounds": True}, TypeError),
        ({"num_runs": 0}, ValueError),
        ({"num_runs": 1.0}, TypeError),
        ({"first_run": -1}, ValueError),
        ({"seed": -1}, ValueError),
        ({"seed": 2**64}, ValueError),
        ({"seed": 1.5}, TypeError),
        ({"seed": True}, TypeError),
        ({"record_every": 0}, ValueError),
        ({"num_threads": 0}, ValueError),
        ({"budget": 1.0}, TypeError),
        ({"budget": (-1.0, 1e-5)}, ValueError),
        ({"budget": (1.0, 1.0)}, ValueError),
        ({"initial": [0.0]}, ValueError),  # of another dimension
        ({"initial": [math.nan] * 5}, ValueError),
        ({"progress": 1}, TypeError),
        ({"num_runs": 10**6, "rounds": 10**6, "record_every": 1}, ValueError),  # would not fit
    ],
)
def test_bad_runs(arguments, error):
    """Arguments of a run outside their domains are refused before anything runs."""
    with pytest.raises(error):
        run(SGD, **arguments)


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (
            simulate.NoisyMinibatchSGD(learning_rate=0.5, clip_norm=1.0, records=simulate.FixedSize(16)),
            "of silo 2 must",
        ),
        (simulate.NoisyMinibatchSGD(learning_rate=0.5, clip_norm=1.0, records=simulate.Shuffled(16)), "of silo 2 must"),
        (
            simulate.NoisyMinibatchSGD(
                learning_rate=0.5, clip_norm=1.0, records=simulate.FixedSize(5), clients=simulate.FixedSize(5)
            ),
            "clients must draw at most 4",
        ),
        (
            simulate.NoisyMinibatchSGD(
                learning_rate=0.5, clip_norm=1.0, records=simulate.FixedSize(5), clients=simulate.WithReplacement(2)
            ),
            "at most once in a round",
        ),
        (
            simulate.NoisyMinibatchSGD(
                learning_rate=0.5, clip_norm=1.0, noise_std=(0.1, 0.2), records=simulate.FixedSize(5)
            ),
            "Length of noise_std",
        ),
        (simulate.ProjectedNoisySGD(learning_rate=0.5, clip_norm=1.0), "one silo"),
        (simulate.TreeFTRL(learning_rate=0.5, clip_norm=1.0, records=simulate.Cyclic(5), restart=True), "one silo"),
        (
            simulate.MultistageMinibatchSGD(stages=((2, 3.0),), clip_norm=1.0, records=simulate.FixedSize(5)),
            "at most those of all stages",
        ),
    ],
)
def test_settings_must_fit_the_problem(algorithm, message):
    """A batch larger than a silo, or settings for another number of silos, are refused before anything runs."""
    with pytest.raises(ValueError, match=message):
        run(algorithm)

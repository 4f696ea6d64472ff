"""Runs of the simulator: reproducible to the bit, adjacent problems, divergence, and what ends a run."""

import dataclasses
import itertools
import math
import os
import pickle
import sys
import time

import numpy as np
import pytest

import processes
from small_runs import FEDAVG, LEARNT, SGD, SILOS, STAGES, run, step_divisors

pytest.importorskip("numba")

from hockeystick import simulate
from hockeystick.simulate.kernels import loops
from hockeystick.simulate.running import engine
from hockeystick.simulate.running import run as running


def silos(loss, features):
    """Return silos of all sizes up to the block of eight records and beyond, with as many features as vectors or not."""
    more = {"num_classes": 3} if loss == "softmax" else {}
    return simulate.synthetic(loss, sizes=[1, 3, 4, 7, 8, 9, 20, 67], num_features=features, seed=features, **more)


BATCHES = dataclasses.replace(FEDAVG, clients=simulate.EveryRound(), clipping="record", records=simulate.Poisson(0.4))
CASES = {
    "sgd": (SGD, SILOS),
    "fedavg": (FEDAVG, SILOS),
    "dropouts": (dataclasses.replace(FEDAVG, dropout=0.4), SILOS),
    "weights": (dataclasses.replace(FEDAVG, clients=simulate.EveryRound(), client_weights="records"), SILOS),
    "learnt": (LEARNT, SILOS.pooled()),
    "stages": (STAGES, SILOS),
    **{
        f"{loss} {features}": (BATCHES, silos(loss, features))
        for loss, features in (("logistic", 7), ("logistic", 50), ("hinge", 50), ("softmax", 50))
    },
}


@pytest.mark.parametrize(("algorithm", "problem"), CASES.values(), ids=CASES)
def test_only_seed_and_number_of_a_run_decide_its_bits(algorithm, problem, monkeypatch):
    """Threads that share the runs or a run's clients, records, later rounds, and how runs are split into calls change nothing."""

    def found(rounds=6, **arguments):
        result = run(algorithm, problem, rounds=rounds, **({"num_runs": 7} | arguments))
        norms = np.zeros(0) if result.clip_norm is None else result.clip_norm[:, :rounds]
        return result.models[-1].tobytes() + result.last_iterates.tobytes() + norms.tobytes()

    whole = run(algorithm, problem, num_runs=7, record_every=1)
    assert whole.recorded.tolist() == [1, 2, 3, 4, 5, 6]
    assert {found(num_threads=threads, record_every=every) for threads in (1, 2, 3, 7) for every in (1, 4)} == {found()}
    assert np.array_equal(run(algorithm, problem, rounds=4, num_runs=7).models[-1], whole.models[3])
    for first, runs in ((0, 2), (2, 5)):
        part = run(algorithm, problem, first_run=first, num_runs=runs, record_every=1).models
        assert np.array_equal(part, whole.models[:, first : first + runs])
    for name in ("ROUND_SECONDS", "LONG_SECONDS"):  # clients are handed out from the second round on
        monkeypatch.setattr(engine, name, 0.0)
    assert {found(num_runs=1, num_threads=threads, record_every=2) for threads in (1, 2, 3, 7)} == {found(num_runs=1)}
    assert np.array_equal(run(algorithm, problem, num_threads=2).models[-1, 0], whole.models[-1, 0])


@pytest.mark.parametrize(("late", "seconds", "shared"), [(1, 0.02, 0), (2, 0.02, 0), (9, 0.02, 6), (9, 0.2, 8)])
def test_when_threads_share_the_clients_of_a_run(late, seconds, shared, monkeypatch):
    """Not for a quick round because the first ones waited for a processor; for long rounds from the fourth on, for very long ones from the second."""
    alone, together = engine.Engine._runs, engine.Engine._clients
    calls = {"alone": 0, "together": 0}

    def slow(*given):
        calls["alone"] += 1
        alone(*given)
        now[0] += seconds if calls["alone"] <= late else 1e-6

    def count(*given):
        calls["together"] += 1
        together(*given)
        now[0] += seconds

    now = [0.0]
    monkeypatch.setattr(engine.Engine, "_runs", slow)
    monkeypatch.setattr(engine.Engine, "_clients", count)
    monkeypatch.setattr(engine.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(engine, "PIECE_SECONDS", 0.0)  # pieces of one round
    run(FEDAVG, rounds=9, num_threads=2, record_every=2)
    assert calls == {"alone": 9 - shared, "together": shared}


def test_what_compiles_is_told(capsys, monkeypatch):
    """A line where compiling takes longer than two seconds, here none, and where a bar was asked for; else nothing."""
    prepare = engine.Engine.prepare
    monkeypatch.setattr(engine.Engine, "prepare", lambda *given: (time.sleep(0.3), prepare(*given)))
    monkeypatch.setattr(running, "COMPILING_SECONDS", 0.0)
    told = "compiling, once for this installation"
    for progress, seen in ((True, True), (False, False), (None, False)):
        run(SGD, progress=progress)
        assert (told in capsys.readouterr().err) == seen
    monkeypatch.setattr(running, "COMPILING_SECONDS", 60.0)
    run(SGD, progress=True)
    assert told not in capsys.readouterr().err


@pytest.mark.slow
def test_what_a_run_does_not_need_is_not_compiled(tmp_path):
    """A first run of plain gradients compiles few functions, none of trees, acceleration, learnt clipping or own losses; a second process compiles none."""
    program = """
from numba.core import event
recorder = event.RecordingListener()
event.register("numba:compile", recorder)
from hockeystick import simulate
problem = simulate.synthetic("logistic", sizes=[20], num_features=5, seed=1)
algorithm = simulate.ProjectedNoisySGD(learning_rate=0.1, clip_norm=1.0, noise_std=0.1)
simulate.run(algorithm, problem, rounds=2, seed=1)
print(*sorted({e.data["dispatcher"].py_func.__name__ for _, e in recorder.buffer if "cache" not in e.kind}))
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (processes.run([sys.executable, "-c", program], env=environment).stdout.split() for _ in range(2))
    assert "advance" in first
    assert len(first) <= 20
    assert not {"_tree", "_accelerated", "accelerated_point", "release_learnt", "add_own", "add_records"} & {*first}
    assert second == []


@pytest.mark.parametrize(
    "algorithm",
    [
        SGD,
        FEDAVG,
        LEARNT,
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


SCHEDULES = ("constant", "cyclic", "stagewise", "continuous")


@pytest.mark.parametrize(
    ("algorithm", "schedule"), [*itertools.product(["fedavg", "fedprox"], SCHEDULES), ("exact step", "constant")]
)
def test_sensitivity_is_below_its_bounds(algorithm, schedule):
    """Data sensitivity is at most gamma_t, model sensitivity at most rho_t times the gap before, and their sum bounds the gap."""
    rate, local, rounds = 0.4, 4, 12
    problem = simulate.synthetic("logistic", sizes=[3] * 4, num_features=4, seed=3)
    adjacent = problem.replace_record(0, -problem.data.features[0], problem.data.labels[0])
    settings = {"learning_rate": rate, "local_steps": local, "clip_norm": 0.4, "noise_std": 0.1}
    smoothness, prox, room = 0.25, 2.0, 0.0
    rates = rate / step_divisors(schedule, rounds, local)
    if algorithm == "fedprox":
        tested = simulate.NoisyFedProx(**settings, schedule=schedule, prox=prox)
        rho = np.ones(rounds)
        for eta in rates.T:
            rho = (1 - eta * (prox - smoothness)) * rho + eta * prox
    elif algorithm == "exact step":  # Table 3, up to its tolerance
        settings |= {"local_steps": 5000, "learning_rate": 0.2}
        tested, room = simulate.NoisyFedProx(**settings, prox=prox, tolerance=1e-11), 2e-11
        rho = np.full(rounds, prox / (prox - smoothness))
    else:
        tested = simulate.NoisyFedAvg(**settings, schedule=schedule)
        rho = np.prod(1 + rates * smoothness, axis=1)
    gap = simulate.sensitivity(tested, problem, adjacent, rounds=rounds, seed=1, num_runs=5, num_threads=1)
    gamma = tested.data_sensitivity(rounds, 4)[:, np.newaxis]
    if algorithm == "fedavg":
        assert gamma[:, 0] == pytest.approx(2 * 0.4 / 4 * rates.sum(axis=1), rel=1e-12)
    if algorithm == "exact step":
        assert gamma == pytest.approx(2 * 0.4 / (4 * prox), rel=1e-12)
    assert np.all(gap.data <= gamma * (1 + 1e-12))
    assert np.all(gap.model[1:] <= rho[1:, np.newaxis] * gap.total[:-1] * (1 + 1e-9) + room)
    assert np.all(gap.total <= (gap.data + gap.model) * (1 + 1e-9))
    assert gap.data.min() > 0
    here, there = (run(tested, p, rounds=rounds, seed=1, num_runs=5).last_iterates for p in (problem, adjacent))
    assert gap.total[-1] == pytest.approx(np.linalg.norm(here - there, axis=1), rel=1e-12)


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


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
from hockeystick import simulate
a = simulate.ProjectedNoisySGD(learning_rate=0.1, clip_norm=1.0, noise_std=1.0)
p = simulate.Problem("linear", [[1.0]])
print("started", flush=True)
simulate.run(a, p, rounds=1, seed=1)
"""


def test_extra_is_asked_for_by_name():
    """Without numba the module imports, settings can be made, and a run asks for the extra."""
    told = processes.python(WITHOUT_NUMBA, check=False)
    assert told.stdout.startswith("started")
    assert 'pip install ".[simulate]" in a clone' in told.stderr


MEMORY = """
import resource, sys
from hockeystick import simulate
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30,) * 2)
problem = simulate.Problem("linear", [[1.0]] * 5)
sgd = simulate.ProjectedNoisySGD(learning_rate=0.5, clip_norm=1.0, noise_std=2.0, radius=1.0)
for call in (simulate.run, lambda *a, **k: simulate.sensitivity(*a[:1], problem, problem, **k)):
    try:
        call(sgd, problem, rounds=10**9, seed=1, record_every=1)
    except ValueError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of memory")
def test_memory_is_counted_before_it_is_taken():
    """A billion records are refused at once, by name, where there is not even memory for their numbers."""
    began = time.monotonic()
    lines = processes.python(MEMORY).stdout.splitlines()
    assert time.monotonic() - began < processes.seconds(20)
    assert [line.split(" needs ")[0] for line in lines] == ["record_every=1 of rounds=1000000000"] * 2


@pytest.mark.parametrize(("rounds", "every"), [(10, 3), (10, 5), (10, 10), (10, 11), (1, 1), (7, 2)])
def test_recorded_rounds(rounds, every):
    """Every so many rounds are recorded, and the last, each once."""
    expected = sorted({t for t in range(1, rounds + 1) if t % every == 0} | {rounds})
    assert run(SGD, rounds=rounds, record_every=every).recorded.tolist() == expected


# Runs that go through one product have the bits of runs alone.


GROUPED = simulate.synthetic("logistic", sizes=[5, 20, 33, 9], num_features=13, seed=1)
SQUARES = simulate.Problem("least_squares", GROUPED.data.features, GROUPED.data.labels, sizes=[5, 20, 33, 9])
COMMON = {"learning_rate": 0.1, "clip_norm": 1.0}
EVERY = simulate.EveryRound()
FITTING = {
    "local steps": simulate.NoisyFedAvg(local_steps=3, noise_std=0.1, clipping="record", **COMMON),
    "proximal": simulate.NoisyFedProx(local_steps=3, noise_std=0.1, prox=0.5, **COMMON),
    "some clients": simulate.NoisyMinibatchSGD(noise_std=0.1, records=EVERY, clients=simulate.Cyclic(3), **COMMON),
    "some records": simulate.NoisyMinibatchSGD(noise_std=0.1, records=simulate.Cyclic(5), **COMMON),
    "few records": simulate.NoisyMinibatchSGD(noise_std=0.1, records=simulate.Cyclic(3), **COMMON),
    "accelerated": simulate.AcceleratedMinibatchSGD(scale=2.0, clip_norm=1.0, noise_std=0.7, records=EVERY),
}
OTHERS = {
    "drawn clients": simulate.NoisyMinibatchSGD(noise_std=0.1, records=EVERY, clients=simulate.FixedSize(3), **COMMON),
    "drawn records": simulate.NoisyMinibatchSGD(noise_std=0.1, records=simulate.Poisson(0.5), **COMMON),
    "shuffled records": simulate.NoisyMinibatchSGD(noise_std=0.1, records=simulate.Shuffled(5), **COMMON),
    "dropouts": simulate.NoisyFedAvg(local_steps=3, noise_std=0.1, dropout=0.5, **COMMON),
    "solved": simulate.NoisyFedProx(local_steps=3, noise_std=0.1, prox=0.5, tolerance=0.1, **COMMON),
}


@pytest.fixture
def faster_here(monkeypatch):
    """Take runs together on any processor."""
    monkeypatch.setattr(loops, "FASTER_HERE", True)


def run_five(algorithm, problem=GROUPED, **arguments):
    """Run five rounds, recording every second one."""
    return simulate.run(algorithm, problem, rounds=5, seed=3, record_every=2, num_threads=1, **arguments)


def assert_as_alone(algorithm, problem, starts):
    """Compare runs in one call with one call each, which never goes by twos; return the rounds in which they diverged."""
    together = run_five(algorithm, problem, num_runs=len(starts), initial=starts)
    for r, start in enumerate(starts):
        alone = run_five(algorithm, problem, first_run=r, initial=start)
        recorded = len(alone.models)  # up to where it diverged
        assert alone.models[:, 0].tobytes() == together.models[:recorded, r].tobytes()
        assert alone.last_iterates[0].tobytes() == together.last_iterates[r].tobytes()
        assert alone.diverged[0] == together.diverged[r]
    return together.diverged


@pytest.mark.usefixtures("faster_here")
@pytest.mark.parametrize("name", FITTING)
def test_bits_of_runs_alone(name):
    """Seventeen runs, two groups of eight and one left over, are seventeen runs alone; so are those of a group that is nearly full."""
    algorithm = FITTING[name]
    assert loops.can_group(GROUPED.data, algorithm._rule(GROUPED, 5))
    starts = np.random.default_rng(1).normal(size=(17, GROUPED.dimension))
    assert_as_alone(algorithm, GROUPED, starts)
    assert_as_alone(algorithm, GROUPED, starts[:7])


@pytest.mark.usefixtures("faster_here")
@pytest.mark.parametrize("name", OTHERS)
def test_others_run_alone(name):
    """What random numbers decide, or each run by itself, is not shared."""
    assert not loops.can_group(GROUPED.data, OTHERS[name]._rule(GROUPED, 5))


@pytest.mark.usefixtures("faster_here")
def test_one_of_two_fails():
    """A run that becomes infinite goes back by a round, and its neighbour goes on, whichever of the two it is."""
    algorithm = simulate.NoisyMinibatchSGD(
        learning_rate=1e20, clip_norm=np.inf, noise_std=0.1, records=simulate.EveryRound()
    )
    assert loops.can_group(SQUARES.data, algorithm._rule(SQUARES, 5))
    starts = np.ones((6, SQUARES.dimension))
    starts[[1, 2]] = 1e250
    starts[[4, 5]] = [[1e230], [1e270]]
    with pytest.warns(RuntimeWarning, match="non-finite"):
        diverged = assert_as_alone(algorithm, SQUARES, starts)
    assert diverged[0] == diverged[3] == 0
    assert diverged[1] == diverged[2] > diverged[5] > 0
    assert diverged[4] > diverged[1]

"""Runs that go through one product have the bits of runs alone."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from hockeystick import simulate
from hockeystick.simulate.kernels import loops

SILOS = simulate.synthetic("logistic", sizes=[5, 20, 33, 9], num_features=13, seed=1)
SQUARES = simulate.Problem("least_squares", SILOS.data.features, SILOS.data.labels, sizes=[5, 20, 33, 9])
COMMON: dict[str, Any] = {"learning_rate": 0.1, "clip_norm": 1.0}
EVERY = simulate.EveryRound()
FITTING: dict[str, simulate.Algorithm] = {
    "local steps": simulate.NoisyFedAvg(local_steps=3, noise_std=0.1, clipping="record", **COMMON),
    "proximal": simulate.NoisyFedProx(local_steps=3, noise_std=0.1, prox=0.5, **COMMON),
    "some clients": simulate.NoisyMinibatchSGD(noise_std=0.1, records=EVERY, clients=simulate.Cyclic(3), **COMMON),
    "some records": simulate.NoisyMinibatchSGD(noise_std=0.1, records=simulate.Cyclic(5), **COMMON),
    "few records": simulate.NoisyMinibatchSGD(noise_std=0.1, records=simulate.Cyclic(3), **COMMON),
    "accelerated": simulate.AcceleratedMinibatchSGD(scale=2.0, clip_norm=1.0, noise_std=0.7, records=EVERY),
}
OTHERS: dict[str, simulate.Algorithm] = {
    "drawn clients": simulate.NoisyMinibatchSGD(noise_std=0.1, records=EVERY, clients=simulate.FixedSize(3), **COMMON),
    "drawn records": simulate.NoisyMinibatchSGD(noise_std=0.1, records=simulate.Poisson(0.5), **COMMON),
    "shuffled records": simulate.NoisyMinibatchSGD(noise_std=0.1, records=simulate.Shuffled(5), **COMMON),
    "dropouts": simulate.NoisyFedAvg(local_steps=3, noise_std=0.1, dropout=0.5, **COMMON),
    "solved": simulate.NoisyFedProx(local_steps=3, noise_std=0.1, prox=0.5, tolerance=0.1, **COMMON),
}


@pytest.fixture(autouse=True)
def _pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take runs together on any processor."""
    monkeypatch.setattr(loops, "FASTER_HERE", True)


def run(algorithm: simulate.Algorithm, problem: simulate.Problem = SILOS, **arguments: Any) -> simulate.Result:
    """Run five rounds, recording every second one."""
    return simulate.run(algorithm, problem, rounds=5, seed=3, record_every=2, num_threads=1, **arguments)


def assert_as_alone(algorithm: simulate.Algorithm, problem: simulate.Problem, starts: np.ndarray) -> np.ndarray:
    """Compare runs in one call with one call each, which never goes by twos; return the rounds in which they diverged."""
    together = run(algorithm, problem, num_runs=len(starts), initial=starts)
    for r, start in enumerate(starts):
        alone = run(algorithm, problem, first_run=r, initial=start)
        recorded = len(alone.models)  # up to where it diverged
        assert alone.models[:, 0].tobytes() == together.models[:recorded, r].tobytes()
        assert alone.last_iterates[0].tobytes() == together.last_iterates[r].tobytes()
        assert alone.diverged[0] == together.diverged[r]
    return together.diverged


@pytest.mark.parametrize("name", FITTING)
def test_bits_of_runs_alone(name: str) -> None:
    """Seventeen runs, two groups of eight and one left over, are seventeen runs alone; so are those of a group that is nearly full."""
    algorithm = FITTING[name]
    assert loops.can_group(SILOS.data, algorithm._rule(SILOS, 5))
    starts = np.random.default_rng(1).normal(size=(17, SILOS.dimension))
    assert_as_alone(algorithm, SILOS, starts)
    assert_as_alone(algorithm, SILOS, starts[:7])


@pytest.mark.parametrize("name", OTHERS)
def test_others_run_alone(name: str) -> None:
    """What random numbers decide, or each run by itself, is not shared."""
    assert not loops.can_group(SILOS.data, OTHERS[name]._rule(SILOS, 5))


def test_one_of_two_fails() -> None:
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

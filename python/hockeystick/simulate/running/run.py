"""Run an algorithm."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import DELTA, NON_NEGATIVE_OR_INFINITE, Array, count_scalar, scalar, thread_count
from hockeystick._numeric.printing import format_upper
from hockeystick.simulate.algorithms.algorithm import Algorithm
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.result import Result
from hockeystick.simulate.running.rule import RELEASED
from hockeystick.simulate.running.starts import Start, starting_models

if TYPE_CHECKING:
    from hockeystick.simulate.running.engine import Engine

__all__ = ["run"]

MOST_BYTES = 2**32  # of recorded models


def run(
    algorithm: Algorithm,
    problem: Problem,
    *,
    rounds: int,
    seed: int,
    num_runs: int = 1,
    first_run: int = 0,
    initial: Start = None,
    record_every: int | None = None,
    budget: tuple[float, float] | None = None,
    num_threads: int | None = None,
    progress: bool = False,
) -> Result:
    """Run an algorithm once, or many times with independent noise.

    Parameters
    ----------
    algorithm : Algorithm
        What to run.
    problem : Problem
        What to learn.
    rounds : int
        How many rounds, at least 1.
    seed : int
        Of all random streams, in [0, 2^64). The same seed gives the same bits, whatever the number of threads.
    num_runs : int
        How many runs. Their noise, batches and participants are independent of each other.
    first_run : int
        Number of the first run: runs 0 to 9 and then 10 to 19 are those of one call with 20.
    initial : array_like or callable, optional
        Model to start from, shape (dimension,), or (num_runs, dimension) with one for each run; or a law: a function that is given a
        `numpy.random.Generator` for each run and returns a model. By default `Problem.initial`.
    record_every : int, optional
        Record the released model after every so many rounds, and after the last; by default only after the last.
    budget : tuple of (float, float), optional
        (epsilon, delta): stop before the round that would exceed it by the algorithm's guarantee.
    num_threads : int, optional
        Threads to use; all cores by default. They share the runs or, of a single run, the clients.
    progress : bool
        Draw a progress bar.

    Returns
    -------
    Result
        Recorded models, last iterates, and what is certified about them.

    Raises
    ------
    ValueError
        If an argument is outside its domain, settings and problem do not fit, the budget does not allow one round or no
        guarantee covers it, or the recorded models would need more than 4 GiB.
    TypeError
        If an argument is of the wrong type.

    Warns
    -----
    RuntimeWarning
        If a run becomes non-finite. What it recorded before is kept; its round is in `Result.diverged`.

    Notes
    -----
    Noise that is independent of this run's needs another seed (or other runs). Adjacent problems with the *same* seed share
    noise, batches and participants: see `sensitivity`.

    Examples
    --------
    >>> from hockeystick import format_upper, simulate
    >>> silos = simulate.synthetic("logistic", sizes=[40, 60], num_features=5, seed=1)
    >>> algorithm = simulate.NoisyMinibatchSGD(
    ...     learning_rate=0.5, clip_norm=1.0, noise_std=0.2, records=simulate.FixedSize(10)
    ... )
    >>> result = simulate.run(algorithm, silos, rounds=30, seed=7, record_every=10)
    >>> print(result.recorded, result.models.shape, *(format_upper(epsilon, ".2f") for epsilon in result.epsilon(1e-5)))
    [10 20 30] (3, 1, 5) 6.12 8.42 10.33
    """
    if not isinstance(algorithm, Algorithm):
        msg = f"algorithm must be one of the simulator's algorithms, not {algorithm!r}"
        raise TypeError(msg)
    if not isinstance(problem, Problem):
        msg = f"problem must be a Problem, not {problem!r}"
        raise TypeError(msg)
    rounds = planned = count_scalar("rounds", rounds)
    seed = check_seed(seed)
    num_runs = count_scalar("num_runs", num_runs)
    first_run = count_scalar("first_run", first_run, 0)
    start = starting_models(initial, problem, seed, first_run, num_runs)
    every = rounds if record_every is None else count_scalar("record_every", record_every)
    if budget is not None:
        rounds = _affordable(algorithm, problem, rounds, budget)
    recorded = record_rounds("models", rounds, every, num_runs * problem.dimension)
    rule = algorithm._rule(problem, rounds)

    from hockeystick.simulate.running.engine import Engine  # noqa: PLC0415 - numba is asked for when needed

    threads = thread_count(num_threads)
    engine = Engine(rule, seed, first_run, start, num_runs)
    with ThreadPoolExecutor(threads) as pool, bar(rounds, progress) as done:
        advance = partial(engine.advance, problem.data, pool=pool, threads=threads, done=done)
        models = _recorded(engine, advance, recorded)
    lost = engine.failed > 0
    if lost.any():
        msg = f"{lost.sum()} of {num_runs} runs became non-finite, the first in round {engine.failed[lost].min()}"
        warnings.warn(msg, RuntimeWarning, stacklevel=2)
    completed = int(engine.failed.max()) - 1 if lost.all() else rounds
    kept = recorded[recorded <= completed]
    stopped = "diverged" if lost.all() else "budget" if rounds < planned else "rounds"
    return Result(
        algorithm,
        problem,
        seed,
        completed,
        stopped,  # type: ignore[arg-type]
        kept,
        models[: len(kept)],
        engine.states[:, 0].copy(),
        engine.failed,
    )


def _recorded(engine: Engine, advance: Callable[[int, int], object], recorded: NDArray[np.int64]) -> Array:
    """Advance from record to record; return the released models, NaN from the round on in which a run has diverged."""
    models = np.full((len(recorded), len(engine.states), engine.states.shape[2]), np.nan)
    first = 0
    for model, last in zip(models, recorded.tolist(), strict=True):
        advance(first, last)
        alive = engine.failed == 0
        model[alive] = engine.states[alive, RELEASED]
        if not alive.any():
            break
        first = last
    return models


def _affordable(algorithm: Algorithm, problem: Problem, rounds: int, budget: tuple[float, float]) -> int:
    """Return how many rounds the budget allows."""
    if not isinstance(budget, tuple) or len(budget) != 2:
        msg = f"budget must be a tuple (epsilon, delta), not {budget!r}"
        raise TypeError(msg)
    epsilon = scalar("budget[0]", budget[0], *NON_NEGATIVE_OR_INFINITE)
    delta = scalar("budget[1]", budget[1], *DELTA)
    guarantee = algorithm.guarantee(problem, rounds=rounds)
    count = guarantee.affordable(rounds, epsilon, delta)
    if count == 0:
        cost = guarantee.epsilon(1, delta)
        msg = (
            f"budget must allow one round, which costs epsilon = {format_upper(cost)} at delta = {delta}, not {epsilon}"
        )
        raise ValueError(msg)
    return count


def check_seed(seed: int) -> int:
    """Return a seed in [0, 2^64)."""
    if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, (int, np.integer)):
        msg = f"seed must be an integer, not {seed!r}"
        raise TypeError(msg)
    if not 0 <= seed < 2**64:
        msg = f"seed must be an integer in [0, 2^64), not {seed}"
        raise ValueError(msg)
    return int(seed)


def record_rounds(name: str, rounds: int, every: int, numbers: int) -> NDArray[np.int64]:
    """Return every so many rounds, and the last; refuse what would need too much memory with so many numbers a record."""
    records = -(-rounds // every)  # counted before anything of their length is made
    needed = 8 * records * (numbers + 1)
    if needed > MOST_BYTES:
        msg = (
            f"record_every={every} of rounds={rounds} needs {needed / 2**30:.3g} GiB for {records} records of {name}, "
            f"more than {MOST_BYTES >> 30}: record less often, or fewer runs"
        )
        raise ValueError(msg)
    return np.minimum(np.arange(1, records + 1) * every, rounds)


@contextlib.contextmanager
def bar(rounds: int, progress: bool) -> Iterator[Callable[[int], object]]:
    """Give a callback for finished rounds that draws a bar, if asked."""
    if not isinstance(progress, bool):
        msg = f"progress must be True or False, not {progress!r}"
        raise TypeError(msg)
    if not progress:
        yield lambda _: None
        return
    try:
        from tqdm import tqdm  # noqa: PLC0415 - only for a bar
    except ImportError as error:
        message = 'a progress bar needs tqdm: pip install ".[simulate]" in a clone'
        raise ImportError(message) from error
    with tqdm(
        total=rounds, unit="round", unit_scale=rounds > 10**4, miniters=max(1, math.ceil(rounds / 1000))
    ) as drawn:
        yield drawn.update

"""How far one record moves a model: two runs on adjacent problems with shared noise."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick._checks import Array, count_scalar, seed_scalar, thread_count
from hockeystick._checks.shown import shown
from hockeystick.simulate.algorithms.algorithm import Algorithm
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.rule import MODEL
from hockeystick.simulate.running.run import bar, check_initial, record_rounds

__all__ = ["Sensitivity", "sensitivity"]


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Distances between the iterates of two runs on adjacent problems that share noise, batches and participants.

    Attributes
    ----------
    recorded : ndarray
        Numbers of the recorded rounds, from 1; shape (records,).
    total : ndarray
        Distance of both iterates after the round; shape (records, num_runs).
    data : ndarray
        Data sensitivity: distance after the round on either problem from the same model, that of the first run.
    model : ndarray
        Model sensitivity: distance after the round on the adjacent problem from either run's model.
    """

    recorded: NDArray[np.int64]
    total: Array = field(repr=False)
    data: Array = field(repr=False)
    model: Array = field(repr=False)


def sensitivity(
    algorithm: Algorithm,
    problem: Problem,
    adjacent: Problem,
    *,
    rounds: int,
    seed: int,
    num_runs: int = 1,
    initial: ArrayLike | None = None,
    record_every: int = 1,
    num_threads: int | None = None,
    progress: bool = False,
) -> Sensitivity:
    r"""Return how far apart an algorithm's iterates on two problems are, round by round.

    Parameters
    ----------
    algorithm : Algorithm
        What to run.
    problem, adjacent : Problem
        Two problems of the same shape, such as `problem` and `problem.replace_record(...)`.
    rounds : int
        How many rounds, at least 1.
    seed : int
        Of the random streams that both share, in [0, 2^64).
    num_runs : int
        How many pairs of runs.
    initial : array_like, optional
        Model to start from, shape (dimension,); by default `Problem.initial`.
    record_every : int
        Record every so many rounds, and the last.
    num_threads : int, optional
        Threads to use; all cores by default.
    progress : bool
        Draw a progress bar.

    Returns
    -------
    Sensitivity
        Total, data and model sensitivity; NaN where a run has become non-finite.

    Raises
    ------
    ValueError
        If an argument is outside its domain, the problems do not match, or the sensitivities would need more than 4 GiB.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    With the round maps phi, phi' of Sun, Shen and Tao 2024 (Theorem 10), data sensitivity is :math:`\|\phi(w_t) - \phi'(w_t)\|`, at
    most gamma_t, and model sensitivity :math:`\|\phi'(w_t) - \phi'(w'_t)\|`, at most rho_t times the distance before.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> problem = simulate.synthetic("logistic", sizes=[20] * 5, num_features=4, seed=1)
    >>> adjacent = problem.replace_record(0, [0.0, 0.0, 0.0, 1.0], 1)
    >>> algorithm = simulate.NoisyFedAvg(learning_rate=0.1, local_steps=3, clip_norm=1.0, noise_std=0.5)
    >>> gap = simulate.sensitivity(algorithm, problem, adjacent, rounds=4, seed=3)
    >>> print(gap.data.shape, bool((gap.data[:, 0] <= algorithm.data_sensitivity(4, 5)).all()))
    (4, 1) True
    """
    rounds = count_scalar("rounds", rounds)
    seed = seed_scalar("seed", seed)
    num_runs = count_scalar("num_runs", num_runs)
    if (adjacent.loss, adjacent.dimension, adjacent.sizes) != (problem.loss, problem.dimension, problem.sizes):
        msg = f"adjacent must have the loss, dimension and sizes of problem, not {shown(adjacent)}"
        raise ValueError(msg)
    start = check_initial(initial, problem)
    recorded = record_rounds("sensitivities", rounds, count_scalar("record_every", record_every), 3 * num_runs)
    rule = algorithm._rule(problem, rounds)

    from hockeystick.simulate.running.engine import Engine  # noqa: PLC0415 - numba is asked for when needed

    here, there = (Engine(rule, seed, 0, start, num_runs) for _ in range(2))
    out = np.full((3, len(recorded), num_runs), np.nan)
    first = 0
    threads = thread_count(num_threads)
    with ThreadPoolExecutor(threads) as pool, bar(2 * rounds, progress) as done:
        for i, last in enumerate(recorded.tolist()):
            here.advance(problem.data, first, last - 1, pool, threads, done)
            there.advance(adjacent.data, first, last - 1, pool, threads, done)
            across = here.copy()
            for engine, data in ((here, problem.data), (there, adjacent.data), (across, adjacent.data)):
                engine.advance(data, last - 1, last, pool, threads, lambda _: None)
            alive = (here.failed == 0) & (there.failed == 0) & (across.failed == 0)
            pairs = ((here, there), (here, across), (across, there))
            out[:, i, alive] = [_distance(a, b)[alive] for a, b in pairs]
            first = last
    return Sensitivity(recorded, *out)


def _distance(a: object, b: object) -> Array:
    """Return the distance of the iterates of each run."""
    difference = a.states[:, MODEL] - b.states[:, MODEL]  # type: ignore[attr-defined]
    return np.asarray(np.linalg.norm(difference, axis=1))

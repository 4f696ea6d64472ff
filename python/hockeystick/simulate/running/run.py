"""Run an algorithm, to the end, until its budget is spent or until Ctrl-C; or twice, on adjacent problems with shared noise."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick._checks import DELTA, NON_NEGATIVE_OR_INFINITE, Array, choice, count_scalar, real, scalar, thread_count
from hockeystick._checks.arguments import scalars
from hockeystick._checks.doors import level
from hockeystick._checks.shown import shown
from hockeystick._numeric.printing import format_upper
from hockeystick.federated.released_models import VIEWS, View
from hockeystick.simulate.algorithms.algorithm import Algorithm
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.checkpoint import Checkpoint, identity
from hockeystick.simulate.running.result import Recording, Result, Stopped
from hockeystick.simulate.running.rule import MAX_BYTES, MODEL

Start: TypeAlias = "ArrayLike | Callable[[np.random.Generator], ArrayLike] | None"

BAR_SECONDS = 3.0  # after which a bar that was not asked for is drawn
COMPILING_SECONDS = 2.0  # after which it is said that numba compiles


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
    released: View | None = None,
    num_threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
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
        (epsilon, delta): stop before the round that would exceed it by the guarantee of what is released.
    released : str, optional
        What may be seen of the run, as in `Algorithm.guarantee`; by default what the algorithm is meant to release. The budget and the
        result's own guarantee are of that: with "last_model", release no model that was recorded before.
    num_threads : int, optional
        Threads to use; all cores by default. They share the runs or, of a single run, the clients.
    progress : bool, optional
        Draw a progress bar; by default on a terminal, if the run takes longer than three seconds and tqdm is installed.
    checkpoint : str or path, optional
        A file from which the same call goes on after a kill, with the same bits. It is written about every 30 seconds, at the end, and on
        Ctrl-C; of a run that is complete, the result is read from it.

    Returns
    -------
    Result
        Recorded models, last iterates, and what is certified about them.

    Raises
    ------
    ValueError
        If an argument is outside its domain, settings and problem do not fit, the budget does not allow one round or no
        guarantee covers it, the recorded models would need more than 4 GiB, or the checkpoint is damaged or of another run.
    OSError
        If the checkpoint cannot be read or written.
    TypeError
        If an argument is of the wrong type.

    Warns
    -----
    RuntimeWarning
        If a run becomes non-finite. What it recorded before is kept; its round is in `Result.diverged`. Also if Ctrl-C ends the call: it
        returns what there is, with the released model as it is then and `Result.stopped` equal to "interrupted".

    Notes
    -----
    Noise that is independent of this run's needs another seed (or other runs). Adjacent problems with the *same* seed share
    noise, batches and participants: see `sensitivity`.

    Ctrl-C is heard after the round that is being computed; pressed twice, or before the first round, it raises KeyboardInterrupt at once.
    In other threads than the main one, and where a program handles Ctrl-C by itself, it is left to the program.

    A checkpoint goes on only with the algorithm, the problem, the arguments (but threads and progress) and the version of hockeystick
    that it was made with. Another machine may differ in the last bits of exponentials and inner products.

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
    _check_kinds(algorithm, problem)
    rounds, seed, num_runs, first_run = scalars(locals())
    planned = rounds
    start = starting_models(initial, problem, seed, first_run, num_runs)
    every = rounds if record_every is None else count_scalar("record_every", record_every)
    released = None if released is None else choice("released", released, VIEWS)
    if budget is not None:
        rounds = affordable_rounds(algorithm, problem, rounds, budget, released)
    recorded = record_rounds("models", rounds, every, num_runs * problem.dimension)
    rule = algorithm._rule(problem, rounds)

    from hockeystick.simulate.running.engine import Engine  # noqa: PLC0415 - numba is asked for when needed

    recording = Recording(Engine(rule, seed, first_run, start, num_runs), recorded)
    file = None
    if checkpoint is not None:
        settings = {"seed": seed, "first_run": first_run, "num_runs": num_runs, "rounds": rounds, "record_every": every}
        file = Checkpoint(checkpoint, identity(algorithm, problem, **settings, initial=start))
        file.open(recording)
    interrupted = _complete(recording, problem, file, thread_count(num_threads), progress)
    _warn(recording, rounds, interrupted=interrupted, resumes=file is not None)
    stopped = _stopped(recording, interrupted=interrupted, by_budget=rounds < planned)
    kept, models = recording.close()
    left = (recording.completed, stopped, kept, models, recording.last_iterates, recording.engine.failed, rounds)
    return Result(algorithm, problem, seed, *left, clip_norm=recording.clip_norm, released=released)


def _check_kinds(algorithm: Algorithm, problem: Problem) -> None:
    if not isinstance(algorithm, Algorithm):
        raise TypeError(f"algorithm must be one of the simulator's algorithms, not {shown(algorithm)}")
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a Problem, not {shown(problem)}")


def _complete(
    recording: Recording, problem: Problem, file: Checkpoint | None, threads: int, progress: bool | None
) -> bool:
    """Run to the end, and say whether Ctrl-C came before it."""
    engine, rounds = recording.engine, int(recording.rounds[-1])
    before = engine.finished
    with compiling(progress):
        engine.prepare(problem.data)
    with (
        noted() as pressed,
        ThreadPoolExecutor(threads) as pool,
        bar(rounds, progress, finished=engine.finished) as draw,
    ):

        def done(length: int) -> None:
            draw(length)
            if pressed() and engine.finished < rounds:
                raise Interrupted
            if file is not None:
                file.write_if_due(recording)

        interrupted = False
        try:
            recording.run(partial(engine.advance, problem.data, pool=pool, threads=threads, done=done))
        except Interrupted:
            interrupted = True
        if file is not None and engine.finished > before:
            file.write(recording)
    return interrupted


def _stopped(recording: Recording, *, interrupted: bool, by_budget: bool) -> Stopped:
    """Return why there are no more rounds."""
    if (recording.engine.failed > 0).all():
        return "diverged"
    if interrupted:
        return "interrupted"
    return "budget" if by_budget else "rounds"


def _warn(recording: Recording, rounds: int, *, interrupted: bool, resumes: bool) -> None:
    """Warn of what ended runs before their last round."""
    failed = recording.engine.failed
    lost = failed > 0
    if lost.any():
        msg = f"{lost.sum()} of {lost.size} runs became non-finite, the first in round {failed[lost].min()}"
        warnings.warn(msg, RuntimeWarning, stacklevel=level(3))
    if interrupted:
        rest = "; the same call goes on from there" if resumes else ""
        msg = f"interrupted after {recording.completed} of {rounds} rounds{rest}"
        warnings.warn(msg, RuntimeWarning, stacklevel=level(3))


def record_rounds(name: str, rounds: int, every: int, numbers: int) -> NDArray[np.int64]:
    """Return every so many rounds, and the last; refuse what would need too much memory with so many numbers a record."""
    records = -(-rounds // every)  # counted before anything of their length is made
    needed = 8 * records * (numbers + 1)
    if needed > MAX_BYTES:
        raise ValueError(
            f"record_every={every} of rounds={rounds} needs {needed / 2**30:.3g} GiB for {records} records of {name}, "
            f"more than {MAX_BYTES >> 30}: record less often, or fewer runs"
        )
    return np.minimum(np.arange(1, records + 1) * every, rounds)


# Where runs start: one model for all, one for each, or one drawn for each


def check_initial(initial: ArrayLike | None, problem: Problem) -> Array:
    """Return a finite model of the problem's dimension."""
    if initial is None:
        return problem.initial()
    return _finite("initial", initial, (problem.dimension,))


def starting_models(initial: Start, problem: Problem, seed: int, first_run: int, num_runs: int) -> Array:
    """Return the model that every run starts from, shape (num_runs, dimension), or one for all, shape (dimension,).

    A law draws by a generator of the seed and the number of the run, so that a run starts from the same model whichever others there
    are. Its words are not those of the noise, whose streams have the seed as their key.
    """
    if callable(initial):
        draws = (initial(np.random.default_rng([seed, run, 0x6D75])) for run in range(first_run, first_run + num_runs))
        return np.stack([_finite("initial(generator)", draw, (problem.dimension,)) for draw in draws])
    if initial is None or real("initial", initial).ndim < 2:
        return check_initial(initial, problem)
    return _finite("initial", initial, (num_runs, problem.dimension))


def _finite(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    model = real(name, value)
    if model.shape != shape or not np.isfinite(model).all():
        raise ValueError(f"{name} must be finite and of shape {shape}, not {shown(model)}")
    return model


# How many rounds a budget allows


def affordable_rounds(
    algorithm: Algorithm, problem: Problem, rounds: int, budget: tuple[float, float], released: View | None
) -> int:
    """Return how many of the planned rounds the budget allows, by the guarantee of what is released."""
    if not isinstance(budget, tuple) or len(budget) != 2:
        raise TypeError(f"budget must be a tuple (epsilon, delta), not {shown(budget)}")
    epsilon = scalar("budget[0]", budget[0], *NON_NEGATIVE_OR_INFINITE)
    delta = scalar("budget[1]", budget[1], *DELTA)
    guarantee = algorithm.guarantee(problem, rounds=rounds, released=released)
    count = guarantee.affordable(rounds, epsilon, delta)
    # The run is then one of which so many rounds are planned, and it is their guarantee that a result tells.
    while 0 < count < rounds:
        if algorithm.guarantee(problem, rounds=count, released=released).epsilon(count, delta) <= epsilon:
            break
        count -= 1
    if count == 0:
        cost = guarantee.epsilon(1, delta)
        raise ValueError(
            f"budget must allow one round, which costs epsilon = {format_upper(cost)} at delta = {delta}, not {epsilon}"
        )
    return count


# What is seen and heard of a run: Ctrl-C between two pieces, not inside one, so that what was computed before it is whole; and a bar


class Interrupted(Exception):
    """Ctrl-C was pressed, and the state is whole."""


@contextlib.contextmanager
def noted() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether Ctrl-C was pressed; a second one raises KeyboardInterrupt at once.

    Only where Ctrl-C would raise KeyboardInterrupt: in the main thread, with Python's own handler. Elsewhere nothing changes.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    pressed = False

    def note(_signal: int, _frame: object) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def compiling(progress: bool | None) -> Iterator[None]:
    """Say where a bar would be drawn that numba compiles, if it takes more than two seconds."""
    told = threading.Timer(COMPILING_SECONDS, sys.stderr.write, ["compiling, once for this installation\n"])
    if sys.stderr.isatty() if progress is None else progress:
        told.start()
    try:
        yield
    finally:
        told.cancel()


@contextlib.contextmanager
def bar(rounds: int, progress: bool | None, *, finished: int = 0) -> Iterator[Callable[[int], object]]:
    """Give a callback for finished rounds that draws a bar: always, never, or, if None, on a terminal after some seconds."""
    if progress is not None and not isinstance(progress, bool):
        raise TypeError(f"progress must be True, False or None, not {shown(progress)}")
    if progress is False:
        yield lambda _: None
        return
    try:
        from tqdm import tqdm  # noqa: PLC0415 - only for a bar
    except ImportError as error:
        if progress is None:
            yield lambda _: None
            return
        raise ImportError('a progress bar needs tqdm: pip install ".[simulate]" in a clone') from error
    with tqdm(
        total=rounds,
        initial=finished,
        unit="round",
        unit_scale=rounds > 10**4,
        miniters=max(1, math.ceil(rounds / 1000)),
        disable=None if progress is None else False,
        delay=BAR_SECONDS if progress is None else 0,
    ) as drawn:
        yield drawn.update


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
    rounds, seed, num_runs = scalars(locals())
    if (adjacent.loss, adjacent.dimension, adjacent.sizes) != (problem.loss, problem.dimension, problem.sizes):
        raise ValueError(f"adjacent must have the loss, dimension and sizes of problem, not {shown(adjacent)}")
    start = check_initial(initial, problem)
    recorded = record_rounds("sensitivities", rounds, count_scalar("record_every", record_every), 3 * num_runs)
    rule = algorithm._rule(problem, rounds)

    from hockeystick.simulate.running.engine import Engine  # noqa: PLC0415 - numba is asked for when needed

    here, there = (Engine(rule, seed, 0, start, num_runs) for _ in range(2))
    out = np.full((3, len(recorded), num_runs), np.nan)
    first = 0
    threads = thread_count(num_threads)
    with compiling(progress):
        here.prepare(problem.data)
    with ThreadPoolExecutor(threads) as pool, bar(2 * rounds, progress) as done:
        for i, last in enumerate(recorded.tolist()):
            here.advance(problem.data, first, last - 1, pool, threads, done)
            there.advance(adjacent.data, first, last - 1, pool, threads, done)
            across = copy.deepcopy(here, {id(rule): rule})  # the rule, of long arrays, is shared
            for engine, data in ((here, problem.data), (there, adjacent.data), (across, adjacent.data)):
                engine.advance(data, last - 1, last, pool, threads, lambda _: None)
            alive = (here.failed == 0) & (there.failed == 0) & (across.failed == 0)
            pairs = ((here, there), (here, across), (across, there))
            moves = [a.states[alive, MODEL] - b.states[alive, MODEL] for a, b in pairs]
            out[:, i, alive] = np.linalg.norm(moves, axis=2)
            first = last
    return Sensitivity(recorded, *out)

"""What runs record round after round, whole at every moment at which it can be left; and what they leave behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import Array
from hockeystick._checks.hints import needs
from hockeystick._checks.shown import shown
from hockeystick._files import write_whole
from hockeystick.accounting.accountant import Accountant
from hockeystick.federated.released_models import Guarantee, View
from hockeystick.simulate.algorithms.algorithm import Algorithm
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.rule import MODEL, RELEASED

if TYPE_CHECKING:
    from hockeystick.simulate.running.engine import Engine

Stopped: TypeAlias = Literal["rounds", "budget", "diverged", "interrupted"]


class Recording:
    """What was recorded after some rounds, and the engine that makes the next ones."""

    def __init__(self, engine: Engine, rounds: NDArray[np.int64]) -> None:
        self.engine, self.rounds = engine, rounds
        runs, _, dimension = engine.states.shape
        self.models: Array = np.full((len(rounds), runs, dimension), np.nan)
        self.count = 0  # of the rounds that are recorded

    def arrays(self) -> dict[str, Any]:
        """Return all that `restore` needs."""
        engine = self.engine
        return {
            "numbers": np.array([self.count, engine.finished]),
            "states": engine.states,
            "failed": engine.failed,
            "models": self.models[: self.count],
            "clip_norms": engine.clip_norms[:, : engine.finished],
        }

    def restore(
        self, *, numbers: NDArray[np.int64], states: Array, failed: NDArray[np.int64], models: Array, clip_norms: Array
    ) -> None:
        """Set the recording and its engine to a saved state."""
        self.count, self.engine.finished = numbers.tolist()
        self.models[: self.count] = models
        self.engine.states[:], self.engine.failed[:] = states, failed
        self.engine.clip_norms[:, : clip_norms.shape[1]] = clip_norms

    def run(self, advance: Callable[[int, int], object]) -> None:
        """Advance from record to record, to the last or until no run is finite."""
        while self.count < len(self.rounds) and not self.engine.failed.all():
            advance(self.engine.finished, int(self.rounds[self.count]))
            self._record()

    def _record(self) -> None:
        """Keep the released models; those of a run that has diverged stay NaN."""
        alive = self.engine.failed == 0
        self.models[self.count, alive] = self.engine.states[alive, RELEASED]
        self.count += 1

    def close(self) -> tuple[NDArray[np.int64], Array]:
        """Record the present round, if it is not; return the recorded rounds that a run finished at least, and their models."""
        rounds = self.rounds[: self.count]
        if self.engine.finished > max(rounds, default=0):
            self._record()
            rounds = np.append(rounds, self.engine.finished)
        count = int((rounds <= self.completed).sum())
        return rounds[:count].copy(), self.models[:count]

    @property
    def completed(self) -> int:
        """How many rounds at least one run finished."""
        lost = self.engine.failed
        return int(lost.max()) - 1 if lost.all() else self.engine.finished

    @property
    def last_iterates(self) -> Array:
        """The iterates as they are now."""
        return self.engine.states[:, MODEL].copy()

    @property
    def clip_norm(self) -> Array | None:
        """The clip norms after the completed rounds, or None where they are not learnt."""
        learnt = self.engine.clip_norms
        return learnt[:, : self.completed].copy() if learnt.size else None


@dataclass(frozen=True, eq=False)
class Result:
    """The recorded models of all runs, and what is certified about them.

    Attributes
    ----------
    algorithm, problem, seed
        What was run.
    completed : int
        Rounds that at least one run finished.
    stopped : {"rounds", "budget", "diverged", "interrupted"}
        Why there are no more: all planned rounds are done, the next would exceed the budget, no run is finite, or Ctrl-C.
    recorded : ndarray
        Numbers of the recorded rounds, from 1; shape (records,).
    models : ndarray
        What the algorithm releases after each of them; shape (records, num_runs, dimension), NaN where a run has diverged.
    last_iterates : ndarray
        The last iterate of every run; shape (num_runs, dimension). Where a run has diverged, the last finite one. Guarantees of a
        random stop do not cover it.
    diverged : ndarray
        The round in which a run became non-finite, 0 if it did not; shape (num_runs,).
    planned : int
        Rounds that were to be run. Guarantees are those of a run of so many that was stopped: schedules and random stops depend on it.
    clip_norm : ndarray or None
        Where the clip norm is learnt, what each round left for the next; shape (num_runs, completed), NaN from the round on in which a
        run diverged. The first round clips at the algorithm's `clip_norm`.
    released : str or None
        What may be seen, as `run` was told; None for what the algorithm is meant to release.
    """

    algorithm: Algorithm
    problem: Problem
    seed: int
    completed: int
    stopped: Stopped
    recorded: NDArray[np.int64] = field(repr=False)
    models: Array = field(repr=False)
    last_iterates: Array = field(repr=False)
    diverged: NDArray[np.int64] = field(repr=False)
    planned: int
    clip_norm: Array | None = field(default=None, repr=False)
    released: View | None = None

    @property
    def num_runs(self) -> int:
        """How many runs there are."""
        return len(self.last_iterates)

    def loss(self, problem: Problem | None = None) -> Array:
        """Return the mean loss of every recorded model.

        Parameters
        ----------
        problem : Problem, optional
            Whose records; those trained on by default.

        Returns
        -------
        ndarray
            Shape (records, num_runs).

        Raises
        ------
        ValueError
            If the problem's models have another dimension.
        """
        return self._evaluate(problem)[0]

    def accuracy(self, problem: Problem | None = None) -> Array:
        """Return the share of records whose class every recorded model predicts.

        Parameters
        ----------
        problem : Problem, optional
            Whose records; those trained on by default.

        Returns
        -------
        ndarray
            Shape (records, num_runs).

        Raises
        ------
        ValueError
            If the loss has no classes, or the problem's models have another dimension.
        """
        if not self.problem.classifies:
            raise ValueError(f"accuracy is for classes, not for loss={shown(self.problem.loss)}")
        return self._evaluate(problem)[1]

    def _evaluate(self, problem: Problem | None) -> tuple[Array, Array]:
        from hockeystick.simulate.running.engine import evaluate  # noqa: PLC0415 - numba is asked for when needed

        other = problem or self.problem
        if (other.loss, other.dimension) != (self.problem.loss, self.problem.dimension):
            raise ValueError(
                f"problem must have the loss {shown(self.problem.loss)} and the dimension {self.problem.dimension}, not {shown(other.loss)}, {other.dimension}"
            )
        flat = self.models.reshape(-1, self.problem.dimension)
        loss, correct = evaluate(other.data, flat, classes=self.problem.classifies)
        shape = self.models.shape[:2]
        return loss.reshape(shape), correct.reshape(shape) if correct.size else correct

    def guarantee(self, *, index: int | None = None, released: View | None = None) -> Guarantee:
        """Return what is certified about these runs, each for itself.

        Parameters
        ----------
        index : int, optional
            The record whose guarantee is asked, as in `Algorithm.guarantee`.
        released : str, optional
            What may be seen, as in `Algorithm.guarantee`; by default as `run` was told.

        Returns
        -------
        Guarantee
            Adjacency, what is released, which function certifies.

        Raises
        ------
        NoGuaranteeError
            If no certified bound covers the settings.
        """
        view = released or self.released
        return self.algorithm.guarantee(self.problem, rounds=self.planned, index=index, released=view)

    def epsilon(self, delta: float, *, index: int | None = None, released: View | None = None) -> Array:
        """Return the certified epsilon of one run after every recorded round.

        Parameters
        ----------
        delta : float
            In [0, 1).
        index : int, optional
            The record whose epsilon is asked, as in `Algorithm.guarantee`.
        released : str, optional
            What may be seen, as in `Algorithm.guarantee`; by default as `run` was told.

        Returns
        -------
        ndarray
            Upper ends; shape (records,).

        Raises
        ------
        NoGuaranteeError
            If no certified bound covers the settings.
        """
        guarantee = self.guarantee(index=index, released=released)
        return np.array([guarantee.epsilon(int(t), delta) for t in self.recorded])

    def accountant(self, delta: float) -> Accountant | None:
        """Return the accountant, with its ledger, of the silo that loses most, or None for a bound of hidden states.

        Parameters
        ----------
        delta : float
            Decides which silo that is; in [0, 1).

        Returns
        -------
        Accountant or None
            After the completed rounds.

        Raises
        ------
        NoGuaranteeError
            If no certified bound covers the settings.
        """
        return self.guarantee().accountant(self.completed, delta)

    def to_parquet(
        self, path: str | Path, *, delta: float | None = None, test: Problem | None = None, models: bool = False
    ) -> None:
        """Write one row for every recorded round and run: run, round, loss, accuracy, epsilon, clip_norm, model. The file appears as a whole.

        Parameters
        ----------
        path : str or path
            Of the file.
        delta : float, optional
            If given, epsilon at this delta is written.
        test : Problem, optional
            If given, loss and accuracy are those on its records.
        models : bool
            Write the models, too: a column of lists of fixed size.

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        ValueError
            If no certified bound covers the settings, and delta is given.
        """
        with needs("sweep", "writing Parquet needs pyarrow"):
            import pyarrow as pa  # noqa: PLC0415 - asked for when needed
            import pyarrow.parquet as pq  # noqa: PLC0415
        loss, correct = self._evaluate(test)
        columns: dict[str, Any] = {
            "run": np.tile(np.arange(self.num_runs), len(self.recorded)),
            "round": np.repeat(self.recorded, self.num_runs),
            "loss": loss.ravel(),
        }
        if correct.size:
            columns["accuracy"] = correct.ravel()
        if delta is not None:
            columns["epsilon"] = np.repeat(self.epsilon(delta), self.num_runs)
        if self.clip_norm is not None:
            columns["clip_norm"] = self.clip_norm[:, self.recorded - 1].T.ravel()
        if models:
            columns["model"] = pa.FixedSizeListArray.from_arrays(pa.array(self.models.ravel()), self.problem.dimension)
        about = {"algorithm": repr(self.algorithm), "seed": str(self.seed), "stopped": self.stopped}
        table = pa.table(columns).replace_schema_metadata(about)
        write_whole(Path(path), lambda file: pq.write_table(table, file))

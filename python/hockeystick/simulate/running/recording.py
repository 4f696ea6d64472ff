"""The released models of some runs, round after round; whole at every moment at which it can be left."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import Array
from hockeystick.simulate.running.rule import MODEL, RELEASED

if TYPE_CHECKING:
    from hockeystick.simulate.running.engine import Engine

__all__ = ["Recording"]


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
        numbers = np.array([self.count, engine.finished])
        return {
            "numbers": numbers,
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

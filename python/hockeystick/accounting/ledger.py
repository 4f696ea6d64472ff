"""The part of an accountant that records what was composed, in which order, and under which adjacency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hockeystick._checks import LARGEST_COUNT, choice, count_scalar
from hockeystick._checks.peers_words import unknown_name
from hockeystick._numeric.notebook import table
from hockeystick.accounting import engines
from hockeystick.accounting.composition import Composition
from hockeystick.accounting.renyi.divergence import require_supported
from hockeystick.accounting.state import dump, load
from hockeystick.accounting.turns import LOCK, Shared
from hockeystick.mechanisms.base import ADJACENCIES, ALSO_CALLED, Adjacency, Mechanism, require_mechanism

if TYPE_CHECKING:
    from typing_extensions import Self


class Steps(Shared):
    """How often each mechanism was composed, under one adjacency."""

    def __init__(self, adjacency: Adjacency) -> None:
        """Start with nothing composed."""
        self._adjacency: Adjacency = choice("adjacency", adjacency, ADJACENCIES, ALSO_CALLED)
        self._ledger: dict[Mechanism, int] = {}

    @property
    def adjacency(self) -> Adjacency:
        """Which data sets are adjacent."""
        return self._adjacency

    @property
    def ledger(self) -> Mapping[Mechanism, int]:
        """How often each mechanism was composed so far, read-only; what is composed later is not in it."""
        return MappingProxyType(self._counts())

    def __len__(self) -> int:
        """Return the number of steps."""
        return sum(self._counts().values())

    def __bool__(self) -> bool:
        """Return True, even if nothing is composed: a length of 0 must not make it false."""
        return True

    def _counts(self) -> dict[Mechanism, int]:
        """Return how often each mechanism was composed, between two changes."""
        with LOCK:
            return dict(self._ledger)

    def _checked(self, mechanism: Mechanism, count: int) -> int:
        """Return the checked count, after checking that the mechanism is supported under this adjacency."""
        require_mechanism(mechanism)
        if isinstance(count, float) and float(count).is_integer():  # 1202.0, as `dpsgd_steps` gives it
            count = int(count)
        count = count_scalar("count", count)
        if mechanism not in self._ledger:
            require_supported(mechanism, self._adjacency)  # so that compose raises, and not a later query
        return count


def _total(before: int, count: int) -> int:
    total = before + count
    return total if total <= LARGEST_COUNT else count_scalar("count", total)


class Ledger(Steps):
    """The part of `Accountant` that composes, saves and loads."""

    def __init__(self, adjacency: Adjacency = "add_or_remove", engine: engines.Engine = "auto") -> None:
        """Start with nothing composed."""
        super().__init__(adjacency)
        self._engine: engines.Engine = choice("engine", engine, engines.ENGINES)
        self._runs: list[tuple[Mechanism, int]] = []  # in the order of composition, equal neighbours merged
        self._composed: Composition | None = None  # of the present ledger; kept between questions, dropped by compose

    if not TYPE_CHECKING:  # a checker would take every name for one that is there

        def __getattr__(self, name):
            """Say which name was meant."""
            raise AttributeError(unknown_name(repr(type(self).__name__), name, dir(type(self))))

    @property
    def engine(self) -> engines.Engine:
        """Which engine answers."""
        return self._engine

    def __repr__(self) -> str:
        """Return adjacency, engine and ledger in words."""
        steps = ", ".join(f"{count} x {mechanism!r}" for mechanism, count in self._counts().items())
        return f"<{type(self).__name__}: {steps or 'nothing composed'}; {self._adjacency}, engine {self._engine!r}>"

    def _repr_html_(self) -> str:
        """Return what was composed as a table, for a notebook."""
        caption = f"{type(self).__name__}: {self._adjacency}, engine {self._engine!r}"
        steps = [(f"{count} x", repr(mechanism)) for mechanism, count in self._counts().items()]
        return table(caption, steps or [("", "nothing composed")])

    def compose(self, mechanism: Mechanism, count: int = 1) -> Self:
        """Add steps, and return the accountant itself. Threads may compose at once.

        Parameters
        ----------
        mechanism : Mechanism
            What each step releases.
        count : int
            How many equal steps, in [1, 2^53]; 1202.0, as `dpsgd_steps` returns it, is 1202. Composing one at a time costs queries nothing: equal steps are merged.

        Returns
        -------
        Accountant
            The same object, so that calls can be chained.

        Raises
        ------
        ValueError
            If the mechanism has no proven dominating pair under this adjacency, or a total count exceeds 2^53.
        TypeError
            If an argument is of the wrong type.
        RuntimeError
            If a signal handler composes while the thread that it interrupts is composing; nothing was added.
        """
        count = self._checked(mechanism, count)
        with LOCK:  # `_change` written out: a fifth fewer instructions for a ledger of many mechanisms
            if self._changing:
                raise self._interrupted()
            self._changing = True
            try:
                self._add(mechanism, count, _total(self._ledger.get(mechanism, 0), count))
            finally:
                self._changing = False
        return self

    def _compose_together(self, steps: Sequence[tuple[Mechanism, int]]) -> None:
        """Add all the steps, or none of them if one is refused."""
        steps = [(mechanism, self._checked(mechanism, count)) for mechanism, count in steps]
        with self._change():
            totals: dict[Mechanism, int] = {}
            for mechanism, count in steps:
                totals[mechanism] = _total(totals.get(mechanism) or self._ledger.get(mechanism, 0), count)
            for mechanism, count in steps:
                self._add(mechanism, count, totals[mechanism])

    def _add(self, mechanism: Mechanism, count: int, total: int) -> None:
        """Add checked steps, which make `total` in the ledger."""
        self._composed = None
        self._ledger[mechanism] = total
        if self._runs and self._runs[-1][0] == mechanism:
            self._runs[-1] = (mechanism, self._runs[-1][1] + count)
        else:
            self._runs.append((mechanism, count))

    def _composition(self) -> Composition:
        """Return the present ledger as the core holds it. A query asks one composition alone, and so sees one ledger."""
        with LOCK:
            composed = self._composed
            if composed is None:
                composed = Composition(self._ledger, self._adjacency)
                if not self._changing:  # else a signal handler asks, and the change that it interrupts goes on
                    self._composed = composed
            return composed

    def _in_order(self) -> list[tuple[Mechanism, int]]:
        """Return the runs, between two changes."""
        with LOCK:
            return list(self._runs)

    def state_dict(self) -> dict[str, Any]:
        """Return the accountant as plain JSON values, with a version.

        Returns
        -------
        dict
            For `from_state_dict`, today or in a later release.
        """
        return dump(self._adjacency, self._engine, self._in_order())

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """Return the accountant whose `state_dict` this is.

        Parameters
        ----------
        state : mapping
            What `state_dict` returned, perhaps through JSON.

        Returns
        -------
        Accountant
            Equal in every answer.

        Raises
        ------
        ValueError
            If the version is unknown, or something is missing or wrong.
        """
        adjacency, engine, runs = load(state)
        accountant = cls(adjacency, engine)
        for mechanism, count in runs:
            accountant.compose(mechanism, count)
        return accountant

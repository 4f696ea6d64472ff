"""The part of an accountant that records what was composed, in which order, and under which adjacency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hockeystick._checks import choice, count_scalar
from hockeystick._checks.peers_words import unknown_name
from hockeystick._checks.shown import counted, shown
from hockeystick._numeric.notebook import table
from hockeystick.accounting import engines
from hockeystick.accounting.composition import Composition
from hockeystick.accounting.record import Block, Counts, Record
from hockeystick.accounting.renyi.divergence import require_supported
from hockeystick.accounting.state import dump, load
from hockeystick.accounting.turns import Shared
from hockeystick.mechanisms.base import ADJACENCIES, ALSO_CALLED, Adjacency, Mechanism, require_mechanism

if TYPE_CHECKING:
    from typing_extensions import Self

ROWS = 20  # of the table in a notebook


class Steps(Shared[Record]):
    """How often each mechanism was composed, under one adjacency."""

    def __init__(self, adjacency: Adjacency, record: Record = Record()) -> None:  # noqa: B008, it never changes
        """Start with nothing composed."""
        self._adjacency: Adjacency = choice("adjacency", adjacency, ADJACENCIES, ALSO_CALLED)
        super().__init__(record)

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
        return self._state.num_steps

    def __bool__(self) -> bool:
        """Return True, even if nothing is composed: a length of 0 must not make it false."""
        return True

    def _counts(self) -> dict[Mechanism, int]:
        """Return how often each mechanism was composed."""
        return self._state.counts.totals()

    def _checked(self, mechanism: Mechanism, count: int) -> int:
        """Return the checked count, after checking that the mechanism is supported under this adjacency."""
        require_mechanism(mechanism)
        if isinstance(count, float) and float(count).is_integer():  # 1202.0, as `dpsgd_steps` gives it
            count = int(count)
        count = count_scalar("count", count)
        if not self._state.counts.find(mechanism)[1]:
            require_supported(mechanism, self._adjacency)  # so that compose raises, and not a later query
        return count


class Ledger(Steps):
    """The part of `Accountant` that composes, saves and loads."""

    def __init__(self, adjacency: Adjacency = "add_or_remove", engine: engines.Engine = "auto") -> None:
        """Start with nothing composed."""
        super().__init__(adjacency)
        self._engine: engines.Engine = choice("engine", engine, engines.ENGINES)
        self._composed: tuple[Counts, Composition] | None = None  # kept between questions, and what it is of

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
        steps = counted(self._counts())
        return f"<{type(self).__name__}: {steps or 'nothing composed'}; {self._adjacency}, engine {self._engine!r}>"

    def _repr_html_(self) -> str:
        """Return what was composed as a table, for a notebook."""
        caption = f"{type(self).__name__}: {self._adjacency}, engine {self._engine!r}"
        ledger = self._counts()
        steps = [(f"{count} x", shown(mechanism)) for mechanism, count in islice(ledger.items(), ROWS)]
        more = [("", f"and {len(ledger) - ROWS} more mechanisms")] if len(ledger) > ROWS else []
        return table(caption, [*steps, *more] or [("", "nothing composed")])

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
        """
        count = self._checked(mechanism, count)
        self._change(lambda record: record.plus(mechanism, count))
        return self

    def _compose_together(self, steps: Sequence[tuple[Mechanism, int]]) -> None:
        """Add all the steps, or none of them if one is refused."""
        steps = [(mechanism, self._checked(mechanism, count)) for mechanism, count in steps]
        self._change(lambda record: reduce(lambda longer, step: longer.plus(*step), steps, record))

    def _composition(self) -> Composition:
        """Return the present ledger as the core holds it. A query asks one composition alone, and so sees one ledger."""
        counts, kept = self._state.counts, self._composed
        if kept is None or kept[0] is not counts:
            self._composed = kept = (counts, Composition(counts.totals(), self._adjacency))
        return kept[1]

    def state_dict(self) -> dict[str, Any]:
        """Return the accountant as plain JSON values, with a version.

        Returns
        -------
        dict
            For `from_state_dict`, today or in a later release.
        """
        return dump(self._adjacency, self._engine, self._state.steps())

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
        adjacency, engine, steps = load(state)
        accountant = cls(adjacency, engine)
        for what, count in steps:
            if isinstance(what, tuple):
                accountant._repeat(what, count)
            else:
                accountant.compose(what, count)
        return accountant

    def _repeat(self, block: Block, times: int) -> None:
        """Add a block of steps so many times."""
        block, times = self._checked_block(block), count_scalar("count", times)
        self._change(lambda record: record.plus_block(block, times))

    def _checked_block(self, block: Block) -> Block:
        return tuple(
            (self._checked_block(what), count_scalar("count", count))
            if isinstance(what, tuple)
            else (what, self._checked(what, count))
            for what, count in block
        )

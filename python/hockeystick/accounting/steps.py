"""Steps that were composed: how often each mechanism, and in which order, as values that never change, and an object that grows.

The order is kept in the size of what repeats. It is a list of items; an item is a run, a mechanism with a count, or a block, some items
with how often they come. When a run ends, the items at the end of the list are compared with those before them:

    g h   g h        becomes   (g h) x 2
    (g h) x 2   g h  becomes   (g h) x 3

The shortest block is taken, of at most `LONGEST` items, and blocks are in blocks up to `NESTED` deep. What repeats after more items than that
is kept run by run. No run is lost or moved: written out, the items are the runs that were composed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, cast

from hockeystick._checks import LARGEST_COUNT, checked_count, choice, count_scalar
from hockeystick.accounting.locking import ThreadSafe
from hockeystick.accounting.renyi_divergence import require_bound
from hockeystick.mechanisms.base import ADJACENCIES, ALSO_CALLED, Adjacency, Mechanism, require_mechanism

LONGEST = 32  # items of a block: a training that changes between so many noises and begins again
NESTED = 5  # blocks within each other
LATE = 32  # ended runs that may stand beside the counts; more beside those of many mechanisms

Item: TypeAlias = "tuple[Step | tuple[Item, ...], int]"  # a step or a block, and how often it comes
Block: TypeAlias = "tuple[tuple[Mechanism | Block, int], ...]"  # items with mechanisms instead of steps
Stack: TypeAlias = "tuple[Stack, Item] | None"  # the last item on top


class Step:
    """A mechanism in records: one object for all that are equal, so that records compare objects and no parameters."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.has_come = False  # whether a run of it ended in some record; otherwise the end of one repeats nothing


def _items(stack: Stack) -> tuple[Item, ...]:
    """Return the items of a stack, the first one first."""
    items = []
    while stack is not None:
        stack, item = stack
        items.append(item)
    return tuple(reversed(items))


def _written_out(items: tuple[Item, ...]) -> Iterator[tuple[Mechanism, int]]:
    for what, count in items:
        if isinstance(what, Step):
            yield what.mechanism, count
        else:
            for _ in range(count):
                yield from _written_out(what)


def _folded(stack: tuple[Stack, Item]) -> Stack:
    """Return the stack with its last items as a block, or in the one before them, if they repeat what stands there."""
    rest, last = stack
    recent = [last]  # the last one first
    while rest is not None and len(recent) <= LONGEST:
        below, item = rest
        what, times = item
        if type(what) is tuple and len(what) == len(recent) and what == tuple(reversed(recent)):
            return _folded((below, (what, times + 1)))
        if item == last:
            same, under = _begins_with(rest, recent)
            if same and max(map(_depth, recent)) < NESTED:
                return _folded((under, (tuple(reversed(recent)), 2)))
        recent.append(item)
        rest = below
    return stack


def _begins_with(stack: Stack, recent: list[Item]) -> tuple[bool, Stack]:
    """Say whether these items are on top of a stack, and return what is under them."""
    for item in recent:
        if stack is None or stack[1] != item:
            return False, None
        stack = stack[0]
    return True, stack


def _depth(item: Item) -> int:
    return 1 + max(map(_depth, item[0])) if isinstance(item[0], tuple) else 0


class Record(NamedTuple):
    """What was composed; and of a filter, what was spent of each of its budgets.

    The last run stands apart, since it may go on: a step more of its mechanism then leaves all else as it is. Runs that ended
    lately are not counted yet, so that a ledger of n mechanisms is changed in a time of root n, and its changes share what they hold.
    """

    counts: dict[Step, int] = {}  # noqa: RUF012, how often each came before the late runs, in the order in which they came first; it never changes
    late: Stack = None  # the runs that ended since
    num_late: int = 0
    ended: Stack = None  # the runs and blocks before the last run
    last: Step | None = None  # the step of the last run; None at the start, and after a block
    times: int = 0  # how often it came in that run
    num_steps: int = 0
    spent: tuple[Fraction, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a copy or a pickle is made from: the stacks themselves would be too deep."""
        return _restored, (_counted(self.counts, self.late), _items(self.ended), *self[4:])

    def count_of(self, step: Step) -> int:
        """Return how often a step came."""
        late = sum(count for what, count in _items(self.late) if what is step)
        return self.counts.get(step, 0) + late + (self.times if step is self.last else 0)

    def _all_counts(self) -> dict[Step, int]:
        """Return how often each step came, in the order in which they came first; a dictionary of its own."""
        return _counted(self.counts, self.late if self.last is None else (self.late, (self.last, self.times)))

    def totals(self) -> dict[Mechanism, int]:
        """Return how often each mechanism was composed."""
        return {step.mechanism: total for step, total in self._all_counts().items()}

    def plus(self, step: Step, count: int) -> Record:
        """Return the record with steps more, or raise ValueError if they are too many."""
        counts, late, num_late, ended, last, times, num_steps, spent = self
        num_steps += count
        if num_steps > LARGEST_COUNT:
            count_scalar("count", self.count_of(step) + count)
        if step is last:  # a tuple at once: the constructor of a named one is a function in between
            return tuple.__new__(Record, (counts, late, num_late, ended, last, times + count, num_steps, spent))
        if last is not None:
            run = last, times
            ended = _folded((ended, run)) if last.has_come else (ended, run)
            last.has_come = True
            late, num_late = (late, run), num_late + 1
            if num_late > LATE and num_late**2 > len(counts):
                counts, late, num_late = _counted(counts, late), None, 0
        return tuple.__new__(Record, (counts, late, num_late, ended, step, count, num_steps, spent))

    def plus_block(self, block: tuple[Item, ...], times: int) -> Record:
        """Return the record with a block more, or raise ValueError if its steps are too many."""
        counts, num_steps = self._all_counts(), self.num_steps
        for step, count in _multiplied(block, times):
            step.has_come = True
            counts[step] = count_scalar("count", counts.get(step, 0) + count)
            num_steps += count
        ended = self.ended if self.last is None else (self.ended, (self.last, self.times))
        return Record(counts, ended=(ended, (block, times)), num_steps=num_steps, spent=self.spent)

    def _in_order(self) -> tuple[Item, ...]:
        last = () if self.last is None else ((self.last, self.times),)
        return (*_items(self.ended), *last)

    def runs(self) -> Iterator[tuple[Mechanism, int]]:
        """Return the mechanisms and counts of all runs, the first one first."""
        return _written_out(self._in_order())

    def steps(self) -> Block:
        """Return the items in order, with mechanisms instead of steps."""
        return _with_mechanisms(self._in_order())


def _counted(counts: dict[Step, int], late: Stack) -> dict[Step, int]:
    """Return new counts: these, and the late runs."""
    counts = counts.copy()
    for step, count in cast("tuple[tuple[Step, int], ...]", _items(late)):  # no blocks are late
        counts[step] = counts.get(step, 0) + count
    return counts


def _restored(counts: dict[Step, int], ended: tuple[Item, ...], *others: Any) -> Record:
    stack: Stack = None
    for item in ended:
        stack = (stack, item)
    return Record(counts, None, 0, stack, *others)


def _multiplied(block: tuple[Item, ...], times: int) -> Iterator[tuple[Step, int]]:
    for what, count in block:
        if isinstance(what, Step):
            yield what, count * times
        else:
            yield from _multiplied(what, count * times)


def _with_mechanisms(items: tuple[Item, ...]) -> Block:
    return tuple((what.mechanism if isinstance(what, Step) else _with_mechanisms(what), count) for what, count in items)


class Steps(ThreadSafe[Record]):
    """How often each mechanism was composed, under one adjacency."""

    def __init__(self, adjacency: Adjacency, record: Record = Record()) -> None:  # noqa: B008, it never changes
        """Start with nothing composed."""
        self._adjacency: Adjacency = choice("adjacency", adjacency, ADJACENCIES, ALSO_CALLED)
        self._steps: dict[Mechanism, Step] = {}  # of mechanisms that are supported under this adjacency
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
        return self._state.totals()

    def _step(self, mechanism: Mechanism) -> Step:
        """Return what stands for a mechanism in the record, after checking that it is supported under this adjacency."""
        steps = self._steps
        step = steps.get(mechanism) if isinstance(mechanism, Mechanism) else None
        if step is None:
            _require_supported(mechanism, self._adjacency)
            step = steps.setdefault(mechanism, Step(mechanism))
        return step

    def _checked(self, mechanism: Mechanism, count: int, least: int = 0) -> int:
        """Return the checked count, after checking that the mechanism is supported under this adjacency."""
        if not isinstance(mechanism, Mechanism) or mechanism not in self._steps:
            _require_supported(mechanism, self._adjacency)
        return checked_count(count, least)


def _require_supported(mechanism: Mechanism, adjacency: Adjacency) -> None:
    """Refuse what is no mechanism, or of which nothing is known under this adjacency: here, and not at a later query."""
    require_mechanism(mechanism)
    if not mechanism._has_pair:
        for release, _ in mechanism._plain():
            require_bound(release, adjacency)
    elif not mechanism._never_refused:
        mechanism._holding()._pairs(adjacency)

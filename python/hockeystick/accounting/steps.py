"""Steps that were composed: how often each mechanism, and in which order, as values that never change, and an object that grows.

The order is kept in the size of what repeats. It is a list of items; an item is a run, a mechanism's number with a count, or a block, some items
with how often they come. When a run ends, the items at the end of the list are compared with those before them:

    g h   g h        becomes   (g h) x 2
    (g h) x 2   g h  becomes   (g h) x 3

The shortest block is taken, of at most `LONGEST` items, and blocks are in blocks up to `NESTED` deep. What repeats after more items than that
is kept run by run. No run is lost or moved: written out, the items are the runs that were composed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from hockeystick._checks import LARGEST_COUNT, choice, count_scalar
from hockeystick.accounting.locking import ThreadSafe
from hockeystick.accounting.renyi_divergence import require_bound
from hockeystick.mechanisms.base import ADJACENCIES, ALSO_CALLED, Adjacency, Mechanism, require_known

LONGEST = 32  # items of a block: a training that changes between so many noises and begins again
NESTED = 5  # blocks within each other
SMALL = 32  # mechanisms whose counts are copied at once

Item: TypeAlias = "tuple[int | tuple[Item, ...], int]"  # a number or a block, and how often it comes
Block: TypeAlias = "tuple[tuple[Mechanism | Block, int], ...]"  # items with mechanisms instead of numbers
Stack: TypeAlias = "tuple[Stack, Item] | None"  # the last item on top


class Counts:
    """How often each mechanism was composed, and its number, in the order in which they came first.

    With one more it is another object. Both share most of what they hold, so that a ledger of n mechanisms is changed in a time of root n.
    """

    __slots__ = ("_kept", "_recent", "_size")

    def __init__(self, kept: dict[Mechanism, tuple[int, int]], recent: dict[Mechanism, tuple[int, int]], size: int):
        self._kept, self._recent, self._size = kept, recent, size  # what is recent counts

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a copy or a pickle is made from."""
        return Counts, (self._kept | self._recent, {}, self._size)

    def find(self, mechanism: Mechanism) -> tuple[int, int]:
        """Return the number of a mechanism and how often it was composed."""
        found = self._recent.get(mechanism) if self._recent else None
        return found or self._kept.get(mechanism) or (self._size, 0)

    def plus(self, mechanism: Mechanism, count: int, found: tuple[int, int]) -> Counts:
        """Return the counts with steps more, or raise ValueError if they are too many. `found` is what `find` returns."""
        number, before = found
        kept, recent, size = self._kept, self._recent, self._size + (not before)
        if len(kept) < SMALL or len(recent) ** 2 > len(kept):
            kept, recent = kept | recent if recent else kept.copy(), {}
            kept[mechanism] = number, _total(before, count)
        else:
            recent = recent.copy()
            recent[mechanism] = number, _total(before, count)
        return Counts(kept, recent, size)

    def totals(self) -> dict[Mechanism, int]:
        """Return how often each mechanism was composed."""
        return {mechanism: total for mechanism, (_, total) in (self._kept | self._recent).items()}


def _total(before: int, count: int) -> int:
    total = before + count
    return total if total <= LARGEST_COUNT else count_scalar("count", total)


def _items(stack: Stack) -> tuple[Item, ...]:
    """Return the items of a stack, the first one first."""
    items = []
    while stack is not None:
        stack, item = stack
        items.append(item)
    return tuple(reversed(items))


def _written_out(items: tuple[Item, ...]) -> Iterator[tuple[int, int]]:
    for what, count in items:
        if isinstance(what, int):
            yield what, count
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

    The last run stands apart, since it may go on: a step more of its mechanism then leaves all else as it is.
    """

    counts: Counts = Counts({}, {}, 0)  # of all steps but the `late` ones
    ended: Stack = None  # the runs and blocks before the last run
    last: Mechanism | None = None  # the mechanism of the last run; None at the start, and after a block
    number: int = -1  # of this mechanism, as in `counts`
    total: int = 0  # how often it was composed in all
    times: int = 0  # how often in the last run
    late: int = 0  # how often since that run began: its mechanism's steps that `counts` does not have yet
    spent: tuple[Fraction, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a copy or a pickle is made from: the stack itself would be too deep."""
        return _restored, (self.counts, _items(self.ended), *self[2:])

    @property
    def num_steps(self) -> int:
        """The number of steps."""
        return sum(self.totals().values())

    def count_of(self, mechanism: Mechanism) -> int:
        """Return how often a mechanism was composed."""
        if mechanism is self.last:
            return self.total
        number, count = self.counts.find(mechanism)
        return self.total if number == self.number else count

    def all_counts(self) -> Counts:
        """Return the counts, those of the late steps included."""
        if self.last is None or not self.late:
            return self.counts
        return self.counts.plus(self.last, self.late, (self.number, self.total - self.late))

    def totals(self) -> dict[Mechanism, int]:
        """Return how often each mechanism was composed."""
        return self.all_counts().totals()

    def plus(self, mechanism: Mechanism, count: int) -> Record:
        """Return the record with steps more, or raise ValueError if they are too many."""
        counts, ended, last, number, total, times, late, spent = self
        if mechanism is last:
            return Record(counts, ended, last, number, _total(total, count), times + count, late + count, spent)
        found = counts.find(mechanism)
        if last is not None:
            if found[0] == number:  # equal, and another object
                return self.plus(last, count)
            ended = (ended, (number, times))
            ended = _folded(ended) if times < total else ended  # the first run of a mechanism repeats nothing
        counts = (self.all_counts() if late else counts).plus(mechanism, count, found)
        return Record(counts, ended, mechanism, found[0], found[1] + count, count, 0, spent)

    def plus_block(self, block: Block, times: int) -> Record:
        """Return the record with a block more."""
        counts = self.all_counts()
        for mechanism, count in _multiplied(block, times):
            counts = counts.plus(mechanism, count, counts.find(mechanism))
        ended = self.ended if self.last is None else (self.ended, (self.number, self.times))
        numbered = _with_leaves(block, lambda mechanism: counts.find(mechanism)[0])
        return Record(counts, (ended, (numbered, times)), spent=self.spent)

    def items(self) -> tuple[Item, ...]:
        """Return the items in order."""
        last = () if self.last is None else ((self.number, self.times),)
        return (*_items(self.ended), *last)

    def runs(self) -> Iterator[tuple[Mechanism, int]]:
        """Return the mechanisms and counts of all runs, the first one first."""
        mechanisms = list(self.totals())
        return ((mechanisms[number], count) for number, count in _written_out(self.items()))

    def steps(self) -> Block:
        """Return the items in order, with mechanisms instead of their numbers."""
        return _with_leaves(self.items(), list(self.totals()).__getitem__)


def _restored(counts: Counts, ended: tuple[Item, ...], *others: Any) -> Record:
    stack: Stack = None
    for item in ended:
        stack = (stack, item)
    return Record(counts, stack, *others)


def _multiplied(block: Block, times: int) -> Iterator[tuple[Mechanism, int]]:
    for what, count in block:
        if isinstance(what, tuple):
            yield from _multiplied(what, count * times)
        else:
            yield what, count * times


def _with_leaves(block: tuple[Any, ...], leaf: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return items with what `leaf` makes of each mechanism, or of its number."""
    return tuple((_with_leaves(what, leaf) if isinstance(what, tuple) else leaf(what), count) for what, count in block)


class Steps(ThreadSafe[Record]):
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
        return self._state.totals()

    def _checked(self, mechanism: Mechanism, count: int, least: int = 0) -> int:
        """Return the checked count, after checking that the mechanism is supported under this adjacency."""
        known = isinstance(mechanism, Mechanism) and self._state.count_of(mechanism)
        for release in () if known else require_known(mechanism, self._adjacency):  # compose raises, not a later query
            require_bound(release, self._adjacency)
        if type(count) is int and 0 < count <= LARGEST_COUNT:  # most are
            return count
        if isinstance(count, float) and float(count).is_integer():  # 1202.0, as an array of `dpsgd_steps` has it
            count = int(count)
        return count_scalar("count", count, least)

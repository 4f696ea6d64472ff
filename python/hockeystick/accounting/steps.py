"""Steps that were composed: how often each mechanism, and in which order, as values that never change, and an object that grows.

The order is kept in the size of what repeats. It is a list of items; an item is a run, a mechanism's number with a count, or a block, some items
with how often they come. When a run ends, the items at the end of the list are compared with those before them:

    g h   g h        becomes   (g h) x 2
    (g h) x 2   g h  becomes   (g h) x 3

The shortest block is taken, of at most `LONGEST` items, and blocks are in blocks up to `NESTED` deep. What repeats after more items than that
is kept run by run. No run is lost or moved: written out, the items are the runs that were composed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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

    def plus(self, mechanism: Mechanism, count: int, found: tuple[int, int] | None = None) -> Counts:
        """Return the counts with steps more, or raise ValueError if they are too many. `found` is what `find` returns."""
        number, before = found or self.find(mechanism)
        total = before + count
        if total > LARGEST_COUNT:
            count_scalar("count", total)
        kept, recent, size = self._kept, self._recent, self._size + (not before)
        if len(kept) < SMALL or len(recent) ** 2 > len(kept):
            kept, recent = kept | recent if recent else kept.copy(), {}
            kept[mechanism] = number, total
        else:
            recent = recent.copy()
            recent[mechanism] = number, total
        return Counts(kept, recent, size)

    def totals(self) -> dict[Mechanism, int]:
        """Return how often each mechanism was composed."""
        return {mechanism: total for mechanism, (_, total) in (self._kept | self._recent).items()}


class Order:
    """The order of composition: items that have ended, and the last run, which may go on, and may be the first of its mechanism."""

    __slots__ = ("_ended", "_first", "_last")

    def __init__(self, ended: Stack = None, last: Item | None = None, first: bool = False) -> None:
        self._ended, self._last, self._first = ended, last, first

    @classmethod
    def of(cls, items: Iterable[Item]) -> Order:
        """Return the order of items as they are."""
        ended: Stack = None
        for item in items:
            ended = (ended, item)
        return cls(ended)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a copy or a pickle is made from: the stack itself would be too deep."""
        return Order.of, (self.items(),)

    def followed_by(self, number: int, count: int, first: bool) -> Order:
        """Return the order with a run more, which may be the first of its mechanism."""
        last = self._last
        if last is None:
            return Order(self._ended, (number, count), first)
        if last[0] == number:
            return Order(self._ended, (number, last[1] + count), self._first)
        ended = (self._ended, last)
        return Order(ended if self._first else _folded(ended), (number, count), first)

    def items(self) -> tuple[Item, ...]:
        """Return the items, the first one first."""
        items, rest = [] if self._last is None else [self._last], self._ended
        while rest is not None:
            rest, item = rest
            items.append(item)
        return tuple(reversed(items))

    def runs(self) -> Iterator[tuple[int, int]]:
        """Return the numbers and counts of all runs, the first one first."""
        return _written_out(self.items())


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
    """What was composed; and of a filter, what was spent of each of its budgets."""

    counts: Counts = Counts({}, {}, 0)
    order: Order = Order()
    spent: tuple[Fraction, ...] = ()

    @property
    def num_steps(self) -> int:
        """The number of steps."""
        return sum(self.counts.totals().values())

    def plus(self, mechanism: Mechanism, count: int) -> Record:
        """Return the record with steps more, or raise ValueError if they are too many."""
        counts, order, spent = self
        number, before = found = counts.find(mechanism)
        return Record(counts.plus(mechanism, count, found), order.followed_by(number, count, not before), spent)

    def plus_block(self, block: Block, times: int) -> Record:
        """Return the record with a block more."""
        counts = self.counts
        for mechanism, count in _multiplied(block, times):
            counts = counts.plus(mechanism, count)
        return Record(counts, Order.of((*self.order.items(), (_numbered(block, counts), times))), self.spent)

    def steps(self) -> Block:
        """Return the items in order, with mechanisms instead of their numbers."""
        return _named(self.order.items(), list(self.counts.totals()))


def _multiplied(block: Block, times: int) -> Iterator[tuple[Mechanism, int]]:
    for what, count in block:
        if isinstance(what, tuple):
            yield from _multiplied(what, count * times)
        else:
            yield what, count * times


def _numbered(block: Block, counts: Counts) -> tuple[Item, ...]:
    return tuple(
        (_numbered(what, counts) if isinstance(what, tuple) else counts.find(what)[0], count) for what, count in block
    )


def _named(items: tuple[Item, ...], mechanisms: list[Mechanism]) -> Block:
    return tuple(
        (_named(what, mechanisms) if isinstance(what, tuple) else mechanisms[what], count) for what, count in items
    )


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
        return self._state.counts.totals()

    def _checked(self, mechanism: Mechanism, count: int) -> int:
        """Return the checked count, after checking that the mechanism is supported under this adjacency."""
        known = isinstance(mechanism, Mechanism) and self._state.counts.find(mechanism)[1]
        for release in () if known else require_known(mechanism, self._adjacency):  # compose raises, not a later query
            require_bound(release, self._adjacency)
        if type(count) is int and 0 < count <= LARGEST_COUNT:  # most are
            return count
        if isinstance(count, float) and float(count).is_integer():  # 1202.0, as `dpsgd_steps` gives it
            count = int(count)
        return count_scalar("count", count)

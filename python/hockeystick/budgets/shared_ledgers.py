"""Ledgers that many clients share: each different one is kept once, under a number."""

from __future__ import annotations

from collections.abc import Iterable

from hockeystick.accounting.accountant import Accountant
from hockeystick.budgets.filter_base import Filter
from hockeystick.mechanisms.base import Mechanism

Ledger = dict[Mechanism, int]


class InternedLedgers:
    """Ledgers by number, 0 being the empty one, and what still fits beside each.

    What fits is decided by copies of `fresh`: a filter, or an accountant with the limits epsilon and delta.
    """

    def __init__(self, fresh: Accountant | Filter, limits: tuple[float, float] | None) -> None:
        self.fresh = fresh
        self._limits = limits
        self._ledgers: list[Ledger] = [{}]
        self._numbers: dict[frozenset[tuple[Mechanism, int]], int] = {frozenset(): 0}
        self._rooms: dict[tuple[int, Mechanism], int] = {}

    def __len__(self) -> int:
        """Return how many ledgers there are."""
        return len(self._ledgers)

    def after(self, number: int, steps: Iterable[tuple[Mechanism, int]]) -> int:
        """Return the number of the ledger with these steps more."""
        for mechanism, count in steps:
            longer = dict(self._ledgers[number])
            longer[mechanism] = longer.get(mechanism, 0) + count
            found = self._numbers.setdefault(frozenset(longer.items()), len(self))
            if found == len(self):
                self._ledgers.append(longer)
            if (number, mechanism) in self._rooms:  # of n steps that fit, count are taken
                self._rooms[found, mechanism] = self._rooms[number, mechanism] - count
            number = found
        return number

    def room(self, number: int, mechanism: Mechanism) -> int:
        """Return how many steps fit beside a ledger."""
        key = (number, mechanism)
        if key not in self._rooms:
            account = self.account(number)
            if isinstance(account, Filter):
                self._rooms[key] = account.remaining(mechanism)
            else:
                epsilon, delta = self._limits or (0.0, 0.0)
                self._rooms[key] = account.remaining(mechanism, epsilon=epsilon, delta=delta)
        return self._rooms[key]

    def account(self, number: int) -> Accountant | Filter:
        """Return a filter or an accountant that has what a ledger has."""
        account = type(self.fresh).from_state_dict(self.fresh.state_dict())
        for mechanism, count in self._ledgers[number].items():
            if isinstance(account, Filter):
                account.spend(mechanism, count)
            else:
                account.compose(mechanism, count)
        return account

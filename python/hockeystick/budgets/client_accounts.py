"""What each client has been charged, in memory: ids, and for each the number of a ledger that it shares with others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hockeystick.accounting.accountant import Accountant
from hockeystick.budgets.client_arguments import ClientId, client_id
from hockeystick.budgets.entries import Charge, Enrolment, Entry, Mask
from hockeystick.budgets.filter_base import Filter
from hockeystick.budgets.shared_ledgers import InternedLedgers
from hockeystick.mechanisms.base import Mechanism

FIRST_CAPACITY = 1024


class ClientAccounts:
    """Clients in order of enrolment, and their ledgers."""

    def __init__(self, fresh: Accountant | Filter, limits: tuple[float, float] | None) -> None:
        self.ids: list[ClientId] = []
        self.last_round = 0
        self._ledgers = InternedLedgers(fresh, limits)
        self._positions: dict[ClientId, int] = {}
        self._which: NDArray[np.int32] = np.zeros(FIRST_CAPACITY, np.int32)

    def __len__(self) -> int:
        """Return the number of clients."""
        return len(self.ids)

    @property
    def num_ledgers(self) -> int:
        """How many different ledgers the clients have."""
        return int(np.count_nonzero(np.bincount(self._which[: len(self)])))

    def unknown(self, clients: Iterable[ClientId]) -> list[ClientId]:
        """Return the ids that are not enrolled, each once."""
        return [client for client in dict.fromkeys(map(client_id, clients)) if client not in self._positions]

    def add(self, clients: list[ClientId]) -> None:
        """Enrol clients, all of them unknown, with nothing charged."""
        self._positions.update((client, position) for position, client in enumerate(clients, len(self)))
        self.ids.extend(clients)
        while len(self._which) < len(self):
            self._which = np.concatenate([self._which, np.zeros_like(self._which)])

    def apply(self, entry: Charge) -> None:
        """Move the charged clients to the ledgers that they have after a charge."""
        which = self._which[: len(entry.charged)]
        after = np.arange(len(self._ledgers), dtype=np.int32)
        for number in np.flatnonzero(np.bincount(which[entry.charged], minlength=1)).tolist():
            after[number] = self._ledgers.after(number, entry.steps)
        np.copyto(which, after[which], where=entry.charged)
        self.last_round = entry.round

    def require_possible(self, entry: Entry) -> None:
        """Raise an error for an entry that these accounts could not have been given."""
        if isinstance(entry, Enrolment):
            if self.unknown(entry.clients) != entry.clients:  # checks each id, too
                msg = "clients must be ids in normal form, and enrolled once"
                raise ValueError(msg)
            return
        if entry.round < self.last_round:
            msg = f"round {entry.round} comes after {self.last_round}"
            raise ValueError(msg)
        for mechanism, count in entry.steps:
            self.checked(mechanism, count)

    def mask(self, name: str, clients: Iterable[ClientId] | None) -> Mask:
        """Return which clients are meant, all by default."""
        if clients is None:
            return np.ones(len(self), np.bool_)
        mask = np.zeros(len(self), np.bool_)
        positions = [self.position(name, client) for client in clients]
        mask[positions] = True
        if int(mask.sum()) != len(positions):
            msg = f"{name} must name each client once, not {int(mask.sum())} of them in {len(positions)} places"
            raise ValueError(msg)
        return mask

    def position(self, name: str, client: ClientId) -> int:
        """Return a client's place in the order of enrolment."""
        try:
            return self._positions[client_id(client)]
        except KeyError:
            msg = f"{name} must be enrolled, which {client!r} is not"
            raise ValueError(msg) from None

    def checked(self, mechanism: Mechanism, count: int) -> int:
        """Return the count, after checking both."""
        return self._ledgers.fresh._checked(mechanism, count)

    def exceeding(self, mechanism: Mechanism, count: int, charged: Mask) -> Mask:
        """Return which of the charged clients' budgets would be exceeded."""
        count = self.checked(mechanism, count)
        which = self._which[: len(self)]
        present = np.flatnonzero(np.bincount(which[charged], minlength=1))
        poor = np.zeros(len(self._ledgers), np.bool_)
        poor[present] = [count > self._ledgers.room(number, mechanism) for number in present.tolist()]
        return poor[which] & charged

    def room(self, mechanism: Mechanism, client: ClientId) -> int:
        """Return how many steps still fit into a client's budget."""
        self.checked(mechanism, 1)
        return self._ledgers.room(self._number(client), mechanism)

    def account(self, client: ClientId) -> Accountant | Filter:
        """Return a copy of what a client was charged."""
        return self._ledgers.account(self._number(client))

    def _number(self, client: ClientId) -> int:
        return int(self._which[self.position("client", client)])

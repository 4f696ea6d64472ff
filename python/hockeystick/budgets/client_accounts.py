"""What each client has been charged, in memory: ids, and for each the number of a ledger that it shares with others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks.shown import shown
from hockeystick.accounting.accountant import Accountant
from hockeystick.budgets.batch_sizes import BatchSizes
from hockeystick.budgets.client_arguments import ClientId, client_id, require_several
from hockeystick.budgets.entries import Charge, Enrolment, Entry, Mask
from hockeystick.budgets.filter_base import Filter
from hockeystick.budgets.shared_ledgers import InternedLedgers
from hockeystick.mechanisms.base import Mechanism

FIRST_CAPACITY = 1024


class Present(NamedTuple):
    """What the entries so far make of the clients; never changed in place."""

    num_entries: int
    num_clients: int
    which: NDArray[np.int32]  # the number of each client's ledger, and room for more clients
    last_round: int
    sizes: BatchSizes


class ClientAccounts:
    """Clients in order of enrolment, and their ledgers.

    An entry is taken by one assignment, of `_present`. What else it adds, ids and ledgers, is not seen before, and may be added twice.
    """

    def __init__(self, fresh: Accountant | Filter, limits: tuple[float, float] | None) -> None:
        self._ids: list[ClientId] = []
        self._ledgers = InternedLedgers(fresh, limits)
        self._positions: dict[ClientId, int] = {}
        self._present = Present(0, 0, np.zeros(FIRST_CAPACITY, np.int32), 0, BatchSizes())

    def __len__(self) -> int:
        """Return the number of clients."""
        return self._present.num_clients

    @property
    def ids(self) -> list[ClientId]:
        """The clients, in order of enrolment."""
        return self._ids[: len(self)]

    @property
    def num_entries(self) -> int:
        """How many entries were taken."""
        return self._present.num_entries

    @property
    def last_round(self) -> int:
        """The last round that was charged."""
        return self._present.last_round

    @property
    def sizes(self) -> BatchSizes:
        """The sizes of batches that were logged."""
        return self._present.sizes

    @property
    def _which(self) -> NDArray[np.int32]:
        return self._present.which

    @property
    def num_ledgers(self) -> int:
        """How many different ledgers the clients have."""
        return int(np.count_nonzero(np.bincount(self._which[: len(self)])))

    def unknown(self, clients: Iterable[ClientId]) -> list[ClientId]:
        """Return the ids that are not enrolled, each once."""
        return [
            client
            for client in dict.fromkeys(map(client_id, require_several("clients", clients)))
            if client not in self._positions
        ]

    def take(self, entry: Entry) -> None:
        """Take an entry that is possible after those before it."""
        before = self._present
        after = self._enrolled(before, entry) if isinstance(entry, Enrolment) else self._charged(before, entry)
        self._present = after._replace(num_entries=before.num_entries + 1)

    def _enrolled(self, before: Present, entry: Enrolment) -> Present:
        """Return what is present after clients, all of them unknown, were enrolled with nothing charged."""
        num_clients, which = before.num_clients + len(entry.clients), before.which
        self._positions.update((client, position) for position, client in enumerate(entry.clients, before.num_clients))
        self._ids[before.num_clients :] = entry.clients
        while len(which) < num_clients:
            which = np.concatenate([which, np.zeros_like(which)])
        return before._replace(num_clients=num_clients, which=which)

    def _charged(self, before: Present, entry: Charge) -> Present:
        """Return what is present after the charged clients have moved to the ledgers that they have after a charge."""
        which = before.which[: len(entry.charged)]
        after = np.arange(len(self._ledgers), dtype=np.int32)
        for number in np.flatnonzero(np.bincount(which[entry.charged], minlength=1)).tolist():
            after[number] = self._ledgers.after(number, entry.steps)
        moved = before.which.copy()
        np.copyto(moved[: len(which)], after[which], where=entry.charged)
        sizes = before.sizes
        if entry.participants is not None:
            sizes = sizes.after(entry.steps[0][0], int(entry.charged.sum()), int(entry.participants.sum()))
        return before._replace(which=moved, last_round=entry.round, sizes=sizes)

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
        positions = [self.position(name, client) for client in require_several(name, clients)]
        mask[positions] = True
        if int(mask.sum()) != len(positions):
            msg = f"{name} must name each client once, not {int(mask.sum())} of them in {len(positions)} places"
            raise ValueError(msg)
        return mask

    def position(self, name: str, client: ClientId) -> int:
        """Return a client's place in the order of enrolment."""
        position = self._positions.get(client_id(client), len(self))
        if position >= len(self):
            msg = f"{name} must be enrolled, which {shown(client)} is not"
            raise ValueError(msg)
        return position

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

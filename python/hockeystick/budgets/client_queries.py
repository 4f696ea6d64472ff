"""What may be asked of client ledgers; nothing here changes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hockeystick.accounting.accountant import Accountant
from hockeystick.budgets.client_accounts import ClientAccounts
from hockeystick.budgets.client_arguments import ClientId
from hockeystick.budgets.entries import Enrolment
from hockeystick.budgets.filter_base import Filter
from hockeystick.budgets.journal import Journal
from hockeystick.budgets.sole_owner import SoleOwner, in_turn
from hockeystick.mechanisms.base import Mechanism


class ClientCharge(NamedTuple):
    """What one client was charged.

    Attributes
    ----------
    number : int
        The round.
    mechanism : Mechanism
        What each step released.
    steps : int
        How many equal ones.
    took_part : bool or None
        Whether the client was among the participants; None where they were not recorded.
    """

    number: int
    mechanism: Mechanism
    steps: int
    took_part: bool | None


class ClientQueries(SoleOwner):
    """The part of `ClientLedgers` that answers."""

    _accounts: ClientAccounts
    _journal: Journal

    @in_turn
    def __len__(self) -> int:
        """Return the number of clients."""
        return len(self._accounts)

    @property
    @in_turn
    def num_ledgers(self) -> int:
        """How many different ledgers the clients have."""
        return self._accounts.num_ledgers

    @property
    @in_turn
    def last_round(self) -> int:
        """The last round that was charged, 0 before the first: after a restart, the one that may have been interrupted."""
        return self._accounts.last_round

    @property
    @in_turn
    def head(self) -> str:
        """The digest of everything in the file, as 64 hexadecimal digits, to be kept elsewhere and given as `expected_head`."""
        return self._journal.head

    @in_turn
    def would_exceed(self, mechanism: Mechanism, count: int = 1, *, clients: Iterable[ClientId] | None = None) -> bool:
        """Say whether the charge would leave the budget of any of the clients; nothing is charged.

        Parameters
        ----------
        mechanism : Mechanism
            What each step would release.
        count : int
            How many equal steps, in [1, 2^53].
        clients : iterable of int or str, optional
            Who would be charged; all by default.

        Returns
        -------
        bool
            True if `charge` would raise BudgetExceededError.

        Raises
        ------
        ValueError
            If an argument is outside its domain, a client is not enrolled or is there twice, or the mechanism is not
            supported.
        RuntimeError
            If the ledgers are closed, or belong to another process.
        """
        return bool(self._accounts.exceeding(mechanism, count, self._accounts.mask("clients", clients)).any())

    @in_turn
    def eligible(self, mechanism: Mechanism, count: int = 1) -> list[ClientId]:
        """Return the clients whose budget the charge would not leave.

        Parameters
        ----------
        mechanism : Mechanism
            What each step would release.
        count : int
            How many equal steps, in [1, 2^53].

        Returns
        -------
        list of int or str
            In order of enrolment.

        Raises
        ------
        ValueError
            If an argument is outside its domain, or the mechanism is not supported.
        RuntimeError
            If the ledgers are closed, or belong to another process.
        """
        poor = self._accounts.exceeding(mechanism, count, self._accounts.mask("clients", None))
        return [client for client, left_out in zip(self._accounts.ids, poor.tolist(), strict=True) if not left_out]

    @in_turn
    def remaining(self, mechanism: Mechanism, client: ClientId) -> int:
        """Return how many steps of a mechanism still fit into a client's budget.

        Parameters
        ----------
        mechanism : Mechanism
            What each step would release.
        client : int or str
            Its id.

        Returns
        -------
        int
            The largest count that `charge` takes for this client.

        Raises
        ------
        ValueError
            If the client is not enrolled, or the mechanism is not supported.
        RuntimeError
            If the ledgers are closed, or belong to another process.
        """
        return self._accounts.room(mechanism, client)

    @in_turn
    def account(self, client: ClientId) -> Accountant | Filter:
        """Return what a client was charged, as an object of its own.

        Parameters
        ----------
        client : int or str
            Its id.

        Returns
        -------
        Accountant, or a filter
            With its state as JSON values in `state_dict`; changing it does not change these ledgers.

        Raises
        ------
        ValueError
            If the client is not enrolled.
        RuntimeError
            If the ledgers are closed, or belong to another process.
        """
        return self._accounts.account(client)

    @in_turn
    def log(self, client: ClientId) -> list[ClientCharge]:
        """Return what a client was charged, charge by charge, read from the file.

        Parameters
        ----------
        client : int or str
            Its id.

        Returns
        -------
        list of ClientCharge
            In order.

        Raises
        ------
        ValueError
            If the client is not enrolled, or the file is damaged.
        RuntimeError
            If the ledgers are closed, or belong to another process.
        """
        position = self._accounts.position("client", client)
        return list(self._log(position))

    def _log(self, position: int) -> Iterator[ClientCharge]:
        for _, entry in self._journal.history():
            if not isinstance(entry, Enrolment) and position < len(entry.charged) and entry.charged[position]:
                took_part = None if entry.participants is None else bool(entry.participants[position])
                for mechanism, count in entry.steps:
                    yield ClientCharge(entry.round, mechanism, count, took_part)

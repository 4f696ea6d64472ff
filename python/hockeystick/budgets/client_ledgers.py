"""A ledger for each client of a federated training, that survives a restart."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import count_scalar
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.state import dump_steps, load_steps
from hockeystick.budgets.filter_base import BudgetExceededError, Filter
from hockeystick.budgets.journal import Charge, ClientId, Journal, Mask
from hockeystick.budgets.shared_ledgers import InternedLedgers
from hockeystick.mechanisms.base import Adjacency, Mechanism
from hockeystick.training.participation import check_participation

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self
from hockeystick.budgets.client_arguments import checked_budget, client_id

__all__ = ["ClientCharge", "ClientLedgers"]
FIRST_CAPACITY = 1024


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


class ClientLedgers:
    """What each client of a federated training has been charged, in a file that survives a restart.

    Parameters
    ----------
    path : str or path-like
        An SQLite file, made if it is not there; ":memory:" keeps nothing. One process at a time has it.
    epsilon, delta : float, optional
        Each client's budget, positive and in [0, 1), for mechanisms fixed in advance: `Accountant` decides what fits.
    adjacency : {"add_or_remove", "replace"}, optional
        By default "add_or_remove". Which sets of clients are adjacent.
    budget : GaussianFilter or RenyiFilter, optional
        Instead of epsilon, delta and adjacency: each client's budget where mechanisms are chosen from earlier releases.
        Nothing may be spent of it.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the file was made with others.
    RuntimeError
        If another process has the file.

    Notes
    -----
    The unit is the client: each ledger is the composition of the mechanisms that its client was charged, and
    is a guarantee for it if in no other round anything of it is used. Who must be charged:

    - where clients are sampled in secret (`PoissonSampled`, `FixedSizeSampled`), everyone who could have been drawn, drawn or not;
    - where it is known who takes part, those who do, for the mechanism without sampling.

    Charge before the round, then release. A charge is on the disk before `charge` returns; a round that dies after it stays
    charged. The file names the participants: where the sample must be secret, so must the file.

    Equal ledgers are kept once: a million clients with one history are one ledger and four bytes each, beside their ids.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)
    >>> with hs.ClientLedgers(":memory:", epsilon=2.0, delta=1e-6) as ledgers:
    ...     ledgers.enrol(range(10_000))
    ...     for number in range(1, 101):
    ...         drawn = hs.draw_participants(step, range(10_000))
    ...         ledgers.charge(number, step, participants=drawn)  # then run the round
    ...     ledgers.would_exceed(step), ledgers.remaining(step, 17), ledgers.num_ledgers
    (False, 774, 1)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        adjacency: Adjacency | None = None,
        budget: Filter | None = None,
    ) -> None:
        limits, fresh = checked_budget(epsilon, delta, adjacency, budget)
        self._ledgers = InternedLedgers(fresh, limits)
        self._which: NDArray[np.int32] = np.zeros(FIRST_CAPACITY, np.int32)
        self._last_round = 0
        self._journal = Journal(path, {"limits": limits, "fresh": fresh.state_dict()})
        self._ids = self._journal.clients()
        self._positions = {client: position for position, client in enumerate(self._ids)}
        self._grow()
        for entry in self._journal.entries():
            self._apply(entry)

    def __enter__(self) -> Self:
        """Return the ledgers; leaving closes the file."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file, so that another process may open it."""
        self._journal.close()

    def __len__(self) -> int:
        """Return the number of clients."""
        return len(self._ids)

    @property
    def num_ledgers(self) -> int:
        """How many different ledgers the clients have."""
        return int(np.count_nonzero(np.bincount(self._which[: len(self)])))

    @property
    def last_round(self) -> int:
        """The last round that was charged, 0 before the first: after a restart, the one that may have been interrupted."""
        return self._last_round

    def enrol(self, clients: Iterable[ClientId]) -> None:
        """Add clients with nothing charged; those known already keep what they have.

        Parameters
        ----------
        clients : iterable of int or str
            Their ids, integers in 64 bits.

        Raises
        ------
        TypeError
            If an id is neither an integer nor a string.
        """
        new = [client for client in dict.fromkeys(map(client_id, clients)) if client not in self._positions]
        self._journal.enrol(len(self), new)
        self._positions.update((client, position) for position, client in enumerate(new, len(self)))
        self._ids.extend(new)
        self._grow()

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
        """
        return bool(self._exceeding(mechanism, count, self._mask("clients", clients)).any())

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
        """
        able = ~self._exceeding(mechanism, count, self._mask("clients", None))
        return [self._ids[position] for position in np.flatnonzero(able).tolist()]

    def charge(
        self,
        number: int,
        mechanism: Mechanism,
        count: int = 1,
        *,
        clients: Iterable[ClientId] | None = None,
        participants: Iterable[ClientId] | None = None,
    ) -> None:
        """Charge clients for a round before it runs: for all of them, or, with an error, for none.

        Parameters
        ----------
        number : int
            The round, at least 1 and at least the last one: several charges may belong to one round.
        mechanism : Mechanism
            What each step will release.
        count : int
            How many equal steps, in [1, 2^53]; 1 where participants are given.
        clients : iterable of int or str, optional
            Who is charged; all by default. See the notes of the class.
        participants : iterable of int or str, optional
            Who takes part, for the log and the check that they are among the charged, each once, and no more than the mechanism
            says, nor than a Poisson sample has with a probability of 1e-15. Of a batch drawn with replacement `set` of it.

        Raises
        ------
        BudgetExceededError
            If a client's budget would be exceeded.
        ValueError
            If an argument is outside its domain, a client is not enrolled or is there twice, the mechanism is not
            supported, or participation exceeds what is charged.
        """
        number = count_scalar("number", number)
        if number < self._last_round:
            msg = f"number must be at least that of the last round, {self._last_round}, not {number}"
            raise ValueError(msg)
        charged = self._mask("clients", clients)
        exceeding = self._exceeding(mechanism, count, charged)
        if exceeding.any():
            some = self._ids[int(np.argmax(exceeding))]
            what = f"{count} x {mechanism!r} exceeds the budget of {int(exceeding.sum())} clients"
            msg = f"{what}, such as {some!r}; nothing was charged"
            raise BudgetExceededError(msg)
        drawn = None if participants is None else self._mask("participants", participants)
        check_participation(mechanism, int(count), charged, drawn)
        entry = Charge(number, dump_steps([(mechanism, int(count))]), charged, drawn)
        self._journal.append(entry)  # first: what memory holds and the disk does not would be free
        self._apply(entry)

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
        """
        self._ledgers.fresh._checked(mechanism, 1)
        return self._ledgers.room(self._number(client), mechanism)

    def account(self, client: ClientId) -> Accountant | Filter:
        """Return what a client was charged, as an object of its own.

        Parameters
        ----------
        client : int or str
            Its id.

        Returns
        -------
        Accountant, GaussianFilter or RenyiFilter
            With its state as JSON values in `state_dict`; changing it does not change these ledgers.

        Raises
        ------
        ValueError
            If the client is not enrolled.
        """
        return self._ledgers.account(self._number(client))

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
            If the client is not enrolled.
        """
        return list(self._log(self._position("client", client)))

    def _log(self, position: int) -> Iterator[ClientCharge]:
        for entry in self._journal.entries():
            if position < len(entry.charged) and entry.charged[position]:
                took_part = None if entry.participants is None else bool(entry.participants[position])
                for mechanism, count in load_steps(entry.steps):
                    yield ClientCharge(entry.round, mechanism, count, took_part)

    def _grow(self) -> None:
        while len(self._which) < len(self):
            self._which = np.concatenate([self._which, np.zeros_like(self._which)])

    def _number(self, client: ClientId) -> int:
        """Return the number of a client's ledger."""
        return int(self._which[self._position("client", client)])

    def _position(self, name: str, client: ClientId) -> int:
        try:
            return self._positions[client_id(client)]
        except KeyError:
            msg = f"{name} must be enrolled, which {client!r} is not"
            raise ValueError(msg) from None

    def _mask(self, name: str, clients: Iterable[ClientId] | None) -> Mask:
        """Return which clients are meant."""
        if clients is None:
            return np.ones(len(self), np.bool_)
        mask = np.zeros(len(self), np.bool_)
        positions = [self._position(name, client) for client in clients]
        mask[positions] = True
        if int(mask.sum()) != len(positions):
            msg = f"{name} must name each client once, not {int(mask.sum())} of them in {len(positions)} places"
            raise ValueError(msg)
        return mask

    def _exceeding(self, mechanism: Mechanism, count: int, charged: Mask) -> Mask:
        """Return which of the charged clients' budgets would be exceeded."""
        count = self._ledgers.fresh._checked(mechanism, count)
        which = self._which[: len(self)]
        present = np.flatnonzero(np.bincount(which[charged], minlength=1))
        poor = np.zeros(len(self._ledgers), np.bool_)
        poor[present] = [count > self._ledgers.room(number, mechanism) for number in present.tolist()]
        return poor[which] & charged

    def _apply(self, entry: Charge) -> None:
        """Move the charged clients to the ledgers that they have after a charge."""
        which = self._which[: len(entry.charged)]
        after = np.arange(len(self._ledgers), dtype=np.int32)
        steps = load_steps(entry.steps)
        for number in np.flatnonzero(np.bincount(which[entry.charged], minlength=1)).tolist():
            after[number] = self._ledgers.after(number, steps)
        np.copyto(which, after[which], where=entry.charged)
        self._last_round = entry.round

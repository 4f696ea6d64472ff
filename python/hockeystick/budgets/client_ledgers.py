"""A ledger for each client of a federated training, that survives a restart.

From the ids and budgets that are given, over what each client has been charged, in memory, to the class that holds the file. Equal ledgers
are kept once, under a number. One process, one object: a forked child must not touch its parent's file, and nothing may be copied.
"""

from __future__ import annotations

import functools
import operator
import os
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Concatenate, NamedTuple, NoReturn, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import DELTA, boolean_scalar, count_scalar, positive_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick.accounting.accountant import Accountant
from hockeystick.budgets.batch_sizes import LEVEL, BatchSizes
from hockeystick.budgets.ledger_file import Charge, ClientId, Enrolment, Entry, Journal, Mask
from hockeystick.budgets.spending import BudgetExceededError, Filter
from hockeystick.mechanisms.base import Adjacency, Mechanism
from hockeystick.training.participation import check_participation

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["ClientCharge", "ClientLedgers"]


Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Owner = TypeVar("Owner", bound="ClientLedgers")


LONGEST_ID = 1024  # characters


def client_id(client: ClientId) -> ClientId:
    """Return an id as a plain integer, or as a plain string in Unicode's normal form C.

    One text can be written in several ways, "é" as one character or as two. In normal form they are one id, with one budget.
    """
    if type(client) is int and -(2**63) <= client < 2**63:  # most ids of a million, at a third of the time
        return client
    if isinstance(client, str):
        return _text_id(client)
    if isinstance(client, (bool, np.bool_)) or not isinstance(client, (int, np.integer)):
        raise TypeError(f"a client's id must be a string or an integer of 64 bits, not {shown(client)}")
    number = operator.index(client)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"a client's id must be an integer of 64 bits, in [-2^63, 2^63), not {shown(number)}")
    return number


def require_several(name: str, clients: Iterable[ClientId]) -> Iterable[ClientId]:
    """Return ids that are not one text: its letters would be taken for clients."""
    if isinstance(clients, (str, bytes, bytearray)):
        raise TypeError(f"{name} must be several ids, such as a list, not one text {shown(clients)}")
    return clients


def _text_id(client: str) -> str:
    if len(client) > LONGEST_ID:
        raise ValueError(f"a client's id must have at most {LONGEST_ID} characters, not {len(client)}")
    text = unicodedata.normalize("NFC", str(client))  # which may be longer
    if len(text) > LONGEST_ID:
        raise ValueError(
            f"a client's id must have at most {LONGEST_ID} characters in Unicode's normal form C, not {len(text)}"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"a client's id must be text that UTF-8 can hold, not {client!a}") from error
    return text


def checked_budget(
    epsilon: float | None, delta: float | None, adjacency: Adjacency | None, budget: Filter | None
) -> tuple[tuple[float, float] | None, Accountant | Filter]:
    """Return epsilon and delta with an empty accountant, or a filter."""
    if budget is None and epsilon is not None and delta is not None:
        limits = (positive_scalar("epsilon", epsilon), scalar("delta", delta, *DELTA))
        return limits, Accountant("add_or_remove" if adjacency is None else adjacency)
    if isinstance(budget, Filter) and (epsilon, delta, adjacency) == (None, None, None) and not len(budget):
        return None, type(budget).from_state_dict(budget.state_dict())
    given = f"epsilon={shown(epsilon)}, delta={shown(delta)}, adjacency={shown(adjacency)}, budget={shown(budget)}"
    raise ValueError(f"either epsilon and delta or a filter of which nothing is spent must be given, not {given}")


def checked_head(path: str | os.PathLike[str], create: bool, expected_head: str | None) -> str | None:
    """Return the head that is expected of a file, which a new one cannot have."""
    create = boolean_scalar("create", create)
    if expected_head is None:
        return None
    if not isinstance(expected_head, str) or not re.fullmatch("[0-9a-f]{64}", expected_head):
        raise ValueError(
            f"expected_head must be 64 hexadecimal digits, as head returned them, not {shown(expected_head)}"
        )
    if create or path == ":memory:":
        raise ValueError(f"expected_head must be None for a new file, which has no history, not {shown(expected_head)}")
    return expected_head


Ledger = dict[Mechanism, int]


class InternedLedgers:
    """Ledgers by number, 0 being the empty one, and what still fits beside each.

    What fits is decided by copies of `fresh`: a filter, or an accountant with the limits epsilon and delta.
    """

    def __init__(self, fresh: Accountant | Filter, limits: tuple[float, float] | None) -> None:
        self.fresh = fresh
        self._limits = dict(zip(("epsilon", "delta"), limits, strict=True)) if limits else {}  # a filter has its own
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
            self._rooms[key] = self.account(number).remaining(mechanism, **self._limits)
        return self._rooms[key]

    def account(self, number: int) -> Accountant | Filter:
        """Return a filter or an accountant that has what a ledger has."""
        account = type(self.fresh).from_state_dict(self.fresh.state_dict())
        add = account.spend if isinstance(account, Filter) else account.compose
        for mechanism, count in self._ledgers[number].items():
            add(mechanism, count)
        return account


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

    An entry is taken by one assignment, of `present`. What else it adds, ids and ledgers, is not seen before, and may be added twice.
    """

    def __init__(self, fresh: Accountant | Filter, limits: tuple[float, float] | None) -> None:
        self._ids: list[ClientId] = []
        self.ledgers = InternedLedgers(fresh, limits)
        self.checked = fresh._checked  # of a mechanism and its count
        self._positions: dict[ClientId, int] = {}
        self.present = Present(0, 0, np.zeros(FIRST_CAPACITY, np.int32), 0, BatchSizes())

    def __len__(self) -> int:
        """Return the number of clients."""
        return self.present.num_clients

    @property
    def ids(self) -> list[ClientId]:
        """The clients, in order of enrolment."""
        return self._ids[: len(self)]

    @property
    def num_ledgers(self) -> int:
        """How many different ledgers the clients have."""
        return int(np.count_nonzero(np.bincount(self.present.which[: len(self)])))

    def unknown(self, clients: Iterable[ClientId]) -> list[ClientId]:
        """Return the ids that are not enrolled, each once."""
        return [
            client
            for client in dict.fromkeys(map(client_id, require_several("clients", clients)))
            if client not in self._positions
        ]

    def take(self, entry: Entry) -> None:
        """Take an entry that is possible after those before it."""
        before = self.present
        after = self._enrolled(before, entry) if isinstance(entry, Enrolment) else self._charged(before, entry)
        self.present = after._replace(num_entries=before.num_entries + 1)

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
        after = np.arange(len(self.ledgers), dtype=np.int32)
        for number in np.flatnonzero(np.bincount(which[entry.charged], minlength=1)).tolist():
            after[number] = self.ledgers.after(number, entry.steps)
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
                raise ValueError("clients must be ids in normal form, and enrolled once")
            return
        if entry.round < self.present.last_round:
            raise ValueError(f"round {entry.round} comes after {self.present.last_round}")
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
            raise ValueError(
                f"{name} must name each client once, not {int(mask.sum())} of them in {len(positions)} places"
            )
        return mask

    def position(self, name: str, client: ClientId) -> int:
        """Return a client's place in the order of enrolment."""
        position = self._positions.get(client_id(client), len(self))
        if position >= len(self):
            raise ValueError(f"{name} must be enrolled, which {shown(client)} is not")
        return position

    def exceeding(self, mechanism: Mechanism, count: int, charged: Mask) -> Mask:
        """Return which of the charged clients' budgets would be exceeded by a checked number of steps."""
        which = self.present.which[: len(self)]
        present = np.flatnonzero(np.bincount(which[charged], minlength=1))
        poor = np.zeros(len(self.ledgers), np.bool_)
        poor[present] = [count > self.ledgers.room(number, mechanism) for number in present.tolist()]
        return poor[which] & charged

    def number(self, client: ClientId) -> int:
        """Return the number of a client's ledger."""
        return int(self.present.which[self.position("client", client)])


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


def synchronized(
    method: Callable[Concatenate[Owner, Arguments], Answer],
) -> Callable[Concatenate[Owner, Arguments], Answer]:
    """Refuse a method in a forked child and in the middle of a write, and let one thread after the other run it."""

    @functools.wraps(method)
    def guarded(self: Owner, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Answer:
        self._require_own_process()  # before the lock, which a thread of the parent's may hold for ever
        within = self._turn._is_owned()  # type: ignore[attr-defined] # by a call that this one interrupts
        try:
            with self._turn:
                self._require_ready(within)
                return method(self, *arguments, **options)
        except BaseException:
            self._leave(within)
            raise

    return guarded


def exclusive(
    method: Callable[Concatenate[Owner, Arguments], Answer],
) -> Callable[Concatenate[Owner, Arguments], Answer]:
    """As `synchronized`, for what writes: a signal handler that interrupts it, or an iterator that it was given, may use nothing."""

    @synchronized
    @functools.wraps(method)
    def guarded(self: Owner, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Answer:
        self._writing = True
        try:
            return method(self, *arguments, **options)
        finally:
            self._writing = False

    return guarded


class ClientLedgers:
    """The privacy ledgers of the clients of a federated training, in a file that survives a restart.

    Parameters
    ----------
    path : str or path-like
        The file, on a local disk; ":memory:" keeps nothing. One process at a time has it.
    epsilon, delta : float, optional
        Each client's budget, positive and in [0, 1), for mechanisms fixed in advance: `Accountant` decides what fits.
    adjacency : {"add_or_remove", "replace"}, optional
        By default "add_or_remove". Which sets of clients are adjacent.
    budget : GaussianFilter, RenyiFilter, ZeroConcentratedFilter, PlannedFilter or MenuFilter, optional
        Instead of epsilon, delta and adjacency: each client's budget where mechanisms are chosen from earlier releases.
        Nothing may be spent of it.
    create : bool
        Whether to make a new file where none is. By default one is opened, and must be there with all that was written to it.
    expected_head : str, optional
        A `head` that was noted elsewhere: the file must have reached it, and may have gone on since.

    Raises
    ------
    ValueError
        If an argument is outside its domain, the file is not there, damaged, or was made with other arguments, or it never had the
        expected head.
    RuntimeError
        If another process has the file, or it cannot be read or written.

    Notes
    -----
    The unit is the client: each ledger is the composition of the mechanisms that its client was charged, and
    is a guarantee for it if in no other round anything of it is used. `charge` says who must be charged. Charge before the
    round, then release: a round that dies after its charge stays charged.

    Each entry has a SHA-256 digest of itself and all before it, verified whenever it is read: damage is an error. Anyone who
    can write the file can write digests too, and an older copy put back in its place is a valid file. Only a `head` that was kept
    elsewhere finds that. The file names the participants: where the sample must be secret, so must the file.

    Calls from several threads wait for each other; a signal handler that interrupts a charge is refused. A forked child may not use the ledgers of its parent, nor may they be copied.

    Equal ledgers are kept once: a million clients with one history are one ledger and four bytes each, beside their ids.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)
    >>> with hs.budgets.ClientLedgers(":memory:", epsilon=2.0, delta=1e-6) as ledgers:
    ...     ledgers.enrol(range(10_000))
    ...     for number in range(1, 101):
    ...         drawn = hs.training.draw_participants(step, range(10_000))
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
        create: bool = False,
        expected_head: str | None = None,
    ) -> None:
        self._process = os.getpid()
        self._turn = threading.RLock()
        self._ended = False
        self._writing = False
        limits, fresh = checked_budget(epsilon, delta, adjacency, budget)
        head = checked_head(path, create, expected_head)
        self._budget = "epsilon {}, delta {} ({})".format(*limits, fresh.adjacency) if limits else repr(fresh)
        self._accounts = ClientAccounts(fresh, limits)
        self._unsettled: Entry | None = None  # one that is being written, or was when an interrupt came
        self._journal = Journal(path, {"limits": limits, "fresh": fresh.state_dict()}, create=create)
        try:
            self._journal.replay(self._replay, head)
        except BaseException:
            self._journal.close()
            raise

    def __repr__(self) -> str:
        """Return each client's budget and how many clients there are at this moment."""
        return f"<ClientLedgers: {self._budget} for each of {len(self._accounts)} clients>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse copy, deepcopy and pickle."""
        raise TypeError(f"{type(self).__name__} cannot be copied or pickled: each would spend the same budget")

    def __enter__(self) -> Self:
        """Return the ledgers; leaving closes the file."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file, unless this is a forked child that ends: the file is its parent's."""
        if os.getpid() == self._process:
            self.close()

    def close(self) -> None:
        """Close the file, so that another process may open it."""
        self._require_own_process()
        with self._turn:
            self._ended = True
            self._journal.close()

    @exclusive
    def enrol(self, clients: Iterable[ClientId]) -> None:
        """Add clients with nothing charged; those known already keep what they have.

        Parameters
        ----------
        clients : iterable of int or str
            Their ids: integers of 64 bits, or text of at most 1024 characters, of which Unicode's normal form C counts.

        Raises
        ------
        TypeError
            If an id is neither an integer nor a string.
        ValueError
            If an id is outside its domain.
        RuntimeError
            If the file is closed, not as it was left, or cannot be written, or if this interrupts another charge.
        """
        new = self._accounts.unknown(clients)
        self._journal.require_unchanged()
        if new:
            self._write(Enrolment(new))

    @exclusive
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
            How many equal steps, in [0, 2^53], of which 0 charge nothing; 1 where participants are given.
        clients : iterable of int or str, optional
            Who is charged; all by default. Where a mechanism samples clients in secret, everyone who could have been drawn, drawn
            or not; where it is known who takes part, those who do, for the mechanism without sampling.
        participants : iterable of int or str, optional
            Who takes part, for the log. They must be among the charged, each once, and no more than the mechanism says. Of a
            batch drawn with replacement give its `set`. Needed where clients are sampled of fewer than all who are enrolled.

        Raises
        ------
        BudgetExceededError
            If a client's budget would be exceeded.
        ValueError
            If an argument is outside its domain, a client is not enrolled or is there twice, the mechanism is not
            supported, someone who could have been drawn is not charged, or participation is not what is charged.
        RuntimeError
            If the file is closed, not as it was left, or cannot be written, or if this interrupts another charge.

        Notes
        -----
        The numbers of participants are held against Poisson samplers over all rounds: those of batches of a fixed size, or in
        a cyclic order, are too much alike. A training that samples as it says is refused with a probability of at most 1e-9
        in all (`hockeystick.budgets.batch_sizes` has the test). Sizes say nothing about who was drawn.
        """
        number = count_scalar("number", number)
        if number < self._accounts.present.last_round:
            raise ValueError(
                f"number must be at least that of the last round, {self._accounts.present.last_round}, not {number}"
            )
        count = self._accounts.checked(mechanism, count)
        charged = self._accounts.mask("clients", clients)
        drawn = None if participants is None else self._accounts.mask("participants", participants)
        entry = Charge(number, [(mechanism, count)], charged, drawn)
        self._check(entry)
        exceeding = self._accounts.exceeding(mechanism, count, charged)
        if exceeding.any():
            some = self._accounts.ids[int(exceeding.argmax())]
            what = f"{count} x {shown(mechanism)} exceeds the budget of {int(exceeding.sum())} clients"
            raise BudgetExceededError(f"{what}, such as {shown(some)}; nothing was charged")
        self._journal.require_unchanged()
        if count:
            self._write(entry)

    @synchronized
    def __len__(self) -> int:
        """Return the number of clients."""
        return len(self._accounts)

    @property
    @synchronized
    def num_ledgers(self) -> int:
        """How many different ledgers the clients have."""
        return self._accounts.num_ledgers

    @property
    @synchronized
    def last_round(self) -> int:
        """The last round that was charged, 0 before the first: after a restart, the one that may have been interrupted."""
        return self._accounts.present.last_round

    @property
    @synchronized
    def head(self) -> str:
        """The digest of everything in the file, as 64 hexadecimal digits, to be kept elsewhere and given as `expected_head`."""
        return self._journal.head

    @synchronized
    def would_exceed(self, mechanism: Mechanism, count: int = 1, *, clients: Iterable[ClientId] | None = None) -> bool:
        """Say whether the charge would leave the budget of any of the clients; nothing is charged.

        Parameters
        ----------
        mechanism : Mechanism
            What each step would release.
        count : int
            How many equal steps, in [0, 2^53].
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
        mask = self._accounts.mask("clients", clients)
        return bool(self._accounts.exceeding(mechanism, self._accounts.checked(mechanism, count), mask).any())

    @synchronized
    def eligible(self, mechanism: Mechanism, count: int = 1) -> list[ClientId]:
        """Return the clients whose budget the charge would not leave.

        Parameters
        ----------
        mechanism : Mechanism
            What each step would release.
        count : int
            How many equal steps, in [0, 2^53].

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
        count = self._accounts.checked(mechanism, count)
        poor = self._accounts.exceeding(mechanism, count, self._accounts.mask("clients", None))
        return [client for client, left_out in zip(self._accounts.ids, poor.tolist(), strict=True) if not left_out]

    @synchronized
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
        self._accounts.checked(mechanism, 1)
        return self._accounts.ledgers.room(self._accounts.number(client), mechanism)

    @synchronized
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
        return self._accounts.ledgers.account(self._accounts.number(client))

    @synchronized
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
        found = []
        for _, entry in self._journal.history():
            if isinstance(entry, Charge) and position < len(entry.charged) and entry.charged[position]:
                took_part = None if entry.participants is None else bool(entry.participants[position])
                found += [ClientCharge(entry.round, *step, took_part) for step in entry.steps]
        return found

    def _check(self, entry: Charge) -> None:
        """Refuse a charge of which somebody is left out, or whose participants are not those of its mechanism."""
        ((mechanism, count),) = entry.steps
        check_participation(mechanism, count, entry.charged, entry.participants)
        if entry.participants is None:
            return
        size, num_clients = int(entry.participants.sum()), int(entry.charged.sum())
        if self._accounts.present.sizes.improbable(mechanism, num_clients, size):
            raise ValueError(
                f"participants must be samples of {shown(mechanism)}, which {size} of {num_clients} after those before are with a "
                f"probability below {LEVEL:g}: too many, or too often the same number, as where batches have a fixed size"
            )

    def _write(self, entry: Entry) -> None:
        """Write an entry, then take it into memory; an interrupt in between leaves it to the next call to find out which of both was done."""
        self._unsettled = entry
        try:
            self._journal.append(entry)
        except Exception:
            self.close()
            raise
        self._accounts.take(entry)
        self._unsettled = None

    def _settle(self) -> None:
        """Take into memory what an interrupted charge or enrolment has written, if it has."""
        if self._unsettled is None:
            return
        self._journal.settle()
        if self._accounts.present.num_entries < self._journal.num_entries:
            self._accounts.take(self._unsettled)
        self._unsettled = None

    def _replay(self, entry: Entry) -> None:
        """Do what was read from the file, if this library could have written it."""
        self._accounts.require_possible(entry)
        self._accounts.take(entry)

    def _require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                f"{type(self).__name__} belongs to process {self._process}, and this is {os.getpid()}, a fork of it: "
                "each would spend the same budget; open the file after the fork, in one process"
            )

    def _leave(self, within: bool) -> None:
        """Give the turn back where an exception came between the end of its `with` and this; `within` a turn, it goes on."""
        if not within and self._turn._is_owned():  # type: ignore[attr-defined]
            self._turn.release()

    def _require_ready(self, within: bool) -> None:
        """Refuse what is closed, and what interrupts a write; begin where no interrupt was."""
        if self._ended:
            raise RuntimeError(
                f"{type(self).__name__} is closed, by close or after a failure to write: open the file again"
            )
        if within and self._writing:  # by this very thread
            raise RuntimeError(f"{type(self).__name__} is being written, and cannot be used by what interrupts that")
        if not within:
            self._writing = False  # an interrupt may have left it set
            self._settle()

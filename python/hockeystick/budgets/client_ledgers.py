"""A ledger for each client of a federated training, that survives a restart."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hockeystick._checks import count_scalar
from hockeystick._checks.shown import shown
from hockeystick.budgets.batch_sizes import LEVEL
from hockeystick.budgets.client_accounts import ClientAccounts
from hockeystick.budgets.client_arguments import ClientId, checked_budget, checked_head
from hockeystick.budgets.client_queries import ClientQueries
from hockeystick.budgets.entries import Charge, Enrolment, Entry
from hockeystick.budgets.filter_base import BudgetExceededError, Filter
from hockeystick.budgets.journal import Journal
from hockeystick.budgets.sole_owner import alone
from hockeystick.mechanisms.base import Adjacency, Mechanism
from hockeystick.training.participation import check_participation, require_everybody

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["ClientLedgers"]


class ClientLedgers(ClientQueries):
    """What each client of a federated training has been charged, in a file that survives a restart.

    Parameters
    ----------
    path : str or path-like
        The file, on a local disk; ":memory:" keeps nothing. One process at a time has it.
    epsilon, delta : float, optional
        Each client's budget, positive and in [0, 1), for mechanisms fixed in advance: `Accountant` decides what fits.
    adjacency : {"add_or_remove", "replace"}, optional
        By default "add_or_remove". Which sets of clients are adjacent.
    budget : GaussianFilter, RenyiFilter, ZeroConcentratedFilter or PlannedFilter, optional
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
        create: bool = False,
        expected_head: str | None = None,
    ) -> None:
        super().__init__()
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

    def __enter__(self) -> Self:
        """Return the ledgers; leaving closes the file."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file, unless this is a forked child that ends: the file is its parent's."""
        if not self._is_forked():
            self.close()

    def close(self) -> None:
        """Close the file, so that another process may open it."""
        self._end(self._journal.close)

    @alone
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

    @alone
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
        if number < self._accounts.last_round:
            msg = f"number must be at least that of the last round, {self._accounts.last_round}, not {number}"
            raise ValueError(msg)
        count = self._accounts.checked(mechanism, count)
        charged = self._accounts.mask("clients", clients)
        drawn = None if participants is None else self._accounts.mask("participants", participants)
        entry = Charge(number, [(mechanism, count)], charged, drawn)
        self._check(entry)
        exceeding = self._accounts.exceeding(mechanism, count, charged)
        if exceeding.any():
            some = self._accounts.ids[int(exceeding.argmax())]
            what = f"{count} x {shown(mechanism)} exceeds the budget of {int(exceeding.sum())} clients"
            msg = f"{what}, such as {shown(some)}; nothing was charged"
            raise BudgetExceededError(msg)
        self._journal.require_unchanged()
        self._write(entry)

    def _check(self, entry: Charge) -> None:
        """Refuse a charge of which somebody is left out, or whose participants are not those of its mechanism."""
        ((mechanism, count),) = entry.steps
        require_everybody(mechanism, entry.charged, entry.participants)
        check_participation(mechanism, count, entry.charged, entry.participants)
        if entry.participants is None:
            return
        size, num_clients = int(entry.participants.sum()), int(entry.charged.sum())
        if self._accounts.sizes.improbable(mechanism, num_clients, size):
            msg = (
                f"participants must be samples of {shown(mechanism)}, which {size} of {num_clients} after those before are with a "
                f"probability below {LEVEL:g}: too many, or too often the same number, as where batches have a fixed size"
            )
            raise ValueError(msg)

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
        if self._accounts.num_entries < self._journal.num_entries:
            self._accounts.take(self._unsettled)
        self._unsettled = None

    def _replay(self, entry: Entry) -> None:
        """Do what was read from the file, if this library could have written it."""
        self._accounts.require_possible(entry)
        self._accounts.take(entry)

"""Ledgers of clients: what each was charged, to the round, whatever happens to the process."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
import refused_calls

SAMPLED = hs.PoissonSampled(hs.Gaussian(1.0), 0.1)
TRUNCATED = hs.TruncatedPoissonSampled(hs.Gaussian(2.0), 5, 0.1, 2)
FIXED = hs.FixedSizeSampled(hs.Gaussian(2.0), 4, 2, replacement=False)
BUDGETS = {
    "fixed": ({"epsilon": 4.0, "delta": 1e-5}, [SAMPLED, hs.Gaussian(6.0)]),
    "replaced": ({"epsilon": 4.0, "delta": 1e-5, "adjacency": "replace"}, [SAMPLED, hs.Gaussian(9.0)]),
    "gaussian": ({"budget": hs.GaussianFilter(epsilon=4.0, delta=1e-5)}, [hs.Gaussian(5.0), hs.Gaussian(3.0)]),
    "renyi": ({"budget": hs.RenyiFilter(order=8, epsilon=4.0, delta=1e-5)}, [SAMPLED, hs.Laplace(4.0)]),
    "concentrated": ({"budget": hs.ZeroConcentratedFilter(0.1, delta=3e-8)}, [hs.ZeroConcentratedDP(0.03, delta=1e-8), hs.Gaussian(6.0)]),
    "planned": ({"budget": hs.PlannedFilter(hs.Accountant().compose(SAMPLED, 4).compose(hs.Laplace(4.0), 3))}, [SAMPLED, hs.Laplace(4.0)]),
    "menu": ({"budget": hs.MenuFilter([hs.Laplace(4.0), hs.Gaussian(9.0)], epsilon=4.0, delta=1e-5)}, [hs.Laplace(4.0), hs.Gaussian(9.0)]),
}  # fmt: skip
CLIENTS = ["Ada", "Bo", 3, 4, "3"]


def reference(options, steps):
    """Return an accountant or a filter with these steps, and whether they all fit, one after the other."""
    if "budget" in options:
        account = type(options["budget"]).from_state_dict(options["budget"].state_dict())
        for step in steps:
            if account.would_exceed(step):
                return account, False
            account.spend(step)
        return account, True
    account = hs.Accountant(options.get("adjacency", "add_or_remove"))
    for step in steps:
        account.compose(step)
    return account, account.epsilon(options["delta"]) <= options["epsilon"]


@pytest.mark.share(2)
@pytest.mark.parametrize("name", BUDGETS)
@settings(max_examples=8)
@given(data=st.data())
def test_each_client_has_its_own_account(name, data, tmp_path_factory):
    """After any charges, and a restart, each client's account is that of its own steps, and no budget is exceeded."""
    options, mechanisms = BUDGETS[name]
    path = tmp_path_factory.mktemp("ledgers") / "budget.sqlite"
    charged = {client: [] for client in CLIENTS}
    with hs.ClientLedgers(path, create=True, **options) as ledgers:
        ledgers.enrol(CLIENTS)
        for number in range(1, data.draw(st.integers(2, 12))):
            step = data.draw(st.sampled_from(mechanisms))
            chosen = data.draw(st.lists(st.sampled_from(CLIENTS), unique=True))
            chosen = CLIENTS if step == SAMPLED else chosen  # everyone who could have been drawn
            fits = all(reference(options, [*charged[client], step])[1] for client in chosen)
            assert ledgers.would_exceed(step, clients=chosen) == (not fits)
            if fits:
                ledgers.charge(number, step, clients=chosen)
                for client in chosen:
                    charged[client].append(step)
            else:
                with pytest.raises(hs.BudgetExceededError, match="nothing was charged"):
                    ledgers.charge(number, step, clients=chosen)
        before = ledgers.last_round
    with hs.ClientLedgers(path, **options) as ledgers:
        assert (len(ledgers), ledgers.last_round) == (len(CLIENTS), before)
        assert ledgers.num_ledgers <= len(CLIENTS)
        for client, steps in charged.items():
            account = ledgers.account(client)
            assert account.ledger == reference(options, steps)[0].ledger
            assert [entry.mechanism for entry in ledgers.log(client)] == steps
            json.dumps(account.state_dict())
            for step in mechanisms:
                room = ledgers.remaining(step, client)
                assert (client in ledgers.eligible(step)) == (room > 0)
                assert ledgers.would_exceed(step, room + 1, clients=[client])
                assert not room or not ledgers.would_exceed(step, room, clients=[client])


def test_participation_is_recorded():
    """The log tells for each charge whether the client took part, and clients who come later start with nothing."""
    with hs.ClientLedgers(":memory:", epsilon=20.0, delta=1e-5, adjacency="replace") as ledgers:
        ledgers.enrol(CLIENTS[:4])
        ledgers.charge(1, FIXED, participants=["Ada", 3])
        ledgers.enrol(CLIENTS)
        ledgers.charge(2, FIXED, clients=CLIENTS[:4], participants=["Bo"])  # one dropped out
        ledgers.charge(2, hs.Gaussian(9.0), 2)
        gaussian = (2, hs.Gaussian(9.0), 2, None)
        assert ledgers.log("Ada") == [(1, FIXED, 1, True), (2, FIXED, 1, False), gaussian]
        assert ledgers.log("Bo") == [(1, FIXED, 1, False), (2, FIXED, 1, True), gaussian]
        assert ledgers.log("3") == [gaussian]
        assert ledgers.num_ledgers == 2


def test_no_step_is_not_charged():
    """A charge of no step is not written, however little is left; everybody can pay it."""
    with hs.ClientLedgers(":memory:", epsilon=1e-9, delta=0.0) as ledgers:
        ledgers.enrol(CLIENTS)
        ledgers.charge(3, SAMPLED, 0)
        assert ledgers.eligible(SAMPLED, 0) == CLIENTS
        assert ledgers.eligible(SAMPLED) == []
        assert not ledgers.would_exceed(SAMPLED, 0)
        assert (ledgers.last_round, ledgers.log("Ada")) == (0, [])


def test_nothing_is_free_when_the_disk_fails(tmp_path):
    """A charge that cannot be written is an error, after which the file is closed, and has what it had."""
    path = tmp_path / "budget.sqlite"
    with hs.ClientLedgers(path, epsilon=4.0, delta=1e-5, create=True) as ledgers:
        ledgers.enrol(CLIENTS)
        ledgers.charge(1, SAMPLED)
        before, head = ledgers.remaining(SAMPLED, 3), ledgers.head
        ledgers._journal._db.execute("PRAGMA max_page_count = 1")  # as if the disk were full
        with pytest.raises(RuntimeError, match=f"{path} cannot be written: database or disk is full"):
            ledgers.enrol(range(100_000))
        with pytest.raises(RuntimeError, match="closed"):
            ledgers.charge(2, SAMPLED)
    with hs.ClientLedgers(path, epsilon=4.0, delta=1e-5) as ledgers:
        assert (ledgers.last_round, ledgers.remaining(SAMPLED, 3), ledgers.head) == (1, before, head)


def test_many_clients(tmp_path):
    """A hundred thousand clients in three groups are three ledgers, and a round is a few kilobytes in the file."""
    path = tmp_path / "budget.sqlite"
    with hs.ClientLedgers(path, epsilon=2.0, delta=1e-6, create=True) as ledgers:
        ledgers.enrol(range(100_000))
        empty = path.stat().st_size
        step = hs.PoissonSampled(hs.Gaussian(1.0), 0.001)
        for number in range(1, 21):
            ledgers.charge(number, step, participants=hs.draw_participants(step, range(100_000)))
        for number, chosen in ((21, range(50_000)), (22, range(25_000, 75_000))):
            ledgers.charge(number, step, clients=chosen, participants=hs.draw_participants(step, chosen))
        assert ledgers.num_ledgers == 3  # two charges of one kind are one ledger, whatever the round
        assert path.stat().st_size - empty < 22 * 4096


@pytest.mark.parametrize("given", [{"clients": range(100)}, {"participants": range(3)}])
def test_reports_of_fewer_users_are_not_mixed_as_well(given):
    """A shuffler of fewer reports than charged hides less."""
    with hs.ClientLedgers(":memory:", epsilon=4.0, delta=1e-6, adjacency="replace", create=True) as ledgers:
        ledgers.enrol(range(1000))
        with pytest.raises(ValueError, match="must be at least the 1000 whose reports"):
            ledgers.charge(1, hs.Shuffled(1.0, 1000), **given)
        ledgers.charge(1, hs.Shuffled(1.0, 1000), participants=range(1000))


def test_repr_shows_budget_and_clients():
    """What each client may spend, and how many there are, also after the file is closed."""
    with hs.ClientLedgers(":memory:", epsilon=2.0, delta=1e-6) as ledgers:
        ledgers.enrol(range(5))
        told = "<ClientLedgers: epsilon 2.0, delta 1e-06 (add_or_remove) for each of 5 clients>"
        assert repr(ledgers) == told
    assert repr(ledgers) == told
    with hs.ClientLedgers(":memory:", budget=hs.GaussianFilter(mu=0.5)) as ledgers:
        assert repr(ledgers) == f"<ClientLedgers: {hs.GaussianFilter(mu=0.5)!r} for each of 0 clients>"


NAMES = {"hs": hs, "np": np, "CLIENTS": CLIENTS, "SAMPLED": SAMPLED, "TRUNCATED": TRUNCATED, "FIXED": FIXED}
REFUSED = r"""
a.charge(1, SAMPLED, clients=["Cy"]) -> must be enrolled
a.remaining(SAMPLED, "Cy") -> must be enrolled
a.charge(1, SAMPLED, clients=[3, 3]) -> each client once
a.charge(1, SAMPLED, participants=[3, 3]) -> participants must name
a.charge(1, SAMPLED, clients=["Bo", 4], participants=["Bo", 3]) -> among the clients
r.charge(1, FIXED, clients=CLIENTS[:4], participants=["Ada", "Bo", 3]) -> at most the 2
r.charge(1, TRUNCATED, participants=["Ada", "Bo", 3]) -> at most the 2
r.charge(1, hs.TruncatedPoissonSampled(hs.Gaussian(2.0), 4, 0.1, 2)) -> at most the 4 of
r.charge(1, hs.PoissonSampled(hs.Gaussian(2.0), 1e-6), participants=["Ada", "Bo", 3])
    -> which 3 of 5 after those before are with
r.charge(1, FIXED, clients=["Ada", "Bo"]) -> must be the 4
a.charge(1, SAMPLED, 2, participants=[3]) -> count must be 1
(a.charge(2, SAMPLED), a.charge(1, SAMPLED)) -> at least that of the last
a.charge(0, SAMPLED) -> number must be
a.enrol([True]) -> TypeError: id must be
a.charge(1, SAMPLED, clients=[1.0]) -> TypeError: id must be
a.enrol([2**63]) -> 64 bits
a.enrol([np.uint64(2**63)]) -> 64 bits
a.enrol([10**10_000]) -> an integer of 33220 bits
a.enrol(["a" * 1025]) -> at most 1024 characters, not 1025
a.enrol(["\U0001d160" * 1024]) -> at most 1024 characters in Unicode's normal form C, not 3072
a.enrol(["\ud800"]) -> UTF-8 can hold
(a.enrol(["\u00e9"]), a.would_exceed(SAMPLED, clients=["\u00e9", "e\u0301"])) -> each client once
a.charge(1, SAMPLED, clients=["Bo"]) -> everyone who could have been drawn
a.charge(1, hs.Composed([(hs.Gaussian(9.0), 1), (SAMPLED, 1)]), clients=["Bo"]) -> everyone who could have been drawn
a.charge(1, hs.Composed([(SAMPLED, 1)]), clients=["Bo"], participants=["Bo"]) -> cannot be held against it
a.charge(1, hs.RandomAllocation(hs.Gaussian(9.0), 100), clients=["Bo"]) -> everyone who could have been drawn
a.enrol("Bo") -> TypeError: clients must be several ids, such as a list, not one text
a.enrol(b"Bo") -> TypeError: clients must be several ids, such as a list, not one text
a.enrol(bytearray(b"Bo")) -> TypeError: clients must be several ids, such as a list, not one text
a.charge(1, hs.Gaussian(30.0), clients="34") -> TypeError: clients must be several ids, such as a list, not one text
a.charge(1, SAMPLED, participants="34") -> TypeError: participants must be several ids, such as a list, not one text
a.would_exceed(hs.Gaussian(30.0), clients="34") -> TypeError: clients must be several ids, such as a list, not one text
a.would_exceed(0.5) -> TypeError: mechanism must be
a.would_exceed(SAMPLED, -1) -> count must be
a.charge(1, SAMPLED, 0.5) -> TypeError: count must be
a.eligible(SAMPLED, np.nan) -> TypeError: count must be
a.would_exceed(hs.RandomizedResponse(0.5, 2)) -> not supported
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """What would be wrong to charge is refused in words, and nothing is charged; `r` is for records that are replaced."""
    both = {}
    for name, adjacency in (("a", "add_or_remove"), ("r", "replace")):
        both[name] = hs.ClientLedgers(":memory:", epsilon=4.0, delta=1e-5, adjacency=adjacency)
        both[name].enrol(np.array([3, 4]))
        both[name].enrol(CLIENTS)
    refused_calls.check(call, reason, NAMES | both)
    assert len(both["r"].log(4)) == 0
    assert len(both["a"].log(4)) == ("charge(2" in call)
    assert len(both["a"]) == (6 if "u00e9" in call else 5)

"""Ledgers of clients: what each was charged, to the round, whatever happens to the process."""

import copy
import functools
import json
import os
import pickle
import re
import shutil
import sqlite3
import sys
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import effort
import hockeystick as hs
import ledger_storm
import processes
import refused_calls
from hockeystick.budgets import ledger_file
from hockeystick.budgets.batch_sizes import BatchSizes, alike_bet, excess_bets, largest_log_probability

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


# Files of client ledgers: made on request, whole or refused, and recognised before each charge, in a storm too; and the page on budgets.


BUDGET = {"epsilon": 6.0, "delta": 1e-6}
STEP, SAMPLE = hs.Gaussian(2.0), hs.PoissonSampled(hs.Gaussian(1.0), 0.4)


@pytest.fixture
def path(tmp_path):
    """Return a file with three clients, one of them later than the others, and four charges."""
    path = tmp_path / "budget.sqlite"
    with hs.ClientLedgers(path, create=True, **BUDGET) as ledgers:
        ledgers.enrol(["Ada", 17])
        ledgers.charge(1, STEP)
        ledgers.charge(2, SAMPLE, participants=["Ada"])
        ledgers.enrol(["Bo"])
        ledgers.charge(3, hs.Gaussian(9.0), 2, clients=["Bo"])
        ledgers.charge(3, hs.Gaussian(8.0), clients=[17])
    return path


def answers(path, **options):
    """Return all that a file says."""
    with hs.ClientLedgers(path, **BUDGET | options) as ledgers:
        clients = ledgers.eligible(hs.Gaussian(1e6))
        logs = [ledgers.log(client) for client in clients]
        rooms = [ledgers.remaining(hs.Gaussian(9.0), client) for client in clients]
        return clients, logs, rooms, ledgers.last_round, ledgers.head


def test_files_of_earlier_releases_open(path):
    """What a file says it is never changes: another word for it would close all files that there are."""
    with sqlite3.connect(path) as database:
        ((content,),) = database.execute("SELECT content FROM entries WHERE sequence = 0")
    database.close()
    made = json.loads(content)
    assert (made["format"], made["version"]) == ("hockeystick.ClientLedgers", 2)


def test_a_lost_file_is_no_fresh_budget(path, tmp_path, monkeypatch):
    """What is not there, no file or nothing is refused, and made by no opening that was not asked to."""
    monkeypatch.chdir(tmp_path)
    for lost, words in {"bugdet.sqlite": "there is none at", "": "must name a file", ".": "no regular file"}.items():
        with pytest.raises(ValueError, match=words):
            hs.ClientLedgers(lost, **BUDGET)
    assert [found.name for found in tmp_path.iterdir()] == [path.name]
    with pytest.raises(RuntimeError, match="cannot be made"):
        hs.ClientLedgers(tmp_path / "no_folder" / "a", create=True, **BUDGET)


def test_a_file_is_made_once(path):
    """`create=True` never opens what is there, be it ours, empty or another's."""
    before = answers(path)
    with pytest.raises(ValueError, match="there is one at"):
        hs.ClientLedgers(path, create=True, **BUDGET)
    assert answers(path) == before
    (path.parent / "empty").touch()
    with pytest.raises(ValueError, match="there is one at"):
        hs.ClientLedgers(path.parent / "empty", create=True, **BUDGET)


def test_one_process_at_a_time(path):
    """A second opening is refused until the first is closed, since it would charge what the first does not see."""
    with hs.ClientLedgers(path, **BUDGET), pytest.raises(RuntimeError, match=f"{path} cannot be locked"):
        hs.ClientLedgers(path, **BUDGET)
    hs.ClientLedgers(path, **BUDGET).close()


def replaced(path):
    """Put a copy in the file's place."""
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)


def written(path):
    """Have another process charge, after this one lost its lock by closing another handle of the file."""
    path.open("rb").close()
    code = "import sys, hockeystick as hs\nhs.ClientLedgers(sys.argv[1], epsilon=6.0, delta=1e-6).charge(9, hs.Gaussian(9.0))"
    processes.python(code, path)


GONE = {
    "unlinked": Path.unlink,
    "moved": lambda path: path.rename(path.with_name("b")),
    "replaced": replaced,
    "written to": written,
}


@pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be moved there")
@pytest.mark.parametrize("what", GONE)
def test_a_file_that_is_no_more_the_same_is_not_charged(what, path):
    """A charge after the file was taken away would be lost with it: it is refused, as often as it is asked for."""
    with hs.ClientLedgers(path, **BUDGET) as ledgers:
        room = ledgers.remaining(STEP, "Bo")
        GONE[what](path)
        for _ in range(2):
            with pytest.raises(RuntimeError, match=f"{path} is not as it was left"):
                ledgers.charge(10, STEP, clients=["Bo"])
            with pytest.raises(RuntimeError, match="is not as it was left"):
                ledgers.enrol(["Cy"])
        assert ledgers.remaining(STEP, "Bo") == room


def test_a_file_may_be_read_through_another_working_directory(path, tmp_path, monkeypatch):
    """A relative path means the file that it meant when it was opened."""
    monkeypatch.chdir(tmp_path)
    with hs.ClientLedgers(path.name, **BUDGET) as ledgers:
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        ledgers.charge(4, hs.Gaussian(20.0))
        assert len(ledgers.log("Bo")) == 2


def test_truncated_file(path):
    """A file that ends early is refused at every length."""
    content = path.read_bytes()
    for length in range(0, len(content), 512):
        path.write_bytes(content[:length])
        with pytest.raises((ValueError, RuntimeError), match=str(path)):
            answers(path)


def test_a_file_damaged_while_it_is_open(path):
    """What `log` reads is verified again."""
    with hs.ClientLedgers(path, **BUDGET) as ledgers:
        ledgers._journal._db.execute("UPDATE entries SET content = replace(content, '2.0', '6.0')")
        with pytest.raises(ValueError, match=f"{path} is damaged"):
            ledgers.log("Ada")


def flipped(noise):
    """Return what flips a bit of a noise multiplier: 2.0, which is a third of the epsilon, becomes 6.0."""

    def damage(path):
        content = path.read_bytes()
        at = content.index(f'"noise_multiplier":{noise}'.encode()) + len('"noise_multiplier":')
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])

    return damage


def told(*commands, new=False):
    """Return what has SQLite do something to a file, or to a new one."""

    def damage(path):
        if new:
            path.unlink()
        with sqlite3.connect(path) as database:
            for command in commands:
                database.execute(command)
        database.close()

    return damage


def rewritten(path, sequence, change):
    """Change a row and all digests, as somebody would who knows the format."""
    with sqlite3.connect(path) as database:
        previous = ledger_file.NO_DIGEST
        found = database.execute(
            "SELECT sequence, content, charged, participants FROM entries ORDER BY sequence"
        ).fetchall()
        for number, *fields in found:
            row = ledger_file.Row(*fields)
            row = change(row) if number == sequence else row
            previous = ledger_file.digest(previous, row)
            database.execute(
                "UPDATE entries SET content = ?, charged = ?, participants = ?, digest = ? WHERE sequence = ?",
                (*row, previous, number),
            )
        database.execute("UPDATE head SET digest = ?", (previous,))
    database.close()


def content(**changes):
    """Return what changes fields of a row's JSON."""
    return lambda row: row._replace(content=json.dumps(json.loads(row.content) | changes).encode())


def steps(**changes):
    """Return what changes fields of the mechanism that was charged."""

    def change(row):
        said = json.loads(row.content)
        said["steps"][0]["mechanism"] |= changes
        return row._replace(content=json.dumps(said).encode())

    return change


def masked(data):
    """Return what changes the mask of those charged."""
    return lambda row: row._replace(charged=data)


NESTED = '{"name":"PoissonSampled","sampling_rate":0.5,"mechanism":' * 5000
HOSTILE = {
    "a bomb": (2, masked(zlib.compress(bytes(2**26)))),
    "a mask that ends early": (2, masked(zlib.compress(b"\xc0")[:-2])),
    "a mask of nobody": (2, masked(zlib.compress(b""))),
    "a mask of more": (2, masked(zlib.compress(b"\xc0\xc0"))),
    "no zlib": (2, masked(b"no zlib")),
    "no JSON": (2, lambda row: row._replace(content=b"{")),
    "no UTF-8": (2, lambda row: row._replace(content=b'"\xff\xfe"')),
    "a list": (2, lambda row: row._replace(content=b"[]")),
    "deep JSON": (2, lambda row: row._replace(content=b"[" * 10**6)),
    "deep steps": (
        2,
        lambda row: row._replace(content=f'{{"round":1,"steps":[{{"count":1,"mechanism":{NESTED}'.encode()),
    ),
    "a huge number": (3, steps(sampling_rate=10**400)),
    "a huge noise": (2, steps(noise_multiplier=10**400)),
    "text for noise": (2, steps(noise_multiplier="2.0")),
    "no number": (2, steps(noise_multiplier=float("nan"))),
    "another mechanism": (2, steps(name="Nothing")),
    "a negative count": (2, content(steps=[{"count": -1, "mechanism": {"name": "Gaussian", "noise_multiplier": 2.0}}])),
    "no steps": (2, content(steps=None)),
    "a negative round": (2, content(round=-1)),
    "a round out of order": (2, content(round=9)),
    "an id twice": (4, content(clients=["Ada"])),
    "an id that is no id": (1, content(clients=["Ada", 1.5])),
    "an id in another form": (4, content(clients=["e\u0301"])),
    "text for ids": (4, content(clients="Bo")),
    "settings of another kind": (0, lambda row: row._replace(content=b"[]")),
    "a version to come": (0, content(version=3)),
}
NOT_OURS = "must be a file of client ledgers"
DAMAGED = {
    "a bit of noise": (flipped("2.0"), "is damaged, and nothing can be charged to it: entry"),
    "a bit of another": (flipped("9.0"), "is damaged, and nothing can be charged to it: entry"),
    "the last charge is gone": (told("DELETE FROM entries WHERE sequence = 6"), "is damaged"),
    "a charge is gone": (told("DELETE FROM entries WHERE sequence = 3"), "is damaged"),
    "nothing": (lambda path: path.write_bytes(b""), "is empty"),
    "text": (lambda path: path.write_text("not a data base, but as long as one " * 30), NOT_OURS),
    "another data base": (told("CREATE TABLE other (a)", new=True), NOT_OURS),
    "the same tables": (told("CREATE TABLE entries (a)", "CREATE TABLE head (a)", new=True), NOT_OURS),
    "more tables": (told("CREATE TABLE more (a)"), NOT_OURS),
    "before digests": (
        told(*(f"CREATE TABLE {table} (a)" for table in ("settings", "clients", "charges")), new=True),
        "is of format 1, which has no digests",
    ),
} | {name: (functools.partial(rewritten, sequence=row, change=change), "") for name, (row, change) in HOSTILE.items()}


@pytest.mark.parametrize("reason", DAMAGED)
def test_damaged_files(reason, path):
    """What is damaged, or rewritten with its digests and not what would be written, is a ValueError that names the file, and takes no memory."""
    damage, words = DAMAGED[reason]
    damage(path)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=words or str(path)) as error:
            hs.ClientLedgers(path, **BUDGET)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert str(path) in str(error.value)


def test_an_unchanged_rewriting_is_read(path):
    """The rewriting of the test before changes nothing else."""
    before = answers(path)
    rewritten(path, 2, lambda row: row)
    assert answers(path) == before


@pytest.mark.parametrize("damage", ["flip", "settings", "head"])
def test_a_failed_opening_gives_the_file_free(damage, path):
    """After an opening that failed the file is free at once, though the error is still held."""
    content = path.read_bytes()
    if damage == "flip":
        path.write_bytes(content.replace(b'"noise_multiplier":2.0', b'"noise_multiplier":6.0'))
    options = {"settings": {"epsilon": 5.0}, "head": {"expected_head": "0" * 64}}.get(damage, {})
    with pytest.raises(ValueError, match=str(path)) as error:
        hs.ClientLedgers(path, **BUDGET | options)
    with sqlite3.connect(path, timeout=0.0) as database:
        database.execute("BEGIN EXCLUSIVE")
    database.close()
    assert error.traceback


def test_head(path):
    """A head that was noted finds an older copy and another file; a file that has gone on since is opened."""
    older = path.with_name("older")
    shutil.copy(path, older)
    with hs.ClientLedgers(path, **BUDGET) as ledgers:
        first = ledgers.head
        ledgers.charge(4, STEP)
        noted = ledgers.head
        ledgers.charge(5, hs.Gaussian(30.0))
        assert len({first, noted, ledgers.head}) == 3
        last = ledgers.head
    for head in (first, noted, last):
        with hs.ClientLedgers(path, expected_head=head, **BUDGET) as ledgers:
            assert ledgers.head == last
    older.replace(path)
    assert answers(path, expected_head=first)[-1] == first
    with pytest.raises(ValueError, match=f"{path} never had the expected_head {noted}"):
        hs.ClientLedgers(path, expected_head=noted, **BUDGET)
    another = path.with_name("another")
    hs.ClientLedgers(another, create=True, **BUDGET).close()
    with (
        hs.ClientLedgers(path.with_name("third"), create=True, **BUDGET) as ledgers,
        pytest.raises(ValueError, match="never had"),
    ):
        hs.ClientLedgers(another, expected_head=ledgers.head, **BUDGET)


def test_ids_of_all_kinds(tmp_path):
    """Ids come back as they were given: the ends of 64 bits, text that looks like SQL, and one text in two spellings as one."""
    ids = [np.int64(-(2**63)), 2**63 - 1, "", "'; DROP TABLE entries; --", "\0", "e\u0301", "3", 3]
    ids[4:4] = ["\U0001f600" * 1024, "\U0001d160" * 300]  # as long as an id may be; nearly so, once it is normalised
    path = tmp_path / "budget.sqlite"
    with hs.ClientLedgers(path, create=True, **BUDGET) as ledgers:
        ledgers.enrol(ids)
        ledgers.charge(1, STEP, clients=ids[:-1])
    with hs.ClientLedgers(path, **BUDGET) as ledgers:
        assert [len(ledgers.log(client)) for client in ids] == [1] * 9 + [0]
        assert len(ledgers.log(-(2**63))) == 1
        ledgers.enrol(["\u00e9"])
        assert len(ledgers) == 10


def test_read_only_file(path):
    """A file that cannot be written is refused when it is opened."""
    path.chmod(0o400)
    if os.access(path, os.W_OK):
        pytest.skip("this user may write everything")
    with pytest.raises(RuntimeError, match=str(path)):
        hs.ClientLedgers(path, **BUDGET)


REFUSED_OPENINGS = r"""
hs.ClientLedgers(**OPENED | {"expected_head": "ab"}) -> 64 hexadecimal digits
hs.ClientLedgers(**OPENED | {"expected_head": "0" * 64, "create": True}) -> None for a new file
hs.ClientLedgers(**OPENED | {"create": 1}) -> TypeError: create must be True or False, not 1
hs.ClientLedgers(**OPENED | {"path": None}) -> TypeError: path must be a string or path-like, not None
hs.ClientLedgers(**OPENED | {"path": "a\x00b"}) -> must name a file
hs.ClientLedgers(**OPENED | {"epsilon": None}) -> either epsilon and delta
hs.ClientLedgers(**OPENED | {"budget": hs.GaussianFilter(1.0)}) -> either epsilon
hs.ClientLedgers(**OPENED | {"epsilon": None, "delta": None, "budget": hs.GaussianFilter(1.0).spend(hs.Gaussian(9.0))})
    -> nothing is spent
hs.ClientLedgers(**OPENED | {"epsilon": 2.0}) -> was made with
hs.ClientLedgers(**OPENED | {"adjacency": "replace"}) -> was made with
hs.ClientLedgers(**OPENED | {"epsilon": None, "delta": None, "budget": hs.GaussianFilter(1.0)}) -> was made with
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED_OPENINGS))
def test_refused_openings(call, reason, path):
    """An opener that says something else than the file, or nothing that makes sense, is refused."""
    refused_calls.check(call, reason, {"hs": hs, "OPENED": {"path": path, **BUDGET}})


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_storm():
    """Threads, processes, kills, forks and flipped bits lose no charge, exceed no budget and change no answer."""
    counts = ledger_storm.storm(effort.at_night(80, by_day=12), effort.SEED)
    assert {what: counts[what] for what in ledger_storm.FAILURES} == dict.fromkeys(ledger_storm.FAILURES, 0)
    for what in ("promised", "enrolled", "killed", "damaged and refused", "fork refused"):
        assert counts[what] > 0


ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "accounting" / "budgets.md").read_text(encoding="utf-8")


@pytest.mark.share(3)
@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
def test_python_blocks_run(block, capsys):
    """Every Python block runs, and what it prints stays within its budget."""
    exec(compile(block, "budgets.md", "exec"), {})  # noqa: S102, the text is ours
    printed = capsys.readouterr().out
    budget = float(re.findall(r"epsilon=([\d.]+)", block)[-1])
    spent = float(re.findall(r"epsilon ([\d.]+)", printed)[-1])
    assert 0.95 * budget < spent <= budget


@pytest.mark.slow
def test_measurements_run():
    """The script of the measurements runs, with fewer clients."""
    script = ROOT / "docs" / "tables" / "clients.py"
    done = processes.run([sys.executable, script, "--num-clients", "2000"])
    assert re.search(r"opening after 150 rounds: [\d.]+ s", done.stdout)


# Ledgers in forked children, in copies and in threads: a budget is spent once.


FORK = """
import os, sys, hockeystick as hs
path, step = sys.argv[1], hs.Gaussian(400.0)
ledgers = hs.ClientLedgers(path, epsilon=4.0, delta=1e-6, create=True)
ledgers.enrol(["a"])
calls = {
    "charge": lambda: ledgers.charge(1, step), "enrol": lambda: ledgers.enrol(["b"]), "close": ledgers.close,
    "remaining": lambda: ledgers.remaining(step, "a"), "would_exceed": lambda: ledgers.would_exceed(step),
    "eligible": lambda: ledgers.eligible(step), "account": lambda: ledgers.account("a"), "log": lambda: ledgers.log("a"),
    "len": lambda: len(ledgers), "num_ledgers": lambda: ledgers.num_ledgers, "last_round": lambda: ledgers.last_round,
    "head": lambda: ledgers.head,
}
child = os.fork()
if not child:
    for name, call in calls.items():
        try:
            call()
        except RuntimeError as error:
            assert "belongs to process" in str(error), error
            print("refused", name, flush=True)
    try:
        hs.ClientLedgers(path, epsilon=4.0, delta=1e-6)
    except RuntimeError as error:
        print("refused opening", flush=True)
    with ledgers:  # leaving the block closes nothing that is the parent's
        pass
    del ledgers, calls
    sys.exit(0)  # with all that an interpreter does at its end
for number in range(1, 200):
    ledgers.charge(number, step)
print("status", os.waitpid(child, 0)[1])
assert os.path.exists(path + "-journal"), "the child deleted its parent's journal"
for number in range(200, 400):
    ledgers.charge(number, step)
ledgers.close()
with hs.ClientLedgers(path, epsilon=4.0, delta=1e-6) as ledgers:
    print("charged", len(ledgers.log("a")))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_child(tmp_path):
    """Every call in a child is refused, and its end leaves the file to its parent, locked as it was and with its journal."""
    printed = processes.python(FORK, tmp_path / "budget.sqlite").stdout
    assert printed.count("refused") == 13
    assert "status 0" in printed
    assert "charged 399" in printed


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_no_copies(copied):
    """A copy would share the file and not what is charged."""
    with hs.ClientLedgers(":memory:", **BUDGET) as ledgers:
        ledgers.enrol(["a"])
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            copied(ledgers)
        assert ledgers.remaining(STEP, "a") > 0


def test_closed():
    """What is closed answers nothing, since others may have charged the file since; closing it again is allowed."""
    ledgers = hs.ClientLedgers(":memory:", **BUDGET)
    ledgers.enrol(["a"])
    ledgers.close()
    ledgers.close()
    for call in (lambda: ledgers.remaining(STEP, "a"), lambda: ledgers.last_round, lambda: ledgers.enrol(["b"])):
        with pytest.raises(RuntimeError, match="is closed"):
            call()


def test_what_interrupts_a_charge_is_refused(monkeypatch):
    """A signal handler that charges between the comparison and the write would spend the same budget again."""
    ledgers = hs.ClientLedgers(":memory:", **BUDGET, create=True)
    ledgers.enrol(["a"])
    count = ledgers.remaining(STEP, "a")
    compare, refused = ledgers._accounts.exceeding, []

    def interrupted(*arguments):
        exceeding = compare(*arguments)
        with pytest.raises(RuntimeError, match="is being written") as error:
            ledgers.charge(1, STEP, count)
        refused.append(error.value)
        return exceeding

    monkeypatch.setattr(ledgers._accounts, "exceeding", interrupted)
    ledgers.charge(1, STEP, count)
    monkeypatch.undo()
    assert len(refused) == 1
    assert ledgers.remaining(STEP, "a") == 0


def test_an_iterator_of_ids_cannot_charge(tmp_path):
    """What a charge iterates over runs in its middle; rounds out of order would make the file impossible to read."""
    path = tmp_path / "a.db"
    ledgers = hs.ClientLedgers(path, **BUDGET, create=True)
    ledgers.enrol(range(3))

    def ids():
        ledgers.charge(5, STEP)
        yield from range(3)

    with pytest.raises(RuntimeError, match="is being written"):
        ledgers.charge(1, STEP, clients=ids())
    ledgers.charge(1, STEP)
    ledgers.close()
    assert hs.ClientLedgers(path, **BUDGET).last_round == 1


# Sizes of batches: the test that holds them against the sampler, its level and what it notices.


POISSON = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)


def poisson_binomial(probabilities):
    """Return the law of the number of successes of independent trials with these probabilities."""
    law = np.ones(1)
    for p in probabilities:
        law = np.convolve(law, [1.0 - p, p])
    return law


@pytest.mark.parametrize("rate", [1e-3, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("num_clients", [1, 2, 7, 40, 300])
def test_bets_are_fair_to_clients_who_differ(num_clients, rate):
    """Whatever the earlier sizes, with any rate up to the one charged and availabilities of all kinds, the expectation of every bet is at most 1, and no size is likelier than the most that is assumed."""
    rng, sizes = np.random.default_rng(2), range(num_clients + 1)
    ceiling = np.exp([largest_log_probability(num_clients, rate, size) for size in sizes])
    corners = [stats.binom.pmf(sizes, able, rate) for able in range(num_clients + 1)]
    assert ceiling == pytest.approx(np.max(corners, axis=0), rel=1e-9)  # it is reached
    excess = np.array([excess_bets(num_clients, rate, size) for size in sizes])
    drawn = [
        rng.choice([0.0, 1.0], num_clients, p=[0.4, 0.6]) * rng.beta(rng.uniform(0.1, 3), 0.3, num_clients)
        for _ in range(20)
    ]
    for present in [*np.outer([1.0, 0.9, 0.3, 1e-6], np.ones(num_clients)), *drawn]:
        law = poisson_binomial(rate * present)
        assert np.all(law <= ceiling * (1 + 1e-9) + 1e-300)
        assert np.all(law @ excess <= 1 + 1e-9)
        for share in (np.eye(num_clients + 1)[law.argmax()], rng.dirichlet(np.full(num_clients + 1, 0.1)), law):
            assert law @ [alike_bet(share[size], num_clients, rate, size) for size in sizes] <= 1 + 1e-9


def first_refusal(mechanism, sizes, num_clients=1000):
    """Return after how many sizes the test is lost, None if it is not; a mechanism may depend on the round."""
    logged = BatchSizes()
    for number, size in enumerate(sizes, 1):
        step = mechanism(number) if callable(mechanism) else mechanism
        if logged.improbable(step, num_clients, size):
            return number
        logged = logged.after(step, num_clients, size)
    return None


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("dropouts", "mechanism"),
    [
        (0.0, POISSON),
        (0.3, POISSON),
        (0.0, hs.TruncatedPoissonSampled(hs.Gaussian(2.0), 1000, 0.01, 12)),
        (0.1, hs.TruncatedPoissonSampled(hs.Gaussian(2.0), 1000, 0.05, 12)),
        (0.0, hs.PoissonSampled(hs.PoissonSampled(hs.Gaussian(1.0), 0.1), 0.1)),
    ],
)
def test_what_is_sampled_as_charged_passes(dropouts, mechanism):
    """Thousands of rounds drawn as the mechanism says are never refused, nor where some who were drawn drop out."""
    rng = np.random.default_rng(2)
    sizes = [len(hs.draw_participants(mechanism, range(1000), rng)) for _ in range(3000)]
    kept = rng.binomial(sizes, 1.0 - dropouts * rng.random(3000))
    assert first_refusal(mechanism, kept.tolist()) is None


@pytest.mark.share(5)
@pytest.mark.parametrize("run", range(15))
def test_clients_of_different_availability_pass(run):
    """Clients of whom some are always there, some never, and some by turns of their own are sampled for 2,000 rounds and not refused."""
    rng = np.random.default_rng([7, run])
    num_clients, rate = [(10, 0.9), (100, 0.9), (40, 0.5), (300, 0.05)][run % 4]
    kinds = [np.repeat([0.0, 1.0], num_clients // 2), rng.random(num_clients), rng.beta(0.1, 0.1, num_clients)]
    present = np.resize(kinds[run % 3], num_clients)
    sizes = (rng.random((2000, num_clients)) < rate * present).sum(axis=1).tolist()
    assert first_refusal(hs.PoissonSampled(hs.Gaussian(50.0), rate), sizes, num_clients) is None


CHEATS = {  # sizes, and after how many rounds at most they are noticed
    "a fixed size": ([10] * 50, 16),  # as docs/accounting/budgets.md says
    "a cyclic order": (([10] * 100) * 2, 20),
    "with a shorter last batch": (([30] * 33 + [10]) * 10, 20),
    "short cycles": (([3, 3, 1] * 100), 120),
    "one client in each round": ([1] * 200, 37),
    "a higher rate": (np.random.default_rng(3).binomial(1000, 0.02, 200).tolist(), 25),
    "everyone who is charged": ([1000], 1),
    "a fixed size late": ([*np.random.default_rng(4).binomial(1000, 0.01, 5000).tolist(), *[10] * 100], 5045),
}


@pytest.mark.parametrize("reason", CHEATS)
def test_another_sampler_is_noticed(reason):
    """Batches that come about otherwise than they are charged are refused after some rounds."""
    sizes, rounds = CHEATS[reason]
    found = first_refusal(POISSON, sizes)
    assert found is not None
    assert found <= rounds
    assert found > len(sizes) - 100 if "late" in reason else True


@pytest.mark.parametrize("batches", ["fixed size", "cyclic order", "drawn alone"])
def test_ledgers_refuse_another_sampler(batches, tmp_path):
    """What was charged as a Poisson sample and is none is refused, also where the ledgers are opened anew for every round."""
    rng, path = np.random.default_rng(5), tmp_path / "budget.sqlite"
    charged = 0
    with hs.ClientLedgers(path, epsilon=50.0, delta=1e-6, create=True) as ledgers:
        ledgers.enrol(range(1000))
    with pytest.raises(ValueError, match="as where batches have a fixed size"):  # noqa: PT012 - which round it is, is not known
        for number in range(1, 51):
            drawn = (
                rng.choice(1000, 10, replace=False)
                if batches != "cyclic order"
                else range(number * 10, number * 10 + 10)
            )
            everyone = drawn if batches == "drawn alone" else None
            with hs.ClientLedgers(path, epsilon=50.0, delta=1e-6) as ledgers:
                ledgers.charge(number, POISSON, clients=everyone, participants=drawn)
                charged += 1
    assert charged == 0 if batches == "drawn alone" else 5 < charged < 20


def test_drawn_of_some_clients():
    """Of clients whose budget is not spent samples may be drawn, if they are logged beside those who could have been drawn."""
    step = hs.PoissonSampled(hs.Gaussian(1.0), 0.2)
    rng = np.random.default_rng(6)
    with hs.ClientLedgers(":memory:", epsilon=6.0, delta=1e-6) as ledgers:
        ledgers.enrol(range(100))
        ledgers.charge(1, hs.Gaussian(1.2), clients=range(30))  # most of their budget
        number = 1
        while (able := ledgers.eligible(step)) and number < 60:
            number += 1
            ledgers.charge(number, step, clients=able, participants=hs.draw_participants(step, able, rng))
        assert len(ledgers.log(0)) < len(ledgers.log(99))
        allocated = hs.RandomAllocation(hs.Gaussian(9.0), 10)
        ledgers.charge(number, allocated, clients=[97, 99], participants=[97, 99])  # all take part in an epoch


def test_nobody_is_drawn_at_rate_zero():
    """Where nobody is ever drawn, participants are refused at once, and having none is not."""
    never = hs.PoissonSampled(hs.Gaussian(1.0), 0.0)
    with hs.ClientLedgers(":memory:", epsilon=6.0, delta=1e-6) as ledgers:
        ledgers.enrol(range(3))
        ledgers.charge(1, never, participants=[])
        with pytest.raises(ValueError, match="which 1 of 3"):
            ledgers.charge(1, never, participants=[1])


def test_noise_that_changes_hides_nothing():
    """Batches of a fixed size are noticed too where the noise decays from round to round."""
    found = first_refusal(lambda step: hs.PoissonSampled(hs.Gaussian(5.0 + 0.01 * step), 0.01), [100] * 100, 10_000)
    assert 5 < found < 30

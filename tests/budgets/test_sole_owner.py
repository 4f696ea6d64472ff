"""Ledgers in forked children, in copies and in threads: a budget is spent once."""

import copy
import os
import pickle

import pytest

import hockeystick as hs
import processes

BUDGET = {"epsilon": 4.0, "delta": 1e-6}
STEP = hs.Gaussian(20.0)

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

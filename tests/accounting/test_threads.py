"""Accountants under threads, signal handlers, copies and forks: no step is lost, and a query sees one ledger."""

import copy
import itertools
import os
import pickle
import threading
from types import SimpleNamespace

import pytest

import hockeystick as hs
import processes
from hockeystick.accounting import accountant as accountant_module
from hockeystick.accounting import locking
from hockeystick.accounting import steps as steps_module
from racing import race

SAMPLED = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


def counted(accountant):
    """Return the steps by the ledger and by the state, which is in the order of composition."""
    return len(accountant), len(hs.Accountant.from_state_dict(accountant.state_dict()))


def test_threads_compose_different_steps():
    """Ledgers that grow while they are asked, saved, copied and pickled are whole each time."""
    accountant, noise = hs.Accountant(), itertools.count(100)

    def look():
        copies = (copy.copy(accountant), copy.deepcopy(accountant), pickle.loads(pickle.dumps(accountant)))
        for each in (*copies, hs.Accountant.from_state_dict(accountant.state_dict())):
            steps, saved = counted(each)
            assert steps == saved == sum(each.ledger.values())
        repr(accountant), accountant.rdp([2.0, 3.0]), hs.zcdp_rho(accountant)

    calls = race(lambda: accountant.compose(hs.Gaussian(float(next(noise)))), 100, meanwhile=look)
    assert counted(accountant) == (calls, calls)
    assert len(accountant.ledger) == calls


def test_answers_are_of_one_ledger():
    """Among the answers of one query, none is of a later ledger than another, though steps are composed meanwhile."""
    accountant = hs.Accountant().compose(SAMPLED)

    def look():
        deltas = accountant.delta([1.0] * 20)
        assert deltas.min() == deltas.max()
        orders = accountant.rdp([2.0] * 20)
        assert orders.min() == orders.max()

    race(lambda: accountant.compose(SAMPLED), 200, meanwhile=look)


def test_what_is_kept_between_questions_is_never_of_an_older_ledger(monkeypatch):
    """A step that comes while a query hands the ledger to the core counts in the next query."""
    accountant, threads = hs.Accountant().compose(hs.Gaussian(1.0)), []

    class Slow(accountant_module.Composition):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            if not threads:
                threads.append(threading.Thread(target=lambda: accountant.compose(hs.Gaussian(1.0))))
                threads[0].start()
                threads[0].join(0.2)  # it may have to wait for this query

    monkeypatch.setattr(accountant_module, "Composition", Slow)
    accountant.delta(1.0)
    threads[0].join()
    assert accountant.delta(1.0) == hs.Accountant().compose(hs.Gaussian(1.0), 2).delta(1.0)


def test_what_interrupts_a_change(monkeypatch):
    """In the middle of a change, a signal handler may ask, save and compose: no step is lost, the interrupted one neither."""
    accountant, plus = hs.Accountant().compose(hs.Gaussian(1.0)), steps_module.Record.plus
    saved, calls = [], []

    def interrupted(self, mechanism, count):
        if not calls:
            calls.append(mechanism)
            saved.append(counted(copy.deepcopy(accountant)))
            saved.append(accountant.delta(1.0))
            accountant.compose(hs.Gaussian(2.0))
        return plus(self, mechanism, count)

    monkeypatch.setattr(steps_module.Record, "plus", interrupted)
    accountant.compose(hs.Gaussian(1.0))
    monkeypatch.undo()
    assert saved == [(1, 1), hs.Accountant().compose(hs.Gaussian(1.0)).delta(1.0)]
    assert accountant.ledger == {hs.Gaussian(1.0): 2, hs.Gaussian(2.0): 1}
    assert counted(accountant) == (3, 3)


def test_what_is_composed_while_a_copy_is_made(monkeypatch):
    """A mechanism that comes first while its ledger is copied goes on counting in the copy as one."""
    accountant = hs.Accountant().compose(hs.Gaussian(1.0))

    def late(container):
        made = container.copy()
        accountant.compose(hs.Gaussian(2.0))
        return made

    monkeypatch.setattr(locking, "copy", SimpleNamespace(copy=late))
    copied = copy.copy(accountant)
    assert copied.compose(hs.Gaussian(2.0)).ledger[hs.Gaussian(2.0)] == len(copied) - 1
    assert len(accountant) > 1


@pytest.mark.parametrize("runs", [[2**53], [2**53 - 1, 1]], ids=str)
def test_a_change_that_fails_leaves_the_ledger_free(runs):
    """After a refused step, others compose, here and in another thread; all runs of a mechanism count."""
    accountant = hs.Accountant()
    for count in runs:
        accountant.compose(hs.Gaussian(2.0)).compose(hs.Gaussian(1.0), count)
    with pytest.raises(ValueError, match="count must be an integer in"):
        accountant.compose(hs.Gaussian(1.0))
    thread = threading.Thread(target=lambda: accountant.compose(hs.Gaussian(2.0)))
    thread.start()
    thread.join()
    assert accountant.ledger == {hs.Gaussian(1.0): 2**53, hs.Gaussian(2.0): len(runs) + 1}


def test_the_ledger_is_of_its_moment():
    """A ledger that was asked for stays as it was; what is composed later is in the next one."""
    accountant = hs.Accountant().compose(hs.Gaussian(1.0))
    before = accountant.ledger
    accountant.compose(hs.Gaussian(2.0))
    assert len(before) == 1
    assert len(accountant.ledger) == 2


FORKS = """
import os, sys, threading
import hockeystick as hs

sys.setswitchinterval(1e-6)
accountant, stop = hs.Accountant(), threading.Event()

def work():
    while not stop.is_set():
        for noise in (1.0, 2.0, 3.0):
            accountant.compose(hs.PoissonSampled(hs.Gaussian(noise), 0.01))
            accountant.epsilon([1e-5, 1e-6])

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
wrong = 0
for _ in range(8):
    child = os.fork()
    if child == 0:
        steps = len(accountant)
        whole = steps == len(hs.Accountant.from_state_dict(accountant.state_dict()))
        accountant.compose(hs.Gaussian(5.0)).epsilon([1e-5, 1e-6])
        os._exit(0 if whole and len(accountant) == steps + 1 else 1)
    wrong += os.waitpid(child, 0)[1] != 0
stop.set()
for thread in threads:
    thread.join()
print(wrong)
"""


@needs_fork
def test_forks_amid_changes():
    """Children that are forked while four threads compose and ask have whole ledgers, and compose and ask themselves."""
    assert processes.python(f"import warnings; warnings.simplefilter('ignore'){FORKS}", limit=60).stdout == "0\n"


def test_a_signal_handler_asks_while_its_thread_does(monkeypatch):
    """A question in the middle of making the core's accountant is answered, and both see the same ledger."""
    accountant, answers = hs.Accountant().compose(hs.Gaussian(1.0)).compose(hs.Laplace(2.0)), []
    pairs = hs.Laplace._pairs

    def interrupted(self, *arguments, **options):
        if not answers:
            answers.append(None)
            answers[0] = accountant.delta(1.0)
        return pairs(self, *arguments, **options)

    monkeypatch.setattr(hs.Laplace, "_pairs", interrupted)
    answers.append(accountant.delta(1.0))
    monkeypatch.undo()
    assert answers == [hs.Accountant().compose(hs.Gaussian(1.0)).compose(hs.Laplace(2.0)).delta(1.0)] * 2

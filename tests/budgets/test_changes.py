"""Whatever grows by changes, copied, from many threads, and interrupted at every bytecode: each change is made once, or not at all."""

import contextlib
import copy
import functools
import importlib.util
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import effort
import hockeystick as hs
from hockeystick.interop import flower, opacus, pfl, prv
from racing import race

PACKAGE = str(Path(hs.__file__).parent)
STEP, OTHER = hs.Gaussian(30.0), hs.Gaussian(40.0)
EVENT = flower.GaussianPrivacyEvent(1.0, 10, 1000)
CONFIG = flower.PrivacyConfig(1e-5, 1000, "add-or-remove-one", "poisson", 2.0)


def interrupted(call, opcode):
    """Return the KeyboardInterrupt that was raised before this bytecode of the library's, counted from 0; None if the call has fewer."""
    left = opcode

    def trace(frame, event, _):
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE) and "contextlib" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == -1:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.settrace(before)
    return None


def ledger_of(accountant):
    """Return everything that an accountant, a filter or an odometer has recorded."""
    return accountant.state_dict(), dict(accountant.ledger), len(accountant), repr(accountant)


def alternating():
    """Return an accountant whose next step ends a repetition."""
    return hs.Accountant().compose(STEP).compose(OTHER).compose(STEP).compose(OTHER)


def individual():
    """Return a filter of two records."""
    return hs.IndividualFilter(hs.GaussianFilter(1.0), 2)


def spend(one):
    """Spend a step."""
    one.spend(STEP)


PLAN = hs.Accountant().compose(STEP, 200).compose(OTHER, 5)
CASES = {
    "Accountant": (alternating, lambda one: one.compose(STEP), ledger_of),
    "several steps": (alternating, lambda one: one._compose_together([(STEP, 2), (OTHER, 3)]), ledger_of),
    "GaussianFilter": (lambda: hs.GaussianFilter(1.0).spend(OTHER), spend, ledger_of),
    "RenyiFilter": (lambda: hs.RenyiFilter(1.0, order=8).spend(STEP), spend, ledger_of),
    "ZeroConcentratedFilter": (lambda: hs.ZeroConcentratedFilter(1.0).spend(OTHER), spend, ledger_of),
    "PlannedFilter": (lambda: hs.PlannedFilter(PLAN), spend, ledger_of),
    "MenuFilter": (lambda: hs.MenuFilter([STEP], epsilon=4.0, delta=1e-5), spend, ledger_of),
    "RenyiOdometer": (lambda: hs.RenyiOdometer(delta=1e-5, orders=[2.0]).spend(STEP), spend, ledger_of),
    "ZeroConcentratedOdometer": (lambda: hs.ZeroConcentratedOdometer(delta=1e-5).spend(OTHER), spend, ledger_of),
    "IndividualFilter": (individual, lambda one: one.admit([1.0, 0.5], 3.0), lambda one: one.spent.tolist()),
    "Flower": (
        lambda: flower.Accountant(CONFIG),
        lambda one: one.compose(EVENT),
        lambda one: (one.state_dict(), one.num_releases),
    ),
    "Opacus": (
        opacus.HockeyStickAccountant,
        lambda one: one.step(noise_multiplier=1.0, sample_rate=0.1),
        lambda one: (one.history, len(one)),
    ),
}

if importlib.util.find_spec("dp_accounting"):
    import dp_accounting as dp

    from hockeystick.interop.dp_accounting import HockeyStickAccountant

    BOTH = dp.ComposedDpEvent([dp.GaussianDpEvent(30.0), dp.LaplaceDpEvent(70.0)])  # one change of two mechanisms
    CASES["dp_accounting"] = (
        HockeyStickAccountant,
        lambda one: one.compose(BOTH),
        lambda one: (one.ledger, dict(one.accountant.ledger)),
    )


def check_every_bytecode(make, change, look, stride=1):
    """Interrupt a change before each of its bytecodes, keep the exception, and go on in another thread."""
    states, one = [], make()
    for _ in range(3):  # before the change, after it, and after another
        states.append(look(one))
        change(one)
    kept = []
    with ThreadPoolExecutor(1) as other:
        for opcode in range(0, 10**6, stride):
            one = make()
            error = interrupted(functools.partial(change, one), opcode)
            if error is None:
                break
            kept.append(error)  # its frames live on, and with them whatever they hold
            found = other.submit(look, one).result(10)
            assert found in states[:2], opcode
            other.submit(change, one).result(10)
            assert look(one) == states[states.index(found) + 1], opcode
            change(one)
            kept[:] = kept[-3:]
    assert opcode > 20
    assert look(one) == states[1]


SAMPLED = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)
UNCHANGING = {
    "PrivacyLossDistribution": (
        lambda: hs.PrivacyLossDistribution.from_mechanism(SAMPLED).self_compose(1000),
        None,
        lambda one: one.epsilon_bracket(1e-5),
    ),
    "prv_accountant": (lambda: prv.PRVAccountant(SAMPLED), None, lambda one: one.compute_epsilon(1e-5, 1000)),
    "pfl": (lambda: pfl.PrivacyAccountant(100, 0.01, "gaussian", 1.0, 1e-5), None, lambda one: one.noise_parameter),
}
COPIES = (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)))


@pytest.mark.parametrize(("make", "change", "look"), [*CASES.values(), *UNCHANGING.values()], ids=[*CASES, *UNCHANGING])
def test_copies(make, change, look):
    """A copy of any kind is small, also after questions, and looks the same; what is done to it is not done to the other."""
    one = make()
    before = look(one)
    for copied in COPIES:
        other = copied(one)
        assert look(other) == before
        assert len(pickle.dumps(other)) < 2000
        if change is not None:
            change(other)
            assert look(one) == before != look(other)


@pytest.mark.parametrize("case", CASES)
def test_threads(case):
    """Eight threads lose no change, and every copy that is made meanwhile is of one moment."""
    make, change, look = CASES[case]
    one, alone = make(), make()
    states = [look(alone)]
    for _ in range(80):
        change(alone)
        states.append(look(alone))
    seen = []
    race(lambda: change(one), 10, meanwhile=lambda: seen.extend(look(copied(one)) for copied in COPIES))
    assert look(one) == states[-1]
    assert all(state in states for state in seen)


@pytest.mark.parametrize("make", [lambda: hs.GaussianFilter(mu=1.0), lambda: hs.RenyiFilter(budget=1.0, order=8)])
def test_threads_spend_no_more_than_the_budget(make):
    """Of the steps that eight threads try, as many are let through as one thread could pay for, and all are counted."""
    budget, room, passed = make(), make().remaining(STEP), []

    def try_one():
        with contextlib.suppress(hs.BudgetExceededError):
            budget.spend(STEP)
            passed.append(1)

    race(try_one, 200)
    assert len(passed) == len(budget) == room < 1600
    assert budget.remaining(STEP) == 0


LONG = {
    "Flower": 11,
    "ZeroConcentratedFilter": 5,
}  # one of so many bytecodes is tried where there are thousands, all of them at night


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("case", "stride"),
    [
        *(
            (case, LONG.get(case, 1)) for case in CASES if case != "dp_accounting"
        ),  # its base writes a ledger of its own
        *(pytest.param(case, 1, marks=[pytest.mark.slow, effort.AT_NIGHT]) for case in LONG),
    ],
)
def test_every_bytecode(case, stride):
    """What is asked and changed in another thread afterwards is all of the old state or all of the new one."""
    check_every_bytecode(*CASES[case], stride)


def test_an_interrupted_change_locks_nobody():
    """While the exception of an interrupted change is kept, other ledgers of the process go on in other threads."""
    budget, kept = hs.GaussianFilter(1.0), []
    with ThreadPoolExecutor(1) as other:
        for opcode in range(400):
            kept.append(interrupted(lambda: budget.spend(STEP), opcode))
            other.submit(lambda: hs.Accountant().compose(STEP).epsilon(1e-5)).result(10)
    assert any(kept)
    assert len(budget) + budget.remaining(STEP) == hs.GaussianFilter(1.0).remaining(STEP)


BUDGET = {"budget": hs.RenyiFilter(5.0, order=8)}  # which compares at once


def client_ledgers(path):
    """Return ledgers of three clients, charged once."""
    ledgers = hs.ClientLedgers(path, **BUDGET, create=True)
    ledgers.enrol(["a", "b", "c"])
    ledgers.charge(1, STEP)
    return ledgers


def charged(ledgers):
    """Return what ledgers of clients have in memory and in the file."""
    clients = ledgers.eligible(STEP)
    logs = [[(each.number, each.mechanism, each.took_part) for each in ledgers.log(client)] for client in clients]
    return clients, len(ledgers), ledgers.last_round, ledgers.remaining(STEP, "b"), ledgers.num_ledgers, logs


CHANGES = {
    "charge": lambda ledgers: ledgers.charge(ledgers.last_round + 1, STEP, clients=["a", "b"]),
    "charge with participants": lambda ledgers: ledgers.charge(7, hs.PoissonSampled(STEP, 0.5), participants=["a"]),
    "enrol": lambda ledgers: ledgers.enrol([f"client {len(ledgers)}"]),
}


@pytest.mark.parametrize("stride", [101, pytest.param(effort.at_night(1, by_day=31), marks=pytest.mark.slow)])
@pytest.mark.parametrize("change", CHANGES)
def test_every_bytecode_of_ledgers(change, stride):
    """Ledgers of clients need not be opened again, whatever was interrupted."""
    check_every_bytecode(lambda: client_ledgers(":memory:"), CHANGES[change], charged, stride)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_every_bytecode_of_files(change, tmp_path):
    """Nor need those in a file; opened again it has the same."""
    made = []

    def make():
        made.append(client_ledgers(tmp_path / f"{len(made)}.sqlite"))
        return made[-1]

    check_every_bytecode(make, CHANGES[change], charged, effort.at_night(29, by_day=151))
    found = charged(made[-1])
    made[-1].close()
    assert charged(hs.ClientLedgers(tmp_path / f"{len(made) - 1}.sqlite", **BUDGET)) == found

"""A storm: threads and processes compose, spend, ask, save, load, copy and fork at random, against plain bookkeeping.

``python tests/storms/accountant_storm.py 60`` storms for 60 seconds on one accountant and one filter, and prints what was
done and what was wrong. Beside each step stand two plain counts: `begun` rises before `compose` is called, `done` after it has returned. So at
any moment, and in any child of a fork, the steps of a mechanism must lie between them.
"""

import copy
import functools
import json
import math
import os
import pickle
import random
import sys
import time
import warnings
from collections import Counter

import hockeystick as hs
import processes
from racing import THREADS, restless, together

MECHANISMS = (
    *(hs.Gaussian(noise) for noise in (20.0, 30.0, 50.0)),
    hs.Laplace(90.0),
    hs.PoissonSampled(hs.Gaussian(2.0), 0.01),
)
PRICE = hs.Gaussian(200.0)
DELTA = 1e-6
CHILD_ENDS = 20.0  # seconds after which a child of a fork hangs


class Storm:
    """One accountant, one filter, and what must be true of them."""

    def __init__(self):
        self.accountant = hs.Accountant()
        self.filter = hs.GaussianFilter(mu=1.0)
        self.begun = [dict.fromkeys((*MECHANISMS, PRICE), 0) for _ in range(THREADS)]  # each is written by one thread
        self.done = [dict.fromkeys((*MECHANISMS, PRICE), 0) for _ in range(THREADS)]
        self.acts = [Counter[str]() for _ in range(THREADS)]
        self.wrong = []

    def least(self):
        """Return what is composed for certain."""
        return {mechanism: sum(counts[mechanism] for counts in self.done) for mechanism in (*MECHANISMS, PRICE)}

    def most(self):
        """Return what may be composed."""
        return {mechanism: sum(counts[mechanism] for counts in self.begun) for mechanism in (*MECHANISMS, PRICE)}

    def check(self, what, least, found, most, mechanisms=MECHANISMS):
        """Note a wrong ledger."""
        self.note(what, all(least[m] <= found.get(m, 0) <= most[m] for m in mechanisms))

    def note(self, what, is_right):
        """Note what is wrong."""
        if not is_right:
            self.wrong.append(what)

    def compose(self, thread, dice):
        """Compose, or spend."""
        mechanism, count = dice.choice((*MECHANISMS, PRICE)), dice.choice((1, 1, 1, 2, 7))
        if mechanism is PRICE:
            count *= 50
        self.begun[thread][mechanism] += count
        try:
            self.filter.spend(PRICE, count) if mechanism is PRICE else self.accountant.compose(mechanism, count)
        except hs.BudgetExceededError:
            self.begun[thread][mechanism] -= count
        else:
            self.done[thread][mechanism] += count

    def query(self, _, dice):
        """Ask for numbers: they are those of a ledger between the least and the most."""
        least = self.least()
        ask = dice.choice(
            (lambda a: a.epsilon(DELTA), lambda a: a.epsilon_bracket(DELTA).upper, lambda a: a.rdp(2.0), len)
        )
        found, most = ask(self.accountant), self.most()
        low, high = (ask(composed(steps)) for steps in (least, most))
        self.note("query", low * (1 - 1e-9) <= found <= high * (1 + 1e-9))
        repr(self.accountant), repr(self.filter)

    def save(self, _, dice):
        """Save both and load them again, through JSON, a pickle or a copy; go on with what was loaded."""
        for original, mechanisms in ((self.accountant, MECHANISMS), (self.filter, (PRICE,))):
            least = self.least()
            how = dice.choice((through_json, through_pickle, copy.copy, copy.deepcopy))
            loaded = how(original)
            self.check("save", least, loaded.ledger, self.most(), mechanisms)
            self.note("copy is not whole", is_whole(loaded))
        extra = dice.choice(MECHANISMS)
        other = copy.copy(self.accountant)
        before = other.ledger.get(extra, 0)
        self.note("copy composes", other.compose(extra, 3).ledger[extra] == before + 3)

    def fork(self, _, dice):
        """Fork amid all this: the child has whole ledgers, composes, asks, spends, and sends its accountant back."""

        def work(pipe):
            try:
                answer = self.in_child(dice)
            except BaseException as error:  # noqa: BLE001 - the parent counts it
                answer = error
            with os.fdopen(pipe, "wb") as file:
                pickle.dump(answer, file)

        told = processes.in_fork(work, CHILD_ENDS)
        answer = pickle.loads(told) if told else "hangs, or dies"
        if not isinstance(answer, tuple):
            self.note(f"child: {answer!r}", is_right=False)
            return
        accountant, extra, before, wrong = answer
        self.wrong.extend(wrong)
        self.note("child's accountant", accountant.ledger[extra] == before + 5 and is_whole(accountant))

    def in_child(self, dice):
        """Check and use what a fork left; no other thread runs here."""
        self.wrong = []
        self.check("child", self.least(), self.accountant.ledger, self.most())
        self.check("child's filter", self.least(), self.filter.ledger, self.most(), [PRICE])
        self.note("child is not whole", is_whole(self.accountant) and is_whole(self.filter))
        extra = dice.choice(MECHANISMS)
        before = self.accountant.ledger.get(extra, 0)
        self.accountant.compose(extra, 5).epsilon(DELTA)
        return self.accountant, extra, before, self.wrong

    def work(self, thread, until, seed):
        """Do one act after the other."""
        dice = random.Random(f"{seed} {thread}")
        acts = (self.compose, self.query, self.save, self.fork)
        while time.monotonic() < until:
            act = dice.choices(acts, (3000, 10, 10, 10))[0]
            try:
                act(thread, dice)
            except Exception as error:  # noqa: BLE001 - counted, and printed in the end
                self.note(f"{act.__name__}: {error!r}", is_right=False)
            self.acts[thread][act.__name__] += 1


def composed(steps):
    """Return an accountant of plain counts."""
    accountant = hs.Accountant()
    for mechanism in MECHANISMS:
        if steps[mechanism]:
            accountant.compose(mechanism, steps[mechanism])
    return accountant


def through_json(original):
    """Return what is loaded from the saved text."""
    return type(original).from_state_dict(json.loads(json.dumps(original.state_dict())))


def through_pickle(original):
    """Return what is loaded from the pickle."""
    return pickle.loads(pickle.dumps(original))


def is_whole(one):
    """Say whether the parts of an accountant or a filter agree with each other."""
    saved = len(through_json(one))
    if isinstance(one, hs.GaussianFilter):
        return saved == len(one) and one.remaining(PRICE) == hs.GaussianFilter(mu=1.0).remaining(PRICE) - len(one)
    return saved == len(one) == sum(one.ledger.values())


def storm(seconds=10.0, seed=1):
    """Storm; return what was done and what was wrong."""
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks amid threads
    one, until = Storm(), time.monotonic() + seconds
    with restless():
        for thread in together(*(functools.partial(one.work, i, until, seed) for i in range(THREADS))):
            thread.join()
    done, found = one.least(), {**one.accountant.ledger, **one.filter.ledger}
    wrong = Counter(one.wrong)
    wrong["steps lost"] += sum(abs(done[m] - found.get(m, 0)) for m in (*MECHANISMS, PRICE))
    epsilons = one.accountant.epsilon(DELTA), composed(done).epsilon(DELTA)
    wrong["epsilon"] += not math.isclose(*epsilons, rel_tol=1e-12)  # the order of the steps is in the last digits
    wrong["steps over the budget"] += max(0, len(one.filter) - hs.GaussianFilter(mu=1.0).remaining(PRICE))
    acts = {"steps": sum(done.values()), "of them paid by the filter": done[PRICE], **sum(one.acts, Counter())}
    return acts, dict(+wrong)


if __name__ == "__main__":
    did, was_wrong = storm(*map(float, sys.argv[1:]))
    print(*(f"{count} {name}" for name, count in did.items()), sep=", ")
    print("wrong:", was_wrong or "nothing, steps lost 0, budget exceeded 0")
    sys.exit(bool(was_wrong))

"""What a file of client ledgers must say, kept in plain counts by who is told what was asked of it and what it promised."""

import sys
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import hockeystick as hs

EPSILON, DELTA = 6.0, 1e-6
BUDGETS = {  # by the stem of the file's name
    "accountant": {"epsilon": EPSILON, "delta": DELTA},
    "filter": {"budget": hs.GaussianFilter(1.0)},
}
STEPS = [hs.Gaussian(4.0), hs.Gaussian(9.0), hs.Gaussian(30.0), hs.PoissonSampled(hs.Gaussian(2.0), 0.1)]
Charged = Counter[int]  # how often one client was charged each of the steps
FAILURES = (
    "budget exceeded",
    "promised and lost",
    "never asked for",
    "damaged and not refused",
    "wrong answers",
    "errors",
)


def everyone(ledgers):
    """Return all clients: nobody's budget is too small for next to nothing."""
    return ledgers.eligible(hs.Gaussian(1e9))


def room_beside(path, charged):
    """Return how many steps fit beside others by a fresh account, None if even those do not fit."""
    if path.stem == "filter":
        spent = sum(count / Fraction(STEPS[step].noise_multiplier) ** 2 for step, count in charged.items())
        return int((1 - spent) * Fraction(STEPS[1].noise_multiplier) ** 2) if spent <= 1 else None
    account = hs.Accountant()
    for step, count in charged.items():
        account.compose(STEPS[step], count)
    fits = account.epsilon(DELTA) <= EPSILON
    return account.remaining(STEPS[1], epsilon=EPSILON, delta=DELTA) if fits else None


class Contents(NamedTuple):
    """What a file says of all its clients."""

    charged: dict[str, Charged]
    rooms: dict[str, int]
    log: list[tuple[int, int, int]]  # of one client: rounds, steps and counts
    head: str


def contents(path):
    """Read a file; the log of one client must have what its account has."""
    with hs.ClientLedgers(path, **BUDGETS[path.stem]) as ledgers:
        clients = everyone(ledgers)
        charged = {
            client: Counter({STEPS.index(step): count for step, count in ledgers.account(client).ledger.items()})
            for client in clients
        }
        rooms = {client: ledgers.remaining(STEPS[1], client) for client in clients}
        entries = ledgers.log(clients[0]) if clients else []
        log = [(entry.number, STEPS.index(entry.mechanism), entry.steps) for entry in entries]
        logged = Counter(step for _, step, count in log for _ in range(count))
        assert not clients or logged == charged[clients[0]]
        return Contents(charged, rooms, log, ledgers.head)


class Bookkeeping:
    """What clients were charged, from what was said, and what was found wrong."""

    def __init__(self):
        self.counts = Counter(dict.fromkeys(FAILURES, 0))
        self.start()

    def start(self):
        """Begin with a new file."""
        self.charged = {}

    def hear(self, said):
        """Count what a child said."""
        for kind, *words in said:
            self.counts[kind] += 1
            if kind == "error":
                self.counts["errors"] += 1
                sys.stderr.write(f"{words[0]}\n")
            if kind == "asked what remains" and not words[0]:
                self.counts["wrong answers"] += 1

    def compare(self, said, path):
        """Hold the file against what it held before, and what was promised and asked for since."""
        self.hear(said)
        least, most = expected(self.charged, said)
        found = contents(path)
        self.counts["promised and lost"] += len(least.keys() - found.charged.keys())
        self.counts["never asked for"] += len(found.charged.keys() - most.keys())
        for client, charged in found.charged.items():
            self.counts["promised and lost"] += (least.get(client, Counter()) - charged).total()
            self.counts["never asked for"] += (charged - most.get(client, Counter())).total()
            fits = room_beside(path, charged)
            self.counts["budget exceeded"] += fits is None
            self.counts["wrong answers"] += fits is not None and fits != found.rooms[client]
        self.charged = found.charged  # from now on, what a killed process charged without a promise counts as charged


def expected(before, said):
    """Return what each client must at least have been charged, and what it may have been at most."""
    least = {client: Counter(charged) for client, charged in before.items()}
    most = {client: Counter(charged) for client, charged in before.items()}
    ends = {words[0]: kind for kind, *words in said if kind in {"promised", "over budget", "too late"}}
    for new in (words[0] for kind, *words in said if kind == "enrols"):
        most.update({client: most.get(client, Counter()) for client in new})
    for kind, *words in said:
        if kind == "enrolled":
            least.update({client: least.get(client, Counter()) for client in words[0]})
        if kind == "asked" and ends.get(words[0]) in {None, "promised"}:
            name, step, chosen = words
            for client in chosen or most:
                most[client][step] += 1
            for client in (chosen or list(least)) if name in ends else []:  # of all, those who were surely enrolled
                least.setdefault(client, Counter())[step] += 1
    return least, most

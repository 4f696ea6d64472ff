"""A storm on one file of client ledgers: processes, threads, kills, forks and flipped bits against plain bookkeeping.

    python tests/storms/ledger_storm.py SECONDS SEED

Episode by episode a child process opens the file and lets threads enrol, charge and ask; its own forks try the same. It says in
a pipe what it asks for, and what it was promised. After it has ended, or was killed, another child reads the file: everything promised
must be there, and nothing that was not asked for; what is charged must fit the budget, and what remains must be what a new accountant
says. Then copies of the file are damaged: each is refused in words, or says what the file said.
"""

import functools
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import hockeystick as hs
import processes
from ledger_books import BUDGETS, FAILURES, STEPS, Bookkeeping, contents, everyone, room_beside
from racing import together

THREADS = 4


class Pipe:
    """Lines to the parent, each written at once: a killed process leaves no half of one."""

    def __init__(self, descriptor):
        self._descriptor = descriptor

    def say(self, *words):
        """Write one line."""
        line = json.dumps(words).encode() + b"\n"
        assert len(line) <= 4096  # what POSIX writes in one piece
        os.write(self._descriptor, line)


def in_child(work, kill_after=None):
    """Run some work in a fork, kill it after a time, and return what it said."""

    def told(descriptor):
        pipe = Pipe(descriptor)
        try:
            work(pipe)
        except BaseException:  # noqa: BLE001 - the parent counts it
            pipe.say("error", traceback.format_exc()[-2000:])

    return [json.loads(line) for line in processes.in_fork(told, kill_after).splitlines()]


def offered(path):
    """Return how many of the steps may be charged: a Gaussian filter takes no sampled ones."""
    return len(STEPS) - (path.stem == "filter")


def charge(ledgers, pipe, path, rng):
    """Charge some clients for something."""
    step = rng.randrange(offered(path))
    known = everyone(ledgers)
    if not known:
        return
    chosen = (
        None if isinstance(STEPS[step], hs.PoissonSampled) else rng.sample(known, rng.randint(1, min(len(known), 5)))
    )
    number = max(ledgers.last_round + rng.randint(0, 1), 1)
    name = rng.randrange(10**12)
    pipe.say("asked", name, step, chosen)
    try:
        ledgers.charge(number, STEPS[step], clients=chosen)
    except hs.BudgetExceededError:
        pipe.say("over budget", name)
    except ValueError as error:  # another thread was faster
        assert "that of the last round" in str(error)  # noqa: PT017
        pipe.say("too late", name)
    else:
        pipe.say("promised", name)


def enrol(ledgers, pipe, _path, rng):
    """Enrol a few clients."""
    new = [f"client {rng.randrange(10**9)}" for _ in range(rng.randint(1, 3))]
    pipe.say("enrols", new)
    ledgers.enrol(new)
    pipe.say("enrolled", new)


def ask(ledgers, pipe, path, rng):
    """Ask what remains for a client, and compare it with its log: what is charged in between only makes it less."""
    known = everyone(ledgers)
    if known:
        client = rng.choice(known)
        room = ledgers.remaining(STEPS[1], client)
        fits = room_beside(path, Counter(STEPS.index(entry.mechanism) for entry in ledgers.log(client)))
        pipe.say("asked what remains", fits is not None and fits <= room)


def fork(ledgers, pipe, path, _rng):
    """Try everything in a fork: its calls, and an opening of its own, must be refused."""
    parent, child = os.getpid(), os.fork()
    if child:
        os.waitpid(child, 0)
        return
    # What another thread had locked at the fork stays locked in it for ever: it is ended then, by no handler that Python would have to run.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(20)
    calls = [lambda: ledgers.charge(10**6, STEPS[2]), lambda: ledgers.enrol(["of a fork"]), ledgers.close]
    for call in [*calls, lambda: hs.ClientLedgers(path, **BUDGETS[path.stem])]:
        try:
            call()
        except RuntimeError:
            pipe.say("fork refused")
        else:
            if os.getppid() == parent:  # once the parent is killed, the file is free to be opened
                pipe.say("error", "a fork was let through")
    os._exit(0)


def session(path, seed, pipe):
    """Open the file a few times, and let threads do what they like with it."""
    rng = random.Random(seed)
    warnings.simplefilter("ignore", DeprecationWarning)  # threads that fork are what is tried here
    for _ in range(rng.randint(1, 3)):
        with hs.ClientLedgers(path, **BUDGETS[path.stem]) as ledgers:
            pipe.say("opened")

            def work(own, ledgers=ledgers):
                try:
                    for _ in range(own.randint(3, 25)):
                        what = own.choices([charge, enrol, ask, fork], [10, 2, 2, 1])[0]
                        what(ledgers, pipe, path, own)
                except BaseException:  # noqa: BLE001 - the parent counts it
                    pipe.say("error", traceback.format_exc()[-2000:])

            dice = [random.Random(rng.random()) for _ in range(THREADS)]
            for thread in together(*(functools.partial(work, own) for own in dice)):
                thread.join()


def damage(content, rng):
    """Return a file with a bit flipped, mostly; or cut short, or with a sector of zeros or of another place."""
    damaged, at = bytearray(content), rng.randrange(len(content))
    sector = at // 512 * 512
    how = rng.choices(["bit", "cut", "zeros", "moved"], [17, 1, 1, 1])[0]
    if how == "bit":
        while not damaged[at]:  # most of a small file is empty
            at = rng.randrange(len(content))
        damaged[at] ^= 1 << rng.randrange(8)
    elif how == "cut":
        del damaged[sector:]
    elif how == "zeros":
        damaged[sector : sector + 512] = bytes(512)
    else:
        other = rng.randrange(len(content)) // 512 * 512
        damaged[sector : sector + 512] = content[other : other + 512]
    return bytes(damaged)


def damaged_copies(path, seed, copies, pipe):
    """Open damaged copies of a file, which must be refused or say what the file said."""
    rng, copy, truth, content = random.Random(seed), path.with_suffix(".copy"), contents(path), path.read_bytes()
    for _ in range(copies):
        copy.write_bytes(damage(content, rng))
        try:
            found = contents(copy)
        except (ValueError, RuntimeError) as error:
            pipe.say("damaged and refused" if str(copy) in str(error) else "error", traceback.format_exc()[-2000:])
        else:
            pipe.say("damaged and the same" if found == truth else "damaged and not refused")


def storm(duration=60.0, seed=0):
    """Return the counts of a storm of so many seconds."""
    rng, books, end = random.Random(seed), Bookkeeping(), time.monotonic() + duration
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        while time.monotonic() < end:
            if not path.is_file() or rng.random() < 0.1:
                path = Path(tempfile.mkdtemp(dir=folder)) / f"{rng.choice(['accountant', 'filter', 'filter'])}.sqlite"
                hs.ClientLedgers(path, create=True, **BUDGETS[path.stem]).close()
                books.start()
            part = rng.random()
            kill_after = rng.uniform(0.0, 0.5) if rng.random() < 0.6 else None
            books.counts["killed"] += kill_after is not None
            books.compare(in_child(functools.partial(session, path, int(part * 1e9)), kill_after), path)
            books.hear(in_child(functools.partial(damaged_copies, path, int(part * 1e9), 40)))
            books.counts["episodes"] += 1
    return books.counts


if __name__ == "__main__":
    counts = storm(*map(float, sys.argv[1:]))
    for what, number in sorted(counts.items()):
        print(f"{number:8d}  {what}")
    sys.exit(any(counts[what] for what in FAILURES))

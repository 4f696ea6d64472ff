"""Ask other accountants what ours is asked, and print ratios, digits and memory: python bench/peers.py [--json FILE].

Everybody takes turns in one process on one thread, and the median of the processor time counts, which a busy neighbour
stretches less than the time on the wall. No question is asked twice with the same noise: every answer is a cold one unless
the row says warm, where one call has asked other cells of the same noise and rate before, and none of those timed. Memory
is what one more answer, in a fork of that process, adds to it. dp_accounting gets a minute for the grid W3; what it has not
reached by then is extrapolated from the shuffled cells before, and the table says so. W3 to W5 take the peers seconds: they
answer in the first process only, while hockeystick answers with every instruction set of this machine. A peer that is not
installed has no row.

The references of DP-SGD were computed by connecting the dots and an exponentially tilted Fourier transform, extrapolated in the
interval, and agree with two of the peers; W4 and W5 are what the finest settings of the peers agree on. An answer cannot be
called more accurate than its reference.
"""

import argparse
import ctypes
import gc
import itertools
import json
import math
import os
import random
import resource
import statistics
import sys
import time
import warnings
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import accountants
import numpy as np
import ratios
import turns

RATES = {"(steps, eps) → delta": 3e5, "(steps, delta) → eps": 5e4}  # least warm cells per second
SETS = ("v4", "v3")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}
GRID_SECONDS = 60.0
OURS = accountants.HockeyStick
OUR_ERROR = 1e-3  # the width of a bracket, relative
WARM = {
    "(steps, eps) → delta": lambda cells: OURS.warm_delta(cells[0], cells[1]),
    "(steps, delta) → eps": lambda cells: OURS.warm_epsilon(cells[0], cells[2]),
}

_nudges = (1e-10 * k for k in itertools.count(1))


@dataclass(frozen=True)
class Question:
    """One question that several accountants can answer."""

    title: str
    way: str  # the accountants' method
    exact: float | None = None
    known: float = 0.0  # relative error of `exact`
    allowed: float = 0.0  # how far the ends of the peers may be off
    goals: dict[tuple[str, str], float] = field(default_factory=dict)  # (peer, instruction set) -> least ratio
    slow: bool = False  # takes the peers seconds

    def digits(self, value):
        """Return the correct decimal digits of an answer, at most those of the reference."""
        if self.exact is None:
            return None
        return -math.log10(max(abs(value / self.exact - 1), self.known))


QUESTIONS = {
    "W1": Question("W1: a million deltas of one Gaussian", "deltas"),
    "A": Question(
        "A: eps(1e-5), sigma = 1, q = 0.01, T = 1000",
        "epsilon",
        *(1.8282367, 5e-7, 0.011),
        goals={
            ("dp_accounting", "v4"): 1000,
            ("dp_accounting", "v3"): 500,
            ("opacus PRV", "v4"): 150,
            ("opacus PRV", "v3"): 75,
        },
    ),
    "B": Question("B: eps(1e-5), sigma = 0.8, q = 256/60000, T = 14040", "epsilon", 4.5460088, 3e-7, 0.011),
    "C": Question("C: eps(1e-5), sigma = 0.7, q = 0.001, T = 1e5", "epsilon", 3.6484285, 3e-7, 0.011),
    "W3": Question("W3: eps(1e-5), sigma (16), T (4), q (3)", "grid", goals={("dp_accounting", "v4"): 2500}, slow=True),
    "W4": Question(
        "W4: eps(1e-6), 1000 Gaussians and 100 Laplace",
        "mixed",
        *(4.6502, 5e-5, 1e-3),
        goals={("dp_accounting", "v4"): 500},
        slow=True,
    ),
    "W5": Question(
        "W5: least sigma for eps = 2, delta = 1e-6, q = 0.01, T = 5000",
        "noise",
        *(1.7477, 3e-5, 0.05),
        goals={("dp_accounting", "v4"): 200},
        slow=True,
    ),
}
DEPTHS = (3.0, 5.0, 7.0, 9.0, 12.0)  # eps at which delta of a Gaussian with mu = 1 is asked for


def exact_delta(eps, mu):
    """Return the delta of a Gaussian with 50 digits (Balle and Wang 2018)."""
    import mpmath  # noqa: PLC0415 - dp_accounting brings it

    with mpmath.workdps(50):
        e, m = mpmath.mpf(eps), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def worst_digits(deltas, sample=100):
    """Return the least correct digits among the first deltas of W1 that are no underflow."""
    sigma, eps = accountants.pairs()
    errors = [
        abs(float(delta / exact - 1))
        for delta, exact in zip(deltas[:sample], map(exact_delta, eps[:sample], 1 / sigma[:sample]), strict=True)
        if exact > np.finfo(float).tiny
    ]
    return -math.log10(max(*errors, 1e-16))


def take_turns(calls, rounds):
    """Return the median, best and worst seconds and the last value of each."""
    values = {}

    def ask(name):
        values[name] = calls[name](next(_nudges))

    seconds = turns.take_turns({name: partial(ask, name) for name in calls}, rounds)
    return {
        name: {"median": statistics.median(s), "best": min(s), "worst": max(s), "value": values[name]}
        for name, s in seconds.items()
    }


def added_memory(call):
    """Return the megabytes that a call adds to the peak of a fork of this process."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free here would hide what the call needs
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        call(next(_nudges))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        os.write(writing, str((after - before) / 1024).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return float(found or "nan")


def check(question, answers):
    """Raise ValueError if an answer is wrong: a benchmark of wrong answers says nothing."""
    if question.exact is None:
        return
    for name, answer in answers.items():
        error = OUR_ERROR * question.exact if name == OURS.name else question.allowed
        if not abs(answer["value"] - question.exact) <= error:
            raise ValueError(
                f"{question.title}: {name} answers {answer['value']}, not {question.exact} up to {error:.2g}"
            )


def ask(key, peers, rounds):
    """Time one question put to everybody: many rounds of ours, two of the peers that take seconds."""
    question = QUESTIONS[key]
    calls = {}
    for peer in peers:
        way = getattr(peer, question.way, None)
        if way:
            calls[peer.name] = partial(way, accountants.CASES[key]) if key in accountants.CASES else way
    slow = [name for name in calls if question.slow and name != OURS.name]
    answers = take_turns({name: calls[name] for name in slow}, 2)
    answers |= take_turns({name: call for name, call in calls.items() if name not in slow}, rounds)
    check(question, answers)
    for name, answer in answers.items():
        value = answer.pop("value")
        answer["digits"] = worst_digits(calls[name](0.0)) if key == "W1" else question.digits(value)
        answer["megabytes"] = added_memory(calls[name])
    return {"question": key, "times": answers}


def peer_grid(peer):
    """Ask a peer cell by cell in random order for at most a minute."""
    order = list(range(len(accountants.GRID)))
    random.Random(1).shuffle(order)
    start, values = time.process_time(), {}
    for k in order:
        values[k] = peer.epsilon(accountants.GRID[k], next(_nudges))
        spent = time.process_time() - start
        if spent > GRID_SECONDS:
            break
    total = spent / len(values) * len(order)
    return {"median": total, "best": total, "worst": total, "cells": len(values), "of": len(order)}, values


def grid(peers, rounds):
    """Time the grid W3: one call of ours, cell by cell dp_accounting."""
    call = partial(OURS.grid, accountants.GRID)
    answers = take_turns({OURS.name: call}, rounds)
    ours = answers[OURS.name].pop("value")
    answers[OURS.name]["megabytes"] = added_memory(call)
    row = {"question": "W3", "times": answers}
    if accountants.DpAccounting in peers:
        row["times"]["dp_accounting"], values = peer_grid(accountants.DpAccounting)
        theirs = np.array(list(values.values()))
        np.testing.assert_allclose(ours[list(values)], theirs, rtol=5e-3, atol=1e-3)
    return row


def depths(peers):
    """Yield the relative errors of the delta of 100 Gaussians with mu = 1, ever deeper."""
    for eps in DEPTHS:
        exact = exact_delta(eps, 1.0)
        found = {peer.name: peer.gdp_delta(eps) for peer in peers if hasattr(peer, "gdp_delta")}
        errors = {name: float(delta / exact - 1) for name, delta in found.items()}
        yield {"eps": eps, "delta": float(exact), "errors": errors}


def warm(rounds):
    """Count warm cells per second of one mechanism at many steps: no cell has been asked before, but others near it."""
    first, *others = (accountants.warm_cells(seed) for seed in range(rounds + 1))
    for name, call in WARM.items():
        call(first)
        times = []
        for cells in others:
            start = time.process_time()
            call(cells)
            times.append(time.process_time() - start)
        yield {"rate": name, "per_second": accountants.WARM_CELLS / statistics.median(times), "goal": RATES[name]}


def measure(rounds, *, slow_peers):
    """Yield the rows of this process."""
    peers = [accountant for accountant in accountants.ALL if accountant.available()]
    some = peers if slow_peers else [peer for peer in peers if peer is OURS]
    for key, question in QUESTIONS.items():
        ratios.log(question.title)
        asked = some if question.slow else peers
        yield grid(asked, rounds) if question.way == "grid" else ask(key, asked, rounds)
    yield from warm(rounds)
    if slow_peers:
        yield from depths(peers)


def in_new_process(isa, *options):
    """Return what this script prints with these options and this instruction set."""
    rows = ratios.in_new_process(__file__, isa, *options, **ONE_THREAD)
    return [row | {"instruction_set": isa or "baseline"} for row in rows]


def with_peers(rows):
    """Give the rows of later processes the peers' times of the first."""
    first = {row["question"]: row["times"] for row in reversed(rows) if "question" in row}
    return [row | {"times": first[row["question"]] | row["times"]} if "question" in row else row for row in rows]


def ratio_lines(row):
    """Return one line of the table for each accountant, ours first."""
    question, isa = QUESTIONS[row["question"]], row["instruction_set"]
    ours = row["times"][OURS.name]["median"]
    for name, answer in row["times"].items():
        part = f" (from {answer['cells']} of {answer['of']})" if answer.get("cells") != answer.get("of") else ""
        digits, memory = answer.get("digits"), answer.get("megabytes")
        yield (
            *(question.title, isa, name, ratios.duration(answer["median"]) + part),
            *("" if name == OURS.name else ratios.ratio(answer["median"], ours), question.goals.get((name, isa))),
            *("" if digits is None else f"{digits:.1f}", "" if memory is None else f"{memory:.0f}"),
        )


def markdown(rows):
    """Return the tables: ratios, relative errors in depth, and cells per second."""
    answers = [line for row in rows if "question" in row for line in ratio_lines(row)]
    depth = [row for row in rows if "eps" in row]
    errors = [
        (f"delta({row['eps']:g}) = {row['delta']:.2g}", *(f"{e:.1g}" for e in row["errors"].values())) for row in depth
    ]
    speeds = [
        (row["rate"], row["instruction_set"], f"{row['per_second']:.3g}", row["goal"]) for row in rows if "rate" in row
    ]
    tables = [
        (("question", "instruction set", "accountant", "time", "ratio", "goal", "digits", "MB"), answers),
        (("delta of mu = 1, 100 steps", *(depth[0]["errors"] if depth else ())), errors),
        (("warm, sigma = 1, q = 0.01", "instruction set", "cells per second", "goal"), speeds),
    ]
    return "\n\n".join(turns.table(*each) for each in tables if each[1])


def main():
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write every number measured to this file")
    parser.add_argument("--rounds", type=int, default=7, help="turns that everybody gets (default: 7)")
    parser.add_argument("--process", choices=("all", "ours"), help="measure in this process, print JSON")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # the peers'
    if arguments.process:
        os.environ |= ONE_THREAD
        measured = measure(arguments.rounds, slow_peers=arguments.process == "all")
        json.dump(list(measured), sys.stdout, default=float)
        return
    sets = ratios.instruction_sets(SETS)
    rounds = ("--rounds", str(arguments.rounds))
    rows = in_new_process(sets[0], "--process", "all", *rounds)
    for isa in sets[1:]:
        rows += in_new_process(isa, "--process", "ours", *rounds)
    rows = with_peers(rows)
    sys.stdout.write(markdown(rows) + "\n")
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": ratios.machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

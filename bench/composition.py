"""Time compositions beside other accountants and print the ratios: python bench/composition.py [--json FILE].

Everybody takes turns in one process on one thread, and the median of the processor time counts, which a busy neighbour
stretches less than the time on the wall. No question is asked twice with the same noise: every answer is a cold one unless
the row says warm. dp_accounting gets a minute for the grid W3; what it has not reached by then is extrapolated from the
shuffled cells before, and the table says so. W3 to W5 take the peers seconds: they answer in the first process only, while
hockeystick answers with every instruction set of this machine. A peer that is not installed has no row.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import accountants
import numpy as np
import ratios

INSTRUCTION_SETS = ("v4", "v3")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}
GRID_SECONDS = 60.0
SHORTEST_SAMPLE = 5e-3
OURS = accountants.HockeyStick
# the least ratio to a peer; v3 has half of v4's for one cold answer
GOALS: dict[tuple[str, str], dict[str, float]] = {
    ("A", "dp_accounting"): {"v4": 1000, "v3": 500},
    ("A", "opacus PRV"): {"v4": 150, "v3": 75},
    ("W3", "dp_accounting"): {"v4": 2500},
    ("W4", "dp_accounting"): {"v4": 500},
    ("W5", "dp_accounting"): {"v4": 200},
}
RATES = {"(steps, eps) → delta": 3e5, "(steps, delta) → eps": 5e4}  # least warm cells per second
MEGABYTES = 100.0
TITLES = {
    "A": "A: eps(1e-5), sigma = 1, q = 0.01, T = 1000",
    "B": "B: eps(1e-5), sigma = 0.8, q = 256/60000, T = 14040",
    "C": "C: eps(1e-5), sigma = 0.7, q = 0.001, T = 1e5",
    "W3": "W3: eps(1e-5), sigma (16), T (4), q (3)",
    "W4": "W4: eps(1e-6), 1000 Gaussians and 100 Laplace",
    "W5": "W5: least sigma for eps = 2, delta = 1e-6, q = 0.01, T = 5000",
}
# what everybody should find, and how far from it the upper ends (and one estimate) of the peers are allowed to be
ANSWERS = {
    "A": (1.828237, 0.011),
    "B": (4.546009, 0.011),
    "C": (3.648428, 0.011),
    "W4": (4.6502, 1e-3),
    "W5": (1.7477, 0.05),
}
OUR_ERROR = 1e-3  # the width of a bracket, relative

Row = dict[str, Any]
_nudges = (1e-10 * k for k in itertools.count(1))


def timed(call: Callable[[float], Any], repeats: int) -> tuple[float, Any]:
    """Return seconds per call and the last value."""
    start = time.process_time()
    for _ in range(repeats):
        value = call(next(_nudges))
    return (time.process_time() - start) / repeats, value


def take_turns(calls: dict[str, Callable[[float], Any]], rounds: int) -> dict[str, Row]:
    """Return the median, best and worst seconds and the value of each, after one call each to warm the code up."""
    repeats = {name: max(1, round(SHORTEST_SAMPLE / timed(call, 1)[0])) for name, call in calls.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    values = {}
    for _ in range(rounds):
        for name, call in calls.items():
            spent, values[name] = timed(call, repeats[name])
            seconds[name].append(spent)
    return {
        name: {"median": statistics.median(s), "best": min(s), "worst": max(s), "value": values[name]}
        for name, s in seconds.items()
    }


def check(question: str, answers: dict[str, Row]) -> None:
    """Raise ValueError if an answer is wrong: a benchmark of wrong answers says nothing."""
    exact, allowed = ANSWERS[question]
    for name, answer in answers.items():
        error = OUR_ERROR * exact if name == OURS.name else allowed
        if not abs(answer["value"] - exact) <= error:
            message = f"{question}: {name} answers {answer['value']}, not {exact} up to {error:.2g}"
            raise ValueError(message)


def single(question: str, peers: list[Any], rounds: int) -> Row:
    """Time one cold epsilon by everybody."""
    case = accountants.CASES[question]
    calls = {peer.name: (lambda nudge, peer=peer: peer.epsilon(case, nudge)) for peer in peers}
    answers = take_turns(calls, rounds)
    check(question, answers)
    return {"question": question, "times": answers}


def whole(question: str, way: str, peers: list[Any], rounds: int) -> Row:
    """Time the mixed ledger or the calibration: many rounds of ours, two of those that take seconds."""
    able = {peer.name: getattr(peer, way) for peer in peers if hasattr(peer, way)}
    ours = {name: call for name, call in able.items() if name == OURS.name}
    answers = take_turns({name: call for name, call in able.items() if name not in ours}, 2) | take_turns(ours, rounds)
    check(question, answers)
    return {"question": question, "times": answers}


def peer_grid(peer: Any) -> tuple[Row, dict[int, float]]:
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


def grid(peers: list[Any], rounds: int) -> Row:
    """Time the grid W3: one call of ours, cell by cell dp_accounting."""
    row: Row = {"question": "W3", "times": {}}
    ours: np.ndarray[Any, Any] | None = None
    if OURS in peers:
        answers = take_turns({OURS.name: lambda nudge: OURS.grid(accountants.GRID, nudge)}, rounds)
        ours = answers[OURS.name].pop("value")
        row["times"] |= answers
    if accountants.DpAccounting in peers:
        row["times"]["dp_accounting"], values = peer_grid(accountants.DpAccounting)
        if ours is not None:
            theirs = np.array(list(values.values()))
            np.testing.assert_allclose(ours[list(values)], theirs, rtol=5e-3, atol=1e-3)
    return row


def warm(rounds: int) -> Iterator[Row]:
    """Count warm cells per second of one mechanism at many steps."""
    steps, eps, delta = accountants.warm_cells()
    calls = {
        "(steps, eps) → delta": lambda: OURS.warm_delta(steps, eps),
        "(steps, delta) → eps": lambda: OURS.warm_epsilon(steps, delta),
    }
    for name, call in calls.items():
        call()
        seconds = statistics.median(timed(lambda _, call=call: call(), 1)[0] for _ in range(rounds))
        yield {"rate": name, "per_second": len(steps) / seconds, "goal": RATES[name]}


def megabytes() -> Row:
    """Ask ours every question and return how far the memory of this process went up."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for case in accountants.CASES.values():
        OURS.epsilon(case, 0.0)
    OURS.grid(accountants.GRID, 0.0)
    OURS.mixed(0.0)
    OURS.noise(0.0)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"before": before / 1024, "peak": after / 1024, "goal": MEGABYTES}


def measure(rounds: int, *, slow_peers: bool) -> Iterator[Row]:
    """Yield the rows of this process."""
    peers = accountants.present()
    for question in accountants.CASES:
        ratios.log(question)
        yield single(question, peers, rounds)
    some = peers if slow_peers else [peer for peer in peers if peer is OURS]
    ratios.log("W3, W4, W5")
    yield grid(some, rounds)
    yield whole("W4", "mixed", some, rounds)
    yield whole("W5", "noise", some, rounds)
    if OURS in peers:
        yield from warm(rounds)


def in_new_process(isa: str | None, *options: str) -> list[Row]:
    """Return what this script prints with these options and this instruction set."""
    command = [sys.executable, __file__, *options]
    result = subprocess.run(
        command, env=ratios.forcing(isa) | ONE_THREAD, stdout=subprocess.PIPE, text=True, check=True
    )
    rows: list[Row] = json.loads(result.stdout)
    return [row | {"instruction_set": isa or "baseline"} for row in rows]


def with_peers(rows: list[Row]) -> list[Row]:
    """Give the rows of later processes the peers' times of the first."""
    first = {row["question"]: row["times"] for row in reversed(rows) if "question" in row}
    return [row | {"times": first[row["question"]] | row["times"]} if "question" in row else row for row in rows]


def ratio_lines(row: Row) -> Iterator[str]:
    """Return one line of the table for each peer."""
    ours = row["times"].get(OURS.name, {}).get("median")
    for name, peer in row["times"].items():
        if name == OURS.name:
            continue
        part = f" (from {peer['cells']} of {peer['of']})" if peer.get("cells") != peer.get("of") else ""
        goal = GOALS.get((row["question"], name), {}).get(row["instruction_set"])
        yield " | ".join(
            (
                f"| {TITLES[row['question']]}",
                row["instruction_set"],
                ratios.duration(ours),
                name,
                duration(peer["median"]) + part,
                ratios.ratio(peer["median"], ours),
                f"{goal:g} |" if goal else "|",
            )
        )


def duration(seconds: float) -> str:
    """Return seconds where ratios.duration would write thousands of milliseconds."""
    return f"{seconds:.3g} s" if seconds >= 1 else ratios.duration(seconds)


def markdown(rows: list[Row]) -> str:
    """Return the tables."""
    lines = [
        "| question | instruction set | hockeystick | peer | peer's time | ratio | goal |",
        "|---|---|--:|---|--:|--:|--:|",
    ]
    lines += [line for row in rows if "question" in row for line in ratio_lines(row)]
    lines += ["", "| warm, sigma = 1, q = 0.01 | instruction set | cells per second | goal |", "|---|---|--:|--:|"]
    lines += [
        f"| {row['rate']} | {row['instruction_set']} | {row['per_second']:.3g} | {row['goal']:g} |"
        for row in rows
        if "rate" in row
    ]
    lines += [
        f"\nPeak memory of a process that asked everything: {row['peak']:.0f} MB, of which {row['before']:.0f} MB after "
        f"import; goal {row['goal']:g} MB."
        for row in rows
        if "peak" in row
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write every number measured to this file")
    parser.add_argument("--rounds", type=int, default=7, help="turns that everybody gets (default: 7)")
    parser.add_argument("--process", choices=("all", "ours", "memory"), help="measure in this process, print JSON")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # the peers'
    if arguments.process:
        os.environ |= ONE_THREAD
        measured = (
            [megabytes()]
            if arguments.process == "memory"
            else list(measure(arguments.rounds, slow_peers=arguments.process == "all"))
        )
        json.dump(measured, sys.stdout, default=float)
        return
    sets = [isa for isa in INSTRUCTION_SETS if ratios.available(isa)] or [None]
    rounds = ("--rounds", str(arguments.rounds))
    rows = in_new_process(sets[0], "--process", "all", *rounds)
    for isa in sets[1:]:
        rows += in_new_process(isa, "--process", "ours", *rounds)
    rows = with_peers(rows)
    if OURS.available():
        rows += in_new_process(sets[0], "--process", "memory")
    sys.stdout.write(markdown(rows) + "\n")
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": ratios.machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

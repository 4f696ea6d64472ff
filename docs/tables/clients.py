"""The measurements of docs/accounting/budgets.md: a million clients in one file, their rounds, and a restart."""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import hockeystick as hs

BUDGET = {"epsilon": 2.0, "delta": 1e-7}
SAMPLED, KNOWN = hs.PoissonSampled(hs.Gaussian(1.0), 1e-3), hs.Gaussian(20.0)


def megabytes() -> float:
    """Return the largest memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def seconds(call: Callable[..., object], *arguments: object, **options: object) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    call(*arguments, **options)
    return time.perf_counter() - start


def measure(clients: int, folder: str) -> Iterator[str]:
    """Return a line for each measurement."""
    path, before, rng = Path(folder) / "clients.sqlite", megabytes(), np.random.default_rng(1)
    with hs.ClientLedgers(path, create=True, **BUDGET) as ledgers:
        yield f"enrolment: {seconds(ledgers.enrol, range(clients)):.2f} s"
        times = []
        for number in range(1, 101):
            drawn = hs.draw_participants(SAMPLED, range(clients), rng)
            times.append(seconds(ledgers.charge, number, SAMPLED, participants=drawn))
        yield f"a charge of all: {1e3 * statistics.median(times):.0f} ms, ledgers: {ledgers.num_ledgers}"
        yield f"memory: {megabytes() - before:.0f} MB, file: {path.stat().st_size / 1e6:.1f} MB"
        times = []
        for number in range(101, 151):
            taking_part = rng.choice(clients, clients // 1000, replace=False).tolist()
            times.append(seconds(ledgers.charge, number, KNOWN, clients=taking_part))
        yield f"a charge of one in a thousand: {1e3 * statistics.median(times):.0f} ms, ledgers: {ledgers.num_ledgers}"
    yield f"opening after 150 rounds: {seconds(lambda: hs.ClientLedgers(path, **BUDGET).close()):.2f} s"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-clients", type=int, default=1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        for line in measure(parser.parse_args().num_clients, folder):
            sys.stdout.write(line + "\n")

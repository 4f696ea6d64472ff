"""Ask for epsilon at random over the whole domain and check the answers: python bench/fuzz.py [N] (default: 10000 cells).

Noise multipliers from 1e-3 to 1e6, sampling rates 0, 1 and from 1e-12 to 1, steps from 1 to 1e9, deltas from 1e-300 to 0.9:
no exception, no warning, no NaN, and a time and memory that stay small. Every tenth cell is held against facts that need
no other accountant: the unsampled Gaussian's closed form, monotony in the noise, the rate and the steps, delta(epsilon) <=
delta, and a bracket in order. Prints a summary; exits with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import collections
import math
import random
import re
import resource
import sys
import time
import warnings
from typing import NamedTuple

import numpy as np

import hockeystick as hs

CHECKED = 10  # one cell in so many
MOST_SECONDS, MOST_MEGABYTES = 1.0, 512.0
# an upper end may exceed a larger truth's upper end by the width that brackets are allowed
WIDTH, LEAST_WIDTH = 1e-3, 1e-9


class Cell(NamedTuple):
    """Arguments of dpsgd_epsilon."""

    noise_multiplier: float
    sampling_rate: float
    steps: int
    delta: float


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def draw(rng: random.Random) -> Cell:
    kind = rng.random()
    rate = 0.0 if kind < 0.02 else 1.0 if kind < 0.06 else rng.random() if kind < 0.2 else log_uniform(rng, 1e-12, 1.0)
    noise = log_uniform(rng, 1e-3, 1e6) if rng.random() < 0.5 else log_uniform(rng, 0.3, 50.0)  # half where people are
    delta = log_uniform(rng, 1e-300, 0.9) if rng.random() < 0.5 else log_uniform(rng, 1e-12, 0.9)
    return Cell(noise, rate, round(log_uniform(rng, 1, 1e9)), delta)


def epsilon(cell: Cell) -> float:
    return float(hs.dpsgd_epsilon(*cell, num_threads=1))


class Report:
    """What was found wrong, and what was measured."""

    def __init__(self) -> None:
        """Start empty."""
        self.faults: dict[str, list[str]] = collections.defaultdict(list)
        self.seconds: list[tuple[float, Cell]] = []
        self.widths: list[float] = []
        self.methods: collections.Counter[str] = collections.Counter()

    def fault(self, kind: str, cell: Cell, detail: object = "") -> None:
        """Note what is wrong with a cell."""
        self.faults[kind].append(f"{cell} {detail}")

    def expect(self, *, smaller: float, larger: float, kind: str, cell: Cell) -> None:
        """Note a fault unless smaller <= larger, up to the width of a bracket."""
        if not smaller <= larger + max(WIDTH * larger, LEAST_WIDTH):
            self.fault(kind, cell, f"{smaller!r} > {larger!r}")

    def lines(self) -> list[str]:
        """Return the summary."""
        times = sorted(seconds for seconds, _ in self.seconds)
        slowest, cell = max(self.seconds)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        if slowest > MOST_SECONDS:
            self.fault("slower than a second", cell, f"{slowest:.3g} s")
        if peak > MOST_MEGABYTES:
            self.fault("more memory than allowed", cell, f"{peak:.0f} MB at the end")
        shares = ", ".join(f"{name} {n / self.methods.total():.1%}" for name, n in self.methods.most_common())
        quantiles = ", ".join(f"{p:g} % {quantile(times, p / 100):.2g} s" for p in (50, 90, 99, 99.9))
        widths = ", ".join(f"{p} % {quantile(self.widths, p / 100):.2g}" for p in (50, 90, 99, 100))
        return [
            f"{len(times)} cells in {sum(times):.3g} s: {quantiles}",
            f"slowest {slowest:.3g} s at {cell}",
            f"peak memory {peak:.0f} MB",
            f"width of the bracket / max(1e-3 upper, 1e-9), {len(self.widths)} cells: {widths}",
            f"methods: {shares}",
            *(f"{kind}: {len(found)}, first {found[0]}" for kind, found in self.faults.items()),
            "nothing wrong" if not self.faults else f"{sum(map(len, self.faults.values()))} faults",
        ]


def quantile(values: list[float], p: float) -> float:
    return float(np.quantile(values, p, method="inverted_cdf")) if values else math.nan


def ask(cell: Cell, report: Report) -> float | None:
    """Return epsilon, timed; None if it raised, warned or is no number."""
    start = time.perf_counter()
    try:
        found = epsilon(cell)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        report.fault(f"{type(error).__name__} raised", cell, error)
        return None
    finally:
        report.seconds.append((time.perf_counter() - start, cell))
    if not found >= 0:
        report.fault("no number", cell, found)
        return None
    return found


def check(cell: Cell, found: float, rng: random.Random, report: Report) -> None:
    """Hold an answer against what must be true of it."""
    noise, rate, steps, delta = cell
    unsampled = float(hs.gdp_epsilon(math.sqrt(steps) / noise, delta))
    report.expect(smaller=found, larger=unsampled, kind="above the closed form without sampling", cell=cell)
    if rate == 1.0:
        report.expect(smaller=unsampled * (1 - 1e-9), larger=found, kind="below the closed form", cell=cell)
    if rate == 0.0 and found:
        report.fault("not 0 without sampling", cell, found)
    factor = log_uniform(rng, 1.0, 3.0)
    better = {
        "not falling in the noise": cell._replace(noise_multiplier=min(noise * factor, 1e6)),
        "not rising in the rate": cell._replace(sampling_rate=rate / factor),
        "not rising in the steps": cell._replace(steps=max(1, round(steps / factor))),
        "not falling in delta": cell._replace(delta=min(delta * factor, 0.9)),
    }
    for kind, neighbour in better.items():
        less = ask(neighbour, report)
        if less is not None:
            report.expect(smaller=less, larger=found, kind=kind, cell=cell)
    if math.isfinite(found):
        back = float(hs.dpsgd_delta(noise, rate, steps, found, num_threads=1))
        # epsilon is one certificate and delta another: both have the width of a bracket, in log delta as in epsilon
        if found > 0 and not back <= delta ** (1 - 10 * WIDTH) * (1 + 10 * WIDTH):
            report.fault("delta(epsilon) above delta", cell, f"{back!r} at {found!r}")
    bracket_of(cell, found, report)


def bracket_of(cell: Cell, found: float, report: Report) -> None:
    """Check the bracket and note its width and method."""
    noise, rate, steps, delta = cell
    try:
        step = hs.PoissonSampled(hs.Gaussian(noise), rate)
        bracket = hs.Accountant().compose(step, steps).epsilon_bracket(delta)
    except Exception as error:  # noqa: BLE001 - as above
        report.fault(f"{type(error).__name__} raised by the bracket", cell, error)
        return
    report.methods[re.sub(r", interval [^,]*", "", bracket.method)] += 1
    if not 0 <= bracket.lower <= bracket.upper or bracket.status != "certified":
        report.fault("bracket out of order", cell, bracket)
    report.expect(smaller=bracket.lower, larger=found, kind="below its own bracket", cell=cell)
    if math.isfinite(bracket.upper):
        width = bracket.upper - bracket.lower
        report.widths.append(width / max(WIDTH * bracket.upper, LEAST_WIDTH))
    elif math.isfinite(bracket.lower):
        report.fault("no finite upper end", cell, bracket)


def run(count: int, seed: int) -> Report:
    rng, report = random.Random(seed), Report()
    for k in range(count):
        cell = draw(rng)
        found = ask(cell, report)
        if found is not None and k % CHECKED == 0:
            check(cell, found, rng, report)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("count", nargs="?", type=int, default=10_000, help="cells (default: 10000)")
    parser.add_argument("--seed", type=int, default=0, help="of the random cells (default: 0)")
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    report = run(arguments.count, arguments.seed)
    sys.stdout.write("\n".join(report.lines()) + "\n")
    sys.exit(bool(report.faults))


if __name__ == "__main__":
    main()

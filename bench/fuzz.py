"""Ask for epsilon at random over the whole domain and check the answers: python bench/fuzz.py [N] (default: 10000 cells).

Noise multipliers from 1e-3 to 1e6, sampling rates 0, 1 and from 1e-12 to 1, steps from 1 to 1e9, deltas from 1e-300 to 0.9:
no exception, no warning, no NaN, and a time and memory that stay small. Every tenth cell is held against facts that need
no other accountant: the unsampled Gaussian's closed form, monotony in the noise, the rate and the steps, delta(epsilon) <=
delta, and a bracket in order. Faults are contradictions between certified ends, exceptions, warnings and excesses of time or
memory; that an upper end is loose, beyond the width that brackets are allowed, is counted apart. Exits with 1 if there are
faults.
"""

from __future__ import annotations

import argparse
import collections
import math
import random
import resource
import sys
import time
import warnings
from typing import NamedTuple

import numpy as np

import hockeystick as hs

CHECKED = 10  # one cell in so many
PROGRESS = 1000  # cells between two lines that say how far it is
MOST_SECONDS, MOST_MEGABYTES = 1.0, 512.0  # of processor time
WIDTH, LEAST_WIDTH = 1e-3, 1e-9  # that brackets are allowed, relative to the upper end and absolute
CLOSED_FORM_ERROR = 1e-9


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
        self.loose: dict[str, list[str]] = collections.defaultdict(list)
        self.seconds: list[tuple[float, Cell]] = []
        self.widths: list[float] = []
        self.methods: collections.Counter[str] = collections.Counter()

    def fault(self, kind: str, cell: Cell, detail: object = "") -> None:
        """Note what is wrong with a cell."""
        self.faults[kind].append(f"{cell} {detail}")

    def certified(self, kind: str, cell: Cell, *, lower: float, upper: float) -> None:
        """Note a fault if a lower end is above an upper one: one of them is false."""
        if not lower <= upper:
            self.fault(kind, cell, f"{lower!r} > {upper!r}")

    def tight(self, kind: str, cell: Cell, *, smaller: float, larger: float) -> None:
        """Note an upper end above that of something larger, by more than the width of a bracket."""
        if not smaller <= larger + max(WIDTH * larger, LEAST_WIDTH):
            self.loose[kind].append(f"{cell} {smaller!r} > {larger!r}")

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
            *(f"loose: {kind}: {len(found)}, first {found[0]}" for kind, found in self.loose.items()),
            *(f"FAULT: {kind}: {len(found)}, first {found[0]}" for kind, found in self.faults.items()),
            f"{sum(map(len, self.loose.values()))} loose, {sum(map(len, self.faults.values()))} faults",
        ]


def quantile(values: list[float], p: float) -> float:
    return float(np.quantile(values, p, method="inverted_cdf")) if values else math.nan


def ask(cell: Cell, report: Report) -> float | None:
    """Return epsilon, timed; None if it raised, warned or is no number."""
    start = time.process_time()
    try:
        found = epsilon(cell)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        report.fault(f"{type(error).__name__} raised", cell, error)
        return None
    finally:
        report.seconds.append((time.process_time() - start, cell))
    if not found >= 0:
        report.fault("no number", cell, found)
        return None
    return found


def bracket_of(cell: Cell, report: Report) -> hs.Bracket | None:
    """Return a cell's bracket; None if it raised or is out of order."""
    try:
        step = hs.PoissonSampled(hs.Gaussian(cell.noise_multiplier), cell.sampling_rate)
        bracket = hs.Accountant().compose(step, cell.steps).epsilon_bracket(cell.delta)
    except Exception as error:  # noqa: BLE001 - as above
        report.fault(f"{type(error).__name__} raised by the bracket", cell, error)
        return None
    if not 0 <= bracket.lower <= bracket.upper or bracket.status != "certified":
        report.fault("bracket out of order", cell, bracket)
        return None
    return bracket


def check(cell: Cell, found: float, rng: random.Random, report: Report) -> None:
    """Hold an answer against what must be true of it."""
    check_bracket(cell, found, report)
    check_closed_form(cell, found, report)
    check_neighbours(cell, found, log_uniform(rng, 1.0, 3.0), report)
    check_delta(cell, found, report)


def check_bracket(cell: Cell, found: float, report: Report) -> None:
    bracket = bracket_of(cell, report)
    if bracket is None:
        return
    name = bracket.method.split(",")[0].split(" at tilt")[0]
    report.methods[f"{name}, wider than asked" if "wider than asked" in bracket.method else name] += 1
    report.certified("below its own bracket", cell, lower=bracket.lower, upper=found)
    if math.isfinite(bracket.upper):
        report.widths.append((bracket.upper - bracket.lower) / max(WIDTH * bracket.upper, LEAST_WIDTH))
    else:
        report.loose["no finite upper end"].append(f"{cell} {bracket}")


def check_closed_form(cell: Cell, found: float, report: Report) -> None:
    unsampled = float(hs.gdp_epsilon(math.sqrt(cell.steps) / cell.noise_multiplier, cell.delta))
    report.tight("above the closed form without sampling", cell, smaller=found, larger=unsampled)
    if cell.sampling_rate == 1.0:
        report.certified("below the closed form", cell, lower=unsampled * (1 - CLOSED_FORM_ERROR), upper=found)
    if cell.sampling_rate == 0.0 and found:
        report.fault("not 0 with a rate of 0", cell, found)


def check_neighbours(cell: Cell, found: float, factor: float, report: Report) -> None:
    """Epsilon is no larger with more noise, a smaller rate, fewer steps or a larger delta."""
    for kind, neighbour in {
        "noise": cell._replace(noise_multiplier=min(cell.noise_multiplier * factor, 1e6)),
        "rate": cell._replace(sampling_rate=cell.sampling_rate / factor),
        "steps": cell._replace(steps=max(1, round(cell.steps / factor))),
        "delta": cell._replace(delta=min(cell.delta * factor, 0.9)),
    }.items():
        bracket = bracket_of(neighbour, report)
        if bracket is not None:
            report.certified(f"not monotone in the {kind}", cell, lower=bracket.lower, upper=found)
        less = ask(neighbour, report)
        if less is not None:
            report.tight(f"not monotone in the {kind}", cell, smaller=less, larger=found)


def check_delta(cell: Cell, found: float, report: Report) -> None:
    """Delta at an upper end of epsilon is at most the delta asked for."""
    if not 0 < found < math.inf:
        return
    noise, rate, steps, delta = cell
    step = hs.PoissonSampled(hs.Gaussian(noise), rate)
    bracket = hs.Accountant().compose(step, steps).delta_bracket(found)
    report.certified("delta(epsilon) above delta", cell, lower=bracket.lower, upper=delta)
    back = float(hs.dpsgd_delta(noise, rate, steps, found, num_threads=1))
    report.certified("delta below its own bracket", cell, lower=bracket.lower, upper=back)
    if not back <= delta ** (1 - WIDTH) * (1 + WIDTH):
        report.loose["delta(epsilon) above delta"].append(f"{cell} {back!r} at {found!r}")


def progress(done: int, count: int, report: Report) -> None:
    """Print how far the run is, to the error stream: the summary alone is the output."""
    faults = sum(map(len, report.faults.values()))
    seconds = sum(seconds for seconds, _ in report.seconds)
    sys.stderr.write(f"{done} of {count} cells, {seconds:.3g} s, {faults} faults\n")


def run(count: int, seed: int) -> Report:
    rng, report = random.Random(seed), Report()
    for k in range(count):
        if k and k % PROGRESS == 0:
            progress(k, count, report)
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
    warnings.simplefilter("ignore", hs.ImplausibleSettingWarning)  # the domain is wider than what anybody means
    report = run(arguments.count, arguments.seed)
    sys.stdout.write("\n".join(report.lines()) + "\n")
    sys.exit(bool(report.faults))


if __name__ == "__main__":
    main()

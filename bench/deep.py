"""Time deltas of every depth, and inverses, of DP-SGD: python bench/deep.py [--cells N] [--seed N].

Cells are random: noise multipliers from 0.3 to 20, sampling rates from 1e-6 to 1 and 1 to 10^7 steps, log-uniform; epsilons from 0 to 20. The
first table asks `Accountant.delta_bracket` of each cell, cold, and groups cells by the depth of delta. The second asks `dpsgd_noise_multiplier`,
`dpsgd_steps` and `dpsgd_sampling_rate`, cold, for the epsilon of a cell at a delta between 1e-30 and 1e-2. The last number of its lines counts answers that
gave something up: those whose neighbour, a noise multiplier smaller by 1e-6, a rate larger by 1e-6 or one step more, meets the target too.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import hockeystick as hs

DEPTHS = ((1e-30, "above 1e-30"), (1e-300, "1e-300 to 1e-30"), (-1.0, "below 1e-300"))
RATIO = 1 + 1e-6  # to the next noise multiplier or rate


class Cell(NamedTuple):
    """Parameters of a question; eps for a delta, delta for an inverse."""

    noise: float
    rate: float
    steps: int
    eps: float
    delta: float


def cells(count: int, seed: int) -> Iterator[Cell]:
    rng = np.random.default_rng(seed)

    def between(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    for _ in range(count):
        yield Cell(
            between(0.3, 20.0), between(1e-6, 1.0), int(between(1.0, 1e7)), rng.uniform(0.0, 20.0), between(1e-30, 1e-2)
        )


def timed(ask: Callable[[], float | hs.Bracket]) -> tuple[float, float | hs.Bracket]:
    """Return the milliseconds of processor time of a call, and its answer."""
    started = time.process_time()
    answer = ask()
    return 1e3 * (time.process_time() - started), answer


def accountant(cell: Cell) -> hs.Accountant:
    return hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(cell.noise), cell.rate), cell.steps)


def depth(delta: float) -> str:
    return next(name for least, name in DEPTHS if delta > least)


def deltas(asked: list[Cell]) -> None:
    """Print times and widths of deltas by their depth."""
    found = [timed(lambda cell=cell: accountant(cell).delta_bracket(cell.eps)) for cell in asked]
    for _, name in DEPTHS:
        group = [(ms, bracket) for ms, bracket in found if depth(bracket.upper) == name]
        times = [ms for ms, _ in group]
        line = f"{name:18s} {len(group):5d} cells | ms mean {np.mean(times):.3f}, median {np.median(times):.3f}, largest {max(times):.1f}"
        if name != DEPTHS[-1][1]:
            widths = [(bracket.upper - bracket.lower) / bracket.upper for _, bracket in group]
            line += f" | width median {np.median(widths):.1e}, largest {max(widths):.1e}"
        sys.stdout.write(line + "\n")
    times = [ms for ms, _ in found]
    sys.stdout.write(f"all: ms mean {np.mean(times):.3f}, largest {max(times):.1f}\n")


def inverses(asked: list[Cell]) -> None:
    """Print times of inverses, and how many of the answers have a feasible neighbour."""
    targets = [(cell, accountant(cell).epsilon(cell.delta)) for cell in asked]
    kinds: dict[str, tuple[Callable[[Cell, float], float], Callable[[Cell, float], Cell]]] = {
        "noise multiplier": (
            lambda c, eps: hs.dpsgd_noise_multiplier(c.rate, c.steps, eps, c.delta),
            lambda c, x: c._replace(noise=x / RATIO),
        ),
        "steps": (
            lambda c, eps: hs.dpsgd_steps(c.noise, c.rate, eps, c.delta),
            lambda c, x: c._replace(steps=int(x) + 1),
        ),
        "sampling rate": (
            lambda c, eps: hs.dpsgd_sampling_rate(c.noise, c.steps, eps, c.delta),
            lambda c, x: c._replace(rate=min(x * RATIO, 1.0)),
        ),
    }
    for name, (solve, next_to) in kinds.items():
        times, loose, asked_here = [], 0, 0
        for cell, eps in targets:
            if not 0.0 < eps < math.inf:
                continue
            ms, answer = timed(lambda solve=solve, cell=cell, eps=eps: float(solve(cell, eps)))
            times.append(ms)
            neighbour = next_to(cell, answer)
            asked_here += 1
            beside = accountant(neighbour)
            fits = beside.epsilon(cell.delta) <= eps and beside.delta(eps) <= cell.delta
            loose += neighbour.rate < 1.0 and fits
        sys.stdout.write(
            f"{name:18s} {asked_here:5d} cells | ms mean {np.mean(times):.2f}, median {np.median(times):.2f}, largest {max(times):.1f}"
            f" | with a feasible neighbour: {loose}\n"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=2000)
    parser.add_argument("--inverses", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", hs.ImplausibleSettingWarning)
    deltas(list(cells(options.cells, options.seed)))
    inverses(list(cells(options.inverses, options.seed + 1)))


if __name__ == "__main__":
    main()

"""Map how wide and how slow epsilon's brackets are: python bench/brackets.py [--cells N] [--rows TEXT] [--json FILE].

Each row is a mechanism under one adjacency. Its cells are random and ordinary: noise multipliers from 0.3 to 20, sampling rates
from 1e-5 to 0.3, 1 to 100,000 steps and deltas from 1e-12 to 1e-3, all log-uniform. A line says

- width: the numerical part of (upper - lower)/upper, median and largest;
- pairs: the part that lies between the dominating pair and what is attained, which no computing narrows;
- ms: processor time of one `epsilon_bracket`, asked cold.
"""

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hockeystick as hs
from hockeystick.mechanisms.base import Adjacency


class Cell(NamedTuple):
    """Parameters of a question. Batches are drawn of `size` records, `batch` of them on average."""

    noise: float
    rate: float
    steps: int
    delta: float
    size: int
    batch: int
    spare: float  # by how many standard deviations a truncated batch exceeds its mean


class Row(NamedTuple):
    """A mechanism of a cell, and its adjacency."""

    ours: Callable[[Cell], hs.mechanisms.Mechanism]
    adjacency: Adjacency = "add_or_remove"


def cells(count: int, seed: int) -> Iterator[Cell]:
    rng = np.random.default_rng(seed)

    def between(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    for _ in range(count):
        rate = between(1e-5, 0.3)
        size = math.ceil(between(2.0, 200.0) / rate)
        noise, steps, delta = between(0.3, 20.0), int(between(1.0, 1e5)), between(1e-12, 1e-3)
        yield Cell(noise, rate, steps, delta, size, max(1, round(rate * size)), rng.uniform(1.0, 5.0))


def fixed(noise: type[hs.Gaussian | hs.Laplace], *, replacement: bool) -> Callable[[Cell], hs.FixedSizeSampled]:
    return lambda c: hs.FixedSizeSampled(noise(c.noise), c.size, c.batch, replacement=replacement)


def poisson(mechanism: Callable[[Cell], hs.mechanisms.Mechanism]) -> Callable[[Cell], hs.PoissonSampled]:
    return lambda c: hs.PoissonSampled(mechanism(c), c.rate)


def largest_batch(c: Cell) -> int:
    return min(c.size, math.ceil(c.batch + c.spare * math.sqrt(c.batch)))


def truncated(c: Cell) -> hs.TruncatedPoissonSampled:
    return hs.TruncatedPoissonSampled(hs.Gaussian(c.noise), c.size, c.rate, largest_batch(c))


def mixture(c: Cell) -> tuple[float, list[float], list[float]]:
    return c.noise, [0.0, 1.0, 2.0], [(1 - c.rate) ** 2, 2 * c.rate * (1 - c.rate), c.rate**2]


def allocation(c: Cell) -> hs.RandomAllocation:
    return hs.RandomAllocation(hs.Gaussian(c.noise), max(2, round(1.0 / c.rate)))


def gaussian(c: Cell) -> hs.Gaussian:
    return hs.Gaussian(c.noise)


def laplace(c: Cell) -> hs.Laplace:
    return hs.Laplace(c.noise)


def discrete_gaussian(c: Cell) -> hs.DiscreteGaussian:
    return hs.DiscreteGaussian(c.noise, 1 + c.size % 3)


def composed(c: Cell) -> hs.Composed:
    return hs.Composed([(hs.Gaussian(c.noise), 1), (hs.Laplace(2 * c.noise), 2)])


ROWS: dict[str, Row] = {
    "Poisson Gauss, add/remove": Row(poisson(gaussian)),
    "Poisson Gauss, replace": Row(poisson(gaussian), "replace"),
    "fixed size Gauss, add/remove": Row(fixed(hs.Gaussian, replacement=False)),
    "fixed size Gauss, replace": Row(fixed(hs.Gaussian, replacement=False), "replace"),
    "with replacement Gauss, add/remove": Row(fixed(hs.Gaussian, replacement=True)),
    "with replacement Gauss, replace": Row(fixed(hs.Gaussian, replacement=True), "replace"),
    "Laplace": Row(laplace),
    "Poisson Laplace, add/remove": Row(poisson(laplace)),
    "Poisson Laplace, replace": Row(poisson(laplace), "replace"),
    "fixed size Laplace, replace": Row(fixed(hs.Laplace, replacement=False), "replace"),
    "discrete Gauss": Row(discrete_gaussian),
    "Poisson discrete Gauss, add/remove": Row(poisson(discrete_gaussian)),
    "Poisson discrete Gauss, replace": Row(poisson(discrete_gaussian), "replace"),
    "mixture of Gaussians": Row(lambda c: hs.MixtureOfGaussians(*mixture(c))),
    "truncated Poisson, add/remove": Row(truncated),
    "truncated Poisson, replace": Row(truncated, "replace"),
    "discrete Laplace": Row(lambda c: hs.DiscreteLaplace(1.0 / c.noise)),
    "Poisson Composed(Gauss, 2 Laplace)": Row(poisson(composed)),
    "RandomAllocation": Row(allocation),
    "RandomAllocation, replace": Row(allocation, "replace"),
}


class Measured(NamedTuple):
    """What one bracket of a cell is like."""

    width: float
    pairs: float
    seconds: float
    upper: float


def measure(row: Row, cell: Cell) -> Measured:
    accountant = hs.Accountant(row.adjacency).compose(row.ours(cell), cell.steps)
    started = time.process_time()
    bracket = accountant.epsilon_bracket(cell.delta)
    seconds = time.process_time() - started
    pairs = accountant.explain(delta=cell.delta).shares.get("pairs", 0.0)
    width = (bracket.upper - bracket.lower) / bracket.upper if bracket.upper > bracket.lower else 0.0
    return Measured(math.inf if math.isnan(width) else max(width - pairs, 0.0), pairs, seconds, bracket.upper)


def line_of(name: str, result: dict[str, Any]) -> str:
    parts = [f"{key} {result[key][0]:.1e} / {result[key][1]:.1e}" for key in ("width", "pairs")]
    parts.append(f"ms {result['seconds'][0] * 1e3:.2f} / {result['seconds'][1] * 1e3:.1f}")
    return f"{name:36s} " + " | ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=50)
    parser.add_argument("--rows", default="", help="only rows whose name contains this text")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", hs.ImplausibleSettingWarning)
    results: dict[str, Any] = {}
    for number, (name, row) in enumerate(ROWS.items()):
        if options.rows not in name:
            continue
        asked = list(cells(options.cells, seed=number))
        found = [measure(row, cell) for cell in asked]
        columns = {key: [getattr(one, key) for one in found] for key in ("width", "pairs", "seconds")}
        results[name] = {key: (float(np.median(values)), max(values)) for key, values in columns.items()}
        results[name]["widest"] = str(asked[int(np.argmax(columns["width"]))])
        sys.stdout.write(line_of(name, results[name]) + "\n")
        sys.stdout.flush()
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

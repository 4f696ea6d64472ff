"""Map how wide and how slow epsilon's brackets are: python bench/brackets.py [--cells N] [--rows TEXT] [--json FILE] [--peer].

Each row is a mechanism under one adjacency. Its cells are random and ordinary: noise multipliers from 0.3 to 20, sampling rates
from 1e-5 to 0.3, 1 to 100,000 steps and deltas from 1e-12 to 1e-3, all log-uniform. A line says

- width: the numerical part of (upper - lower)/upper, median and largest;
- pairs: the part that lies between the dominating pair and what is attained, which no computing narrows;
- ms: processor time of one `epsilon_bracket`, asked cold.

With `--peer`, dp_accounting's accountant answers the first `PEER_CELLS` cells of each mechanism that it has, with its default interval. The line then
says by how much its epsilon exceeds ours, and its time over ours, both as medians. Where ours is below its bound, as it always should be, the excess is positive.
"""

from __future__ import annotations

import argparse
import importlib.util
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

PEER_CELLS = 5


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
    """A mechanism, its adjacency, and the peer's event if it has one; both of a cell."""

    ours: Callable[[Cell], hs.mechanisms.Mechanism]
    adjacency: Adjacency = "add_or_remove"
    peer: Callable[[Any, Cell], Any] | None = None  # given the module dp_event
    by_renyi: bool = False  # whether the peer's accountant is its RdpAccountant


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


def gaussian(c: Cell) -> hs.Gaussian:
    return hs.Gaussian(c.noise)


def laplace(c: Cell) -> hs.Laplace:
    return hs.Laplace(c.noise)


def discrete_gaussian(c: Cell) -> hs.DiscreteGaussian:
    return hs.DiscreteGaussian(c.noise, 1 + c.size % 3)


def composed(c: Cell) -> hs.Composed:
    return hs.Composed([(hs.Gaussian(c.noise), 1), (hs.Laplace(2 * c.noise), 2)])


def sampled_gaussian_event(e: Any, c: Cell) -> Any:
    return e.PoissonSampledDpEvent(c.rate, e.GaussianDpEvent(c.noise))


def fixed_size_event(e: Any, c: Cell) -> Any:  # its noise is over the sensitivity to replacing, twice ours
    return e.SampledWithoutReplacementDpEvent(c.size, c.batch, e.GaussianDpEvent(c.noise / 2))


def truncated_event(e: Any, c: Cell) -> Any:
    return e.TruncatedSubsampledGaussianDpEvent(c.size, c.rate, largest_batch(c), c.noise)


ROWS: dict[str, Row] = {
    "Poisson Gauss, add/remove": Row(poisson(gaussian), peer=sampled_gaussian_event),
    "Poisson Gauss, replace": Row(poisson(gaussian), "replace", sampled_gaussian_event),
    "fixed size Gauss, add/remove": Row(fixed(hs.Gaussian, replacement=False)),
    "fixed size Gauss, replace": Row(fixed(hs.Gaussian, replacement=False), "replace", fixed_size_event, by_renyi=True),
    "with replacement Gauss, add/remove": Row(fixed(hs.Gaussian, replacement=True)),
    "with replacement Gauss, replace": Row(fixed(hs.Gaussian, replacement=True), "replace"),
    "Laplace": Row(laplace, peer=lambda e, c: e.LaplaceDpEvent(c.noise)),
    "Poisson Laplace, add/remove": Row(
        poisson(laplace), peer=lambda e, c: e.PoissonSampledDpEvent(c.rate, e.LaplaceDpEvent(c.noise))
    ),
    "Poisson Laplace, replace": Row(poisson(laplace), "replace"),
    "fixed size Laplace, replace": Row(fixed(hs.Laplace, replacement=False), "replace"),
    "discrete Gauss": Row(discrete_gaussian),
    "Poisson discrete Gauss, add/remove": Row(poisson(discrete_gaussian)),
    "Poisson discrete Gauss, replace": Row(poisson(discrete_gaussian), "replace"),
    "mixture of Gaussians": Row(
        lambda c: hs.MixtureOfGaussians(*mixture(c)), peer=lambda e, c: e.MixtureOfGaussiansDpEvent(*mixture(c))
    ),
    "truncated Poisson, add/remove": Row(truncated, peer=truncated_event),
    "truncated Poisson, replace": Row(truncated, "replace"),
    "discrete Laplace": Row(
        lambda c: hs.DiscreteLaplace(1.0 / c.noise), peer=lambda e, c: e.DiscreteLaplaceDpEvent(1.0 / c.noise, 1)
    ),
    "Poisson Composed(Gauss, 2 Laplace)": Row(poisson(composed)),
    "RandomAllocation": Row(lambda c: hs.RandomAllocation(gaussian(c), max(2, round(1.0 / c.rate)))),
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


def ask_peer(row: Row, cell: Cell) -> tuple[float, float]:
    """Return the peer's epsilon and its processor time."""
    from dp_accounting import NeighboringRelation, dp_event, pld, rdp  # noqa: PLC0415  (optional)

    neighbours = NeighboringRelation[{"replace": "REPLACE_ONE"}.get(row.adjacency, "ADD_OR_REMOVE_ONE")]
    assert row.peer is not None
    kind = rdp.RdpAccountant if row.by_renyi else pld.PLDAccountant
    started = time.process_time()
    accountant = kind(neighboring_relation=neighbours)
    epsilon = accountant.compose(row.peer(dp_event, cell), cell.steps).get_epsilon(cell.delta)
    return epsilon, time.process_time() - started


def peer_part(row: Row, asked: list[Cell], ours: list[Measured]) -> dict[str, float]:
    """Compare with the peer: medians of its excess and of the ratio of times."""
    found = [(ask_peer(row, cell), mine) for cell, mine in zip(asked, ours, strict=True)]
    return {
        "excess": float(np.median([epsilon / mine.upper - 1.0 for (epsilon, _), mine in found if mine.upper > 0.0])),
        "times": float(np.median([seconds / mine.seconds for (_, seconds), mine in found])),
    }


def line_of(name: str, result: dict[str, Any]) -> str:
    parts = [f"{key} {result[key][0]:.1e} / {result[key][1]:.1e}" for key in ("width", "pairs")]
    parts.append(f"ms {result['seconds'][0] * 1e3:.2f} / {result['seconds'][1] * 1e3:.1f}")
    if "excess" in result:
        parts.append(f"peer +{result['excess']:.1e}, {result['times']:.0f} times as long")
    return f"{name:36s} " + " | ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=50)
    parser.add_argument("--rows", default="", help="only rows whose name contains this text")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peer", action="store_true")
    options = parser.parse_args()
    if options.peer and not importlib.util.find_spec("dp_accounting"):
        parser.error("--peer needs dp-accounting: pip install '.[peers]'")
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
        if options.peer and row.peer:
            results[name].update(peer_part(row, asked[:PEER_CELLS], found[:PEER_CELLS]))
        sys.stdout.write(line_of(name, results[name]) + "\n")
        sys.stdout.flush()
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Map how wide and how slow epsilon's brackets are: python bench/brackets.py [--cells N].

Each row is a mechanism under one adjacency. Its cells are random and ordinary: noise multipliers from 0.3 to 20, sampling rates
from 1e-5 to 0.3, 1 to 100,000 steps and deltas from 1e-12 to 1e-3, all log-uniform. A line says

- width: the numerical part of (upper - lower)/upper, median and largest;
- pairs: the part that lies between the dominating pair and what is attained, which no computing narrows;
- ms: processor time of one `epsilon_bracket`, asked cold.
"""

import argparse
import math
import sys
import time
import warnings
from typing import NamedTuple

import numpy as np

import hockeystick as hs


class Cell(NamedTuple):
    """Parameters of a question. Batches are drawn of `size` records, `batch` of them on average."""

    noise: float
    rate: float
    steps: int
    delta: float
    size: int
    batch: int
    spare: float  # by how many standard deviations a truncated batch exceeds its mean

    @property
    def largest_batch(self):
        """Return the size at which batches are truncated."""
        return min(self.size, math.ceil(self.batch + self.spare * math.sqrt(self.batch)))


def cells(count, seed):
    rng = np.random.default_rng(seed)

    def between(low, high):
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    for _ in range(count):
        rate = between(1e-5, 0.3)
        size = math.ceil(between(2.0, 200.0) / rate)
        noise, steps, delta = between(0.3, 20.0), int(between(1.0, 1e5)), between(1e-12, 1e-3)
        yield Cell(noise, rate, steps, delta, size, max(1, round(rate * size)), rng.uniform(1.0, 5.0))


SAMPLED = {  # what is asked under both adjacencies
    "Poisson Gauss": lambda c: hs.PoissonSampled(hs.Gaussian(c.noise), c.rate),
    "fixed size Gauss": lambda c: hs.FixedSizeSampled(hs.Gaussian(c.noise), c.size, c.batch, replacement=False),
    "with replacement Gauss": lambda c: hs.FixedSizeSampled(hs.Gaussian(c.noise), c.size, c.batch, replacement=True),
    "Poisson Laplace": lambda c: hs.PoissonSampled(hs.Laplace(c.noise), c.rate),
    "Poisson discrete Gauss": lambda c: hs.PoissonSampled(hs.DiscreteGaussian(c.noise, 1 + c.size % 3), c.rate),
    "truncated Poisson": lambda c: hs.TruncatedPoissonSampled(hs.Gaussian(c.noise), c.size, c.rate, c.largest_batch),
    "RandomAllocation": lambda c: hs.RandomAllocation(hs.Gaussian(c.noise), max(2, round(1.0 / c.rate))),
}
ROWS = {
    **{f"{name}, add/remove": (made, "add_or_remove") for name, made in SAMPLED.items()},
    **{f"{name}, replace": (made, "replace") for name, made in SAMPLED.items()},
    "fixed size Laplace, replace": (
        lambda c: hs.FixedSizeSampled(hs.Laplace(c.noise), c.size, c.batch, replacement=False),
        "replace",
    ),
    "Laplace": (lambda c: hs.Laplace(c.noise), "add_or_remove"),
    "discrete Gauss": (lambda c: hs.DiscreteGaussian(c.noise, 1 + c.size % 3), "add_or_remove"),
    "discrete Laplace": (lambda c: hs.DiscreteLaplace(1.0 / c.noise), "add_or_remove"),
    "mixture of Gaussians": (lambda c: hs.MixtureOfGaussians.of_group(c.noise, 2, c.rate), "add_or_remove"),
    "Poisson Composed(Gauss, 2 Laplace)": (
        lambda c: hs.PoissonSampled(hs.Composed([(hs.Gaussian(c.noise), 1), (hs.Laplace(2 * c.noise), 2)]), c.rate),
        "add_or_remove",
    ),
}


class Measured(NamedTuple):
    """What one bracket of a cell is like."""

    width: float
    pairs: float
    seconds: float
    upper: float


def measure(name, cell):
    made, adjacency = ROWS[name]
    accountant = hs.Accountant(adjacency).compose(made(cell), cell.steps)
    started = time.process_time()
    bracket = accountant.epsilon_bracket(cell.delta)
    seconds = time.process_time() - started
    pairs = accountant.explain(delta=cell.delta).shares.get("pairs", 0.0)
    width = (bracket.upper - bracket.lower) / bracket.upper if bracket.upper > bracket.lower else 0.0
    return Measured(math.inf if math.isnan(width) else max(width - pairs, 0.0), pairs, seconds, bracket.upper)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=50)
    options = parser.parse_args()
    warnings.simplefilter("ignore", hs.ImplausibleSettingWarning)
    for number, name in enumerate(ROWS):
        found = [measure(name, cell) for cell in cells(options.cells, seed=number)]
        width, pairs, seconds = ([getattr(one, key) for one in found] for key in ("width", "pairs", "seconds"))
        parts = [
            f"{key} {np.median(column):.1e} / {max(column):.1e}" for key, column in (("width", width), ("pairs", pairs))
        ]
        parts.append(f"ms {np.median(seconds) * 1e3:.2f} / {max(seconds) * 1e3:.1f}")
        sys.stdout.write(f"{name:36s} {' | '.join(parts)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

"""Data whose shuffled batches leak much: what an epoch's outputs tell of a record, between certified ends.

All other records contribute -1, the one that differs 1 or nothing. With r = 1/noise_multiplier, less what is known, the T outputs
of an epoch are normal with the means 2r e_t against r e_t, t the record's batch, uniform and unseen (Chua et al. 2024). Every function of
the outputs is dominated by them, so that any finite number of its values has a pair for a lower end. Proofs and errors:
docs/accounting/allocation.md, Shuffled batches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

import hockeystick._core as core
from hockeystick._checks import Array
from hockeystick._numeric.rounding import LARGEST_BELOW_ONE, UNIT
from hockeystick.kernels import log_q, q_inv
from hockeystick.mechanisms.base import Adjacency, Mechanism

__all__ = ["LargestOutput", "SumOfOutputs"]

REACH = 37.0  # of normal noise in deviations: less than 1e-299 lies beyond
LEAST_MASS = 1e-280
MASS_ERROR = 1e-10  # far more than that of a difference of two tails

CELLS = 4000  # of the largest output
OUTPUTS = 20_000  # cells of one output, below the cap
LOWEST = -9.0  # an output below is in the first of them
CAPPED = 1e-4  # the probability of an output above the cap
CAPPED_CELLS = 1000  # of the largest output, above the cap
SUMS = 2**16  # values of the sum
STEPS_A_DEVIATION = 256.0  # of the sum
GROUPS = 2000  # of sums of similar likelihood ratios

TRANSFORM = 8.0 * UNIT * math.log2(SUMS)  # of a Fourier transform, over the sum of its terms' sizes
# Of all masses of one output together: an exponential of at most 100 errs by 100 units, and a sum of cells in turn by one each.
INPUTS = 1e-13 + OUTPUTS * UNIT
NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)  # exact to 1e-15 on cells of a width below 0.005


@dataclass(frozen=True)
class LargestOutput(Mechanism):
    """The largest output of an epoch, in cells."""

    noise_multiplier: float
    num_batches: int

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        del adjacency
        r = 1.0 / self.noise_multiplier
        at = np.linspace(r - REACH, 2.0 * r + REACH, CELLS + 1)
        return _pair_within(*_ends(_largest(at, r, self.num_batches)))


@dataclass(frozen=True)
class SumOfOutputs(Mechanism):
    """The sum of a function of an epoch's outputs, in whole steps; or, where an output exceeds a cap, the largest, in cells."""

    noise_multiplier: float
    num_batches: int

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        del adjacency
        return _pair_of_sums(1.0 / self.noise_multiplier, self.num_batches)


@lru_cache(maxsize=16)
def _pair_of_sums(r: float, num_batches: int) -> core.Pair:
    cap = float(q_inv(CAPPED / num_batches))
    above = np.linspace(cap, cap + 2.0 * r + REACH, CAPPED_CELLS + 1)
    low, high = _ends(_largest(above, r, num_batches))
    sums, error = _sums(r, num_batches, cap)
    groups, sizes = _groups(sums, error)
    return _pair_within(
        np.hstack([np.maximum(groups - sizes * error, 0.0), low]), np.hstack([groups + sizes * error, high])
    )


def _pair_within(low: Array, high: Array) -> core.Pair:
    """Return the pair for lower ends of two laws, the rows, whose masses lie between these."""
    return core.discrete_pairs(low[0].tolist(), high[1].tolist(), low[1].tolist(), high[0].tolist())


def _largest(at: Array, r: float, num_batches: int) -> Array:
    """Return the masses of the largest output between points, on either data set; each in its smaller tail."""
    rows = []
    for moved in (2.0 * r, r):
        log_below = log_q(moved - at) + (num_batches - 1) * np.asarray(log_q(-at))
        below, above = np.diff(np.exp(log_below)), np.diff(np.expm1(log_below))
        rows.append(np.maximum(np.where(log_below[1:] < -math.log(2.0), below, above), 0.0))
    return np.array(rows)


def _ends(masses: Array) -> tuple[Array, Array]:
    """Return what such masses are at least and at most."""
    low = np.where(masses > LEAST_MASS, masses * (1.0 - MASS_ERROR), 0.0)
    return low, np.maximum(masses * (1.0 + MASS_ERROR), LEAST_MASS)


def _output(edges: Array, mean: float) -> Array:
    """Return the masses of a normal variable in cells, of which the first has no lower end."""
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    x = middle + half * NODES[:, np.newaxis] - mean
    masses = half * (WEIGHTS @ np.exp(-0.5 * x * x)) / math.sqrt(2.0 * math.pi)
    return np.concatenate([[math.exp(log_q(mean - edges[0]))], masses])


def _sums(r: float, num_batches: int, cap: float) -> tuple[Array, float]:
    """Return the masses of the sum on either data set where no output exceeds the cap, and the error of each mass.

    The function is the likelihood ratio of one output, to first order that of all. Its values are rounded to whole steps, and
    the sum is taken modulo their number: what is seen is a function of the outputs all the same.
    """
    edges = np.linspace(LOWEST, cap, OUTPUTS + 1)
    x = np.concatenate([[LOWEST], 0.5 * (edges[1:] + edges[:-1])])
    value = np.exp(2.0 * r * (x - r)) - np.exp(r * (x - 0.5 * r))
    masses = [_output(edges, mean) for mean in (0.0, r, 2.0 * r)]
    mean = masses[0] @ value
    deviation = math.sqrt(num_batches * (masses[0] @ (value - mean) ** 2))
    step = max(deviation / STEPS_A_DEVIATION, 4.0 * np.abs(value).max() / SUMS)
    steps = np.rint(value / step).astype(np.int64) % SUMS
    still, less, more = (np.fft.rfft(np.bincount(steps, law, SUMS)) for law in masses)
    others = _power(still, num_batches - 1)
    each = TRANSFORM + INPUTS
    errors = num_batches * (each + 8.0 * UNIT) * (np.abs(still) + each) ** max(num_batches - 2, 0)
    errors += TRANSFORM * np.abs(others)
    return np.array([np.fft.irfft(moved * others, SUMS) for moved in (more, less)]), 2.0 * float(errors.sum()) / SUMS


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Return a power by squaring, whose factors err by three roundings each."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        base, exponent = base * base, exponent >> 1
    return result


def _groups(sums: Array, error: float) -> tuple[Array, Array]:
    """Merge sums whose likelihood ratios are close, and all whose masses are mostly error; return the sizes of groups too."""
    p, q = np.maximum(sums, error)
    known = sums.max(axis=0) > 8.0 * error
    order = np.argsort(np.where(known, np.log(p) - np.log(q), -np.inf), kind="stable")
    both = np.cumsum(0.5 * (p + q)[order])
    share = both / both[-1]
    odds = np.log(share / (1.0 - np.minimum(share, LARGEST_BELOW_ONE)))  # even groups of these resolve either tail
    rank = np.floor((odds - odds[0]) / (odds[-1] - odds[0]) * GROUPS)
    unknown = int(np.count_nonzero(~known))
    starts = np.unique(np.concatenate([[0, unknown], np.flatnonzero(np.diff(rank)) + 1]))
    starts = starts[(starts == 0) | ((starts >= unknown) & (starts < SUMS))]
    return np.add.reduceat(sums[:, order], starts, axis=1), np.diff(np.append(starts, SUMS))

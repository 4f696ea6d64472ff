"""Records that are used at random times: the bounds that need the composition engines, beside those of the core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array, Grid
from hockeystick._hidden_states.best import METHODS
from hockeystick._numeric.rounding import DOWN
from hockeystick.accounting.accountant import Accountant
from hockeystick.mechanisms.base import Adjacency, Mechanism
from hockeystick.mechanisms.noise import Gaussian

__all__ = ["sampled_bounds"]


@dataclass(frozen=True)
class _Sampled(Mechanism):
    """Gaussian noise on a record that is replaced and used with a probability, which need not be a ratio of counts."""

    noise_multiplier: float
    sampling_rate: float

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return core.fixed_size_sampled(Gaussian(self.noise_multiplier)._pair(adjacency), self.sampling_rate)


def sampled_bounds(cells: list[Array], grid: Grid, *, convex: bool = True) -> Array:
    """Return all bounds of cells (eps, 1, rounds, learning_rate, ..., diameter, sampling_rate), one method a row."""
    values = core.sampled_bounds(cells, convex, grid.threads)
    plain, sampled = METHODS.index("plain"), METHODS.index("sampled")
    splits = core.sampled_splits(cells, convex)
    for where, (alone, last, multiplier, mu) in zip(np.ndindex(cells[0].shape), splits, strict=True):
        eps, rounds, rate = (float(cells[k][where]) for k in (0, 2, 9))
        if np.isnan(alone):  # outside the domain
            continue
        if rate == 0:  # never used
            values[(plain, *where)] = 0.0
            continue
        every = Accountant(adjacency="replace").compose(_Sampled(alone, rate), int(rounds)).delta(eps)
        values[(plain, *where)] = values[(sampled, *where)] = every
        if last > 0:
            split = Accountant(adjacency="replace").compose(_Sampled(multiplier, rate), int(last))
            split.compose(Gaussian(2.0 / mu * DOWN))
            values[(sampled, *where)] = min(every, split.delta(eps))
    return values

"""The smallest of several certified bounds, which one it is, and those of records used at random that need the composition engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array, Checks
from hockeystick._numeric.notebook import table
from hockeystick._numeric.printing import format_upper
from hockeystick._numeric.rounding import DOWN
from hockeystick.accounting.accountant import Accountant
from hockeystick.mechanisms.base import Adjacency, Mechanism
from hockeystick.mechanisms.noise import Gaussian

# Bounds that agree in exact arithmetic differ by rounding; the simpler one is named.
TIE = 1e-9

METHODS: tuple[str, ...] = tuple(core.hidden_methods())


class Best(NamedTuple):
    """The smallest of all certified bounds that apply.

    Attributes
    ----------
    delta : float or ndarray
        The smallest bound, up to a relative 1e-9.
    method : str or ndarray of str
        Which bound it is: the first in the order of `bounds` of those that agree to 1e-9.
    bounds : dict
        All bounds by their names, each of the shape of `delta`.

    Examples
    --------
    >>> from hockeystick import last_iterate
    >>> best = last_iterate.best(
    ...     1.0, index=20, num_records=22, learning_rate=0.5, noise_std=2.0, lipschitz=1.0, smoothness=0.5, diameter=2.0
    ... )
    >>> best.method
    'nonlinear'
    """

    delta: Any
    method: Any
    bounds: dict[str, Any]

    def __repr__(self) -> str:
        """Return the bound and its name; of arrays their shape, since all bounds of all cells fill pages."""
        if np.ndim(self.delta):
            return f"<Best: delta of shape {np.shape(self.delta)}; bounds {', '.join(self.bounds)}>"
        return f"<Best: delta at most {format_upper(self.delta)}, {self.method}; of {', '.join(self.bounds)}>"

    def _repr_html_(self) -> str:
        """Return all bounds as a table, rounded up, for a notebook."""
        if np.ndim(self.delta):
            return table(f"Best, of shape {np.shape(self.delta)}", [("bounds", ", ".join(self.bounds))])
        return table(f"Best: {self.method}", [(name, format_upper(value)) for name, value in self.bounds.items()])


def smallest(values: Array, grid: Checks) -> Best:
    """Return the best of what the core found, one method along the first axis; NaN where a method does not apply."""
    applicable = [name for name, row in zip(METHODS, values, strict=True) if name == "plain" or not np.isnan(row).all()]
    rows = np.stack([values[METHODS.index(name)] for name in applicable])
    known = np.where(np.isnan(rows), np.inf, rows)
    with np.errstate(all="ignore"):  # subnormal bounds
        winner = np.argmax(known <= known.min(axis=0) * (1 + TIE), axis=0)
    delta = np.take_along_axis(rows, winner[np.newaxis], axis=0)[0]
    method = np.where(np.isnan(delta), "", np.array(applicable)[winner])
    bounds = {name: row[()] for name, row in zip(applicable, rows, strict=True)}
    return Best(grid.finish(delta), str(method) if method.ndim == 0 else method, bounds)


@dataclass(frozen=True)
class _Sampled(Mechanism):
    """Gaussian noise on a record that is replaced and used with a probability, which need not be a ratio of counts."""

    noise_multiplier: float
    sampling_rate: float

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return core.fixed_size_sampled(Gaussian(self.noise_multiplier)._pair(adjacency), self.sampling_rate)


def sampled_bounds(cells: list[Array], grid: Checks, *, convex: bool = True, curves: bool = True) -> Array:
    """Return all bounds of cells (eps, 1, rounds, learning_rate, ..., diameter, sampling_rate), one method a row; NaN for slow ones without `curves`."""
    values = core.sampled_bounds(cells, convex, curves, grid.threads)
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

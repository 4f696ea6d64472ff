"""The smallest of several certified bounds, and which one it is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array, Grid
from hockeystick._numeric.notebook import table
from hockeystick._numeric.printing import format_upper

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


def smallest(values: Array, grid: Grid) -> Best:
    """Return the best of what the core found, one method along the first axis; NaN where a method does not apply."""
    applicable = [name for name, row in zip(METHODS, values, strict=True) if name == "plain" or not np.isnan(row).all()]
    rows = np.stack([values[METHODS.index(name)] for name in applicable])
    known = np.where(np.isnan(rows), np.inf, rows)
    winner = np.argmax(known <= known.min(axis=0) * (1 + TIE), axis=0)
    delta = np.take_along_axis(rows, winner[np.newaxis], axis=0)[0]
    method = np.where(np.isnan(delta), "", np.array(applicable)[winner])
    bounds = {name: row[()] for name, row in zip(applicable, rows, strict=True)}
    return Best(grid.finish(delta), str(method) if method.ndim == 0 else method, bounds)

"""What a record spends by what it contributes to a sum with Gaussian noise: its squared distance, or its Renyi divergence."""

from __future__ import annotations

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.rounding import UP
from hockeystick.accounting import renyi_divergence as renyi
from hockeystick.mechanisms import Gaussian, PoissonSampled

STEPS = 128  # points of the table to a factor of two of the distance: a cost is overstated by 1 % at most where it is quadratic
LOWEST, HIGHEST = (
    -40,
    20,
)  # binary logarithms of the distances of the table: smaller ones are raised, larger ones cost infinitely much
SMALLEST = 1e-150  # of the distances, whose squares are normal doubles


def squares(distances: Array) -> Array:
    """Return the squares, rounded up; that of 0 is 0."""
    with np.errstate(over="ignore"):
        return np.where(distances > 0.0, np.nextafter(np.maximum(distances, SMALLEST) ** 2, np.inf), 0.0)


class SampledCosts:
    """Renyi divergences of one order of Gaussian noise on Poisson samples, of records at many distances.

    The divergence does not fall as the distance grows: less of a distance is more of a noise, which can be added afterwards. So a distance is
    raised to the next of a table, which is computed where it is needed, and kept.
    """

    def __init__(self, order: float) -> None:
        self.order = order
        self._tables: dict[float, Array] = {}
        self._points = np.exp2(np.arange((HIGHEST - LOWEST) * STEPS + 1) / STEPS + LOWEST)

    def of(self, distances: Array, sampling_rate: float) -> Array:
        """Return an upper bound of the divergence of a sample of this rate, in both directions, for each distance."""
        table = self._tables.setdefault(sampling_rate, np.full(self._points.size + 1, np.nan))
        table[-1] = np.inf  # beyond the last point
        at = np.searchsorted(self._points, distances)  # the first point that is not below
        needed = np.flatnonzero(np.bincount(at[distances > 0.0], minlength=table.size) > 0)
        for index in needed[np.isnan(table[needed])]:
            step = PoissonSampled(Gaussian(1.0 / (self._points[index] * UP)), sampling_rate)
            table[index] = renyi.of_ledger({step: 1}, "add_or_remove", self.order)
        return np.where(distances > 0.0, table[at], 0.0)

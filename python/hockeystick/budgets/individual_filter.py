"""A budget for each record, spent by what the record itself contributes: individual accounting.

A round releases the sum of vectors, one of each record that is admitted, with Gaussian noise. Take two data sets, one with record i and
one without, and what was released before, the same for both. The vector of record j, its norm, what it has spent and whether it is admitted depend on
record j and on the releases before alone. So all other records do the same in both data sets, and the laws of the round's release differ by the
vector of record i, or not at all if it is not admitted: on every path record i spends what the round leaks about it, and its filter (filters.py)
bounds the sum. As each record has such a filter with the same budget, the releases have the guarantee of one: GDP at mu, or a Renyi divergence at one order.

Samples: each admitted record is drawn with probability q, by a coin of its own that is fresh and secret. Given the coins of the others in
this round, which do not depend on record i, the release has the law (1 - q) N(u, s^2 I) + q N(u + g, s^2 I) with record i, and N(u, s^2 I) without, so
that its divergence is that of one dimension at the distance |g|/s; divergences are jointly quasi-convex, so that the mixture over the others' coins has no
more. That |g| is known must not depend on the coin: a filter that charges only who was drawn would tell who was.

Replacing record i by another: both have a filter. With distances a_t and b_t, the release moves by at most a_t + b_t, and by Minkowski's inequality the
root of the sum of (a_t + b_t)^2 is at most that of a_t^2 plus that of b_t^2: each record spends twice its distance.

Feldman and Zrnic 2021 (arXiv 2008.11193) for Renyi divergences; Koskela, Tobaben and Honkela 2023 (arXiv 2209.15596) for Gaussian differential privacy.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick._checks import STRICT, Array, count_scalar, positive_scalar, probability_scalar, vector
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import UP
from hockeystick.accounting import renyi_divergence as renyi
from hockeystick.accounting.locking import ThreadSafe
from hockeystick.budgets.filters import GaussianFilter, RenyiFilter
from hockeystick.budgets.spending import SLACK
from hockeystick.mechanisms import Gaussian, PoissonSampled
from hockeystick.mechanisms.base import SENSITIVITY

__all__ = ["IndividualFilter"]

STEPS = 128  # points of the table to a factor of two of the distance: a cost is overstated by 1 % at most where it is quadratic
# Binary logarithms of the table's distances: smaller ones are raised, larger ones cost infinity.
LOWEST, HIGHEST = -40, 20
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


class Spent(NamedTuple):
    """What each record has spent; never changed in place."""

    sums: Array
    rest: Array  # what rounding took from the sums


class IndividualFilter(ThreadSafe[Spent]):
    """A budget for each record, spent by the norm of what the record contributes to noisy sums.

    Parameters
    ----------
    budget : GaussianFilter or RenyiFilter
        What every record may spend, and the guarantee of all releases; nothing is spent of it yet. Samples need a `RenyiFilter`.
    num_records : int
        Number of records, in [1, 2^53].
    spent : array_like, optional
        What each record has spent before, as `spent` returned it; by default nothing.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or something is spent of `budget`.
    TypeError
        If `budget` is no such filter.

    Notes
    -----
    Feldman and Zrnic 2021; Koskela, Tobaben and Honkela 2023; the proof is in budgets/individual_filter.py. A record that contributes less than the clip
    norm, or nothing, stays longer; an accountant charges everyone for the clip norm.

    It assumes that a record's vector, and so its norm, depends on the record and on earlier releases alone (no batch statistics); that
    `admit` comes before the release, and only who is admitted contributes; and that **nothing but the noisy sums is
    released**: who is admitted, how many are, and what anyone has spent depend on the data. So a mean divides by a number that is fixed, and the
    training does not end because nobody is left. Of the settings, noise and sampling rate may be chosen by what was released.

    Examples
    --------
    >>> import hockeystick as hs
    >>> budget = hs.budgets.IndividualFilter(hs.budgets.GaussianFilter(1.0), num_records=3)
    >>> for _ in range(5):
    ...     admitted = budget.admit([1.0, 0.5, 0.0], noise_std=2.0)
    ...     print(admitted)  # then release the sum over them, with this noise
    [ True  True  True]
    [ True  True  True]
    [ True  True  True]
    [ True  True  True]
    [False  True  True]
    """

    def __init__(
        self, budget: GaussianFilter | RenyiFilter, num_records: int, *, spent: ArrayLike | None = None
    ) -> None:
        if not isinstance(budget, (GaussianFilter, RenyiFilter)):
            raise TypeError(f"budget must be a GaussianFilter or a RenyiFilter, not {shown(budget)}")
        if len(budget):
            raise ValueError(f"budget must have nothing spent, not be {shown(budget)}")
        self._budget = type(budget).from_state_dict(budget.state_dict())
        num_records = count_scalar("num_records", num_records)
        before = np.zeros(num_records) if spent is None else self._of_records("spent", spent, num_records).copy()
        super().__init__(Spent(before, np.zeros(num_records)))
        amount = budget.mu * budget.mu if isinstance(budget, GaussianFilter) else budget.budget
        self._limit = math.nextafter(amount * (1.0 + SLACK), 0.0)  # the guarantee of the budget includes the slack
        self._sampled = SampledCosts(budget.order) if isinstance(budget, RenyiFilter) else None

    def __repr__(self) -> str:
        """Return the budget and the number of records; what they have spent is not shown."""
        return f"<IndividualFilter: {len(self)} records, each with {self._budget!r}>"

    def __len__(self) -> int:
        """Return the number of records."""
        return int(self._state.sums.size)

    @property
    def budget(self) -> GaussianFilter | RenyiFilter:
        """What every record may spend, as a filter of which nothing is spent."""
        return self._budget

    @property
    def spent(self) -> Array:
        """What each record has spent, rounded up: sums of squared distances, or nats. It depends on the data: do not release it."""
        return self._rounded_up(*self._state)

    def admit(self, norms: ArrayLike, noise_std: float, *, sampling_rate: float = 1.0) -> NDArray[np.bool_]:
        """Say which records may contribute to the next release, and charge those before it.

        Parameters
        ----------
        norms : array_like
            One for each record: the L2 norm of what it would contribute, after clipping, or more; non-negative. Of every record,
            whether or not it is drawn.
        noise_std : float
            Standard deviation of the noise in every coordinate of the sum, positive, in the unit of the norms.
        sampling_rate : float
            In [0, 1]: the probability with which each record that is admitted is drawn into the sum, for itself, afresh and in secret.

        Returns
        -------
        ndarray of bool
            True for records that are charged and may contribute (in a sample, be drawn). The others must be left out of this release;
            they may be admitted later, with a smaller norm. It depends on the data: do not release it.

        Raises
        ------
        ValueError
            If an argument is outside its domain, or samples are asked of a `GaussianFilter` or where a record is replaced.
        """
        given = self._of_records("norms", norms, len(self))
        noise_std = positive_scalar("noise_std", noise_std)
        rate = probability_scalar("sampling_rate", sampling_rate)
        costs = self._costs(given, noise_std, rate)
        admitted: NDArray[np.bool_]

        def charged(before: Spent) -> Spent:
            nonlocal admitted
            total = before.sums + costs
            with np.errstate(invalid="ignore"):  # of what is infinite, which is not admitted
                back = total - before.sums
                lost = (before.sums - (total - back)) + (costs - back)  # exactly: Knuth's two-sum
                rest = np.where(lost == 0.0, before.rest, np.nextafter(before.rest + lost, np.inf))
                admitted = (costs == 0.0) | (self._rounded_up(total, rest) <= self._limit)
            return Spent(np.where(admitted, total, before.sums), np.where(admitted, rest, before.rest))

        self._change(charged)
        return admitted

    def epsilon(self, delta: float) -> float:
        """Return the epsilon that holds at `delta` for every record and all releases, made or not yet.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float
            That of the budget; it does not depend on what was spent.

        Raises
        ------
        ValueError
            If delta is outside its domain.
        """
        return self._budget.epsilon(delta)

    def _costs(self, norms: Array, noise_std: float, rate: float) -> Array:
        """Return what each record would spend, rounded up."""
        if rate == 0.0:
            return np.zeros(len(self))
        adjacency = self._budget.adjacency
        with np.errstate(over="ignore"):
            distances = np.where(norms > 0.0, np.nextafter(norms / noise_std, np.inf), 0.0) * SENSITIVITY[adjacency]
        if rate == 1.0:
            return squares(distances) * (1.0 if self._sampled is None else 0.5 * self._sampled.order * UP)
        if self._sampled is None or adjacency == "replace":
            raise ValueError(
                f"sampling_rate must be 1 with {shown(self._budget)}, not {rate:g}: samples need a RenyiFilter with adjacency='add_or_remove'"
            )
        return self._sampled.of(distances, rate)

    @staticmethod
    def _rounded_up(total: Array, rest: Array) -> Array:
        return np.where(rest == 0.0, total, np.nextafter(total + rest, np.inf))

    @staticmethod
    def _of_records(name: str, values: ArrayLike, num_records: int) -> Array:
        """Return checked values, one for each record."""
        checked = vector(name, STRICT.non_negative_or_infinite(name, values))
        if checked.size != num_records:
            raise ValueError(f"{name} must be one for each record ({num_records}), not {checked.size}")
        return checked

"""dp_accounting: our accountant behind its `PrivacyAccountant`, and its privacy loss distributions to and fro.

.. code-block:: python

    accountant = HockeyStickAccountant()  # was: dp_accounting.pld.PLDAccountant()
"""

from __future__ import annotations

import copy
import math
import os
import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

import hockeystick._core as core
from hockeystick import risk
from hockeystick._checks import OPEN_PROBABILITY, STRICT, Array, count_scalar, positive_scalar
from hockeystick._checks.shown import shown
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.composition import Composition
from hockeystick.accounting.privacy_curve import CHUNK, false_negative_bounds, refine, true_positive_bounds
from hockeystick.interop.events import NON_PRIVATE, RELATIONS, UnsupportedEvent, adjacency_of, steps_of
from hockeystick.mechanisms import Discrete, DiscretePairs
from hockeystick.mechanisms.base import highest_loss, upper_delta

NEED = 'hockeystick.interop.dp_accounting needs dp_accounting: pip install ".[dp-accounting]" in a clone'

try:
    from dp_accounting import NeighboringRelation, PrivacyAccountant
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution
except ImportError:  # asked for when first needed

    class PrivacyAccountant:  # type: ignore[no-redef]
        """Stands in for the base class where dp_accounting is not installed."""

        def __init__(self, *_: Any) -> None:
            raise ImportError(NEED)

    NeighboringRelation = pld_pmf = privacy_loss_distribution = None


__all__ = ["HockeyStickAccountant", "from_pld", "to_pld"]

_RELATIONS = {name: relation for relation, name in RELATIONS.items()}
# For the list of events that the base class keeps beside our accountant, and changes in place.
LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):  # Windows has no fork; a child's lock is free, and what it guards is whole
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
FALSE_POSITIVE_RATES = (1e-12, 0.5)  # those of which a Gaussian DP parameter is estimated
LARGEST_GRID = 4_000_000  # points
NEAR = 64  # rates near which lines are chosen
# Rounds of refining the pieces of a range, pieces at most, and how close both ends of mu need be.
ROUNDS, MAX_PIECES, CLOSE = 40, 4000, 1e-6
MARGIN = 1e-12  # error of normal quantiles, relative, and of their difference


class HockeyStickAccountant(PrivacyAccountant):  # type: ignore[misc]
    """A dp_accounting `PrivacyAccountant` whose numbers are certified upper bounds.

    Parameters
    ----------
    neighboring_relation : dp_accounting.NeighboringRelation, optional
        ADD_OR_REMOVE_ONE by default.

    Notes
    -----
    Which events are known, and how they are recognised: `hockeystick.interop.events`. `accountant` is the one of
    hockeystick behind it, for brackets and explanations.

    Examples
    --------
    >>> from hockeystick import format_upper
    >>> import dp_accounting as dp
    >>> event = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0))
    >>> print(format_upper(HockeyStickAccountant().compose(event, 1000).get_epsilon(1e-5), ".3f"))
    1.829
    """

    def __init__(self, neighboring_relation: Any = None) -> None:
        """Start with nothing composed."""
        if neighboring_relation is None:
            neighboring_relation = getattr(NeighboringRelation, "ADD_OR_REMOVE_ONE", None)
        super().__init__(neighboring_relation)
        if not isinstance(neighboring_relation, NeighboringRelation):
            raise TypeError(f"neighboring_relation must be a NeighboringRelation, not {shown(neighboring_relation)}")
        self._relation = _RELATIONS[neighboring_relation.name]
        self.accountant = Accountant(adjacency_of(self._relation))

    def compose(self, event: Any, count: int = 1) -> Any:
        """Add an event, and return the accountant itself. Threads may compose at once.

        Parameters
        ----------
        event : dp_accounting.DpEvent
            What was released.
        count : int
            How often, at least 1.
        """
        with LOCK:
            return super().compose(event, count)

    @property
    def ledger(self) -> Any:
        """The events composed so far, as one."""
        with LOCK:
            return super().ledger

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle is made from: nothing that another thread goes on changing."""
        with LOCK:
            return copy.deepcopy(self.__dict__)

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        try:
            steps = [(mechanism, times * count) for mechanism, times in steps_of(event, self._relation)]
            for mechanism, times in steps:  # refused before anything is changed
                count_scalar("count", self.accountant.ledger.get(mechanism, 0) + times, 0)
        except UnsupportedEvent as error:
            return self.CompositionErrorDetails(error.event, error.reason)
        if do_compose:
            self.accountant._compose_together(steps)
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """Return the certified upper end of epsilon.

        Parameters
        ----------
        target_delta : float
            In [0, 1].

        Returns
        -------
        float
            Infinity if an event was not private.
        """
        if self._contains_non_dp_event:
            return math.inf
        return 0.0 if target_delta == 1 else float(self.accountant.epsilon(target_delta))

    def get_delta(self, target_epsilon: float) -> float:
        """Return the certified upper end of delta.

        Parameters
        ----------
        target_epsilon : float
            Non-negative.

        Returns
        -------
        float
            1 if an event was not private.
        """
        return float(self.accountant.delta(target_epsilon))

    def get_true_positive_rates(self, false_positive_rates: ArrayLike, deltas: ArrayLike | None = None) -> Any:
        """Return certified upper bounds of the true-positive rate of every membership test.

        Parameters
        ----------
        false_positive_rates : array_like
            In [0, 1].
        deltas : array_like, optional
            Where dp_accounting asks for epsilon. Not needed: the tangents are chosen near the rates.

        Returns
        -------
        ndarray or float
            No test with this false-positive rate has a larger true-positive rate. 1 if an event was not private.
        """
        del deltas
        rates = STRICT.probability("false_positive_rates", false_positive_rates)
        if self._contains_non_dp_event:
            return np.ones(rates.shape)[()]
        return risk.true_positive_rate(self.accountant, rates)

    def get_gdp_parameter_estimate(
        self, false_positive_rates: ArrayLike | None = None, deltas: ArrayLike | None = None
    ) -> float:
        """Return mu for which no membership test is better than against mu-GDP, at false-positive rates of a range.

        Parameters
        ----------
        false_positive_rates : array_like, optional
            In (0, 1). The range is from the smallest to the largest of those that are at most 1/2; [1e-12, 1/2] by default.
        deltas : array_like, optional
            Where dp_accounting asks for epsilon. Not needed: the tangents are chosen near the range.

        Returns
        -------
        float
            A certified upper end for the whole range, between the rates that are given too (dp_accounting's estimate holds at the
            rates alone). Outside the range nothing is said: many mechanisms are mu-GDP for no mu. Infinity if an event was not
            private, or a loss is infinite with a probability above the smallest rate.

        Raises
        ------
        ValueError
            If no rate is at most 1/2, or one is outside (0, 1).
        """
        del deltas
        asked = FALSE_POSITIVE_RATES if false_positive_rates is None else false_positive_rates
        rates = STRICT.within("false_positive_rates", asked, OPEN_PROBABILITY).ravel()
        rates = rates[rates <= 0.5]
        if rates.size == 0:
            raise ValueError(f"false_positive_rates must have one of at most 0.5, not {shown(false_positive_rates)}")
        if self._contains_non_dp_event:
            return math.inf
        return largest_mu(self.accountant, float(rates.min()), float(rates.max()))

    @property
    def _contains_non_dp_event(self) -> bool:
        """Whether an event was not private: dp_accounting's own accountant has an attribute of this name."""
        return NON_PRIVATE in self.accountant.ledger


def to_pld(accountant: Accountant, *, value_discretization_interval: float = 1e-4) -> Any:
    """Return an accountant's ledger as a privacy loss distribution of dp_accounting.

    Parameters
    ----------
    accountant : Accountant
        Of hockeystick; the `accountant` of a `HockeyStickAccountant` is one.
    value_discretization_interval : float
        Grid step of the privacy loss, positive.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Pessimistic: each step connects the dots of our certified deltas. Composed by dp_accounting, whose transforms
        are in doubles and not certified.

    Raises
    ------
    ValueError
        If the interval is not positive, or needs more than 4 million points for a step.
    ImportError
        If dp_accounting is not installed.

    Examples
    --------
    >>> import hockeystick as hs
    >>> pld = to_pld(hs.Accountant().compose(hs.Laplace(2.0), 4))
    >>> print(hs.format_upper(pld.get_epsilon_for_delta(0.01), ".2f"))
    1.86
    """
    if pld_pmf is None:
        raise ImportError(NEED)
    h = positive_scalar("value_discretization_interval", value_discretization_interval)
    composition = Composition(accountant.ledger, accountant.adjacency)
    composition.require_certified()
    steps = composition.steps(upper=True)
    symmetric = all(pair.symmetric for pair, _ in steps)
    total = None
    for pair, count in steps:
        directions = (True,) if symmetric else (True, False)
        step = privacy_loss_distribution.PrivacyLossDistribution(*(_dots(pair, up, h) for up in directions))
        repeated = step.self_compose(int(count)) if count > 1 else step
        total = repeated if total is None else total.compose(repeated)
    return privacy_loss_distribution.identity(h) if total is None else total


def _dots(pair: core.Pair, forward: bool, h: float) -> Any:
    """Return one direction of one step on the grid."""
    bottom, top = (-highest_loss(pair, not forward), highest_loss(pair, forward))
    if (top - bottom) / h > LARGEST_GRID:
        raise ValueError(
            f"value_discretization_interval={h} needs more than {LARGEST_GRID} points for losses from {bottom:g} to {top:g}"
        )
    first, last = math.floor(bottom / h), math.ceil(top / h)
    deltas = [upper_delta(pair, forward, i * h) for i in range(first, last + 1)]
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(h, first, last, np.minimum.accumulate(deltas))


def from_pld(pld: Any) -> DiscretePairs:
    """Return a privacy loss distribution of dp_accounting as a mechanism of ours.

    Parameters
    ----------
    pld : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        A pessimistic one.

    Returns
    -------
    DiscretePairs
        A pair of discrete distributions for each direction, dominating wherever the distribution did. Mass that rounding
        has lost goes to infinite loss; losses so low that they do not fit a pair are raised.

    Raises
    ------
    ValueError
        If the distribution is optimistic, which bounds nothing from above, or has no mass.
    TypeError
        If it is not one of dp_accounting.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from dp_accounting.pld import privacy_loss_distribution
    >>> step = from_pld(privacy_loss_distribution.from_laplace_mechanism(2.0))
    >>> print(f"{hs.Accountant().compose(step, 4).epsilon_bracket(0.01):.2f}")
    1.86
    """
    pmfs = [getattr(pld, name, None) for name in ("_pmf_remove", "_pmf_add")]
    if None in pmfs:
        raise TypeError(f"pld must be a PrivacyLossDistribution of dp_accounting, not {shown(pld)}")
    return DiscretePairs(*(_pair(pmf.to_dense_pmf()) for pmf in pmfs if pmf is not None))


def _pair(pmf: Any) -> Discrete:
    """Return P and Q on the grid's losses, infinite loss, and outcomes of Q alone."""
    if not pmf._pessimistic_estimate:
        raise ValueError("pld must be pessimistic: an optimistic one bounds nothing from above")
    p = np.maximum(np.asarray(pmf._probs, dtype=np.float64), 0.0)
    losses = (pmf._lower_loss + np.arange(p.size)) * pmf._discretization
    p, losses = _raised(p, losses)
    infinite = max(float(pmf._infinity_mass), 1.0 - math.fsum(p), 0.0)
    p = _without_lowest(p, math.fsum([*p, infinite, -1.0]))
    q = p * np.exp(-losses) * (1.0 - 1e-15)
    return Discrete([*p, infinite, 0.0], [*q, 0.0, max(1.0 - math.fsum(q), 0.0)])


def _without_lowest(p: Array, excess: float) -> Array:
    """Take what the masses exceed 1 by, through rounding, from the lowest losses: at any epsilon above them delta stays."""
    if excess <= 0.0:
        return p
    total = np.cumsum(p)
    last = min(int(np.searchsorted(total, excess)), p.size - 1)
    rest = np.maximum(total[last] - excess, 0.0)
    return np.concatenate([np.zeros(last), [rest], p[last + 1 :]])


def _raised(p: Array, losses: Array) -> tuple[Array, Array]:
    """Raise the lowest losses to the first at which Q has mass 1 at most, up to rounding; drop points without mass."""
    q = p * np.exp(-losses)
    q_from = np.cumsum(q[::-1])[::-1]
    p_below = np.cumsum(p) - p
    fits = q_from + p_below * np.exp(-losses) <= 1.0 + 5e-13  # half of what Discrete allows
    first = int(np.argmax(fits)) if fits.any() else p.size - 1
    p, losses = p[first:].copy(), losses[first:]
    p[0] += p_below[first]
    kept = p > 0
    return p[kept], losses[kept]


def largest_mu(accountant: Accountant, low: float, high: float) -> float:
    """Return mu for which the curve of mu-GDP lies below the trade-off function at all rates in [low, high].

    The range is cut into pieces. On each, one line lies below the trade-off function, and the convex curve of mu-GDP lies
    below that line if it does at both ends: there mu is -q(fpr) - q(fnr), q the normal quantile. Any pieces and any
    lines give an upper end; those that give the largest are cut in two until the curve itself has nearly as large a mu.
    """
    if accountant.delta(0.0) == 0.0:
        return 0.0
    if accountant.delta(math.inf) > low:
        return math.inf
    table = refine(accountant._composition().curve(), np.geomspace(low, high, NEAR))
    ends = np.unique(np.concatenate([np.geomspace(low, high, 4 * NEAR), [low, high]]))
    for _ in range(ROUNDS):
        on_pieces = _mu_on_pieces(table, ends)
        largest = float(on_pieces.max())
        reached = float(_mu(table, ends).max())
        wide = on_pieces > reached + CLOSE
        if not wide.any() or not math.isfinite(largest) or ends.size > MAX_PIECES:
            break
        ends = np.unique(np.concatenate([ends, np.sqrt(ends[:-1] * ends[1:])[wide]]))
    return largest


def _mu(table: Array, rates: Array) -> Array:
    """Return for each rate the least mu whose curve goes through the best line's point or above it, rounded up."""
    parts = [rates[first : first + CHUNK] for first in range(0, rates.size, CHUNK)]
    return np.concatenate([_rounded_up(_quantiles(table, part).min(axis=1), part) for part in parts])


def _mu_on_pieces(table: Array, ends: Array) -> Array:
    """Return mu for each piece, by the line that is best in its middle."""
    left, right = (ends[:-1], ends[1:]) if ends.size > 1 else (ends, ends)
    found = []
    for first in range(0, left.size, CHUNK):
        pieces = left[first : first + CHUNK], right[first : first + CHUNK]
        best = _quantiles(table, np.sqrt(pieces[0] * pieces[1])).argmin(axis=1)[:, None]
        sides = [np.take_along_axis(_quantiles(table, rates), best, 1)[:, 0] for rates in pieces]
        found.append(np.maximum(*(_rounded_up(q, rates) for q, rates in zip(sides, pieces, strict=True))))
    return np.concatenate(found)


def _quantiles(table: Array, rates: Array) -> Array:
    """Return the normal quantile of each line at each rate, from that side of 1/2 on which it has digits."""
    tpr, fnr = (
        np.concatenate([*lines(table, rates[:, None])], axis=1)
        for lines in (true_positive_bounds, false_negative_bounds)
    )
    quantiles: Array = np.where(tpr < 0.5, ndtri(tpr), -ndtri(fnr))
    return quantiles


def _rounded_up(quantiles: Array, rates: Array) -> Array:
    """Return mu, the quantile of the true-positive rate less that of the false-positive rate."""
    least = ndtri(rates)
    mu: Array = quantiles - least + MARGIN * (1.0 + np.abs(quantiles) + np.abs(least))
    return mu

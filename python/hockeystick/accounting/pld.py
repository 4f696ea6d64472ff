"""Certified brackets for compositions, by discretised privacy loss distributions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import hockeystick._core as core
from hockeystick._checks import DELTA, NON_NEGATIVE_OR_INFINITE, choice, count_scalar, positive_scalar, scalar
from hockeystick._checks.shown import counted, shown
from hockeystick.accounting.brackets import TOLERANCE, Bracket, describe
from hockeystick.mechanisms.base import (
    ADJACENCIES,
    ALSO_CALLED,
    Adjacency,
    CountedPair,
    Mechanism,
    require_mechanism,
    require_pairs,
    status_of,
)

__all__ = ["PrivacyLossDistribution"]


class PrivacyLossDistribution:
    """The privacy loss of a composition: which mechanisms, how often, and a grid to put them on.

    Made by `from_mechanism`, `compose` and `self_compose`; never changed. Composition is for a sequence of mechanisms
    fixed in advance. Order does not matter, and equal mechanisms are merged.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.accounting.PrivacyLossDistribution.from_mechanism(hs.PoissonSampled(hs.Gaussian(1.0), 0.01))
    >>> print(f"{step.self_compose(1000).epsilon_bracket(1e-5).upper:.2f}")
    1.83
    """

    def __init__(self, ledger: Mapping[Mechanism, int], interval: float | None, adjacency: Adjacency) -> None:
        """Take what `from_mechanism` has checked."""
        self._ledger = dict(ledger)
        self._interval = interval
        self._adjacency: Adjacency = adjacency

    @classmethod
    def from_mechanism(
        cls, mechanism: Mechanism, *, interval: float | None = None, adjacency: Adjacency = "add_or_remove"
    ) -> PrivacyLossDistribution:
        """Return the privacy loss distribution of one step.

        Parameters
        ----------
        mechanism : Mechanism
            What the step releases.
        interval : float, optional
            Grid step of the privacy loss, positive. By default each query chooses its own, such that the width of
            the bracket is at most 1e-3 of its upper end, where memory allows.
        adjacency : {"add_or_remove", "replace"}
            Which data sets are adjacent.

        Returns
        -------
        PrivacyLossDistribution
            Exact: discretisation waits for a query.

        Raises
        ------
        ValueError
            If the mechanism has no proven dominating pair under this adjacency, or an argument is outside its domain.
        TypeError
            If the argument is not a mechanism.
        """
        require_mechanism(mechanism)
        if interval is not None:
            interval = positive_scalar("interval", interval)
        adjacency = choice("adjacency", adjacency, ADJACENCIES, ALSO_CALLED)
        require_pairs(mechanism)
        mechanism._pairs(adjacency)  # refuses here rather than at a query
        return cls({mechanism: 1}, interval, adjacency)

    @property
    def ledger(self) -> Mapping[Mechanism, int]:
        """How often each mechanism was composed, read-only."""
        return MappingProxyType(self._ledger)

    @property
    def adjacency(self) -> Adjacency:
        """Which data sets are adjacent."""
        return self._adjacency

    @property
    def interval(self) -> float | None:
        """The grid step, or None if each query chooses its own."""
        return self._interval

    def __len__(self) -> int:
        """Return the number of steps."""
        return sum(self._ledger.values())

    def __repr__(self) -> str:
        """Return the ledger in words."""
        steps = counted(self._ledger)
        return f"<PrivacyLossDistribution: {steps or 'nothing composed'}; {self._adjacency}>"

    def compose(self, other: PrivacyLossDistribution) -> PrivacyLossDistribution:
        """Return the composition with another one.

        Parameters
        ----------
        other : PrivacyLossDistribution
            Of the same adjacency and interval.

        Returns
        -------
        PrivacyLossDistribution
            The composition.

        Raises
        ------
        ValueError
            If adjacency or interval differ.
        TypeError
            If the argument is not a PrivacyLossDistribution.
        """
        if not isinstance(other, PrivacyLossDistribution):
            raise TypeError(f"other must be a PrivacyLossDistribution, not {shown(other)}")
        for name in ("adjacency", "interval"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ValueError(f"other must have {name}={shown(mine)}, not {shown(theirs)}")
        ledger = dict(self._ledger)
        for mechanism, count in other.ledger.items():
            ledger[mechanism] = count_scalar("count", ledger.get(mechanism, 0) + count)
        return PrivacyLossDistribution(ledger, self._interval, self._adjacency)

    def self_compose(self, count: int) -> PrivacyLossDistribution:
        """Return the composition of `count` copies.

        Parameters
        ----------
        count : int
            At least 0.

        Returns
        -------
        PrivacyLossDistribution
            The composition; of no copy, one that leaks nothing.

        Raises
        ------
        ValueError
            If count, or a total, is not in [0, 2^53].
        """
        count = count_scalar("count", count, 0)
        ledger = {m: count_scalar("count", n * count) for m, n in self._ledger.items() if count}
        return PrivacyLossDistribution(ledger, self._interval, self._adjacency)

    def delta_bracket(self, epsilon: float) -> Bracket:
        """Return certified ends of delta(epsilon).

        Parameters
        ----------
        epsilon : float
            Non-negative; natural logarithms; infinity is legal.

        Returns
        -------
        Bracket
            delta lies between the ends: discretisation, truncation, wrap-around and rounding are included.

        Raises
        ------
        ValueError
            If epsilon is outside its domain, or the given interval needs more points than memory allows.
        """
        epsilon = scalar("epsilon", epsilon, *NON_NEGATIVE_OR_INFINITE)
        return self._bracket(False, epsilon)

    def epsilon_bracket(self, delta: float) -> Bracket:
        """Return certified ends of the smallest epsilon >= 0 at which delta(epsilon) <= delta.

        Parameters
        ----------
        delta : float
            In [0, 1); 0 asks for the largest privacy loss.

        Returns
        -------
        Bracket
            epsilon lies between the ends; infinity where no epsilon will do.

        Raises
        ------
        ValueError
            If delta is outside its domain, or the given interval needs more points than memory allows.
        """
        delta = scalar("delta", delta, *DELTA)
        return self._bracket(True, delta)

    def _bracket(self, for_epsilon: bool, value: float) -> Bracket:
        """Return the certified bracket of delta at eps = value, or of epsilon at delta = value, both directions."""
        above, below = self._releases(upper=True), self._releases(upper=False)
        ends: list[tuple[float, float, float, bool, float]] = []
        for forward in (True, False):  # the second need not be narrow where the first rules
            settings = (forward, for_epsilon, value, self._interval or 0.0, TOLERANCE, ends[0][0] if ends else 0.0)
            end = core.pld_bracket(above, *settings)
            ends.append(end if above == below else (core.pld_bracket(below, *settings)[0], *end[1:]))
        lower, upper, intervals, coarsened, _ = zip(*ends, strict=True)
        method = describe(max(upper), min(filter(None, intervals), default=0.0), coarsened=any(coarsened))
        return Bracket(max(lower), max(upper), method, status_of(self._ledger))

    def _releases(self, *, upper: bool) -> list[CountedPair]:
        """Return the pairs that leak, with their counts, for the upper or the lower end."""
        return [
            (pair, times * count)
            for mechanism, count in self._ledger.items()
            for pair, times in mechanism._pairs(self._adjacency, upper=upper)
            if times > 0.0 and pair.leaks
        ]

"""Mechanisms known by their Renyi divergences alone; compositions add them, and accounting converts the sum."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from hockeystick._checks import (
    DELTA,
    POSITIVE,
    STRICT,
    count_scalar,
    interval,
    non_negative_scalar,
    real,
    scalar,
    vector,
)
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import SHORT_SUM, SHORT_SUM_UP
from hockeystick.mechanisms.base import LARGEST_ORDER, ORDERS, Adjacency, CountedPair, Mechanism, require_mechanism
from hockeystick.mechanisms.user_function import function_of_one_number, require_convex

__all__ = ["PrivateSelection", "RenyiDP", "ZeroConcentratedDP"]


class RenyiMechanism(Mechanism):
    """A mechanism of which an upper bound of the Renyi divergence is known, and no dominating pair."""

    _has_pair: ClassVar[bool] = False

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        del adjacency
        if upper:
            raise TypeError(f"only Renyi divergences are known of {shown(self)}. This is a bug in hockeystick.")
        return []

    def _divergence(self, order: float, adjacency: Adjacency) -> float:
        """Return an upper bound of the divergence of an order >= 1 in both directions."""
        raise NotImplementedError

    def _concentration(self, adjacency: Adjacency) -> float | None:
        """Return a rho for which the divergence is at most rho times the order at every order, if one is known."""
        del adjacency
        return None


@dataclass(frozen=True)
class ZeroConcentratedDP(RenyiMechanism):
    """Any mechanism with zero-concentrated differential privacy: Renyi divergences of at most xi plus rho times the order.

    Nothing doubles where a record is replaced.

    Parameters
    ----------
    rho : float
        Non-negative and finite.
    xi : float
        Non-negative and finite; what the divergences of all orders have in common.
    delta : float
        In [0, 1): the probability with which nothing holds. The laws of the output for adjacent data are (1 - delta) P' + delta P'' and
        (1 - delta) Q' + delta Q'', and the divergences are those of P' and Q', in both directions.

    Notes
    -----
    Bun and Steinke 2016: Definitions 1.1 (xi) and 8.1 (delta, which they define by events of probability 1 - delta or more; an
    event of that probability is one of exactly 1 - delta by a coin more). Compositions add rho and xi, and what is left of
    1 - delta is multiplied; the conversion is that of `zcdp_delta`. Lower ends are 0. `Accountant.rdp` is infinite if delta is positive.

    Examples
    --------
    >>> import hockeystick as hs
    >>> for step in (hs.mechanisms.ZeroConcentratedDP(0.01), hs.mechanisms.ZeroConcentratedDP(0.01, xi=0.002, delta=1e-9)):
    ...     print(hs.format_upper(hs.Accountant().compose(step, 50).epsilon(1e-5), ".2f"))
    4.73
    4.84
    """

    rho: float
    xi: float = 0.0
    delta: float = 0.0
    _assumes: ClassVar[tuple[str, ...]] = ("the numbers of ZeroConcentratedDP are upper bounds for this adjacency",)

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(rho=non_negative_scalar, xi=non_negative_scalar, delta=DELTA)

    def _mixed_failure(self) -> tuple[float, ZeroConcentratedDP]:
        return self.delta, ZeroConcentratedDP(self.rho, self.xi)

    def _divergence(self, order: float, adjacency: Adjacency) -> float:
        del adjacency  # the guarantee is taken to be for the one in use
        return math.inf if self.delta > 0.0 else (self.xi + self.rho * order) * SHORT_SUM_UP

    def _concentration(self, adjacency: Adjacency) -> float:
        del adjacency
        return self.rho


@dataclass(frozen=True)
class RenyiDP(RenyiMechanism):
    """A mechanism of one's own, by upper bounds of its Renyi divergence at some orders.

    Nothing doubles where a record is replaced.

    Parameters
    ----------
    orders : sequence of float
        Increasing, in [1, 1e5].
    divergences : sequence of float
        In nats, non-negative, not falling with the order; of the larger direction, for the adjacency in use. Infinity is legal.

    Notes
    -----
    Mironov 2017. (order - 1) times the divergence is convex in the order and 0 at 1, so that chords bound it between the
    orders; below the first the divergence is at most the first, and beyond the last nothing is known. All that is assumed is that the
    numbers are upper bounds. Compositions add divergences; Canonne, Kamath and Steinke 2020 convert. Lower ends are 0.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.mechanisms.RenyiDP([2.0, 8.0, 32.0], [0.01, 0.04, 0.2])
    >>> print(hs.format_upper(hs.Accountant().compose(step, 10).epsilon(1e-6), ".3f"))
    1.944
    """

    orders: Sequence[float]
    divergences: Sequence[float]
    _assumes: ClassVar[tuple[str, ...]] = ("the numbers of RenyiDP are upper bounds for this adjacency",)

    def __post_init__(self) -> None:
        """Check the arguments."""
        orders = vector("orders", real("orders", self.orders))
        if not (orders[0] >= 1.0 and orders[-1] <= LARGEST_ORDER and (np.diff(orders) > 0.0).all()):
            raise ValueError(f"orders must increase, in [1, 1e5], not be {shown(self.orders)}")
        divergences = vector("divergences", STRICT.non_negative_or_infinite("divergences", self.divergences))
        if divergences.size != orders.size:
            raise ValueError(f"divergences must be as long as orders ({orders.size}), not of length {divergences.size}")
        for i in np.flatnonzero(divergences[1:] < divergences[:-1]):
            fall = divergences[i] - divergences[i + 1]
            raise ValueError(
                f"divergences must not fall, not by {fall:g} from order {orders[i]:g} to {orders[i + 1]:g}"
            )
        self._set(orders=tuple(orders.tolist()))
        self._set(divergences=tuple(divergences.tolist()))

    @classmethod
    def from_cumulant(
        cls, cumulant: Callable[[float], float], *, accuracy: float = 1e-12, largest_order: float = 1024.0
    ) -> Self:
        """Return the bound of a cumulant function K(s) = log E e^{s L}, L the privacy loss under P; called, checked, and not kept.

        Parameters
        ----------
        cumulant : callable
            K at s in [-1, largest_order - 1], of the direction in which it is larger: a Python function of one number, a
            numba cfunc or a scipy.LowLevelCallable of signature ``double (double)``. K(s)/s is the divergence of order s + 1.
        accuracy : float
            Its error, relative to max(K, s), in [0, 0.1]: K is raised by it.
        largest_order : float
            In [2, 1e5].

        Returns
        -------
        RenyiDP
            At several hundred orders.

        Raises
        ------
        ValueError
            If K(0) or K(-1) is not 0 (losses would be infinite, or P or Q not be normalised), K is negative at s > 0, or it
            is not convex; the message says by how much.

        Examples
        --------
        >>> import hockeystick as hs
        >>> step = hs.mechanisms.RenyiDP.from_cumulant(lambda s: 0.02 * s * (s + 1))
        >>> for epsilon in (hs.Accountant().compose(step, 10).epsilon(1e-6), hs.accounting.zcdp_epsilon(0.2, 1e-6)):
        ...     print(hs.format_upper(epsilon, ".3f"))
        3.132
        3.132
        """
        function = function_of_one_number("cumulant", cumulant)
        accuracy = scalar("accuracy", accuracy, *interval("[0, 0.1]"))
        largest = scalar("largest_order", largest_order, *interval("[2, 1e5]"))
        points = np.array([-1.0, 0.0, *(order - 1.0 for order in ORDERS if order < largest), largest - 1.0])
        values = np.array([float(function(s)) for s in points.tolist()])
        for s, value in zip((-1.0, 0.0), values[:2], strict=True):
            if not abs(value) <= max(accuracy, 1e-12):
                raise ValueError(
                    f"cumulant({s:g}) must be 0, as P and Q are distributions on the same outcomes, not {value:g}"
                )
        # What a value may be wrong by: at -1 and 0 by the check above. A chord is as wrong as its ends, and its difference rounds.
        errors = accuracy * np.maximum(np.maximum(values, points), 0.0) + 1e-12 * (points <= 0.0)
        allowed = errors[:-2] + errors[1:-1] + errors[2:] + SHORT_SUM * np.abs(values[1:-1])
        require_convex("cumulant", "s", points, values, allowed)
        above, values, errors = points[2:], values[2:], errors[2:]  # at s > 0, where K(s)/s is a divergence
        for s, value, error in zip(above, values, errors, strict=True):
            if not value >= -error:
                raise ValueError(f"cumulant({s:g}) must be non-negative, not {value:g}")
        divergences = (np.maximum(values, 0.0) + errors) / above
        return cls((above + 1.0).tolist(), np.maximum.accumulate(divergences).tolist())  # rounding may make them fall

    def _divergence(self, order: float, adjacency: Adjacency) -> float:
        del adjacency  # the numbers are taken to be for the one in use
        if order > self.orders[-1]:
            return math.inf
        right = bisect.bisect_left(self.orders, order)
        if right == 0 or self.orders[right] == order:
            return self.divergences[right] * SHORT_SUM_UP
        left, part = right - 1, (order - self.orders[right - 1]) / (self.orders[right] - self.orders[right - 1])
        ends = [(self.orders[i] - 1.0) * self.divergences[i] for i in (left, right)]
        if ends[1] == math.inf:
            return math.inf
        return ((1.0 - part) * ends[0] + part * ends[1]) / (order - 1.0) * SHORT_SUM_UP


@dataclass(frozen=True)
class PrivateSelection(RenyiMechanism):
    """Running a mechanism a random number of times and releasing the best result, as hyper-parameter search does.

    What it runs doubles, or not, where a record is replaced.

    Parameters
    ----------
    mechanism : Mechanism
        What is composed in one run, the choice of its settings included: the best run is known by what it released.
    count : int
        How many steps of it are a run, in [1, 2^53].
    mean : float
        Mean number of runs, which is secret and drawn anew; at least 1 unless `shape` is None, then positive.
    shape : float, optional
        eta of the truncated negative binomial distribution, above -1: 1 is the geometric and 0 the logarithmic distribution.
        By default the Poisson distribution; if it gives no run, what is released must not depend on the data.

    Notes
    -----
    Papernot and Steinke 2022: Theorem 2 (truncated negative binomial) and Theorem 6 (Poisson), whose second orders are optimised over; Liu and
    Talwar 2019 for the geometric distribution. The run must have a bound in `Accountant.rdp`. Lower ends are 0.

    Examples
    --------
    >>> import hockeystick as hs
    >>> trial = hs.Gaussian(4.0)
    >>> for step in (trial, hs.mechanisms.PrivateSelection(trial, 1, mean=10.0)):
    ...     print(hs.format_upper(hs.Accountant().compose(step).epsilon(1e-6), ".2f"))
    1.07
    2.05
    """

    mechanism: Mechanism
    count: int
    mean: float
    shape: float | None = None
    _assumes: ClassVar[tuple[str, ...]] = (
        "private selection: the number of runs is secret and drawn anew, runs are independent, only the best one is released",
    )

    def __post_init__(self) -> None:
        """Check the arguments."""
        require_mechanism(self.mechanism)
        self._check(count=count_scalar, mean=POSITIVE)
        if self.shape is not None:
            self._check(shape=interval("(-1, 1e6)"), mean=interval("[1, 1e12]"))

    def _parts(self) -> tuple[Mechanism, ...]:
        return (self.mechanism,)

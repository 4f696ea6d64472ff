"""A privacy odometer: what has been spent so far, true at every moment at once, for mechanisms chosen by what was released.

Let P be the law of all releases for the data as they are, Q that for adjacent data, and L_t the sum of log dP_s/dQ_s, given the past,
over the first t steps. Where step s has order-a divergence at most rho_s(a) given the past, and R_t(a) is their sum,

    E_P[(dP_s/dQ_s)^(a-1) | past] <= e^((a-1) rho_s(a)),   so that   M_t(a) = e^((a-1)(L_t - R_t(a)))

is a supermartingale under P that starts at 1, and so is a weighted mean of M_t(a) over orders. By Ville's inequality the mean reaches
1/delta at any time with probability at most delta. It rises with L_t: let u_t be where it is 1/delta. Then

    P(L_t >= u_t for some t) <= delta.

For a single order u_t = R_t(a) + log(1/delta)/(a-1). That is an odometer in the sense of Rogers, Roth, Ullman and Vadhan (2016, arXiv
1605.08294); Whitehouse, Ramdas, Rogers and Wu (2023, arXiv 2203.05481) have this route for other boundaries, Lecuyer (2021, arXiv
2103.01379) a Renyi odometer by filters of doubling budgets. A run that stops, by any rule, where u <= epsilon on every path is
(epsilon, delta)-DP: but for delta, dP < e^epsilon dQ on what was released.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from hockeystick._checks import scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import LONG_SUM, UP
from hockeystick._numeric.search import halve
from hockeystick.accounting import renyi_divergence as renyi
from hockeystick.budgets.spending import BISECTIONS, ORDER, Odometer
from hockeystick.mechanisms.base import Adjacency, Mechanism

__all__ = ["RenyiOdometer"]

MIXED_ORDERS = (1.25, 1.5, *range(2, 9), 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 256, 512, 1024)


class RenyiOdometer(Odometer):
    """A privacy odometer of adaptively chosen mechanisms, by their Renyi divergences.

    Parameters
    ----------
    delta : float
        In (0, 1); fixed before the first step.
    orders : iterable of float, optional
        Renyi orders in (1, 1e5], each once, fixed before the first step; integers are best for sampled mechanisms. The default has 23,
        from 1.25 to 1024.
    adjacency : {"add_or_remove", "replace"}
        Which data sets are adjacent.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    With probability at least 1 - delta over the releases, the privacy loss of everything released so far is below
    `epsilon` after every step at once. So one may look at any time, stop by any rule, and report what it says; a run that stops where it
    is at most some epsilon on every path is (epsilon, delta)-DP. A mixture of supermartingales, one for each order; the proof and
    the sources are in budgets/odometer.py.

    It costs more than a filter, whose budget is fixed before, and that more than an accountant, whose steps are.

    It assumes that `spend` comes before the release; and that which mechanism comes next, and whether one does, depends on the
    data only through earlier releases (and coins of its own).

    Examples
    --------
    >>> import hockeystick as hs
    >>> odometer = hs.budgets.RenyiOdometer(delta=1e-5)
    >>> step = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)
    >>> for _ in range(3):
    ...     print(hs.format_upper(odometer.spend(step, 100).epsilon, ".2f"))  # release here, and choose the next step
    2.17
    2.25
    2.34
    """

    _SETTINGS = ("delta", "orders")

    def __init__(
        self, *, delta: float, orders: Iterable[float] = MIXED_ORDERS, adjacency: Adjacency = "add_or_remove"
    ) -> None:
        self._orders = tuple(scalar("orders", order, *ORDER) for order in orders)
        if len(set(self._orders)) != len(self._orders) or not self._orders:
            raise ValueError(f"orders must be one or more, each once, not {shown(self._orders)}")
        super().__init__(delta, adjacency)

    @property
    def orders(self) -> tuple[float, ...]:
        """The Renyi orders."""
        return self._orders

    def _find_cost(self, mechanism: Mechanism) -> tuple[float, ...]:
        return tuple(renyi.of_ledger({mechanism: 1}, self._adjacency, order) for order in self._orders)

    def _epsilon(self, ledger: Mapping[Mechanism, int]) -> float:
        """Return where the mean of the supermartingales would be 1/delta."""
        spent = [[count * cost for cost in self._cost(mechanism)] for mechanism, count in ledger.items()]
        divergences = np.array([math.fsum(order) for order in zip(*spent, strict=True)] or [0.0]) * UP
        if divergences.min() == 0.0:  # equal laws
            return 0.0
        powers = np.array(self._orders) - 1.0
        depth = math.log(len(powers)) - math.log(self._delta)
        depth += LONG_SUM * (depth + 1.0)  # the exponents that count are at most this, and err in proportion
        high = float(np.min(divergences + depth / powers))
        if not math.isfinite(high):
            return math.inf

        def below(epsilon: float) -> bool:
            return bool(np.logaddexp.reduce(powers * (epsilon - divergences)) < depth)

        return halve(below, 0.0, high * UP, most=BISECTIONS)[1]

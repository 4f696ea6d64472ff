"""A budget of zero-concentrated differential privacy, approximate too, for adaptively chosen mechanisms.

Why it holds. Given what was released before (the history h), let step t have the laws P_t = (1 - d_t) P_t' + d_t P_t'' and
Q_t = (1 - d_t) Q_t' + d_t Q_t'' on two adjacent data sets, where P_t' and Q_t' have divergences of order a of at most x_t + a r_t for all a > 1,
in both directions; d_t, x_t and r_t may depend on h. On every path let the sums of d_t, x_t and r_t be at most d, x and r.

Let P' be the law of all releases if every step were drawn from P_t'. Its density at a path is the product of those of P_t', and that of P
is at least the product of (1 - d_t) P_t', so that

    P >= P' prod_t (1 - d_t) >= (1 - d) P',    and likewise    Q >= (1 - d) Q'.

What P has beyond that has mass d: P = (1 - d) P' + d P''. At each order a the products of (dP_t'/dQ_t')^a e^{-(a-1)(x_t + a r_t)} are a
supermartingale under Q' (filters.py), and the sum of x_t + a r_t is at most x + a r on every path; so P' and Q' have order-a
divergence at most x + a r. Unlike a `RenyiFilter`, which bounds one order, this holds at all orders at once, since one budget r bounds them
all: the best order may be chosen in the end. So all releases are d-approximate (x, r)-zCDP.

Whitehouse, Ramdas, Rogers and Wu 2023 (arXiv 2203.05481) for approximate zCDP; Feldman and Zrnic 2021 (arXiv 2008.11193) for Renyi divergences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick._checks import DELTA, OPEN_PROBABILITY, non_negative_scalar, positive_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.printing import format_upper
from hockeystick._numeric.search import halve
from hockeystick.accounting.renyi_divergence import without_failure
from hockeystick.accounting.zcdp import concentrated_cost, zcdp_epsilon
from hockeystick.budgets.filter_base import SLACK, Filter
from hockeystick.budgets.filters import SCALE
from hockeystick.mechanisms import ZeroConcentratedDP
from hockeystick.mechanisms.base import Adjacency, Mechanism

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ZeroConcentratedFilter"]


class ZeroConcentratedFilter(Filter):
    """A budget of zero-concentrated differential privacy, for adaptively chosen mechanisms.

    Parameters
    ----------
    rho : float
        The budget, in [1e-100, 1e100].
    xi : float
        Budget of what the divergences of all orders have in common (`ZeroConcentratedDP`); 0, or in [1e-100, 1e100].
    delta : float
        Budget of the steps' own deltas (`ZeroConcentratedDP`, `ApproximateDP`), in [0, 1). Everything that the filter lets through is
        together delta-approximate (xi, rho)-zCDP.
    adjacency : {"add_or_remove", "replace"}
        Which data sets are adjacent.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Whitehouse, Ramdas, Rogers and Wu 2023, for the definition of Bun and Steinke 2016; the proof is in budgets/concentrated_filter.py. A
    step spends what `ZeroConcentratedDP` says of itself, half the squared distance of Gaussian noise (discrete noise too), epsilon^2/8 of
    an exponential mechanism, and epsilon^2/2 beside delta of what is (epsilon, delta)-DP. Sampled Gaussian noise is refused: it
    has no useful rho (see `RenyiFilter`). Nothing is lost against steps fixed in advance, and every order of the Renyi divergences is covered.

    It assumes that `spend` comes before the release; and that which mechanism comes next, and whether one does, depends on
    the data only through earlier releases (and coins of its own).

    Examples
    --------
    >>> import hockeystick as hs
    >>> budget = hs.ZeroConcentratedFilter(0.1, delta=1e-8)
    >>> step = hs.Gaussian(20.0)
    >>> budget.spend(step, 20).spend(hs.ExponentialMechanism(0.2), 4).spend(hs.ApproximateDP(0.1, 1e-9)).remaining(step)
    40
    >>> print(hs.format_upper(budget.epsilon(1e-6), ".3f"))
    2.143
    """

    _SETTINGS = ("rho", "xi", "delta")

    def __init__(
        self, rho: float, *, xi: float = 0.0, delta: float = 0.0, adjacency: Adjacency = "add_or_remove"
    ) -> None:
        self._rho = scalar("rho", rho, *SCALE)
        self._xi = non_negative_scalar("xi", xi)
        if self._xi > 0.0:
            scalar("xi", self._xi, *SCALE)
        self._delta = scalar("delta", delta, *DELTA)
        super().__init__(adjacency, self._rho, self._xi, self._delta)

    @classmethod
    def of_epsilon(
        cls,
        epsilon: float,
        delta: float,
        *,
        xi: float = 0.0,
        failure: float = 0.0,
        adjacency: Adjacency = "add_or_remove",
    ) -> Self:
        """Return the filter with the largest rho that is (epsilon, delta)-DP, rounded down.

        Parameters
        ----------
        epsilon : float
            Positive and finite.
        delta : float
            In (0, 1).
        xi : float
            As for the filter.
        failure : float
            The part of `delta` that steps may spend by deltas of their own: the filter's delta. In [0, delta).
        adjacency : {"add_or_remove", "replace"}
            Which data sets are adjacent.

        Returns
        -------
        ZeroConcentratedFilter
            For which `epsilon(delta)` is at most `epsilon`.

        Raises
        ------
        ValueError
            If an argument is outside its domain, or no rho of at least 1e-100 is left.

        Examples
        --------
        >>> import hockeystick as hs
        >>> hs.ZeroConcentratedFilter.of_epsilon(1.0, 1e-6).remaining(hs.Gaussian(50.0))
        121
        """
        epsilon, delta = positive_scalar("epsilon", epsilon), scalar("delta", delta, *OPEN_PROBABILITY)
        failure = scalar("failure", failure, lambda x: 0 <= x < delta, f"lie in [0, delta), delta being {delta:g}")
        xi = non_negative_scalar("xi", xi)

        def fits(log2_rho: float) -> bool:
            return _epsilon_of(2.0**log2_rho, xi, failure, delta) <= epsilon

        lowest, highest = -332.0, 332.0  # of log2(rho): within [1e-100, 1e100]
        if not fits(lowest):
            msg = f"epsilon must leave a rho of at least 1e-100 beside xi = {xi:g} and failure = {failure:g}, not be {epsilon:g} at delta = {delta:g}"
            raise ValueError(msg)
        rho = 2.0 ** (highest if fits(highest) else halve(fits, lowest, highest, most=70)[0])
        return cls(rho, xi=xi, delta=failure, adjacency=adjacency)

    def __repr__(self) -> str:
        """Return the budget, and how much of it is spent."""
        record = self._state
        spent, steps = record.spent, record.num_steps
        parts = zip(self._SETTINGS, spent, (self._rho, self._xi, self._delta), strict=True)
        used = ", ".join(
            f"{name} {format_upper(float(used))} of {budget:g}"
            for name, used, budget in parts
            if name == "rho" or budget
        )
        return f"<ZeroConcentratedFilter: {used} in {steps} steps; {self._adjacency}>"

    @property
    def rho(self) -> float:
        """The budget of rho."""
        return self._rho

    @property
    def xi(self) -> float:
        """The budget of xi."""
        return self._xi

    @property
    def delta(self) -> float:
        """The budget of the steps' own deltas."""
        return self._delta

    def _epsilon(self, delta: float) -> float:
        return _epsilon_of(self._rho, self._xi, self._delta, delta)

    def _cost(self, mechanism: Mechanism) -> tuple[float, ...]:
        return concentrated_parts(mechanism, self._adjacency)


def concentrated_parts(mechanism: Mechanism, adjacency: Adjacency) -> tuple[float, float, float]:
    """Return rho, xi and delta of a step, or raise ValueError."""
    if mechanism.status != "certified":
        msg = f"mechanism must be certified, and {shown(mechanism)} is only estimated"
        raise ValueError(msg)
    cost = concentrated_cost(mechanism, adjacency)
    if cost is None:
        msg = f"mechanism must be zero-concentrated, which is not known of {shown(mechanism)}; RenyiFilter and RenyiOdometer take others"
        raise ValueError(msg)
    return cost.rho, cost.xi, cost.delta


def _epsilon_of(rho: float, xi: float, failure: float, delta: float) -> float:
    """Return the epsilon of failure-approximate (xi, rho)-zCDP, the slack of the filter included."""
    up = 1.0 + SLACK
    whole = ZeroConcentratedDP(rho * up, xi * up)
    return float(zcdp_epsilon(whole.rho, without_failure(delta, min(failure * up, 1.0)), xi=whole.xi))

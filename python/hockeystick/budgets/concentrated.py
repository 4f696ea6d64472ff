"""A filter and an odometer for zero-concentrated differential privacy, approximate too, of adaptively chosen mechanisms.

Why the filter holds. Given what was released before (the history h), let step t have the laws P_t = (1 - d_t) P_t' + d_t P_t'' and
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

Why the odometer holds. As in odometer.py, let L_t be the privacy loss of the first t steps, chosen by what was released. If step s has divergences of at most
x_s + a r_s at all orders a > 1, and X_t and R_t are the sums of x_s and r_s, then for every u = a - 1 > 0

    M_t(u) = exp(u (L_t - X_t) - u (u + 1) R_t)

is a supermartingale under P that starts at 1, and so is its mean over u >= 0 with the density of a half-normal law, sqrt(2/pi)/s e^(-u^2/(2 s^2)).
With z = L_t - X_t - R_t and y = 2 R_t s^2 that mean is a Gaussian integral,

    2 (1 + y)^(-1/2) exp(z^2 s^2/(2 (1 + y))) Phi(z s (1 + y)^(-1/2)),

which rises with L_t. By Ville's inequality it ever reaches 1/delta' with probability at most delta'. (Robbins 1970 for the mixture; Whitehouse,
Ramdas, Rogers and Wu 2023, arXiv 2203.05481, for zCDP odometers.) No s is wrong; s^2 = log(1/delta')/rho is close to the best where R_t is rho.

Where steps have deltas of their own, let P' and Q' be the laws of the releases if no step failed, as above. A run that stops, by
any rule, where on every path the bound is at most epsilon and the steps' deltas sum to at most f, has P' <= e^epsilon Q' but for
delta', P <= (1 - f) P' + f and Q >= (1 - f) Q': it is (epsilon, (1 - f) delta' + f)-DP. So delta' = (delta - f)/(1 - f).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Self

from hockeystick._checks import DELTA, OPEN_PROBABILITY, Domain, non_negative_scalar, positive_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.printing import format_upper
from hockeystick._numeric.rounding import LONG_SUM, UP
from hockeystick._numeric.search import halve
from hockeystick.accounting.renyi_divergence import without_failure
from hockeystick.accounting.zcdp import concentrated_cost, zcdp_epsilon
from hockeystick.budgets.spending import BISECTIONS, SCALE, SLACK, Filter, Odometer
from hockeystick.kernels import log_q
from hockeystick.mechanisms import ZeroConcentratedDP
from hockeystick.mechanisms.base import Adjacency, Mechanism

__all__ = ["ZeroConcentratedFilter", "ZeroConcentratedOdometer"]


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
    Whitehouse, Ramdas, Rogers and Wu 2023, for the definition of Bun and Steinke 2016; the proof is in budgets/concentrated.py. A
    step spends what `ZeroConcentratedDP` says of itself, half the squared distance of Gaussian noise (discrete noise too), epsilon^2/8 of
    an exponential mechanism, and epsilon^2/2 beside delta of what is (epsilon, delta)-DP. Sampled Gaussian noise is refused: it
    has no useful rho (see `RenyiFilter`). Nothing is lost against steps fixed in advance, and every order of the Renyi divergences is covered.

    It assumes that `spend` comes before the release; and that which mechanism comes next, and whether one does, depends on
    the data only through earlier releases (and coins of its own).

    Examples
    --------
    >>> import hockeystick as hs
    >>> budget = hs.budgets.ZeroConcentratedFilter(0.1, delta=1e-8)
    >>> step = hs.Gaussian(20.0)
    >>> budget.spend(step, 20).spend(hs.mechanisms.ExponentialMechanism(0.2), 4).spend(hs.ApproximateDP(0.1, 1e-9)).remaining(step)
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
        >>> hs.budgets.ZeroConcentratedFilter.of_epsilon(1.0, 1e-6).remaining(hs.Gaussian(50.0))
        121
        """
        epsilon, delta = positive_scalar("epsilon", epsilon), scalar("delta", delta, *OPEN_PROBABILITY)
        failure = scalar("failure", failure, lambda x: 0 <= x < delta, f"lie in [0, delta), delta being {delta:g}")
        xi = non_negative_scalar("xi", xi)

        def fits(log2_rho: float) -> bool:
            return _epsilon_of(2.0**log2_rho, xi, failure, delta) <= epsilon

        lowest, highest = -332.0, 332.0  # of log2(rho): within [1e-100, 1e100]
        if not fits(lowest):
            raise ValueError(
                f"epsilon must leave a rho of at least 1e-100 beside xi = {xi:g} and failure = {failure:g}, not be {epsilon:g} at delta = {delta:g}"
            )
        rho = 2.0 ** (highest if fits(highest) else halve(fits, lowest, highest, most=70)[0])
        return cls(rho, xi=xi, delta=failure, adjacency=adjacency)

    def _used(self, spent: tuple[Fraction, ...]) -> str:
        parts = zip(self._SETTINGS, spent, (self._rho, self._xi, self._delta), strict=True)
        told = ((name, used, budget) for name, used, budget in parts if name == "rho" or budget)
        return ", ".join(f"{name} {format_upper(float(used))} of {budget:g}" for name, used, budget in told)

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

    def _find_cost(self, mechanism: Mechanism) -> tuple[float, float, float]:
        return concentrated_parts(mechanism, self._adjacency)


def concentrated_parts(mechanism: Mechanism, adjacency: Adjacency) -> tuple[float, float, float]:
    """Return rho, xi and delta of a step, or raise ValueError."""
    if mechanism.status != "certified":
        raise ValueError(f"mechanism must be certified, and {shown(mechanism)} is only estimated")
    cost = concentrated_cost(mechanism, adjacency)
    if cost is None:
        raise ValueError(
            f"mechanism must be zero-concentrated, which is not known of {shown(mechanism)}; RenyiFilter and RenyiOdometer take others"
        )
    return cost.rho, cost.xi, cost.delta


def _epsilon_of(rho: float, xi: float, failure: float, delta: float) -> float:
    """Return the epsilon of failure-approximate (xi, rho)-zCDP, the slack of the filter included."""
    up = 1.0 + SLACK
    whole = ZeroConcentratedDP(rho * up, xi * up)
    return float(zcdp_epsilon(whole.rho, without_failure(delta, min(failure * up, 1.0)), xi=whole.xi))


class ZeroConcentratedOdometer(Odometer):
    """A privacy odometer of adaptively chosen steps with zero-concentrated differential privacy.

    Parameters
    ----------
    delta : float
        In (0, 1); fixed before the first step.
    rho : float
        Where the number is to be smallest: about what the steps will have spent when it is looked at. In [1e-100, 1e100]; fixed before
        the first step. Any value is sound.
    failure : float
        The part of `delta` that steps may spend by deltas of their own (`ZeroConcentratedDP`, `ApproximateDP`); in [0, delta). Once they
        spend more, the number is infinite.
    adjacency : {"add_or_remove", "replace"}
        Which data sets are adjacent.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    A run that stops, by any rule, where `epsilon` is at most some number on every path is (that number, delta)-DP; so one may look at any
    time, and report what it says. Robbins 1970; Whitehouse, Ramdas, Rogers and Wu 2023; the proof is in budgets/concentrated.py. Steps
    spend as in `ZeroConcentratedFilter`; for others there is `RenyiOdometer`.

    It assumes that `spend` comes before the release; and that which mechanism comes next, and whether one does, depends on the
    data only through earlier releases (and coins of its own).

    Examples
    --------
    >>> import hockeystick as hs
    >>> odometer = hs.budgets.ZeroConcentratedOdometer(delta=1e-5, rho=0.1)
    >>> for _ in range(3):
    ...     print(hs.format_upper(odometer.spend(hs.Gaussian(20.0), 40).epsilon, ".2f"))
    1.68
    2.38
    2.94
    """

    _SETTINGS = ("delta", "rho", "failure")

    def __init__(
        self, *, delta: float, rho: float = 0.1, failure: float = 0.0, adjacency: Adjacency = "add_or_remove"
    ) -> None:
        super().__init__(delta, adjacency)
        self._rho = scalar("rho", positive_scalar("rho", rho), *SCALE)
        below: Domain = (lambda x: 0 <= x < self._delta, f"lie in [0, delta), delta being {self._delta:g}")
        self._failure = scalar("failure", failure, *below)

    @property
    def rho(self) -> float:
        """Where the number is to be smallest."""
        return self._rho

    @property
    def failure(self) -> float:
        """The part of delta that steps may spend by deltas of their own."""
        return self._failure

    def _find_cost(self, mechanism: Mechanism) -> tuple[float, float, float]:
        return concentrated_parts(mechanism, self._adjacency)

    def _epsilon(self, ledger: Mapping[Mechanism, int]) -> float:
        """Return where the mean of the supermartingales would be 1/delta'."""
        steps = [(count, self._cost(mechanism)) for mechanism, count in ledger.items()]
        spent = math.fsum(count * rho for count, (rho, _, _) in steps) * UP
        common = math.fsum(count * xi for count, (_, xi, _) in steps) * UP
        failed = sum((count * Fraction(delta) for count, (_, _, delta) in steps), Fraction(0))
        if failed > Fraction(self._failure) or not math.isfinite(spent + common):
            return math.inf
        if spent == 0.0 and common == 0.0:  # equal laws, but for what may have failed
            return 0.0
        depth = -math.log(without_failure(self._delta, self._failure))
        return (common + (spent + _excess(spent, depth, depth / self._rho))) * UP


def _excess(spent: float, depth: float, scale: float) -> float:
    """Return z at which the logarithm of the mean is `depth`, rounded up; `scale` is s^2."""
    if spent == 0.0:
        return 0.0  # the loss is at most the sum of xi, by the limit of high orders
    y = 2.0 * spent * scale
    depth += LONG_SUM * (depth + math.log1p(y) + 1.0)

    def below(z: float) -> bool:
        w = z * math.sqrt(scale / (1.0 + y))
        return math.log(2.0) - 0.5 * math.log1p(y) + 0.5 * w * w + float(log_q(-w)) < depth

    high = math.sqrt((1.0 + y) / scale * (2.0 * depth + math.log1p(y)))
    return halve(below, 0.0, high * UP, most=BISECTIONS)[1]

"""Privacy filters: budgets that hold when each mechanism is chosen from what the earlier ones released.

Costs are added exactly, and compared with the budget before anything is spent.

Why they hold. Let P and Q be the laws of all releases on two adjacent data sets, and let what a step may spend depend on
the earlier releases alone.

Gaussian. Where step t is a Gaussian pair at distance d_t <= r_t and the sum of r_t^2 is at most mu^2 on every path, add to
each step an independent coordinate at distance sqrt(r_t^2 - d_t^2), and in the end one at the root of what is left of mu^2:
this tells the attacker more. Under Q the log-likelihood ratio is then the sum of r_t Z_t - r_t^2/2, with Z_t standard
normal given the past, and E exp(iu sum r_t Z_t + u^2 mu^2/2) = 1 because the partial products are a bounded martingale:
sum r_t Z_t is normal with variance mu^2, whatever the choices were. So P and Q have the privacy loss of N(mu, 1) against
N(0, 1), and the releases are mu-GDP. (Smith and Thakurta 2022, arXiv 2210.17520; Koskela, Tobaben and Honkela 2023, arXiv
2209.15596.)

Renyi. Where step t has order-a divergence at most rho_t given the past, the products of (dP_t/dQ_t)^a e^{-(a-1) rho_t} are a
supermartingale under Q. If the sum of rho_t is at most B on every path, E_Q (dP/dQ)^a <= e^{(a-1) B}: the releases have
order-a divergence at most B. (Feldman and Zrnic 2021, arXiv 2008.11193.) The order is fixed before the first step.
"""

from __future__ import annotations

import math
from fractions import Fraction

from hockeystick._checks import scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.printing import format_upper
from hockeystick._numeric.rounding import GAUSSIAN_TAIL, PENALTY
from hockeystick.accounting import renyi_divergence as renyi
from hockeystick.accounting.accountant import Accountant
from hockeystick.budgets.spending import ORDER, SCALE, SLACK, Filter, limit_of
from hockeystick.kernels import theta_inverse
from hockeystick.mechanisms import Gaussian
from hockeystick.mechanisms.base import Adjacency, Mechanism

__all__ = ["GaussianFilter", "RenyiFilter"]


class GaussianFilter(Filter):
    """A budget of Gaussian differential privacy for adaptively chosen Gaussian noise.

    Parameters
    ----------
    mu : float, optional
        The budget, in [1e-100, 1e100]: everything that the filter lets through is together mu-GDP.
    epsilon : float, optional
        Instead of mu, with `delta`: the largest mu that is (epsilon, delta)-DP, rounded down. Positive and finite.
    delta : float, optional
        In (0, 1).
    adjacency : {"add_or_remove", "replace"}
        Which data sets are adjacent.

    Raises
    ------
    ValueError
        If neither mu alone nor epsilon and delta are given, or an argument is outside its domain.

    Notes
    -----
    Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023; the proof is in budgets/filters.py. A step spends
    (sensitivity/noise)^2, and the sum stays at most mu^2: nothing is lost against steps fixed in advance.

    It assumes that `spend` comes before the release; that which mechanism comes next, and whether one does, depends on the
    data only through earlier releases (and coins of its own); and that the noise is Gaussian, of the full data: a sampled
    Gaussian is none, and is refused (see `RenyiFilter`).

    Examples
    --------
    >>> import hockeystick as hs
    >>> budget = hs.budgets.GaussianFilter(epsilon=2.0, delta=1e-5)
    >>> noise = 8.0
    >>> while not budget.would_exceed(hs.Gaussian(noise)):
    ...     _ = budget.spend(hs.Gaussian(noise))
    ...     noise *= 0.8  # release here, and choose the next noise from what is seen
    >>> len(budget), budget.remaining(hs.Gaussian(30.0))
    (5, 18)
    >>> print(f"{budget.epsilon(1e-5):.6f}")
    2.000000
    """

    _SETTINGS = ("mu",)

    def __init__(
        self,
        mu: float | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        adjacency: Adjacency = "add_or_remove",
    ) -> None:
        self._mu = limit_of("mu", mu, epsilon, delta, _largest_mu)
        super().__init__(adjacency, self._mu * self._mu)

    def _used(self, spent: tuple[Fraction, ...]) -> str:
        return f"mu {format_upper(math.sqrt(float(spent[0])))} of {self._mu:g}"

    @property
    def mu(self) -> float:
        """The budget."""
        return self._mu

    def _epsilon(self, delta: float) -> float:
        return float(_of_mu(self._mu).epsilon(delta))

    def _find_cost(self, mechanism: Mechanism) -> tuple[float, ...]:
        pairs = mechanism._pairs(self._adjacency) if mechanism._has_pair else []
        pairs = [(pair, count) for pair, count in pairs if pair.leaks]
        if not mechanism._has_pair or not all(pair.is_gaussian for pair, _ in pairs):
            raise ValueError(
                f"mechanism must be Gaussian noise without sampling, not {shown(mechanism)}; RenyiFilter takes others"
            )
        return (math.fsum(count * pair.gaussian_shift * pair.gaussian_shift for pair, count in pairs),)


def _of_mu(mu: float) -> Accountant:
    """Return the accountant of mu-GDP, the slack of the filter included."""
    return Accountant().compose(Gaussian(1.0 / (mu * (1.0 + SLACK))))


def _largest_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu whose certified epsilon is at most epsilon, to about 1e-9."""
    mu = float(theta_inverse(epsilon, delta))
    for step in (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-6):
        if _of_mu(feasible := mu * (1.0 - step)).epsilon(delta) <= epsilon:
            return scalar("mu of epsilon and delta", feasible, *SCALE)
    raise RuntimeError(f"no mu was found for epsilon = {epsilon}, delta = {delta}. This is a bug in hockeystick.")


class RenyiFilter(Filter):
    """A budget of Renyi divergence at one order, for adaptively chosen mechanisms.

    Parameters
    ----------
    budget : float, optional
        Everything that the filter lets through has together at most this divergence, in nats; positive and finite.
    order : float
        Renyi order, in (1, 1e5]; an integer is best for sampled mechanisms.
    epsilon : float, optional
        Instead of budget, with `delta`: the largest budget that is (epsilon, delta)-DP by `epsilon`, rounded down.
    delta : float, optional
        In (0, 1).
    adjacency : {"add_or_remove", "replace"}
        Which data sets are adjacent.

    Raises
    ------
    ValueError
        If neither budget alone nor epsilon and delta are given, an argument is outside its domain, or epsilon is too small
        for this order and delta.

    Notes
    -----
    Feldman and Zrnic 2021; the proof is in budgets/filters.py. A step spends `Accountant.rdp` at the order, the larger
    of both directions; mechanisms for which that has no bound are refused. The order is fixed before the first step:
    the best of several orders, chosen in the end, is not covered. Where steps are many and small, the order
    1 + (l + sqrt(l^2 + l epsilon))/epsilon with l = log(1/delta) leaves most.

    It assumes that `spend` comes before the release; and that which mechanism comes next, and whether one does, depends on
    the data only through earlier releases (and coins of its own).

    Examples
    --------
    >>> import hockeystick as hs
    >>> budget = hs.budgets.RenyiFilter(order=8, epsilon=2.0, delta=1e-5)
    >>> step = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)
    >>> budget.spend(step, 100).remaining(step)
    779
    """

    _SETTINGS = ("budget", "order")

    def __init__(
        self,
        budget: float | None = None,
        *,
        order: float,
        epsilon: float | None = None,
        delta: float | None = None,
        adjacency: Adjacency = "add_or_remove",
    ) -> None:
        self._order = scalar("order", order, *ORDER)
        self._budget = limit_of("budget", budget, epsilon, delta, self._largest_budget)
        super().__init__(adjacency, self._budget)

    def _used(self, spent: tuple[Fraction, ...]) -> str:
        return f"{format_upper(float(spent[0]))} of {self._budget:g} nats at order {self._order:g}"

    def _largest_budget(self, epsilon: float, delta: float) -> float:
        penalty = _penalty(self._order, delta)
        budget = epsilon - penalty - GAUSSIAN_TAIL * (epsilon + abs(penalty) + 1.0)
        if not SCALE[0](budget):
            raise ValueError(
                f"epsilon must leave a budget at order {self._order:g}: be larger than {penalty:g} at delta {delta:g}, not {epsilon:g}"
            )
        return budget

    @property
    def budget(self) -> float:
        """The budget, in nats."""
        return self._budget

    @property
    def order(self) -> float:
        """The Renyi order."""
        return self._order

    def _epsilon(self, delta: float) -> float:
        if delta == 0.0:
            return math.inf
        budget, penalty = self._budget * (1.0 + SLACK), _penalty(self._order, delta)
        # Above the rounding of the sum and of the penalty, whose terms cancel by at most a few units.
        return max(0.0, budget + penalty + PENALTY * (budget + abs(penalty) + 1.0))

    def _find_cost(self, mechanism: Mechanism) -> tuple[float, ...]:
        return (renyi.of_ledger({mechanism: 1}, self._adjacency, self._order),)


def _penalty(order: float, delta: float) -> float:
    """Return what epsilon is above the divergence: Canonne, Kamath and Steinke 2020, Proposition 12.

    delta = (1 - 1/a)^(a - 1) e^{(a - 1)(D - epsilon)}/a, solved for epsilon - D.
    """
    return math.log((order - 1.0) / order) - (math.log(delta) + math.log(order)) / (order - 1.0)

"""A privacy odometer for steps with zero-concentrated differential privacy, approximate too.

As in odometer.py, let L_t be the privacy loss of the first t steps, chosen by what was released. If step s has divergences of at most
x_s + a r_s at all orders a > 1, and X_t and R_t are the sums of x_s and r_s, then for every u = a - 1 > 0

    M_t(u) = exp(u (L_t - X_t) - u (u + 1) R_t)

is a supermartingale under P that starts at 1, and so is its mean over u >= 0 with the density of a half-normal law, sqrt(2/pi)/s e^(-u^2/(2 s^2)).
With z = L_t - X_t - R_t and y = 2 R_t s^2 that mean is a Gaussian integral,

    2 (1 + y)^(-1/2) exp(z^2 s^2/(2 (1 + y))) Phi(z s (1 + y)^(-1/2)),

which rises with L_t. By Ville's inequality it ever reaches 1/delta' with probability at most delta'. (Robbins 1970 for the mixture; Whitehouse,
Ramdas, Rogers and Wu 2023, arXiv 2203.05481, for zCDP odometers.) No s is wrong; s^2 = log(1/delta')/rho is close to the best where R_t is rho.

Where steps have deltas of their own, let P' and Q' be the laws of the releases if no step failed (concentrated_filter.py). A run that stops, by
any rule, where on every path the bound is at most epsilon and the steps' deltas sum to at most f, has P' <= e^epsilon Q' but for
delta', P <= (1 - f) P' + f and Q >= (1 - f) Q': it is (epsilon, (1 - f) delta' + f)-DP. So delta' = (delta - f)/(1 - f).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from hockeystick._checks import Domain, positive_scalar, scalar
from hockeystick._numeric.rounding import LONG_SUM, UP
from hockeystick._numeric.search import halve
from hockeystick.accounting.renyi_divergence import without_failure
from hockeystick.budgets.concentrated_filter import concentrated_parts
from hockeystick.budgets.filters import SCALE
from hockeystick.budgets.odometer_base import BISECTIONS, Odometer
from hockeystick.kernels import log_q
from hockeystick.mechanisms.base import Adjacency, Mechanism

__all__ = ["ZeroConcentratedOdometer"]


class ZeroConcentratedOdometer(Odometer):
    """What adaptively chosen steps with zero-concentrated differential privacy have spent so far.

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
    time, and report what it says. Robbins 1970; Whitehouse, Ramdas, Rogers and Wu 2023; the proof is in budgets/concentrated_odometer.py. Steps
    spend as in `ZeroConcentratedFilter`; for others there is `RenyiOdometer`.

    It assumes that `spend` comes before the release; and that which mechanism comes next, and whether one does, depends on the
    data only through earlier releases (and coins of its own).

    Examples
    --------
    >>> import hockeystick as hs
    >>> odometer = hs.ZeroConcentratedOdometer(delta=1e-5, rho=0.1)
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

    def _checked(self, mechanism: Mechanism, count: int) -> int:
        count = super()._checked(mechanism, count)
        concentrated_parts(mechanism, self._adjacency)
        return count

    def _epsilon(self, ledger: Mapping[Mechanism, int]) -> float:
        """Return where the mean of the supermartingales would be 1/delta'."""
        steps = [(count, concentrated_parts(mechanism, self._adjacency)) for mechanism, count in ledger.items()]
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

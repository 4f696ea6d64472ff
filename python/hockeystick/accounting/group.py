"""The guarantee of several records together, from that of one."""

from __future__ import annotations

import math
from collections.abc import Callable

from hockeystick._numeric.search import Probe, narrow

LARGEST = 700.0  # of the epsilon of one record that is tried
SLACK = 1e-9  # on a logarithm, for what rounding takes


def group_epsilon(log_delta: Callable[[float], float], group_size: int, delta: float) -> float:
    r"""Return an epsilon of k records at `delta`, given log delta of one record at every epsilon.

    If one record has (eps, delta), k have :math:`(k\epsilon, \delta (e^{k\epsilon} - 1)/(e^\epsilon - 1))` (Vadhan 2017, Lemma 2.2, with its sum
    kept). The epsilon of one record is chosen, so that the delta of the group is at most `delta`; what is returned satisfies this,
    whether or not the search found the smallest. Infinity if no epsilon up to 700 does.
    """

    def excess(eps: float) -> float:
        ratio = math.log(group_size) if eps == 0.0 else _log_expm1(group_size * eps) - _log_expm1(eps)
        return log_delta(eps) + ratio + SLACK - math.log(delta)

    good = Probe(1.0, excess(1.0))
    bad = Probe(0.0, excess(0.0))
    if bad.excess <= 0.0:
        return 0.0
    while good.excess > 0.0:
        if good.x >= LARGEST:
            return math.inf
        bad, good = good, Probe(2.0 * good.x, excess(2.0 * good.x))
    return group_size * narrow(excess, good, bad, tolerance=1e-6).x * (1.0 + 4e-16)


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x))

"""The guarantee of several records together, from that of one."""

from __future__ import annotations

import math
from collections.abc import Callable

from hockeystick._numeric.search import smallest_feasible

LARGEST = 1024.0  # of the epsilons of one record that are tried: powers of two
SLACK = 1e-9  # on a logarithm, for what rounding takes


def group_epsilon(log_delta: Callable[[float], float], group_size: int, delta: float) -> float:
    r"""Return an epsilon of k records at `delta`, given log delta of one record at every epsilon.

    If one record has (eps, delta), k have :math:`(k\epsilon, \delta (e^{k\epsilon} - 1)/(e^\epsilon - 1))` (Vadhan 2017, Lemma 2.2, with its sum
    kept). The epsilon of one record is chosen, so that the delta of the group is at most `delta`; what is returned satisfies this,
    whether or not the search found the smallest. Infinity if no power of two up to 1024 does.
    """

    def excess(eps: float) -> float:
        ratio = math.log(group_size) if eps == 0.0 else _log_expm1(group_size * eps) - _log_expm1(eps)
        return log_delta(eps) + ratio + SLACK - math.log(delta)

    return group_size * smallest_feasible(excess, most=LARGEST, tolerance=1e-6) * (1.0 + 4e-16)


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x))

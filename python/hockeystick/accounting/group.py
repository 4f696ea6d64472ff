"""Epsilons of several records together, of one person say: of the group's own mechanisms, or from the guarantee of one record.

What is known of one record alone is chained over k data sets, each adjacent to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from hockeystick._numeric.rounding import UP
from hockeystick._numeric.search import smallest_feasible
from hockeystick.accounting.composition import Composition
from hockeystick.accounting.engines import Question, upper_end
from hockeystick.accounting.group_mechanisms import of_group
from hockeystick.accounting.questions import Questions, num_records
from hockeystick.mechanisms.base import Mechanism

LARGEST = 1024.0  # of the epsilons of one record that are tried: powers of two
SLACK = 1e-9  # on a logarithm, for what rounding takes


def has_chains(accountant: Questions) -> bool:
    """Say whether the data sets between two that differ by a group have the same accountant."""
    return accountant.adjacency == "replace" or num_records(accountant.ledger) is None


def exact_epsilon(accountant: Questions, group_size: int, delta: float) -> float:
    """Return the epsilon of the group's own mechanisms; infinity if a step has none."""
    group: dict[Mechanism, int] = {}
    for step, count in accountant.ledger.items():
        of_all = of_group(step, group_size, accountant.adjacency)
        if of_all is None:
            return math.inf
        group[of_all] = group.get(of_all, 0) + count
    return upper_end(Composition(group, accountant.adjacency), Question(True, delta), "auto")


def chained_epsilon(accountant: Questions, group_size: int, delta: float) -> float:
    """Return the epsilon of group privacy, as `hockeystick.group_epsilon` says; infinity if no power of two up to 1024 is enough for one record."""
    if delta == 0.0:
        return group_size * float(accountant.epsilon(0.0)) * UP

    def excess(log_delta: Callable[[float], float], eps: float) -> float:
        ratio = math.log(group_size) if eps == 0.0 else _log_expm1(group_size * eps) - _log_expm1(eps)
        return log_delta(eps) + ratio + SLACK - math.log(delta)

    of_one = partial(excess, lambda eps: float(accountant.log_delta(eps)))
    return group_size * smallest_feasible(of_one, most=LARGEST, tolerance=1e-6) * UP


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x))

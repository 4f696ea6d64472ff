"""How many rounds a budget allows a run."""

from __future__ import annotations

from hockeystick._checks import DELTA, NON_NEGATIVE_OR_INFINITE, scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.printing import format_upper
from hockeystick.simulate.algorithms.algorithm import Algorithm
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.views import View

__all__ = ["affordable_rounds"]


def affordable_rounds(
    algorithm: Algorithm, problem: Problem, rounds: int, budget: tuple[float, float], released: View | None
) -> int:
    """Return how many of the planned rounds the budget allows, by the guarantee of what is released."""
    if not isinstance(budget, tuple) or len(budget) != 2:
        msg = f"budget must be a tuple (epsilon, delta), not {shown(budget)}"
        raise TypeError(msg)
    epsilon = scalar("budget[0]", budget[0], *NON_NEGATIVE_OR_INFINITE)
    delta = scalar("budget[1]", budget[1], *DELTA)
    guarantee = algorithm.guarantee(problem, rounds=rounds, released=released)
    count = guarantee.affordable(rounds, epsilon, delta)
    # The run is then one of which so many rounds are planned, and it is their guarantee that a result tells.
    while 0 < count < rounds:
        if algorithm.guarantee(problem, rounds=count, released=released).epsilon(count, delta) <= epsilon:
            break
        count -= 1
    if count == 0:
        cost = guarantee.epsilon(1, delta)
        msg = (
            f"budget must allow one round, which costs epsilon = {format_upper(cost)} at delta = {delta}, not {epsilon}"
        )
        raise ValueError(msg)
    return count

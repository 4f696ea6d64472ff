"""Shifted interpolation solved three ways that share nothing with the compiled code.

The shifts s_t minimise sum s^2 subject to z_{t+1} = rho_t z_t + gamma_t - s_t >= 0, s_t >= 0, z_T = 0. With P_t the product
of the rho after t and u_t = s_t/P_t the optimality conditions s_{t-1} <= rho_t s_t read u_{t-1} <= u_t: u is the isotonic
regression of gamma_t/P_t with weights P_t^2. Here by the max-min formula (cubic), by pooling in numbers of unlimited exponent,
and by a general solver, which takes the problem as it is.
"""

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
from scipy.optimize import minimize


def _weights(rho: Sequence[Any], gamma: Sequence[Any], gap: Any) -> tuple[list[Any], list[Any]]:
    """Return P_t and P_t gamma_t, the gap counted into round 0, from the last rho = 0 on: what is before it is forgotten."""
    first = max((t for t, r in enumerate(rho) if r == 0), default=0)
    gamma = list(gamma)
    gamma[0] += rho[0] * gap
    product, squares, totals = 1, [], []
    for t in range(len(rho) - 1, first - 1, -1):
        squares.append(product * product)
        totals.append(product * gamma[t])
        product *= rho[t]
    return squares[::-1], totals[::-1]


def _exactly(x: Any) -> mp.mpf:
    return x if isinstance(x, mp.mpf) else mp.mpf(float(x))


def by_max_min(rho: Sequence[Any], gamma: Sequence[Any], gap: Any = 0) -> Fraction:
    """Return the optimum exactly, as a fraction: u_t = max over i <= t of min over j >= t of the mean from i to j."""
    squares, totals = _weights([Fraction(x) for x in rho], [Fraction(x) for x in gamma], Fraction(gap))
    n = len(squares)
    over = [Fraction(0), *itertools.accumulate(squares)]
    sums = [Fraction(0), *itertools.accumulate(totals)]
    value = Fraction(0)
    for t in range(n):
        u = max(min((sums[j + 1] - sums[i]) / (over[j + 1] - over[i]) for j in range(t, n)) for i in range(t + 1))
        value += squares[t] * u * u
    return value


def by_pooling(rho: Sequence[float], gamma: Sequence[float], gap: float = 0.0) -> mp.mpf:
    """Return the optimum to 40 digits: pool adjacent violators of u_{t-1} <= u_t."""
    with mp.workdps(40):
        squares, totals = _weights([_exactly(x) for x in rho], [_exactly(x) for x in gamma], _exactly(gap))
        blocks: list[tuple[mp.mpf, mp.mpf]] = []
        for square, total in zip(squares, totals, strict=True):
            a, b = total, square
            while blocks and blocks[-1][0] * b > a * blocks[-1][1]:
                before, weight = blocks.pop()
                a, b = a + before, b + weight
            blocks.append((a, b))
        return mp.fsum(a * a / b for a, b in blocks)


def by_all_starts(rho: Sequence[float], gamma: Sequence[float], gap: float, diameter: float) -> mp.mpf:
    """Return the optimum over every start: round 0 from `gap`, any later round from `diameter`."""
    later = (by_pooling(rho[t:], gamma[t:], diameter) for t in range(1, len(rho)))
    return min((by_pooling(rho, gamma, gap), *later))


def by_quadratic_programming(rho: np.ndarray, gamma: np.ndarray, gap: float) -> float:
    """Return the optimum of at least two rounds by SLSQP on the shifts, to about 1e-7."""

    def distances(shifts: Any) -> Any:  # z_1, ..., z_T
        steps = zip(rho, gamma, shifts, strict=True)
        return np.array([*itertools.accumulate(steps, lambda z, x: x[0] * z + x[1] - x[2], initial=gap)][1:])

    limits = [("ineq", lambda s: distances(s)[:-1]), ("eq", lambda s: distances(s)[-1])]
    found = minimize(
        lambda s: s @ s,
        gamma + np.eye(len(rho))[0] * rho[0] * gap,  # distances of 0
        bounds=[(0, None)] * len(rho),
        constraints=[{"type": kind, "fun": value} for kind, value in limits],
        options={"ftol": 1e-8, "maxiter": 500},
    )
    assert found.success, found.message
    return float(found.fun)

"""Pairs of discrete distributions computed from something finer: on a grid of losses, and rounded towards more loss."""

from __future__ import annotations

import math

import numpy as np

from hockeystick._checks import Array


def connect_the_dots(losses: Array, masses: Array, nodes: Array) -> Array:
    """Move the masses that Q puts at losses to increasing nodes, which must enclose them, such that delta only grows.

    Each outcome becomes two, at the nodes on its two sides, with the same mass under Q and, as the mean of e^loss is kept, under
    P too. By convexity in e^loss no hockey-stick divergence falls (connecting the dots: Doroshenko and others 2022). P has
    e^node times the result.
    """
    left = np.clip(np.searchsorted(nodes, losses, side="right") - 1, 0, nodes.size - 2)
    share = np.expm1(losses - nodes[left]) / np.expm1(nodes[left + 1] - nodes[left])
    share = np.clip(share, 0.0, 1.0)
    lower = np.bincount(left, (1.0 - share) * masses, nodes.size)
    return np.asarray(lower + np.bincount(left + 1, share * masses, nodes.size))


def widen(losses: Array, p: Array, q: Array, error: float) -> tuple[Array, Array]:
    """Return a pair that leaks no less than the true one, of which p and q are known up to a relative error.

    P's masses of positive losses (infinite ones are some) and Q's of negative ones are raised by that share, their others lowered;
    sums stay. So P(A) - e^eps Q(A) of the upper outcomes A, eps >= 0, rises by error P(A), which is more than it is off by; for
    eps < 0 the same is seen from the lower outcomes.
    """
    result = []
    for law, raised in ((p, losses > 0.0), (q, losses < 0.0)):
        gain, spare = math.fsum(law[raised].tolist()), math.fsum(law[~raised].tolist())
        if spare <= 2.0 * error * gain:
            msg = f"the two data sets must not be told apart almost surely, as they are here: {spare:g} of one are left in doubt"
            raise ValueError(msg)
        result.append(law * np.where(raised, 1.0 + error, 1.0 - error * gain / spare))
    return result[0], result[1]

"""Laws of finitely many outcomes: their divergences by sums over all outcomes, and the laws of choices by scores."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

Law = NDArray[np.float64]


def hockey_stick(p: Law, q: Law, eps: float) -> float:
    """Return delta of P from Q."""
    return float(np.maximum(p - math.exp(eps) * q, 0.0).sum())


def larger_hockey_stick(p: Law, q: Law, eps: float) -> float:
    """Return the larger delta of both directions."""
    return max(hockey_stick(p, q, eps), hockey_stick(q, p, eps))


def renyi(p: Law, q: Law, orders: ArrayLike) -> Law:
    """Return the Renyi divergences of P from Q at orders other than 1."""
    a = np.asarray(orders)[:, None]
    return np.asarray(logsumexp(a * np.log(p) + (1 - a) * np.log(q), axis=1) / (a[:, 0] - 1))


def exponential(exponents: Law) -> Law:
    """Return the law of a choice with probabilities in proportion to exponentials."""
    return np.exp(exponents - logsumexp(exponents))


def permute_and_flip(exponents: Law) -> Law:
    """Return the law of permute-and-flip, by all orders and coins."""
    chances, law = np.exp(exponents - exponents.max()), np.zeros(exponents.size)
    orders = list(itertools.permutations(range(exponents.size)))
    for order in orders:
        left = 1.0
        for candidate in order:
            law[candidate] += left * chances[candidate] / len(orders)
            left *= 1 - chances[candidate]
    return law

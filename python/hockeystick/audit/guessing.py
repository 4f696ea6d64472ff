"""How many of r guesses at m fair coins can be right, if each coin is hidden by differential privacy.

Coin i decides whether canary i is included; W of the r guesses, made from the output, are right. Each function says
whether P(W >= w) <= failure for every mechanism that hides each coin as stated, and says it for all smaller parameters, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hockeystick.audit.rates import special
from hockeystick.kernels import q, q_inv


class Guesses(NamedTuple):
    """How many guesses were right, of how many, at how many coins."""

    num_correct: int
    num_guesses: int
    num_canaries: int


def impossible(guesses: Guesses, inverse: Callable[[float], float], failure: float) -> bool:
    """Say whether no distribution of W with P(W >= w) >= failure obeys the symmetric trade-off function f.

    `inverse` is the inverse of 1 - f, increasing. Fix c, and let A be the event that guess i is made and at least c - 1
    others are right, which coin i does not enter. f-DP and the concavity of 1 - f give P(A, i right) <= (1 - f)(P(A, i wrong)).
    The mean over the m canaries, and concavity again, with p_j = P(W = j):

        X_c <= (1 - f)(Y_{c-1}),   X_c = sum_{j>=c} j p_j / m,   Y_c = sum_{j>=c} (r - j) p_j / m.

    The loop is the p that puts `failure` on w and then, for j = w - 1, ..., 0, as little as these ask for; x and y are its X_c and
    Y_c. Every other p that obeys them, with capitals, has X_c >= x_c for c <= w and so Y_{c-1} >= inverse(x_c), by induction: let
    c' be the largest j below w on which the loop puts anything. Above it x_c = x_w <= X_w <= X_c. From c' down, with
    a_j = j/(r - j), X_c = (X_{c'+1} - a_{c'} Y_{c'+1}) + a_c Y_c + sum_{c<j<=c'} (a_j - a_{j-1}) Y_j. The a_j increase, and the
    Y_j are at least y_j = inverse(x_{j+1}); the bracket is sum_{j>c'} p_j (j - a_{c'} (r - j))/m, whose weights increase in j and
    are positive, so that it is least with `failure` on w and nothing else. Hence X_0 + Y_0 >= x_0 + y_0, and where that is
    above r/m, the total of all p_j is above 1.
    """
    right, made, canaries = guesses
    x, y = right * failure / canaries, (made - right) * failure / canaries
    for c in range(right, 0, -1):
        if x + y > made / canaries:
            return True
        needed = max(y, inverse(x))
        x += (c - 1) / (made - c + 1) * (needed - y)
        y = needed
    return x + y > made / canaries


def approximate_dp_inverse(epsilon: float, delta: float) -> Callable[[float], float]:
    """Return the inverse of 1 - f for (epsilon, delta)-DP, 1 - f(x) = min(delta + e^epsilon x, 1 - e^-epsilon (1 - delta - x), 1)."""
    shrunk, grown = math.exp(-epsilon), math.exp(epsilon)

    def inverse(y: float) -> float:
        return max(0.0, shrunk * (y - delta), 1.0 - delta - grown * (1.0 - y))

    return inverse


def gaussian_inverse(mu: float) -> Callable[[float], float]:
    """Return the inverse of 1 - f for mu-GDP, 1 - f(x) = Phi(Phi^-1(x) + mu)."""
    return lambda y: float(q(q_inv(y) + mu))


def binomial_rejects(guesses: Guesses, epsilon: float, delta: float, failure: float) -> bool:
    """Say whether W would be `failure` unlikely under (epsilon, delta)-DP, by a binomial variable.

    Given the output T and the coins before i, the two laws of T that coin i chooses between are (1 - delta) A'_b + delta B_b
    with A'_0 and A'_1 within e^epsilon of each other (Kairouz, Oh and Viswanath 2015). Hence a guess is right with probability
    e^epsilon/(1 + e^epsilon) at most, but with a probability F_i whose mean over T is delta. So W <= B + N, B binomial of r
    trials, N >= 0 an integer of mean m delta at most. N may depend on B: the worst case puts N = i on B = w - i, the cheapest
    first.
    """
    right, made, canaries = guesses
    functions = special()
    rate = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(functions.betainc(right, made - right + 1, rate)) if right else 1.0
    below = np.arange(right - 1, -1, -1)
    log_choices = functions.gammaln(made + 1) - functions.gammaln(below + 1) - functions.gammaln(made - below + 1)
    log_odds = below * math.log(rate) - (made - below) * (epsilon + math.log1p(math.exp(-epsilon)))
    masses = np.exp(log_choices + log_odds)
    missing = np.arange(1.0, right + 1)
    spent = np.cumsum(missing * masses)
    budget = canaries * delta
    paid = int(np.searchsorted(spent, budget, "right"))
    gained = float(masses[:paid].sum())
    if paid < right:
        gained += (budget - (spent[paid - 1] if paid else 0.0)) / missing[paid]
    return tail + gained <= failure

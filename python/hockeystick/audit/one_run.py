"""Audits of one run with many canaries, each included by a fair coin of its own.

The bounds say how many of r guesses at m fair coins can be right, if each coin is hidden by differential privacy. Coin i decides whether canary i is included; W of the r guesses, made from the output, are right. Each function says
whether P(W >= w) <= failure for every mechanism that hides each coin as stated, and says it for all smaller parameters, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from hockeystick._checks import choice, count_scalar
from hockeystick._numeric.search import last_that_holds
from hockeystick.accounting.gaussian_dp import gdp_epsilon
from hockeystick.audit.scores import TOLERANCE, claim, delta_of, failure_probability, scores_of, shuffled
from hockeystick.kernels import q, q_inv

__all__ = ["OneRunEvidence", "one_run"]


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
    rate = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(special.betainc(right, made - right + 1, rate)) if right else 1.0
    below = np.arange(right - 1, -1, -1)
    log_choices = special.gammaln(made + 1) - special.gammaln(below + 1) - special.gammaln(made - below + 1)
    log_odds = below * math.log(rate) - (made - below) * (epsilon + math.log1p(math.exp(-epsilon)))
    missing = np.arange(1.0, right + 1)
    with np.errstate(under="ignore"):
        masses = np.exp(log_choices + log_odds)
        spent = np.cumsum(missing * masses)
    budget = canaries * delta
    paid = int(np.searchsorted(spent, budget, "right"))
    gained = float(masses[:paid].sum())
    if paid < right:
        gained += (budget - (spent[paid - 1] if paid else 0.0)) / missing[paid]
    return tail + gained <= failure


OneRunMethod: TypeAlias = Literal["f_dp", "binomial", "gdp"]

METHODS: tuple[OneRunMethod, ...] = get_args(OneRunMethod)


@dataclass(frozen=True)
class OneRunEvidence:
    """A lower bound of epsilon from one run, and what it rests on.

    Attributes
    ----------
    epsilon : float
        The lower bound; 0 where nothing can be said, never infinite.
    mu : float or None
        The lower bound of the Gaussian-DP parameter behind it, for "gdp" only.
    delta, confidence : float
        The delta for which it holds, and with which confidence.
    method : {"f_dp", "binomial", "gdp"}
        What kind of statement it is, see `one_run`.
    num_correct, num_guesses, num_canaries : int
        How many guesses were right, of how many, at how many canaries.
    """

    epsilon: float
    mu: float | None
    delta: float
    confidence: float
    method: OneRunMethod
    num_correct: int
    num_guesses: int
    num_canaries: int

    def __str__(self) -> str:
        """Return the statement in a sentence."""
        return (
            f"{claim(self.epsilon, self.delta, self.method, self.confidence)}: "
            f"{self.num_correct} of {self.num_guesses} guesses right at {self.num_canaries} canaries"
        )


def one_run(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    num_guesses: int,
    delta: float,
    confidence: float,
    method: OneRunMethod = "f_dp",
) -> OneRunEvidence:
    r"""Return a lower bound of epsilon from one run with many canaries.

    Parameters
    ----------
    scores : array-like of shape (num_canaries,)
        One score for each canary, larger if it seems included; from the run's output alone.
    included : array-like of bool, of shape (num_canaries,)
        Which canaries were included: **independent fair coins**, not a fixed number of them.
    num_guesses : int
        How many canaries to guess, in [1, num_canaries]: the larger half of this number, from the top, to be included,
        the rest, from the bottom, not to be. It must be fixed without looking at these scores. A tenth of the
        canaries is a start; fewer show a larger epsilon if the canaries are many.
    delta : float
        In [0, 1); positive for "gdp".
    confidence : float
        Probability, in [0.5, 1), with which the bound may be relied on.
    method : {"f_dp", "binomial", "gdp"}
        "f_dp" and "binomial" assume nothing; "binomial" is the larger by about 1 % at delta = 0 and the smaller
        where num_canaries * delta is not small. "gdp" bounds mu, then converts; it assumes that the trade-off function is
        that of a Gaussian mechanism.

    Returns
    -------
    OneRunEvidence
        The lower bound: at most the true epsilon of including or not including one canary, but with probability
        1 - confidence. Its method and counts.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or scores are NaN.
    TypeError
        If an argument has the wrong type.

    Notes
    -----
    The number of right guesses has a tail that differential privacy bounds; the result is the largest epsilon refuted.
    "f_dp" is the recursion of Mahloujifar, Melis and Chaudhuri 2024 with the trade-off function of (epsilon, delta)-DP, "gdp"
    the same with that of mu-GDP. "binomial" is Theorem 5.2 of Steinke, Nasr and Jagielski 2023 with another correction
    for delta, which allows every dependence between the failures of pure privacy and the right guesses. Both
    are proved in audit/one_run.py.

    Equal scores are put in a random order, the same for the same arguments. The time is proportional to
    `num_guesses`, under a second for 1e5.

    Examples
    --------
    >>> import numpy as np
    >>> from hockeystick import audit
    >>> rng = np.random.default_rng(0)
    >>> included = rng.random(10_000) < 0.5
    >>> evidence = audit.one_run(
    ...     included + rng.normal(0.0, 1.0, 10_000), included, num_guesses=1000, delta=1e-5, confidence=0.95
    ... )
    >>> evidence.epsilon > 1.0
    True
    """
    choice("method", method, METHODS)
    order, coins = _canaries(scores, included)
    made = count_scalar("num_guesses", num_guesses)
    if made > order.size:
        raise ValueError(f"num_guesses must be at most the number of canaries, {order.size}, not {made}")
    delta = delta_of(delta, method)
    failure = failure_probability(confidence)

    bottom, top = order[: made // 2], order[order.size - (made - made // 2) :]
    right = int(np.count_nonzero(coins[top]) + np.count_nonzero(~coins[bottom]))
    guesses = Guesses(right, made, order.size)
    end = last_that_holds(_rejected(guesses, delta, failure, method), TOLERANCE)
    epsilon, mu = (float(gdp_epsilon(end, delta)), end) if method == "gdp" else (end, None)
    return OneRunEvidence(epsilon, mu, delta, float(confidence), method, *guesses)


def _rejected(guesses: Guesses, delta: float, failure: float, method: OneRunMethod) -> Callable[[float], bool]:
    """Return the test that refutes a parameter: mu for "gdp", else epsilon."""
    if method == "binomial":
        return lambda epsilon: binomial_rejects(guesses, epsilon, delta, failure)
    if method == "gdp":
        return lambda mu: impossible(guesses, gaussian_inverse(mu), failure)
    return lambda epsilon: impossible(guesses, approximate_dp_inverse(epsilon, delta), failure)


def _canaries(scores: ArrayLike, included: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the canaries' order by score, equal ones in a random order that no one chose, and their coins."""
    values = scores_of("scores", scores, 1)
    coins = np.asarray(included)
    if coins.dtype != np.bool_:
        raise TypeError(f"included must be an array of booleans, not of {coins.dtype}")
    if coins.shape != values.shape:
        raise ValueError(f"included must have the shape of scores, {values.shape}, not {coins.shape}")
    return np.lexsort([shuffled(values.size, values, coins), values]), coins

r"""Answers by the noisy votes of teachers, as in PATE: each person's records taught one teacher, who has one vote for each query.

The class of the most votes after Gaussian noise is released (GNMax: Papernot, Song, Mironov, Raghunathan, Talwar and Erlingsson 2018, arXiv:1802.08908).
Another teacher in the place of one moves a vote from one class to another: by the length :math:`\sqrt 2`. So an answer leaks no more than Gaussian noise
at the distance :math:`\mu = \sqrt 2/\text{noise}`, whatever the votes. That is the guarantee.

Where the votes agree, what was released could hardly have been different, and less was leaked. How much less depends on the votes, which are private: a number
that is computed from them is no guarantee, and to publish it leaks in its turn. It is here for those who plan, with a type of its own,
which no accountant takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import OPEN_PROBABILITY, STRICT, Array, real, scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.printing import format_upper
from hockeystick._numeric.rounding import HANDFUL, SHORT_SUM_UP
from hockeystick.kernels import log_q, q, q_inv
from hockeystick.mechanisms.base import ORDERS
from hockeystick.mechanisms.noise import Gaussian
from hockeystick.selection.curves import GAUSSIAN_NOISE

__all__ = ["DataDependentEpsilon", "gaussian_votes", "votes_epsilon", "votes_renyi"]

MARGIN = 1e-9  # quantiles are at most 40, so that rounding moves logarithms of tails by 1e-12 at most
SMALLEST = 1e-290  # of the probability that the noisy winner is another class


@dataclass(frozen=True)
class DataDependentEpsilon:
    """What answers leaked, given the votes. It is private itself, and no guarantee.

    Attributes
    ----------
    epsilon : float
        No other teacher in the place of one would have made the answers' laws differ by more than (epsilon, delta). It depends on the votes.
    delta : float
        As asked.
    guaranteed : float
        The epsilon that holds whatever the votes: what may be published.
    order : float
        The Renyi order that gave `epsilon`.
    """

    epsilon: float
    delta: float
    guaranteed: float
    order: float

    status = "data-dependent"

    def __str__(self) -> str:
        """Return a sentence that says what the number is not."""
        return (
            f"epsilon {format_upper(self.epsilon)} at delta {self.delta:g} for these votes, which is private itself; "
            f"{format_upper(self.guaranteed)} whatever the votes"
        )


def gaussian_votes(noise_std: float) -> Gaussian:
    r"""Return the mechanism of one answer by noisy votes, whatever the votes are.

    Parameters
    ----------
    noise_std : float
        Standard deviation of the noise of each class's count, in votes; in [0.01, 1e9].

    Returns
    -------
    Gaussian
        Of the noise multiplier noise_std/sqrt(2): a person who is added or removed is in the share of one teacher, whose vote may change from one class to another.
        Compose it for each answer. Under "replace" it is that of a person who moves between two teachers.

    Raises
    ------
    ValueError
        If the noise is outside its domain.
    TypeError
        If it is no number.

    Notes
    -----
    Papernot et al. 2018, Proposition 8, has Renyi divergences of order/noise_std^2; the Gaussian curve has the same and says more.

    Examples
    --------
    >>> import hockeystick as hs
    >>> answers = hs.Accountant().compose(hs.selection.gaussian_votes(100.0), 1000)
    >>> print(hs.format_upper(answers.epsilon(1e-6), ".4f"))
    1.9946
    """
    return Gaussian(scalar("noise_std", noise_std, *GAUSSIAN_NOISE) / math.sqrt(2.0) * (1.0 - HANDFUL))


def votes_renyi(votes: ArrayLike, noise_std: float, orders: ArrayLike) -> Array:
    r"""Return Renyi divergences of answers by noisy votes, given the votes: data-dependent, and private themselves.

    Parameters
    ----------
    votes : array_like of shape (classes,) or (queries, classes)
        Counts, non-negative; of at least two classes.
    noise_std : float
        Standard deviation of the noise of each count, in votes; in [0.01, 1e9].
    orders : array_like of shape (n,)
        Above 1, at most 1e5.

    Returns
    -------
    ndarray of shape (n,)
        Upper bounds of the sum over the queries, in nats, of the larger direction. For these votes and those with any one teacher's
        changed; certified, but no guarantee for other votes.

    Raises
    ------
    ValueError
        If a number is outside its domain.
    TypeError
        If an argument is of a wrong type.

    Notes
    -----
    Let P be the law of an answer with these votes, Q with one teacher's changed, E the event that it is not the class of the most votes :math:`i^*`, and
    :math:`P(E) \le q = \sum_{i \ne i^*} \Phi(-(n_{i^*} - n_i)/(\sqrt 2\, \text{noise}))` (Papernot et al. 2018, Proposition 7). Answers come from noisy counts, a Gaussian
    pair at distance :math:`\mu`. So :math:`Q(E) \le x = \Phi(\Phi^{-1}(q) + \mu)`, the best test; and by Jensen's inequality

    .. math:: \sum_{i \in E} P_i^a Q_i^{1-a} \le \int \phi\, p^a q^{1-a} \le e^{a(a-1)\mu^2/2}\, \Phi(\Phi^{-1}(q) + (a-1)\mu),

    as :math:`\phi \le 1` with :math:`\int \phi p \le q` is best spent where p/q is largest. Hence

    .. math:: e^{(a-1) D_a(P|Q)} \le (1 - q')^a (1 - x)^{1-a} + e^{a(a-1)\mu^2/2}\, \Phi(\Phi^{-1}(q) + (a-1)\mu),

    where :math:`q' \le P(E)` is the largest term of the sum q. :math:`D_a(Q|P)` has :math:`\Phi(\Phi^{-1}(q') - \mu) \le Q(E)`, q and x in place of q', x and q. The larger of both is taken, or :math:`a \mu^2/2` if that is smaller. Theorem 6 of
    the paper bounds :math:`D_a(P|Q)` alone, by two further orders in place of the Gaussian pair: for the votes (7, 3), noise 1 and order 2 it has 0.694, and :math:`D_2(Q|P)` is 1.25.

    Examples
    --------
    >>> import hockeystick as hs
    >>> for votes in ([240, 5, 5], [90, 85, 75]):
    ...     print(f"{hs.selection.votes_renyi(votes, 40.0, [8.0])[0]:.2e}")
    3.25e-05
    5.00e-03
    """
    counts = np.atleast_2d(STRICT.non_negative("votes", real("votes", votes)))
    if counts.ndim != 2 or counts.shape[1] < 2 or counts.shape[0] < 1:
        raise ValueError(
            f"votes must be of shape (classes,) or (queries, classes), of at least two classes, not {np.shape(votes)}"
        )
    noise_std = scalar("noise_std", noise_std, *GAUSSIAN_NOISE)
    asked = np.atleast_1d(real("orders", orders))
    if asked.ndim != 1 or not ((asked > 1.0) & (asked <= 1e5)).all():
        raise ValueError(f"orders must lie in (1, 1e5], not be {shown(orders)}")
    return _divergences(counts, noise_std, asked)


def votes_epsilon(votes: ArrayLike, noise_std: float, delta: float) -> DataDependentEpsilon:
    """Return epsilon of answers by noisy votes, given the votes; data-dependent, and private itself.

    Parameters
    ----------
    votes : array_like of shape (classes,) or (queries, classes)
        As in `votes_renyi`.
    noise_std : float
        As there.
    delta : float
        In (0, 1).

    Returns
    -------
    DataDependentEpsilon
        With the guaranteed epsilon beside it. It is no number: nothing adds it to a guarantee by mistake.

    Raises
    ------
    ValueError
        If a number is outside its domain.
    TypeError
        If an argument is of a wrong type.

    Notes
    -----
    `votes_renyi`, and the conversion of Canonne, Kamath and Steinke 2020. To publish it, Papernot et al. 2018, Section 4, add noise by its smooth
    sensitivity, which is not here. Queries that were dropped after a look at the votes, as by Confident-GNMax, are releases too: compose `Gaussian` for each look.

    Examples
    --------
    >>> import hockeystick as hs
    >>> agreed = [[230, 10, 10]] * 900 + [[130, 110, 10]] * 100
    >>> print(hs.selection.votes_epsilon(agreed, 40.0, 1e-6))
    epsilon 1.75946 at delta 1e-06 for these votes, which is private itself; 5.9271 whatever the votes
    """
    delta = scalar("delta", delta, *OPEN_PROBABILITY)
    orders = np.array(ORDERS)
    divergences = votes_renyi(votes, noise_std, orders)
    queries = np.atleast_2d(np.asarray(votes)).shape[0]
    epsilon, order = core.renyi_bound(ORDERS, divergences.tolist(), True, delta)
    always = queries * orders / noise_std**2 * SHORT_SUM_UP
    guaranteed = core.renyi_bound(ORDERS, always.tolist(), True, delta)[0]
    return DataDependentEpsilon(min(epsilon, guaranteed), delta, guaranteed, order)


def _divergences(counts: Array, noise: float, orders: Array) -> Array:
    """Return the sum over the queries; each kind of histogram is computed once."""
    kinds, times = np.unique(np.sort(counts, axis=1), axis=0, return_counts=True)
    distance = math.sqrt(2.0) / noise
    gaps = (kinds[:, -1:] - kinds[:, :-1]) / (math.sqrt(2.0) * noise)
    each = np.asarray(q(gaps))
    other = np.minimum(each.sum(axis=1) * (1.0 + MARGIN) + SMALLEST, 1.0)[:, None]
    least = each[:, -1:] * (1.0 - MARGIN)  # that the second of the votes wins against the first
    quantile = np.asarray(q_inv(other))
    changed = np.asarray(q(quantile - distance))
    least_changed = np.asarray(q(np.asarray(q_inv(np.maximum(least, SMALLEST))) + distance)) * (least > SMALLEST)
    less = orders - 1.0
    tilted = orders * less / noise**2

    def divergence(seen: Array, missed: Array, threshold: Array) -> Array:
        with np.errstate(divide="ignore", over="ignore"):
            stays = np.expm1(orders * np.log1p(-seen) - less * np.log1p(-missed * (1.0 + MARGIN)))
            strays = np.exp(
                tilted + np.asarray(log_q(threshold - less * distance))
            )  # infinite: the other bound is taken
        return np.asarray(np.log1p(np.maximum(stays + strays, 0.0)) / less)

    with np.errstate(invalid="ignore"):
        forward = divergence(least, np.minimum(changed, 1.0 - 2 * MARGIN), quantile)
        reverse = divergence(least_changed * (1.0 - MARGIN), np.minimum(other, 1.0 - 2 * MARGIN), quantile - distance)
    either = np.where(other < 0.5, np.maximum(forward, reverse) * (1.0 + MARGIN), math.inf)
    bounds = np.minimum(either, orders / noise**2 * SHORT_SUM_UP)
    total: Array = (times[:, None] * bounds).sum(axis=0) * SHORT_SUM_UP
    return total

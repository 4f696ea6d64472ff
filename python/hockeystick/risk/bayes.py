"""The chance of a wrong guess among several candidates, under a prior."""

from __future__ import annotations

import math
import sys
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from hockeystick._checks import Array, distribution, probability_scalar
from hockeystick._numeric.rounding import LONG_SUM, UNIT
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.privacy_curve import Curve, largest_useful_epsilon, one_minus_divergence
from hockeystick.risk.curve import curve_of

__all__ = ["bayes_risk"]

TOLERANCE = 1e-7  # of log lambda
MOST_TRIED = 8  # of the candidates' probabilities, as lambda
Counts = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]


def bayes_risk(accountant: Accountant, prior: ArrayLike) -> float:
    r"""Return the smallest chance that an attack guesses wrong.

    Parameters
    ----------
    accountant : Accountant
        What was composed.
    prior : float or array_like of shape (K,)
        What the attacker knows before. A number p in [0, 1]: the record is there with probability p, and else it is not ("add_or_remove"), or it
        has one of two values with probability p ("replace"). A vector that sums to 1: the probabilities of K values that the record may have.

    Returns
    -------
    float
        Certified lower bound on the error probability of the best guess.

    Raises
    ------
    TypeError
        If `accountant` is not an `Accountant`.
    ValueError
        If prior is outside its domain, or a vector does not sum to 1.

    Notes
    -----
    The guess i is right on an event :math:`S_i`; the events are disjoint. Let Q be the law of the output without the record, or with
    one of the values in its place. Then :math:`P_i(S_i) \le s_i Q(S_i) + D(s_i)` (`hockeystick.accounting.privacy_curve`), and with
    :math:`s_i = \lambda/\pi_i` the guess is right with probability at most

    .. math:: \sum_i \pi_i P_i(S_i) \le \lambda + \sum_i \pi_i D(\lambda/\pi_i)

    for every :math:`\lambda > 0`. Where Q is the law of candidate j itself, its term is :math:`\max(\pi_j - \lambda, 0)`. For two candidates this is
    Kulynych et al. 2025 (arXiv:2507.06969), Proposition D.1: :math:`\min(p, 1-p)(1 - \delta(|\log(p/(1-p))|))`. For many it is the dual of the
    attacker's best split of Q among the events, at the best lambda that a search finds.

    Examples
    --------
    Whether a record is in the data, and which of four equally likely values it has:

    >>> import hockeystick as hs
    >>> training = hs.Accountant("replace").compose(hs.Gaussian(4.0))
    >>> print(hs.format_lower(hs.risk.bayes_risk(training, 0.5), ".4f"), hs.format_lower(hs.risk.bayes_risk(training, [0.25] * 4), ".4f"))
    0.4012 0.6042
    """
    curve = curve_of(accountant)
    if np.ndim(prior) == 0:
        p = probability_scalar("prior", cast(float, prior))
        weights, one_is_reference = np.array([p, 1.0 - p]), True
    else:
        weights, one_is_reference = np.array(distribution("prior", prior)), accountant.adjacency == "replace"
    missing = abs(math.fsum(weights) - 1.0)
    weights, counts = np.unique(weights[weights > 0.0], return_counts=True)
    if weights.size == 1 and counts[0] == 1:
        return 0.0

    met = [0.0]  # every lambda gives a bound

    def negated(log_level: float) -> float:
        met.append(_wrong(curve, weights, counts, log_level, one_is_reference=one_is_reference))
        return -met[-1]

    for weight in weights[-MOST_TRIED:].tolist():  # exact for two candidates
        negated(math.log(weight))
    low = math.log(float(weights[-1])) - largest_useful_epsilon(curve, 1.0) - math.log(float(counts.sum()))
    optimize.minimize_scalar(negated, bounds=(low, 0.0), method="bounded", options={"xatol": TOLERANCE})
    found = max(met) - missing
    return float(found) if found >= sys.float_info.min else 0.0  # margins are relative


def _wrong(curve: Curve, weights: Array, counts: Counts, log_level: float, *, one_is_reference: bool) -> float:
    """Return the bound at one lambda, rounded down: what the candidates lose less lambda, or less what is above the reference."""
    level = math.exp(log_level)
    lost = np.array([x * one_minus_divergence(curve, log_level - math.log(x)) for x in weights.tolist()])
    spent = level
    if one_is_reference:
        best = int(np.argmax(np.minimum(weights, level) - lost))
        counts = counts - (np.arange(counts.size) == best)
        spent = max(level - float(weights[best]), 0.0)
    # Slopes are exponentials of differences of logarithms, and off by the rounding of those.
    margin = LONG_SUM + UNIT * (abs(log_level) + abs(math.log(float(weights[0]))))
    return float(lost @ counts) * (1.0 - margin) - spent * (1.0 + margin)

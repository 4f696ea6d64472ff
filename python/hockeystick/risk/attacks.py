"""The chance that an attack succeeds, and that a guess among several candidates is wrong, from what they are without the output."""

from __future__ import annotations

import math
import sys
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from hockeystick._checks import STRICT, Array, Result, count_scalar, distribution, probability_scalar
from hockeystick._numeric.rounding import LONG_SUM, UNIT, UP
from hockeystick.accounting.accountant import Accountant, require_accountant
from hockeystick.accounting.privacy_curve import (
    Curve,
    largest_useful_epsilon,
    one_minus_divergence,
    true_positive_rates,
)

__all__ = ["attribute_inference", "bayes_risk", "reconstruction", "singling_out", "true_positive_rate"]


def curve_of(accountant: Accountant) -> Curve:
    """Return the deltas of what an accountant has composed by now."""
    require_accountant("accountant", accountant)
    return accountant._composition().curve()


def true_positive_rate(accountant: Accountant, fpr: ArrayLike) -> Result:
    """Return the largest true-positive rate of any membership attack.

    Parameters
    ----------
    accountant : Accountant
        What was composed.
    fpr : array_like
        False-positive rate of the attack, in [0, 1]; any shape.

    Returns
    -------
    ndarray or float
        Certified upper bound: no test that accuses a record wrongly with this probability finds more of the members.

    Raises
    ------
    TypeError
        If `accountant` is not an `Accountant`.
    ValueError
        If fpr is outside its domain.

    Notes
    -----
    One less the trade-off function, which `Accountant.trade_off` bounds from below (Dong, Roth and Su 2022); computed without that subtraction,
    so that small rates keep their digits.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 1000)
    >>> print([hs.format_upper(tpr, ".2e") for tpr in hs.risk.true_positive_rate(training, [0.01, 1e-5])])
    ['2.92e-02', '7.21e-05']
    """
    return _each(accountant, "fpr", fpr)


def attribute_inference(accountant: Accountant, baseline: ArrayLike) -> Result:
    """Return the largest chance of guessing one attribute of a record.

    Parameters
    ----------
    accountant : Accountant
        What was composed.
    baseline : array_like
        Chance of the best guess without the output, in [0, 1]; any shape. The guess may know all else: the record's other attributes and
        all other records.

    Returns
    -------
    ndarray or float
        Certified upper bound on the chance of the best guess with the output.

    Raises
    ------
    TypeError
        If `accountant` is not an `Accountant`.
    ValueError
        If baseline is outside its domain.

    Notes
    -----
    This is `reconstruction` with the loss "the attribute is wrong": Kulynych et al. 2025, "Unifying re-identification, attribute inference, and
    data reconstruction risks in differential privacy" (arXiv:2507.06969).

    Examples
    --------
    A yes-or-no attribute, guessed right in half of the cases without the output:

    >>> import hockeystick as hs
    >>> training = hs.Accountant("replace").compose(hs.Gaussian(4.0))
    >>> print(hs.format_upper(hs.risk.attribute_inference(training, 0.5), ".4f"))
    0.6915
    """
    return _each(accountant, "baseline", baseline)


def reconstruction(accountant: Accountant, baseline: ArrayLike) -> Result:
    r"""Return the largest chance of reconstructing a record well enough.

    Parameters
    ----------
    accountant : Accountant
        What was composed.
    baseline : array_like
        Chance that the best guess without the output is well enough, in [0, 1]; any shape: for a record of law pi and a loss l that
        may be at most eta, the largest :math:`\Pr_{z \sim \pi}[l(z, z_0) \le \eta]` over guesses z_0.

    Returns
    -------
    ndarray or float
        Certified upper bound on the chance that any attack on the output guesses well enough.

    Raises
    ------
    TypeError
        If `accountant` is not an `Accountant`.
    ValueError
        If baseline is outside its domain.

    Notes
    -----
    Reconstruction robustness (Balle, Cherubin and Hayes 2022, Definition 2). Proof of the bound, which Kaissis et al. 2023 and
    Hayes, Mahloujifar and Balle 2023 have for DP-SGD: let P_z be the law of the output with the record z, and Q that without it, or with a
    fixed one in its place. An event of probability q under Q has at most the probability g(q) = 1 - f(q) under P_z, where f is the trade-off
    function. The attack succeeds for z on an event S_z. Its chance is :math:`E_z P_z(S_z) \le E_z\, g(Q(S_z)) \le g(E_z Q(S_z))`,
    since g is concave; an output of law Q does not depend on z, so :math:`E_z Q(S_z)` is at most the baseline, and g rises.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 1000)
    >>> print(hs.format_upper(hs.risk.reconstruction(training, 1e-9), ".2e"))
    2.02e-08
    """
    return _each(accountant, "baseline", baseline)


def singling_out(accountant: Accountant, weight: ArrayLike, num_records: int) -> Result:
    r"""Return the largest chance of singling out a record by a rare description.

    Parameters
    ----------
    accountant : Accountant
        What was composed.
    weight : array_like
        Largest probability that a fresh record fits the description, in [0, 1]; any shape.
    num_records : int
        Number n of records, at least 1, drawn independently of one another from one law.

    Returns
    -------
    ndarray or float
        Certified upper bound on the chance that an attack on the output names a description of at most this weight that exactly
        one record of the data fits.

    Raises
    ------
    TypeError
        If `accountant` is not an `Accountant`.
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Predicate singling out (Cohen and Nissim 2020, Definition 2.2). Proof: fix i and let the output have the law Q that it has where record i is
    left out or replaced by a fresh one. The description p does not depend on record i then, so record i fits it and
    p has at most the weight w with probability at most w. With record i this probability is at most g(w), one less the trade-off function at w, by
    the average over records that `reconstruction` has. One of the n records is singled out with probability at most n g(w).

    Examples
    --------
    >>> import hockeystick as hs
    >>> release = hs.Accountant("replace").compose(hs.Gaussian(10.0))
    >>> print(hs.format_upper(hs.risk.singling_out(release, 1e-9, 10_000), ".2e"))
    3.36e-05
    """
    n = count_scalar("num_records", num_records)
    return np.minimum(n * np.asarray(_each(accountant, "weight", weight)) * UP, 1.0)[()]


def _each(accountant: Accountant, name: str, probabilities: ArrayLike) -> Result:
    """Return 1 - f at every probability."""
    return true_positive_rates(curve_of(accountant), STRICT.probability(name, probabilities))[()]


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

"""Budgets of different units of privacy, how one follows from another, and composition by formulas.

Composition is for where a budget is all that is known of a round; where mechanisms are known, `hockeystick.Accountant` is tighter.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import OPEN_PROBABILITY, STRICT, Result, positive_scalar, scalar, vector
from hockeystick.isrl.domains import checked, checked_vectors, require_small_epsilon

__all__ = [
    "Budget",
    "advanced_composition",
    "compositionality_constant",
    "deletion_to_group",
    "group_privacy",
    "isrl_to_central",
    "isrl_to_user_level",
    "parallel_composition",
    "per_round_budget",
    "randomized_response_keep_prob",
    "subsampling_amplification",
    "tv_transfer",
    "user_level_to_isrl",
]


class Budget(NamedTuple):
    """An (epsilon, delta) pair, or arrays of them.

    Attributes
    ----------
    epsilon : float or ndarray
        Non-negative.
    delta : float or ndarray
        In [0, 1]; 1 where nothing is promised.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> isrl.Budget(1.0, 1e-5)
    Budget(epsilon=1.0, delta=1e-05)
    """

    epsilon: Result
    delta: Result


def isrl_to_central(epsilon: ArrayLike, delta: ArrayLike) -> Budget:
    """Return the central guarantee that inter-silo record-level privacy implies.

    Parameters
    ----------
    epsilon, delta : array_like
        The budget of every silo, or one number for all; epsilon >= 0, delta in [0, 1]; one-dimensional.

    Returns
    -------
    Budget
        What holds for every record of every silo: the largest epsilon and the largest delta.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the lengths differ.

    Notes
    -----
    Lowy and Razaviyayn 2023, Appendix C.1. The converse is false: a central guarantee may rest on a trusted server.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> isrl.isrl_to_central([1.0, 0.5], [1e-6, 1e-5])
    Budget(epsilon=1.0, delta=1e-05)
    """
    epsilons, deltas = checked_vectors(locals(), epsilon="non_negative", delta="probability")
    return Budget(float(epsilons.max()), float(deltas.max()))


def group_privacy(epsilon: ArrayLike, delta: ArrayLike, group_size: ArrayLike) -> Budget:
    r"""Return the (epsilon, delta) of a group of records from that of one record.

    Parameters
    ----------
    epsilon : array_like
        Guarantee for one record, >= 0.
    delta : array_like
        Guarantee for one record, in [0, 1].
    group_size : array_like
        Number of records k that differ, a positive integer.

    Returns
    -------
    Budget
        k epsilon, and delta (e^{k epsilon} - 1)/(e^epsilon - 1), at most 1; arrays of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The sum :math:`\delta \sum_{j<k} e^{j\epsilon}` that k applications of the definition give; never more than the usual
    :math:`k e^{(k-1)\epsilon} \delta` (`hockeystick.published.group_privacy`). With k = 2 it turns add-or-remove into replace.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print("{:.1f} {:.4g}".format(*isrl.group_privacy(0.1, 1e-8, 10)))
    1.0 1.634e-07
    """
    epsilon, delta, group_size = checked(locals(), epsilon="non_negative", delta="probability", group_size="count")
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.exp((group_size - 1) * epsilon) * np.expm1(-group_size * epsilon) / np.expm1(-epsilon)
        grown = delta * np.where(epsilon == 0, group_size, ratio)
    return Budget((group_size * epsilon)[()], np.where(delta == 0, 0.0, np.minimum(grown, 1.0))[()])


def isrl_to_user_level(epsilon: ArrayLike, delta: ArrayLike, num_records: ArrayLike) -> Budget:
    """Return the (epsilon, delta) of a whole silo from that of one of its records.

    Parameters
    ----------
    epsilon : array_like
        Inter-silo record-level guarantee, >= 0.
    delta : array_like
        Inter-silo record-level guarantee, in [0, 1].
    num_records : array_like
        Records in the silo, a positive integer.

    Returns
    -------
    Budget
        `group_privacy` of all records of the silo.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lowy and Razaviyayn 2023, Appendix C.2. The converse is false where user-level privacy is that of what the server publishes: the
    silo may send its records in the clear, and the server, which is trusted there, randomises. Where the silo's own messages hide the
    whole silo, they hide each of its records too.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print("{:.1f} {:.4g}".format(*isrl.isrl_to_user_level(0.01, 1e-9, 100)))
    1.0 1.71e-07
    """
    return group_privacy(epsilon, delta, STRICT.count("num_records", num_records))


def user_level_to_isrl(epsilon: ArrayLike, delta: ArrayLike, num_records: ArrayLike) -> Budget:
    """Return the record-level budget whose group privacy is a given budget of the whole silo.

    Parameters
    ----------
    epsilon : array_like
        Budget of the silo, positive and finite.
    delta : array_like
        Budget of the silo, in [0, 1].
    num_records : array_like
        Records in the silo, a positive integer n.

    Returns
    -------
    Budget
        epsilon/n and delta (e^{epsilon/n} - 1)/(e^epsilon - 1).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The inverse of `isrl_to_user_level`, for every epsilon; Lowy and Razaviyayn 2023, Appendix D.3.5, print delta/(4n), for
    epsilon up to 1.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print("{:.2f} {:.4g}".format(*isrl.user_level_to_isrl(1.0, 1e-5, 100)))
    0.01 5.849e-08
    """
    epsilon, delta, num_records = checked(locals(), delta="probability")
    each = epsilon / num_records
    # (e^a - 1)/(e^b - 1) without overflow
    share = np.exp(each - epsilon) * np.expm1(-each) / np.expm1(-epsilon)
    return Budget(each[()], (delta * share)[()])


def tv_transfer(epsilon: ArrayLike, delta: ArrayLike, total_variation: ArrayLike) -> Budget:
    """Return the guarantee of a mechanism that is close to one whose guarantee is known.

    Parameters
    ----------
    epsilon : array_like
        Guarantee of the known mechanism, >= 0.
    delta : array_like
        Guarantee of the known mechanism, in [0, 1].
    total_variation : array_like
        Largest total variation distance between the two mechanisms' outputs on one input, in [0, 1].

    Returns
    -------
    Budget
        epsilon, and delta + (e^epsilon + 1) total_variation, at most 1.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lowy and Razaviyayn 2023, Lemma D.13: P~(S) <= P(S) + t <= e^eps Q(S) + delta + t <= e^eps (Q~(S) + t) + delta + t.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print("{:.1f} {:.1f}".format(*isrl.tv_transfer(0.0, 0.0, 0.1)))
    0.0 0.2
    """
    epsilon, delta, distance = checked(
        locals(), epsilon="non_negative", delta="probability", total_variation="probability"
    )
    with np.errstate(over="ignore", invalid="ignore"):
        added = np.where(distance == 0, 0.0, (np.exp(epsilon) + 1.0) * distance)
    return Budget(epsilon[()], np.minimum(delta + added, 1.0)[()])


def randomized_response_keep_prob(epsilon: ArrayLike, num_buckets: ArrayLike) -> Result:
    """Return the probability with which randomised response tells the truth.

    Parameters
    ----------
    epsilon : array_like
        Budget of local differential privacy, positive and finite.
    num_buckets : array_like
        Possible answers k, an integer >= 2; the others share the rest equally.

    Returns
    -------
    ndarray or float
        e^epsilon/(e^epsilon + k - 1).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Algorithm 3 of Lowy and Razaviyayn 2023, which answers in one round chosen by the record and is silent in the others, is
    not private: the round tells the record. One answer with this probability is.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(f"{isrl.randomized_response_keep_prob(1.0, 2):.6f}")
    0.731059
    """
    epsilon, buckets = checked(
        locals(), num_buckets=(lambda k: (k >= 2) & (k == np.floor(k)) & (k < np.inf), "be an integer >= 2")
    )
    return (1.0 / (1.0 + (buckets - 1.0) * np.exp(-epsilon)))[()]


def advanced_composition(epsilons: ArrayLike, deltas: ArrayLike, slack: float) -> Budget:
    r"""Return the guarantee of rounds with given budgets, chosen adaptively, by advanced composition.

    Parameters
    ----------
    epsilons, deltas : array_like
        Budget of each round, one-dimensional; a single number is repeated. epsilon >= 0, delta in [0, 1].
    slack : float
        The delta that the composition itself may spend (delta' in the paper), in (0, 1).

    Returns
    -------
    Budget
        The total. It can exceed basic composition, the plain sums, for few or lossy rounds.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the lengths differ.

    Notes
    -----
    :math:`\epsilon = \sqrt{2 \ln(1/\delta') \sum \epsilon_r^2} + \sum \epsilon_r (e^{\epsilon_r} - 1)`,
    :math:`\delta = \sum \delta_r + \delta'` (Dwork and Roth 2014, Theorem 3.20; rounds may differ: Lowy and Razaviyayn 2023, D.3.2).

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> epsilon, delta = isrl.advanced_composition([0.1] * 100, 1e-8, 1e-6)
    >>> print(format_upper(epsilon, ".4f"), format_upper(delta, ".1e"))
    6.3083 2.0e-06
    """
    eps, delta = checked_vectors(locals(), epsilons="non_negative", deltas="probability")
    slack = scalar("slack", slack, *OPEN_PROBABILITY)
    with np.errstate(over="ignore"):
        drift = float((eps * np.expm1(eps)).sum())
    spread = math.sqrt(-2.0 * math.log(slack)) * math.hypot(*eps.tolist())  # squares would underflow
    return Budget(spread + drift, min(float(delta.sum()) + slack, 1.0))


def per_round_budget(epsilon: ArrayLike, delta: ArrayLike, rounds: ArrayLike) -> Budget:
    r"""Return the budget of each of R rounds whose advanced composition stays within a total.

    Parameters
    ----------
    epsilon : array_like
        Total, positive, at most 2 ln(2/delta).
    delta : array_like
        Total, in (0, 1).
    rounds : array_like
        Number of rounds R, a positive integer.

    Returns
    -------
    Budget
        epsilon/(2 sqrt(2R ln(2/delta))) and delta/(2R); half of delta is the composition's own.

    Raises
    ------
    ValueError
        If an argument is outside its domain. For R <= 3 and epsilon near its limit advanced composition exceeds the total, and
        basic composition does not.

    Notes
    -----
    Proof of Theorem D.1 of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import format_lower, isrl
    >>> epsilon, delta = isrl.per_round_budget(1.0, 1e-5, 50)  # at most so much in each round
    >>> print(format_lower(epsilon, ".6f"), format_lower(delta, ".1e"))
    0.014311 1.0e-07
    """
    epsilon, delta, rounds = checked(locals())
    require_small_epsilon(epsilon, delta)
    each = epsilon / (2.0 * np.sqrt(2.0 * rounds * np.log(2.0 / delta)))
    return Budget(each[()], (delta / (2.0 * rounds))[()])


def subsampling_amplification(epsilon: ArrayLike, delta: ArrayLike, sampling_rate: ArrayLike) -> Budget:
    """Return the guarantee of a mechanism run on a uniform sample of fixed size.

    Parameters
    ----------
    epsilon : array_like
        Guarantee on the sample, >= 0.
    delta : array_like
        Guarantee on the sample, in [0, 1].
    sampling_rate : array_like
        Share q of the records in the sample, drawn without replacement, in (0, 1].

    Returns
    -------
    Budget
        ln(1 + q (e^epsilon - 1)) and q delta; for one record replaced.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Tight (Balle, Barthe and Gaboardi 2018, Theorem 9); Lowy and Razaviyayn 2023 use 2 q epsilon for epsilon up to 1.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> epsilon, delta = isrl.subsampling_amplification(1.0, 1e-5, 0.1)
    >>> print(format_upper(epsilon, ".6f"), format_upper(delta, ".1e"))
    0.158566 1.1e-06
    """
    epsilon, delta, rate = checked(
        locals(),
        epsilon=(lambda x: (x >= 0) & (x <= 700), "lie in [0, 700]"),
        delta="probability",
        sampling_rate="fraction",
    )
    return Budget(np.log1p(rate * np.expm1(epsilon))[()], (rate * delta)[()])


def parallel_composition(epsilons: ArrayLike, deltas: ArrayLike) -> Budget:
    """Return the guarantee of mechanisms that run on disjoint parts of the data.

    Parameters
    ----------
    epsilons, deltas : array_like
        Budget of each mechanism, one-dimensional; a single number is repeated. epsilon >= 0, delta in [0, 1].

    Returns
    -------
    Budget
        The largest epsilon and the largest delta: a record is in one part only.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the lengths differ.

    Notes
    -----
    McSherry 2009. It needs the parts to be chosen without looking at the records, and one record to be replaced within its part.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> isrl.parallel_composition([1.0, 0.5], [1e-5, 1e-6])
    Budget(epsilon=1.0, delta=1e-05)
    """
    eps, delta = checked_vectors(locals(), epsilons="non_negative", deltas="probability")
    return Budget(float(eps.max()), float(delta.max()))


def compositionality_constant(epsilons: ArrayLike, epsilon: float) -> Result:
    """Return C, which tells how an algorithm's rounds add up to its budget.

    Parameters
    ----------
    epsilons : array_like
        Epsilon of each round, >= 0; one-dimensional.
    epsilon : float
        Epsilon of the whole algorithm, positive and finite.

    Returns
    -------
    float
        sqrt(sum of squares)/epsilon: at most 1 under advanced composition, sqrt(R) for disjoint batches.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Definition 7 of Lowy and Razaviyayn 2023; it enters `risk_lower_bound`.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(f"{isrl.compositionality_constant([0.1] * 50, 1.0):.6f}")
    0.707107
    """
    eps = vector("epsilons", STRICT.non_negative("epsilons", epsilons))
    return float(np.linalg.norm(eps)) / positive_scalar("epsilon", epsilon)


def deletion_to_group(epsilon: ArrayLike, delta: ArrayLike) -> Budget:
    """Return the guarantee of a group, from its nearness to one distribution that does not know the group.

    Parameters
    ----------
    epsilon : array_like
        How near every input's output is to the reference distribution, >= 0.
    delta : array_like
        The same, in [0, 1].

    Returns
    -------
    Budget
        2 epsilon, and (1 + e^epsilon) delta, at most 1, for any two inputs.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Definition 9 of Lowy and Razaviyayn 2023 and the sentence after it: P(S) <= e^eps R(S) + d <= e^eps (e^eps Q(S) + d) + d.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print("{:.1f} {:.4g}".format(*isrl.deletion_to_group(0.5, 1e-6)))
    1.0 2.649e-06
    """
    epsilon, delta = checked(locals(), epsilon="non_negative", delta="probability")
    with np.errstate(over="ignore", invalid="ignore"):
        grown = np.where(delta == 0, 0.0, (1.0 + np.exp(epsilon)) * delta)
    return Budget((2.0 * epsilon)[()], np.minimum(grown, 1.0)[()])

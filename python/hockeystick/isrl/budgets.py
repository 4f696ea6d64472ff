"""Budgets of different units of privacy, and how one follows from another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Result, broadcast, same_length

__all__ = [
    "Budget",
    "group_privacy",
    "isrl_to_central",
    "isrl_to_user_level",
    "randomized_response_keep_prob",
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
    epsilons, deltas = same_length(
        epsilon=STRICT.non_negative("epsilon", epsilon), delta=STRICT.probability("delta", delta)
    )
    return Budget(float(epsilons.max()), float(deltas.max()))


def group_privacy(epsilon: ArrayLike, delta: ArrayLike, group_size: ArrayLike) -> Budget:
    r"""Return the guarantee of a group of records, from that of one.

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
    epsilon, delta, group_size = broadcast(
        STRICT.non_negative("epsilon", epsilon),
        STRICT.probability("delta", delta),
        STRICT.count("group_size", group_size),
    )
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.exp((group_size - 1) * epsilon) * np.expm1(-group_size * epsilon) / np.expm1(-epsilon)
        grown = delta * np.where(epsilon == 0, group_size, ratio)
    return Budget((group_size * epsilon)[()], np.where(delta == 0, 0.0, np.minimum(grown, 1.0))[()])


def isrl_to_user_level(epsilon: ArrayLike, delta: ArrayLike, num_records: ArrayLike) -> Budget:
    """Return the guarantee of a whole silo, from that of one of its records.

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
    epsilon, delta, num_records = broadcast(
        STRICT.positive("epsilon", epsilon),
        STRICT.probability("delta", delta),
        STRICT.count("num_records", num_records),
    )
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
    epsilon, delta, distance = broadcast(
        STRICT.non_negative("epsilon", epsilon),
        STRICT.probability("delta", delta),
        STRICT.probability("total_variation", total_variation),
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
    epsilon, buckets = broadcast(
        STRICT.positive("epsilon", epsilon),
        STRICT.within(
            "num_buckets", num_buckets, (lambda k: (k >= 2) & (k == np.floor(k)) & (k < np.inf), "be an integer >= 2")
        ),
    )
    return (1.0 / (1.0 + (buckets - 1.0) * np.exp(-epsilon)))[()]

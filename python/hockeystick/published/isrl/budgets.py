"""Lowy and Razaviyayn 2023: conversions of budgets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, broadcast
from hockeystick.isrl import Budget
from hockeystick.isrl import shuffle_amplification as corrected_amplification
from hockeystick.published.warning import warn_unsound

__all__ = ["group_privacy", "shuffle_amplification", "subsampling_amplification", "user_level_to_isrl"]


def group_privacy(epsilon: ArrayLike, delta: ArrayLike, group_size: ArrayLike) -> Budget:
    """Return the guarantee of a group as Lemma D.9 has it: sound, and looser than `hockeystick.isrl.group_privacy`.

    Parameters
    ----------
    epsilon, delta : array_like
        Guarantee for one record; epsilon >= 0, delta in [0, 1].
    group_size : array_like
        Number of records k, a positive integer.

    Returns
    -------
    Budget
        k epsilon and k e^{(k-1) epsilon} delta, at most 1.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print("{:.1f} {:.4g}".format(*published.group_privacy(0.1, 1e-8, 10)))
    1.0 2.46e-07
    """
    epsilon, delta, group_size = broadcast(
        STRICT.non_negative("epsilon", epsilon),
        STRICT.probability("delta", delta),
        STRICT.count("group_size", group_size),
    )
    with np.errstate(over="ignore", invalid="ignore"):
        grown = delta * group_size * np.exp((group_size - 1) * epsilon)
    return Budget((group_size * epsilon)[()], np.where(delta == 0, 0.0, np.minimum(grown, 1.0))[()])


def user_level_to_isrl(epsilon: ArrayLike, delta: ArrayLike, num_records: ArrayLike) -> Budget:
    """Return the record-level budget of Appendix D.3.5: sound, and smaller than `hockeystick.isrl.user_level_to_isrl`.

    Parameters
    ----------
    epsilon : array_like
        Budget of the silo, in (0, 1].
    delta : array_like
        Budget of the silo, in [0, 1].
    num_records : array_like
        Records in the silo, n.

    Returns
    -------
    Budget
        epsilon/n and delta/(4n).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print("{:.2f} {:.2g}".format(*published.user_level_to_isrl(1.0, 1e-5, 100)))
    0.01 2.5e-08
    """
    epsilon, delta, records = broadcast(
        STRICT.fraction("epsilon", epsilon),
        STRICT.probability("delta", delta),
        STRICT.count("num_records", num_records),
    )
    return Budget((epsilon / records)[()], (delta / (4.0 * records))[()])


def subsampling_amplification(epsilon: ArrayLike, delta: ArrayLike, sampling_rate: ArrayLike) -> Budget:
    """Return amplification by sampling as the proof of Theorem D.1 has it: sound, and loose.

    Parameters
    ----------
    epsilon : array_like
        Guarantee on the sample, in (0, 1].
    delta : array_like
        Guarantee on the sample, in [0, 1].
    sampling_rate : array_like
        Share q of the records in the sample, in (0, 1].

    Returns
    -------
    Budget
        2 q epsilon and delta.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print("{:.2f} {:.0e}".format(*published.subsampling_amplification(1.0, 1e-5, 0.1)))
    0.20 1e-05
    """
    epsilon, delta, rate = broadcast(
        STRICT.fraction("epsilon", epsilon),
        STRICT.probability("delta", delta),
        STRICT.fraction("sampling_rate", sampling_rate),
    )
    return Budget((2.0 * rate * epsilon)[()], delta[()])


def shuffle_amplification(
    epsilon: ArrayLike,
    delta: ArrayLike,
    *,
    num_silos: ArrayLike,
    num_records: ArrayLike = 1,
    slack: ArrayLike,
) -> Budget:
    """Return what Theorem D.5 prints for one round of shuffled messages; its delta lacks a factor of its own lemma.

    Parameters
    ----------
    epsilon, delta, num_silos, num_records, slack : array_like
        As in `hockeystick.isrl.shuffle_amplification`.

    Returns
    -------
    Budget
        The same epsilon, and slack + 2 N n e^{(n-1) epsilon} delta.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        Always.

    Notes
    -----
    Lemma D.13 charges (e^eps + 1) times the total variation distance, which the theorem leaves out. Without that factor the
    lemma is false: from P = Q move mass t from A to B in one and from B to A in the other, and delta at epsilon = 0 becomes
    2t.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import format_upper, isrl, published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.shuffle_amplification(1.0, 1e-12, num_silos=10_000, slack=1e-6)
    >>> corrected = isrl.shuffle_amplification(1.0, 1e-12, num_silos=10_000, slack=1e-6)
    >>> print(f"printed {printed.delta:.5g}, corrected {format_upper(corrected.delta, '.5g')}")
    printed 1.02e-06, corrected 1.0266e-06
    """
    one = corrected_amplification(epsilon, delta, num_silos=num_silos, num_records=num_records, slack=slack)
    warn_unsound(
        "the delta of Theorem D.5 of Lowy and Razaviyayn (2023) is not what its proof gives",
        "hockeystick.isrl.shuffle_amplification",
    )
    eps, d, silos, records, spent = broadcast(
        *(np.asarray(x, dtype=np.float64) for x in (epsilon, delta, num_silos, num_records, slack))
    )
    return Budget(one.epsilon, np.minimum(spent + 2.0 * silos * records * np.exp((records - 1.0) * eps) * d, 1.0)[()])

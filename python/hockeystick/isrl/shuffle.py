"""Amplification by a shuffler that hides which silo sent which message."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import DELTA, STRICT, Array, Result, broadcast, count_scalar, positive_scalar
from hockeystick.isrl.budgets import Budget
from hockeystick.isrl.composition import advanced_composition

__all__ = ["clone_bound", "shuffle_amplification", "shuffle_amplification_composed"]
TOLERANCE = 1e-12  # of the searches, which end on the feasible side
MARGIN = 1e-9  # more noise than the analytic Gaussian mechanism needs, to cover its rounding
LARGEST = 600.0  # epsilon of a round that is used: exponentials of more leave the doubles


def largest_local_epsilon(num_silos: Array, num_records: Array, slack: Array) -> Array:
    """Return the largest local epsilon for which the clones of Theorem D.5 are many enough."""
    return np.log(num_silos / (16.0 * np.log(2.0 / slack))) / num_records


def amplify(epsilon: Array, num_silos: Array, num_records: Array, slack: Array) -> Array:
    """Return epsilon after one shuffled round; tanh(x/2) is (e^x - 1)/(e^x + 1)."""
    grown = np.exp(num_records * epsilon)
    clones = 8.0 * np.sqrt(grown * np.log(4.0 / slack) / num_silos) + 8.0 * grown / num_silos
    return np.log1p(np.tanh(epsilon / 2.0) * clones)


def clone_bound(probability: ArrayLike, num_silos: ArrayLike, delta: ArrayLike) -> Result:
    """Return the epsilon at which a message hides among the clones of it that others send.

    Parameters
    ----------
    probability : array_like
        Probability p with which each other silo sends a clone, in [16 ln(2/delta)/num_silos, 1].
    num_silos : array_like
        Messages N, a positive integer.
    delta : array_like
        In (0, 1).

    Returns
    -------
    ndarray or float
        ln(1 + 8 sqrt(ln(4/delta)/(pN)) + 8/(pN)).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma D.10 of Lowy and Razaviyayn 2023, from Feldman, McMillan and Talwar 2020.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> print(format_upper(isrl.clone_bound(0.5, 1000, 1e-4), ".6f"))
    0.779616
    """
    p, silos, delta = broadcast(
        STRICT.fraction("probability", probability),
        STRICT.count("num_silos", num_silos),
        STRICT.inside("delta", delta),
    )
    STRICT.require(
        lambda x, least: x >= least,
        "probability must be at least 16 ln(2/delta)/num_silos",
        probability=p,
        smallest=16.0 * np.log(2.0 / delta) / silos,
    )
    clones = p * silos
    return np.log1p(8.0 * np.sqrt(np.log(4.0 / delta) / clones) + 8.0 / clones)[()]


def shuffle_amplification(
    epsilon: ArrayLike,
    delta: ArrayLike,
    *,
    num_silos: ArrayLike,
    num_records: ArrayLike = 1,
    slack: ArrayLike,
) -> Budget:
    r"""Return what one round of shuffled messages leaks, from what each message leaks.

    Parameters
    ----------
    epsilon : array_like
        Inter-silo record-level guarantee of each message, positive, at most ln(N/(16 ln(2/slack)))/n.
    delta : array_like
        Guarantee of each message, in [0, 1).
    num_silos : array_like
        Messages that are shuffled, N, a positive integer.
    num_records : array_like
        Records behind each message, n, a positive integer.
    slack : array_like
        The delta that the amplification itself may spend, in (0, 1).

    Returns
    -------
    Budget
        Guarantee for one record of any silo against who sees the shuffled messages; delta at most 1.

    Raises
    ------
    ValueError
        If an argument is outside its domain; for epsilon the message has the largest admissible value.

    Notes
    -----
    Theorem D.5 of Lowy and Razaviyayn 2023 with :math:`\epsilon_r = \ln(1 +
    \tanh(\epsilon/2)(8\sqrt{e^{n\epsilon}\ln(4/\delta_r)/N} + 8 e^{n\epsilon}/N))` as printed and :math:`\delta_r +
    (e^{\epsilon_r} + 1) N (n e^{(n-1)\epsilon} + e^{-n\epsilon}/2)\delta` in place of a delta that lacks a factor
    (`hockeystick.published.shuffle_amplification`). For n = 1 it is Theorem 3.8 of Feldman, McMillan and Talwar 2020.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> epsilon, delta = isrl.shuffle_amplification(1.0, 1e-12, num_silos=10_000, slack=1e-6)
    >>> print(format_upper(epsilon, ".4f"), format_upper(delta, ".4g"))
    0.2141 1.027e-06
    """
    epsilon, delta, silos, records, slack = broadcast(
        STRICT.positive("epsilon", epsilon),
        STRICT.within("delta", delta, DELTA),
        STRICT.count("num_silos", num_silos),
        STRICT.count("num_records", num_records),
        STRICT.inside("slack", slack),
    )
    STRICT.require(
        lambda e, most: e <= most,
        "epsilon must be at most ln(num_silos/(16 ln(2/slack)))/num_records",
        epsilon=epsilon,
        largest=largest_local_epsilon(silos, records, slack),
    )
    amplified = amplify(epsilon, silos, records, slack)
    near = records * np.exp((records - 1.0) * epsilon) + np.exp(-records * epsilon) / 2.0
    spent = slack + (np.exp(amplified) + 1.0) * silos * near * delta
    return Budget(amplified[()], np.minimum(spent, 1.0)[()])


def shuffle_amplification_composed(
    epsilon: float, delta: float, *, num_silos: int, num_records: int = 1, rounds: int
) -> Budget:
    """Return what several rounds of shuffled messages leak.

    Parameters
    ----------
    epsilon : float
        Inter-silo record-level guarantee of each message of each round; as in `shuffle_amplification`.
    delta : float
        Guarantee of each message, positive, below 1/(num_silos num_records rounds).
    num_silos, num_records, rounds : int
        Messages a round N, records behind each n, rounds R; positive.

    Returns
    -------
    Budget
        `shuffle_amplification` with a slack of N n delta in each round, then `advanced_composition` with R N n delta.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    What Corollary D.1 of Lowy and Razaviyayn 2023 states with unspecified constants, made computable.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> epsilon, delta = isrl.shuffle_amplification_composed(
    ...     0.1, 1e-15, num_silos=50_000, num_records=10, rounds=20
    ... )
    >>> print(format_upper(epsilon, ".4f"), format_upper(delta, ".3g"))
    0.3839 7e-08
    """
    epsilon = positive_scalar("epsilon", epsilon)
    delta = positive_scalar("delta", delta)
    slack = count_scalar("num_silos", num_silos) * count_scalar("num_records", num_records) * delta
    rounds = count_scalar("rounds", rounds)
    if rounds * slack >= 1:
        msg = f"delta must be below 1/(num_silos num_records rounds) = {delta / (rounds * slack):g}, not {delta:g}"
        raise ValueError(msg)
    one = shuffle_amplification(epsilon, delta, num_silos=num_silos, num_records=num_records, slack=slack)
    return advanced_composition(np.full(rounds, one.epsilon), one.delta, rounds * slack)

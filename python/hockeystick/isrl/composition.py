"""Composition by formulas: what to use where a budget is all that is known of a round.

Where the rounds' mechanisms are known, `hockeystick.Accountant` is tighter.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Result, broadcast, positive_scalar, same_length, scalar, vector
from hockeystick.isrl.budgets import Budget

__all__ = [
    "advanced_composition",
    "compositionality_constant",
    "parallel_composition",
    "per_round_budget",
    "subsampling_amplification",
]


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
    eps, delta = same_length(
        epsilons=STRICT.non_negative("epsilons", epsilons), deltas=STRICT.probability("deltas", deltas)
    )
    slack = scalar("slack", slack, lambda x: 0 < x < 1, "lie in (0, 1)")
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
    epsilon, delta, rounds = broadcast(
        STRICT.positive("epsilon", epsilon), STRICT.inside("delta", delta), STRICT.count("rounds", rounds)
    )
    log = np.log(2.0 / delta)
    STRICT.require(lambda e, m: e <= m, "epsilon must be at most 2 ln(2/delta)", epsilon=epsilon, limit=2.0 * log)
    return Budget((epsilon / (2.0 * np.sqrt(2.0 * rounds * log)))[()], (delta / (2.0 * rounds))[()])


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
    epsilon, delta, rate = broadcast(
        STRICT.within("epsilon", epsilon, (lambda x: (x >= 0) & (x <= 700), "lie in [0, 700]")),
        STRICT.probability("delta", delta),
        STRICT.fraction("sampling_rate", sampling_rate),
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
    eps, delta = same_length(
        epsilons=STRICT.non_negative("epsilons", epsilons), deltas=STRICT.probability("deltas", deltas)
    )
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
    epsilon, delta = broadcast(STRICT.non_negative("epsilon", epsilon), STRICT.probability("delta", delta))
    with np.errstate(over="ignore", invalid="ignore"):
        grown = np.where(delta == 0, 0.0, (1.0 + np.exp(epsilon)) * delta)
    return Budget((2.0 * epsilon)[()], np.minimum(grown, 1.0)[()])

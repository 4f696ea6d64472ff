"""Bounds on privacy leakage from the distortion of the parameter."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Result, broadcast
from hockeystick.distortion.divergences import LOG_2
from hockeystick.distortion.leakage import LEAKAGE, MOST

__all__ = [
    "InfeasibleBudgetError",
    "belief_shift_bound",
    "leakage_tv_coefficient",
    "min_distortion_for_budget",
    "privacy_leakage_lower_bound",
    "privacy_leakage_upper_bound",
]


class InfeasibleBudgetError(ValueError):
    """No setting meets the budget."""


def leakage_tv_coefficient(log_ratio: ArrayLike) -> Result:
    """Return the factor from total variation of the parameter to Jensen-Shannon distance of the belief.

    Parameters
    ----------
    log_ratio : array_like
        `max_bayesian_privacy_leakage` xi, >= 0; infinity is legal.

    Returns
    -------
    ndarray or float
        C_2 = (e^{2 xi} - 1)/2, infinite beyond the doubles.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Zhang, Chen and Yang 2023, Equation 12.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.leakage_tv_coefficient(0.5):.6f}")
    0.859141
    """
    with np.errstate(over="ignore"):
        return (np.expm1(2.0 * STRICT.non_negative_or_infinite("log_ratio", log_ratio)) / 2.0)[()]


def belief_shift_bound(log_ratio: ArrayLike, total_variation: ArrayLike) -> Result:
    """Return how far a distortion of the parameter can move the averaged belief.

    Parameters
    ----------
    log_ratio : array_like
        `max_bayesian_privacy_leakage` xi, >= 0; infinity is legal.
    total_variation : array_like
        Distance of the parameter's distributions with and without protection, in [0, 1].

    Returns
    -------
    ndarray or float
        Upper bound of the Jensen-Shannon distance of the beliefs: the smaller of C_2 TV and sqrt(TV ln 2).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma B.3 of Zhang, Chen and Yang 2023 bounds the divergence by (C_2 TV)^2; beliefs are the same kernel of either
    parameter, so that their divergence is at most the parameters', which is at most TV ln 2.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.belief_shift_bound(0.1, 0.2):.6f} {distortion.belief_shift_bound(2.0, 0.25):.6f}")
    0.022140 0.416277
    """
    coefficient, distance = broadcast(
        np.asarray(leakage_tv_coefficient(log_ratio)), STRICT.probability("total_variation", total_variation)
    )
    with np.errstate(invalid="ignore"):
        product = np.where(distance > 0, coefficient * distance, 0.0)
    return np.minimum(product, np.sqrt(distance * LOG_2))[()]


def privacy_leakage_lower_bound(unprotected: ArrayLike, log_ratio: ArrayLike, total_variation: ArrayLike) -> Result:
    """Return the least leakage that a distortion can leave.

    Parameters
    ----------
    unprotected : array_like
        `unprotected_leakage` C_1 of this client, in [0, sqrt(ln 2)].
    log_ratio, total_variation : array_like
        As in `belief_shift_bound`.

    Returns
    -------
    ndarray or float
        C_1 less the shift, at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma B.1 of Zhang, Chen and Yang 2023, client by client, with the sharper shift.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.privacy_leakage_lower_bound(0.3, 0.1, 0.5):.6f}")
    0.244649
    """
    start = STRICT.within("unprotected", unprotected, LEAKAGE)
    return np.maximum(start - belief_shift_bound(log_ratio, total_variation), 0.0)[()]


def privacy_leakage_upper_bound(unprotected: ArrayLike, log_ratio: ArrayLike, total_variation: ArrayLike) -> Result:
    """Return the most leakage that a distortion can leave.

    Parameters
    ----------
    unprotected : array_like
        `unprotected_leakage` C_1 of this client, in [0, sqrt(ln 2)].
    log_ratio, total_variation : array_like
        As in `belief_shift_bound`.

    Returns
    -------
    ndarray or float
        C_1 plus the shift, at most sqrt(ln 2): distortion can move the belief away from the prior as well as towards it.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The triangle inequality. Lemma 5.5 of Zhang, Chen and Yang 2023 claims a bound that falls with the distortion and is false
    (`hockeystick.published.privacy_leakage_upper_bound`).

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.privacy_leakage_upper_bound(0.3, 0.1, 0.5):.6f}")
    0.355351
    """
    start = STRICT.within("unprotected", unprotected, LEAKAGE)
    return np.minimum(start + belief_shift_bound(log_ratio, total_variation), MOST)[()]


def min_distortion_for_budget(unprotected: ArrayLike, budget: ArrayLike, log_ratio: ArrayLike) -> Result:
    """Return the least distortion without which a leakage budget cannot be met; it need not suffice.

    Parameters
    ----------
    unprotected : array_like
        `unprotected_leakage` C_1 of this client, in [0, sqrt(ln 2)].
    budget : array_like
        Largest leakage tau, in [0, sqrt(ln 2)].
    log_ratio : array_like
        `max_bayesian_privacy_leakage` xi, >= 0; infinity is legal.

    Returns
    -------
    ndarray or float
        The larger of (C_1 - tau)/C_2 and (C_1 - tau)^2/ln 2, at least 0: a total variation distance.

    Raises
    ------
    InfeasibleBudgetError
        If no distortion can reach the budget.
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    From `privacy_leakage_lower_bound`. Lemma 5.6 of Zhang, Chen and Yang 2023 takes C_1 - tau for sufficient, which is false
    (`hockeystick.published.min_distortion_for_budget`).

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.min_distortion_for_budget(0.3, 0.1, 0.5):.6f}")
    0.232791
    """
    start, budget, coefficient = broadcast(
        STRICT.within("unprotected", unprotected, LEAKAGE),
        STRICT.within("budget", budget, LEAKAGE),
        np.asarray(leakage_tv_coefficient(log_ratio)),
    )
    gap = np.maximum(start - budget, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(gap > 0, np.maximum(gap / coefficient, gap**2 / LOG_2), 0.0)
    if (least > 1).any():
        at = int(np.argmax(least))
        msg = (
            f"budget must be within reach of a total variation distance of 1, not {budget.ravel()[at]:g} from an "
            f"unprotected leakage of {start.ravel()[at]:g}"
        )
        raise InfeasibleBudgetError(msg)
    return least[()]

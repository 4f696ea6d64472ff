"""Zhang, Chen and Yang 2023: trade-offs of leakage and utility."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, broadcast, non_negative_scalar, positive_scalar, scalar, vector
from hockeystick.distortion import leakage_tv_coefficient
from hockeystick.distortion.leakage import LEAKAGE
from hockeystick.published.warning import warn_unsound

PAPER = "of Zhang, Chen and Yang (2023)"

__all__ = [
    "TradeoffConditions",
    "distortion_ratio",
    "nfl_utility_weight",
    "optimal_tradeoff_conditions",
    "tradeoff_upper_bound",
]


def _weight(log_ratio: ArrayLike, utility_constant: Array) -> Array:
    """Return C_2/C_6."""
    return np.asarray(leakage_tv_coefficient(log_ratio)) / utility_constant


def tradeoff_upper_bound(
    unprotected: ArrayLike, log_ratio: ArrayLike, utility_constant: ArrayLike, conditional_variance: ArrayLike
) -> Result:
    """Return the trade-off of Theorem 5.12.

    Parameters
    ----------
    unprotected : array_like
        C_1, in [0, sqrt(ln 2)].
    log_ratio : array_like
        xi, >= 0.
    utility_constant : array_like
        C_6, positive.
    conditional_variance : array_like
        Expected variance of the protected parameter given the previous one, >= 0.

    Returns
    -------
    ndarray or float
        2 C_1 - (C_2/C_6) conditional_variance.

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
    Counterexample: no distortion, W = +-1 equally likely, optimum 0, posteriors (.6, .4) and (.4, .6) of a fair prior: leakage,
    utility loss and C_1 are 0.

    Examples
    --------
    >>> import math
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     print(f"claimed {published.tradeoff_upper_bound(0.0, -math.log(0.8), 2.0, 1.0):.6f}, true 0")
    claimed -0.140625, true 0
    """
    start, constant, variance = broadcast(
        STRICT.within("unprotected", unprotected, LEAKAGE),
        STRICT.positive("utility_constant", utility_constant),
        STRICT.non_negative("conditional_variance", conditional_variance),
    )
    weight = _weight(log_ratio, constant)
    warn_unsound(f"Theorem 5.12 {PAPER} is false", "hockeystick.distortion.tradeoff_upper_bound", "bound")
    return (2.0 * start - weight * variance)[()]


def nfl_utility_weight(ratio: ArrayLike, near_optimal_gap: ArrayLike, log_ratio: ArrayLike) -> Result:
    """Return the weight of utility loss that Theorem 5.13 prints.

    Parameters
    ----------
    ratio, near_optimal_gap, log_ratio : array_like
        As in `hockeystick.distortion.nfl_utility_weight`.

    Returns
    -------
    ndarray or float
        gamma (e^{2 xi} - 1)/(4 Delta): a quarter of what the inequalities it rests on give.

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
    No counterexample is known: the factor 4 has no proof here.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     print(f"{published.nfl_utility_weight(1.0, 0.5, 0.1):.6f}")
    0.110701
    """
    ratio, gap, coefficient = broadcast(
        STRICT.positive("ratio", ratio),
        STRICT.positive("near_optimal_gap", near_optimal_gap),
        np.asarray(leakage_tv_coefficient(log_ratio)),
    )
    warn_unsound(
        f"the weight of Theorem 5.13 {PAPER} is a quarter of what follows",
        "hockeystick.distortion.nfl_utility_weight",
        "bound",
    )
    return (ratio * coefficient / (2.0 * gap))[()]


def distortion_ratio(client_distances: ArrayLike, aggregated_distance: float) -> float:
    """Return the ratio of the sum of the clients' distortions to the aggregated one, as printed after Theorem 5.13.

    Parameters
    ----------
    client_distances : array_like of shape (K,)
        Total variation distance of each client's parameter, in [0, 1].
    aggregated_distance : float
        That of the aggregated parameter, in (0, 1].

    Returns
    -------
    float
        The sum over it, which grows with the number of clients where a range of [1/150, 150] is claimed.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.distortion_ratio([0.1] * 200, 0.1):.0f}")
    200
    """
    distances = vector("client_distances", STRICT.probability("client_distances", client_distances))
    total = scalar("aggregated_distance", aggregated_distance, lambda x: 0 < x <= 1, "lie in (0, 1]")
    return float(distances.sum()) / total


class TradeoffConditions(NamedTuple):
    """What Theorem 5.14 asks for.

    Attributes
    ----------
    weights_match : bool
        Whether C_d = C_2/C_6, to 1e-9.
    variance_required : float
        The conditional variance at which the printed upper and lower bounds meet.
    gap : float
        Upper less lower bound at the given variance.
    """

    weights_match: bool
    variance_required: float
    gap: float


def optimal_tradeoff_conditions(
    *,
    unprotected: float,
    log_ratio: float,
    utility_constant: float,
    ratio: float,
    near_optimal_gap: float,
    conditional_variance: float,
) -> TradeoffConditions:
    """Return the conditions of Theorem 5.14 for an "optimal" trade-off, which no protection meets too.

    Parameters
    ----------
    unprotected : float
        C_1, in [0, sqrt(ln 2)].
    log_ratio : float
        xi, positive.
    utility_constant : float
        C_6, positive.
    ratio, near_optimal_gap : float
        gamma and Delta, positive.
    conditional_variance : float
        Expected variance of the protected parameter given the previous one, >= 0.

    Returns
    -------
    TradeoffConditions
        Whether the weights match, the variance at which the bounds meet, and how far they are apart.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        Always: it compares two bounds of which one is false.

    Notes
    -----
    Counterexample: that of `tradeoff_upper_bound`.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     conditions = published.optimal_tradeoff_conditions(
    ...         unprotected=0.2, log_ratio=0.5, utility_constant=4.0, ratio=1.0, near_optimal_gap=2.0, conditional_variance=0.5
    ...     )
    >>> print(f"{conditions.weights_match} {conditions.variance_required:.6f} {conditions.gap:.6f}")
    True 0.931163 0.092607
    """
    start = scalar("unprotected", unprotected, *LEAKAGE)
    xi = positive_scalar("log_ratio", log_ratio)
    constant = positive_scalar("utility_constant", utility_constant)
    gamma = positive_scalar("ratio", ratio)
    gap = positive_scalar("near_optimal_gap", near_optimal_gap)
    variance = non_negative_scalar("conditional_variance", conditional_variance)
    warn_unsound(
        f"Theorem 5.14 {PAPER} rests on the false Theorem 5.12", "hockeystick.distortion.tradeoff_upper_bound", "bound"
    )
    weight = float(_weight(xi, np.asarray(constant)))
    printed = gamma * float(leakage_tv_coefficient(xi)) / (2.0 * gap)
    match = abs(weight - printed) <= 1e-9 * weight
    return TradeoffConditions(match, start / weight, start - weight * variance)

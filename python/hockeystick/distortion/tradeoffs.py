"""Trade-offs of leakage and utility: what is true of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick._checks import STRICT, Result, broadcast, non_negative_scalar, pmf, scalar, vector
from hockeystick.distortion.leakage_bounds import InfeasibleBudgetError, belief_shift_bound

__all__ = [
    "distortion_ratio",
    "max_near_optimal_gap",
    "near_optimal_set",
    "nfl_utility_weight",
    "tradeoff_upper_bound",
]


def tradeoff_upper_bound(unprotected: ArrayLike, log_ratio: ArrayLike, total_variation: ArrayLike) -> Result:
    """Return a bound on leakage plus weighted utility loss.

    Parameters
    ----------
    unprotected : array_like
        `unprotected_leakage` C_1, in [0, sqrt(ln 2)].
    log_ratio, total_variation : array_like
        As in `belief_shift_bound`.

    Returns
    -------
    ndarray or float
        C_1 plus twice the shift: a bound of leakage + (shift/(C R^2 TV)) utility loss, the weight being C_2/(C R^2) in the
        paper's letters.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The sum of `privacy_leakage_upper_bound` and `utility_loss_tv_bound`; Theorem 5.12 of Zhang, Chen and Yang 2023 is false
    (`hockeystick.published.tradeoff_upper_bound`).

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.tradeoff_upper_bound(0.2, 0.1, 0.1):.6f}")
    0.222140
    """
    return (STRICT.non_negative("unprotected", unprotected) + 2.0 * belief_shift_bound(log_ratio, total_variation))[()]


def nfl_utility_weight(ratio: ArrayLike, near_optimal_gap: ArrayLike, log_ratio: ArrayLike) -> Result:
    """Return the weight of utility loss in the no-free-lunch lower bound.

    Parameters
    ----------
    ratio : array_like
        `distortion_ratio` gamma, positive.
    near_optimal_gap : array_like
        `max_near_optimal_gap` Delta, positive.
    log_ratio : array_like
        `max_bayesian_privacy_leakage` xi, >= 0; infinity is legal.

    Returns
    -------
    ndarray or float
        gamma (e^{2 xi} - 1)/Delta: leakage plus this times the aggregated model's utility loss is at least the mean
        unprotected leakage.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    From `privacy_leakage_lower_bound` and a utility loss of at least (Delta/2) TV. Theorem 5.13 of Zhang, Chen and Yang 2023
    prints a quarter of it (`hockeystick.published.nfl_utility_weight`).

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.nfl_utility_weight(1.0, 0.5, 0.1):.6f}")
    0.442806
    """
    ratio, gap, log = broadcast(
        STRICT.positive("ratio", ratio),
        STRICT.positive("near_optimal_gap", near_optimal_gap),
        STRICT.non_negative_or_infinite("log_ratio", log_ratio),
    )
    with np.errstate(over="ignore"):
        return (ratio * np.expm1(2.0 * log) / gap)[()]


def distortion_ratio(client_distances: ArrayLike, aggregated_distance: float) -> float:
    """Return how far clients' parameters are distorted on average, relative to the aggregated one.

    Parameters
    ----------
    client_distances : array_like of shape (K,)
        Total variation distance of each client's parameter, in [0, 1].
    aggregated_distance : float
        That of the aggregated parameter, in (0, 1].

    Returns
    -------
    float
        gamma, the ratio of the mean to it; 1 for equal clients with isotropic Gaussian parameters and noise.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Zhang, Chen and Yang 2023, after Theorem 5.13, with the mean that their range of it needs in place of the sum.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.distortion_ratio([0.1, 0.2, 0.3], 0.2):.1f}")
    1.0
    """
    distances = vector("client_distances", STRICT.probability("client_distances", client_distances))
    total = scalar("aggregated_distance", aggregated_distance, lambda x: 0 < x <= 1, "lie in (0, 1]")
    return float(distances.mean()) / total


def near_optimal_set(utilities: ArrayLike, tolerance: float, *, best_utility: float) -> NDArray[np.intp]:
    """Return which parameters are within a tolerance of the best utility.

    Parameters
    ----------
    utilities : array_like of shape (n,)
        Mean utility of each parameter.
    tolerance : float
        c, >= 0.
    best_utility : float
        Utility of the optimum.

    Returns
    -------
    ndarray of int
        Their indices.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Zhang, Chen and Yang 2023, Definition C.1.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(distortion.near_optimal_set([1.0, 0.9, 0.5], 0.2, best_utility=1.0))
    [0 1]
    """
    values = vector("utilities", STRICT.finite("utilities", utilities))
    tolerance = non_negative_scalar("tolerance", tolerance)
    best = scalar("best_utility", best_utility, lambda x: bool(np.isfinite(x)), "be finite")
    return np.flatnonzero(np.abs(best - values) <= tolerance)


def max_near_optimal_gap(deficits: ArrayLike, probabilities: ArrayLike, total_variation: float) -> float:
    """Return the supremum of the tolerances whose near-optimal set the protected parameter rarely hits.

    Parameters
    ----------
    deficits : array_like of shape (n,)
        By how much the utility of each parameter falls short of the best, >= 0.
    probabilities : array_like of shape (n,)
        Probability of each parameter under protection.
    total_variation : float
        Distance of the aggregated parameter's distributions, in (0, 1].

    Returns
    -------
    float
        Delta: the set has probability at most TV/2 for every smaller tolerance; at Delta itself it may not. Infinite if it
        always has.

    Raises
    ------
    InfeasibleBudgetError
        If even the optima have more.
    ValueError
        If an argument is outside its domain, or the lengths differ.

    Notes
    -----
    Zhang, Chen and Yang 2023, Assumption C.1, with a supremum in place of a maximum that need not exist.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(distortion.max_near_optimal_gap([0.0, 0.1, 0.5], [0.1, 0.2, 0.7], 0.5))
    0.1
    """
    gaps = vector("deficits", STRICT.non_negative("deficits", deficits))
    weights = vector("probabilities", pmf("probabilities", probabilities))
    if gaps.shape != weights.shape:
        msg = f"probabilities must be as long as deficits ({gaps.size}), not of length {weights.size}"
        raise ValueError(msg)
    half = scalar("total_variation", total_variation, lambda x: 0 < x <= 1, "lie in (0, 1]") / 2.0
    order = np.argsort(gaps)
    reached = np.array([weights[gaps <= gap].sum() for gap in gaps[order]])
    too_many = np.flatnonzero(reached > half * (1 + 1e-12))
    if too_many.size == 0:
        return float("inf")
    first = float(gaps[order][too_many[0]])
    if first == 0.0:
        msg = f"total_variation must be at least twice the probability {reached[too_many[0]]:g} of the optima, not {2 * half:g}"
        raise InfeasibleBudgetError(msg)
    return first

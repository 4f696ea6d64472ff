"""Zhang, Chen and Yang 2023: the trade-off by parameter distortion."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Result, broadcast
from hockeystick.distortion import jensen_shannon_distance, leakage_tv_coefficient
from hockeystick.distortion.divergences import pair
from hockeystick.distortion.leakage import LEAKAGE
from hockeystick.published.warning import warn_unsound

__all__ = [
    "gaussian_tv_bounds",
    "min_distortion_for_budget",
    "noise_variance_for_budget",
    "privacy_leakage",
    "privacy_leakage_upper_bound",
]

PAPER = "of Zhang, Chen and Yang (2023)"
SMALL_GAP = 0.01  # Lemma 5.8 holds for smaller differences of leakage and budget


def privacy_leakage(protected_belief: ArrayLike, unprotected_belief: ArrayLike) -> Result:
    """Return the privacy leakage of Definition 4, which compares with the unprotected belief.

    Parameters
    ----------
    protected_belief, unprotected_belief : array_like of shape (..., k)
        Belief about the data from the protected and from the unprotected parameter.

    Returns
    -------
    ndarray or float
        Their Jensen-Shannon distance, of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes differ.

    Warns
    -----
    UnsoundBoundWarning
        Always.

    Notes
    -----
    Counterexample: without any protection the beliefs agree, and it is 0, whatever the parameter reveals.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import distortion, published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     print(published.privacy_leakage([0.9, 0.1], [0.9, 0.1]))
    0.0
    >>> print(f"{distortion.privacy_leakage([0.9, 0.1], [0.5, 0.5]):.6f}")
    0.318982
    """
    p, q = pair("protected_belief", protected_belief, "unprotected_belief", unprotected_belief)
    warn_unsound(f"Definition 4 {PAPER} calls the leakage of no protection 0", "hockeystick.distortion.privacy_leakage")
    return jensen_shannon_distance(p, q)


def privacy_leakage_upper_bound(unprotected: ArrayLike, log_ratio: ArrayLike, total_variation: ArrayLike) -> Result:
    """Return the leakage bound of Lemma 5.5.

    Parameters
    ----------
    unprotected, log_ratio, total_variation : array_like
        As in `hockeystick.distortion.privacy_leakage_upper_bound`, with C_2 TV <= C_1.

    Returns
    -------
    ndarray or float
        2 C_1 - C_2 TV.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or C_2 TV > C_1.

    Warns
    -----
    UnsoundBoundWarning
        Always; its proof needs 2 C_2 TV <= C_1.

    Notes
    -----
    Counterexample: prior (1/2, 1/2), posteriors (.55, .45) and (.6, .4), the mass 1/8 moved from the first to the second.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import distortion, published
    >>> xi = distortion.max_bayesian_privacy_leakage([[0.55, 0.45], [0.6, 0.4], [0.4, 0.6]], [0.5, 0.5])
    >>> before = distortion.unprotected_leakage([0.55, 0.45], [0.5, 0.5])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     claimed = published.privacy_leakage_upper_bound(before, xi, 0.125)
    >>> belief = distortion.averaged_posterior([[0.55, 0.45], [0.6, 0.4]], [0.875, 0.125])
    >>> print(f"claimed {claimed:.6f}, true {distortion.privacy_leakage(belief, [0.5, 0.5]):.6f}")
    claimed 0.035658, true 0.039849
    """
    start, coefficient, distance = broadcast(
        STRICT.within("unprotected", unprotected, LEAKAGE),
        np.asarray(leakage_tv_coefficient(log_ratio)),
        STRICT.probability("total_variation", total_variation),
    )
    STRICT.require(
        lambda c, k, t: k * t <= c,
        "C_2 total_variation must be at most unprotected",
        unprotected=start,
        C_2=coefficient,
        total_variation=distance,
    )
    warn_unsound(f"Lemma 5.5 {PAPER} is false", "hockeystick.distortion.privacy_leakage_upper_bound")
    return (2.0 * start - coefficient * distance)[()]


def min_distortion_for_budget(unprotected: ArrayLike, budget: ArrayLike) -> Result:
    """Return the distortion that Lemma 5.6 takes for sufficient.

    Parameters
    ----------
    unprotected : array_like
        C_1, in [0, sqrt(ln 2)].
    budget : array_like
        Largest leakage tau, in [0, sqrt(ln 2)].

    Returns
    -------
    ndarray or float
        max(0, C_1 - tau).

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
    Counterexample: prior (1/2, 1/2), posterior (.9, .1) without and (.1, .9) with protection. TV = 1, and the leakage is .319
    either way.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     print(f"{published.min_distortion_for_budget(0.305, 0.3):.3f}")
    0.005
    """
    start, budget = broadcast(
        STRICT.within("unprotected", unprotected, LEAKAGE), STRICT.within("budget", budget, LEAKAGE)
    )
    warn_unsound(f"Lemma 5.6 {PAPER} is false", "hockeystick.distortion.min_distortion_for_budget")
    return np.maximum(start - budget, 0.0)[()]


def noise_variance_for_budget(
    unprotected: ArrayLike, budget: ArrayLike, variance: ArrayLike, dimension: ArrayLike
) -> Result:
    r"""Return the noise of Lemma 5.8 and Algorithm 1.

    Parameters
    ----------
    unprotected : array_like
        C_1, in [0, sqrt(ln 2)], less than .01 above the budget.
    budget : array_like
        Largest leakage tau, in [0, sqrt(ln 2)].
    variance : array_like
        Variance per coordinate of the unprotected parameter, positive.
    dimension : array_like
        Number of coordinates of the parameter, d.

    Returns
    -------
    ndarray or float
        :math:`100\sigma^2(C_1 - \tau)/\sqrt d` per coordinate, 0 where C_1 <= tau.

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
    It makes the total variation distance at least C_1 - tau (24 to 28 times what that needs), which does not bound the
    leakage: see `min_distortion_for_budget`. The noise vanishes with the parameter's variance, where most is leaked.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import distortion, published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     noise = published.noise_variance_for_budget(0.305, 0.3, 1.0, 100)
    >>> print(f"{noise:.3f} {distortion.noise_variance_for_tv(0.005, 1.0, 100):.6f}")
    0.050 0.001777
    """
    start, budget, variance, dimension = broadcast(
        STRICT.within("unprotected", unprotected, LEAKAGE),
        STRICT.within("budget", budget, LEAKAGE),
        STRICT.positive("variance", variance),
        STRICT.count("dimension", dimension),
    )
    STRICT.require(
        lambda c, t: c - t < SMALL_GAP,
        "unprotected must be less than .01 above budget",
        unprotected=start,
        budget=budget,
    )
    warn_unsound(f"Lemma 5.8 {PAPER} rests on the false Lemma 5.6", "hockeystick.distortion.ldp_epsilon_for_leakage")
    return (100.0 * variance * np.maximum(start - budget, 0.0) / np.sqrt(dimension))[()]


def gaussian_tv_bounds(variance: ArrayLike, noise_variance: ArrayLike, dimension: ArrayLike) -> tuple[Result, Result]:
    r"""Return the bounds of Lemma 5.7: sound for isotropic Gaussians, and loose.

    Parameters
    ----------
    variance, noise_variance, dimension : array_like
        As in `hockeystick.distortion.gaussian_tv_isotropic`.

    Returns
    -------
    lower, upper : ndarray or float
        .01 and 1.5 times :math:`\min(1, \rho\sqrt d)`, the latter as printed, up to 1.5.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print("{:.3f} {:.2f}".format(*published.gaussian_tv_bounds(1.0, 0.05, 100)))
    0.005 0.75
    """
    variance, noise, dimension = broadcast(
        STRICT.positive("variance", variance),
        STRICT.non_negative("noise_variance", noise_variance),
        STRICT.count("dimension", dimension),
    )
    size = np.minimum(1.0, noise / variance * np.sqrt(dimension))
    return (size / 100.0)[()], (1.5 * size)[()]

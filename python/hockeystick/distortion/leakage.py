"""Privacy leakage: how far what an adversary believes about the data moves from the prior.

It is the square root of a Jensen-Shannon divergence, in [0, sqrt(ln 2)]. The adversary reads the protected parameter as if it were
unprotected, and beliefs are averaged over the parameter: a small leakage is no differential privacy. The way from a guarantee to a
leakage is `privacy_leakage_bound_from_ldp`.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, broadcast, choice, pmf
from hockeystick.distortion._inverse import largest_within
from hockeystick.distortion.divergences import LOG_2, jensen_shannon_distance, pair, spread

__all__ = [
    "InfeasibleBudgetError",
    "averaged_posterior",
    "belief_shift_bound",
    "federated_privacy_leakage",
    "ldp_epsilon_for_leakage",
    "leakage_tv_coefficient",
    "max_bayesian_privacy_leakage",
    "min_distortion_for_budget",
    "privacy_leakage",
    "privacy_leakage_bound_from_ldp",
    "privacy_leakage_lower_bound",
    "privacy_leakage_upper_bound",
    "unprotected_leakage",
]

Reduction: TypeAlias = Literal["max", "mean"]

MOST = math.sqrt(LOG_2)  # the largest leakage
LEAKAGE = (lambda x: (x >= 0) & (x <= MOST * (1 + 1e-12)), f"lie in [0, sqrt(ln 2)] = [0, {MOST:.12g}]")


class InfeasibleBudgetError(ValueError):
    """No setting meets the budget."""


def averaged_posterior(kernel: ArrayLike, weights: ArrayLike) -> Array:
    """Return an adversary's belief about the data, averaged over the parameter it sees.

    Parameters
    ----------
    kernel : array_like of shape (w, k)
        Posterior of the k data sets for each of the w parameters; rows sum to 1 within 1e-9.
    weights : array_like of shape (w,)
        Probability of each parameter, given the client's actual data.

    Returns
    -------
    ndarray of shape (k,)
        The mean of the rows.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes do not match.

    Notes
    -----
    Zhang, Chen and Yang 2023, Appendix B. Over the prior's own parameter distribution the mean is the prior, and no leakage is left: use
    the distribution for the client's data.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(distortion.averaged_posterior([[0.6, 0.4], [0.9, 0.1]], [0.75, 0.25]))
    [0.675 0.325]
    """
    rows, weight = pmf("kernel", kernel), pmf("weights", weights)
    if rows.ndim != 2 or weight.shape != rows.shape[:1]:
        msg = f"kernel must have a row for each weight, not the shapes {rows.shape} and {weight.shape}"
        raise ValueError(msg)
    return np.asarray(weight @ rows)


def privacy_leakage(protected_belief: ArrayLike, prior_belief: ArrayLike) -> Result:
    """Return the privacy leakage of a protected parameter.

    Parameters
    ----------
    protected_belief, prior_belief : array_like of shape (..., k)
        Belief about the data after and before seeing the protected parameter.

    Returns
    -------
    ndarray or float
        Their Jensen-Shannon distance, of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes differ.

    Notes
    -----
    The definition of Appendix G of Zhang, Chen and Yang 2023. Its Definition 4 compares with the unprotected belief
    (`hockeystick.published.privacy_leakage`), so that no protection would leak nothing.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.privacy_leakage([0.9, 0.1], [0.5, 0.5]):.6f}")
    0.318982
    """
    p, q = pair("protected_belief", protected_belief, "prior_belief", prior_belief)
    return jensen_shannon_distance(p, q)


def unprotected_leakage(unprotected_belief: ArrayLike, prior_belief: ArrayLike) -> Result:
    """Return the privacy leakage without protection, which the bounds start from.

    Parameters
    ----------
    unprotected_belief, prior_belief : array_like of shape (..., k)
        Belief about the data after and before seeing the unprotected parameter.

    Returns
    -------
    ndarray or float
        Their Jensen-Shannon distance (C_1), of shape (...): of one client, not a mean over clients.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes differ.

    Notes
    -----
    Zhang, Chen and Yang 2023, Lemma 5.5, as its proof has it.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.unprotected_leakage([0.6, 0.4], [0.5, 0.5]):.6f}")
    0.071129
    """
    p, q = pair("unprotected_belief", unprotected_belief, "prior_belief", prior_belief)
    return jensen_shannon_distance(p, q)


def federated_privacy_leakage(per_client: ArrayLike, reduction: Reduction = "max") -> Result:
    """Return the leakage of a federation from those of its clients.

    Parameters
    ----------
    per_client : array_like of shape (..., K)
        `privacy_leakage` of each client.
    reduction : {"max", "mean"}
        The worst client's, or the mean, which the paper takes and which hides the worst.

    Returns
    -------
    ndarray or float
        Of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(distortion.federated_privacy_leakage([0.25, 0.5]), distortion.federated_privacy_leakage([0.25, 0.5], "mean"))
    0.5 0.375
    """
    worst = choice("reduction", reduction, ("max", "mean")) == "max"
    leakages = np.atleast_1d(STRICT.within("per_client", per_client, LEAKAGE))
    if leakages.size == 0:
        msg = "per_client must not be empty"
        raise ValueError(msg)
    return (leakages.max(axis=-1) if worst else leakages.mean(axis=-1))[()]


def max_bayesian_privacy_leakage(kernel: ArrayLike, prior: ArrayLike) -> float:
    """Return the largest log ratio of posterior and prior that any parameter causes.

    Parameters
    ----------
    kernel : array_like of shape (w, k)
        Posterior of the k data sets for each of the w parameters.
    prior : array_like of shape (k,)
        Prior, positive wherever a posterior is.

    Returns
    -------
    float
        xi in nats; infinite where a posterior is 0 and the prior is not. At most epsilon for an epsilon-LDP mechanism; infinite for
        Gaussian noise on an unbounded domain.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes do not match.

    Notes
    -----
    Zhang, Chen and Yang 2023, before Equation 12.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.max_bayesian_privacy_leakage([[0.6, 0.4], [0.9, 0.1]], [0.5, 0.5]):.6f}")
    1.609438
    """
    rows, before = pair("kernel", kernel, "prior", prior)
    if ((before == 0) & (rows > 0)).any():
        msg = "prior must be positive wherever kernel is, not 0"
        raise ValueError(msg)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(before > 0, np.abs(np.log(rows / before)), 0.0)
    return float(ratios.max())


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
    Lemma B.3 of Zhang, Chen and Yang 2023 bounds the divergence by (C_2 TV)^2; beliefs are the same kernel of either parameter, so that their divergence
    is at most the parameters', which is at most TV ln 2.

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


def privacy_leakage_bound_from_ldp(epsilon: ArrayLike) -> Result:
    """Return the largest leakage of a locally differentially private release.

    Parameters
    ----------
    epsilon : array_like
        Pure local differential privacy of the release, for any two data sets of the client; >= 0, infinity is legal.

    Returns
    -------
    ndarray or float
        sqrt(ln 2 - h(1/(1 + e^epsilon))), h the binary entropy in nats.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The ratio of every averaged belief to the prior lies in [e^-epsilon, e^epsilon], and the divergence is convex in it; a prior of
    (1/(1 + e^epsilon), e^epsilon/(1 + e^epsilon)) and the belief with both swapped attain it. Randomised response does not: its ratios
    differ by a factor of e^epsilon in all, and it leaks what is stated here for half its epsilon.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.privacy_leakage_bound_from_ldp(1.0):.6f}")
    0.333083
    """
    return np.sqrt(spread(np.tanh(STRICT.non_negative_or_infinite("epsilon", epsilon) / 2.0)))[()]


def ldp_epsilon_for_leakage(budget: ArrayLike) -> Result:
    """Return the local differential privacy that keeps the leakage within a budget.

    Parameters
    ----------
    budget : array_like
        Largest leakage tau, in [0, sqrt(ln 2)].

    Returns
    -------
    ndarray or float
        The largest epsilon whose `privacy_leakage_bound_from_ldp` is at most tau; infinite where every release is within it.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.ldp_epsilon_for_leakage(0.3):.6f}")
    0.889974
    """
    budget = STRICT.within("budget", budget, LEAKAGE)
    limited = (budget > 0) & (budget < MOST)
    inside = np.where(limited, budget, MOST / 2.0)
    # The bound is at most epsilon/(2 sqrt 2), so this start is feasible.
    found = largest_within(lambda x: np.sqrt(spread(np.tanh(x / 2.0))), inside, inside)
    return np.where(limited, found, np.where(budget > 0, np.inf, 0.0))[()]

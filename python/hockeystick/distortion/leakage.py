"""Privacy leakage: how far what an adversary believes about the data moves from the prior.

It is the square root of a Jensen-Shannon divergence, in [0, sqrt(ln 2)]. The adversary reads the protected parameter as if it
were unprotected, and beliefs are averaged over the parameter: a small leakage is no differential privacy. The way from a
guarantee to a leakage is `privacy_leakage_bound_from_ldp`.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, choice, pmf
from hockeystick.distortion.divergences import LOG_2, jensen_shannon_distance, log_ratio, pair

__all__ = [
    "averaged_posterior",
    "federated_privacy_leakage",
    "max_bayesian_privacy_leakage",
    "privacy_leakage",
    "unprotected_leakage",
]

Reduction: TypeAlias = Literal["max", "mean"]

MOST = math.sqrt(LOG_2)  # the largest leakage
LEAKAGE = (lambda x: (x >= 0) & (x <= MOST * (1 + 1e-12)), f"lie in [0, sqrt(ln 2)] = [0, {MOST:.12g}]")


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
    Zhang, Chen and Yang 2023, Appendix B. Over the prior's own parameter distribution the mean is the prior, and no leakage
    is left: use the distribution for the client's data.

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
        xi in nats; infinite where a posterior is 0 and the prior is not. At most epsilon for an epsilon-LDP mechanism;
        infinite for Gaussian noise on an unbounded domain.

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
    return float(np.where(before > 0, np.abs(log_ratio(rows, before)), 0.0).max())

"""Privacy leakage: how far an adversary's belief about the data moves from the prior, its bounds, and its trade-offs with utility.

It is the square root of a Jensen-Shannon divergence, in [0, sqrt(ln 2)]. The adversary reads the protected parameter as if it
were unprotected, and beliefs are averaged over the parameter: a small leakage is no differential privacy. The way from a
guarantee to a leakage is `privacy_leakage_bound_from_ldp`.

**What local differential privacy says of leakage.** A release W of one client's data D is epsilon-LDP. Then the leakage, the Jensen-Shannon distance of any averaged belief
sum_w F(d|w) q(w) from the prior f(d), is at most sqrt(ln 2 - h(1/(1 + e^{epsilon/2}))), h the binary entropy in nats.

Proof. The ratios r_w(d) = F(d|w)/f(d) = P(w|d)/P(w) of one w lie within a factor e^epsilon of each other and have the mean 1 under f.
So do their averages r over w: r lies in [a, a e^epsilon] for some a <= 1 <= a e^epsilon, and has mean 1. The divergence is the mean
under f of a convex function of r, so that it is at most what its chord over that interval gives, which is the divergence of two coins:
with p = (1 - a)/(a (e^epsilon - 1)), the prior (p, 1 - p) and the belief (p a e^epsilon, (1 - p) a). Their log odds differ by epsilon,
whatever a. It remains to show that two coins of log odds x + c and x - c, c = epsilon/2, differ most where x = 0.

Let u+ > u- be the coins' probabilities, m their mean, d half their difference, l(u) = ln(u/(1 - u)), and J the divergence
h(m) - (h(u+) + h(u-))/2. As h' = -l and du/dx = u(1 - u), 2 dJ/dx = S(d) for S(d) = G(m + d) + G(m - d), G(u) = (l(u) - l(m)) u (1 - u).
J is even in x; let x > 0, so that m = 1/2 + e with e > 0. S(0) = 0, and as G'(u) = 1 + (l(u) - l(m))(1 - 2u),

    S'(d) = -2 (d + e) (l(m + d) - l(m)) + 2 (d - e) (l(m) - l(m - d)).

That is negative for d <= e. Else let k(v) = l(1/2 + v), odd, and on v > 0 increasing, convex and 0 at 0, thus superadditive:
k(d + e) >= k(d - e) + 2 k(e). So (d + e) (k(d + e) - k(e)) >= (d - e) (k(d - e) + k(e)), and S' <= 0 again. Hence J falls in x > 0.

At x = 0 the coins are 1/(1 + e^{-c}) and 1/(1 + e^c): J = ln 2 - h(1/(1 + e^c)). Randomised response of that epsilon on two values
with the prior 1/(1 + e^{epsilon/2}) attains it.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick._checks import FRACTION, STRICT, Array, Result, choice, non_negative_scalar, pmf, scalar, vector
from hockeystick._numeric.rounding import SHORT_SUM_UP
from hockeystick._numeric.search import largest_within
from hockeystick.distortion.divergences import jensen_shannon_distance, log_ratio, pair, spread
from hockeystick.distortion.domains import LEAKAGE, LOG_2, MAX_LEAKAGE, checked

__all__ = [
    "InfeasibleBudgetError",
    "averaged_posterior",
    "belief_shift_bound",
    "distortion_ratio",
    "federated_privacy_leakage",
    "ldp_epsilon_for_leakage",
    "leakage_tv_coefficient",
    "max_bayesian_privacy_leakage",
    "max_near_optimal_gap",
    "min_distortion_for_budget",
    "near_optimal_set",
    "nfl_utility_weight",
    "privacy_leakage",
    "privacy_leakage_bound_from_ldp",
    "privacy_leakage_lower_bound",
    "privacy_leakage_upper_bound",
    "tradeoff_upper_bound",
    "unprotected_leakage",
]

Reduction: TypeAlias = Literal["max", "mean"]


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
        raise ValueError(f"kernel must have a row for each weight, not the shapes {rows.shape} and {weight.shape}")
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
        raise ValueError("per_client must not be empty")
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
        raise ValueError("prior must be positive wherever kernel is, not 0")
    return float(np.where(before > 0, np.abs(log_ratio(rows, before)), 0.0).max())


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
    log, distance = checked(locals())
    coefficient = np.asarray(leakage_tv_coefficient(log))
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
    return np.minimum(start + belief_shift_bound(log_ratio, total_variation), MAX_LEAKAGE)[()]


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
    start, budget, log = checked(locals())
    coefficient = np.asarray(leakage_tv_coefficient(log))
    gap = np.maximum(start - budget, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(gap > 0, np.maximum(gap / coefficient, gap**2 / LOG_2), 0.0)
    if (least > 1).any():
        at = int(np.argmax(least))
        raise InfeasibleBudgetError(
            f"budget must be within reach of a total variation distance of 1, not {budget.ravel()[at]:g} from an "
            f"unprotected leakage of {start.ravel()[at]:g}"
        )
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
        sqrt(ln 2 - h(1/(1 + e^{epsilon/2}))), h the binary entropy in nats, rounded up.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    An upper bound for every prior, every kernel and every average over releases, proven at the head of its file: the ratios of an
    averaged belief to the prior lie within one factor e^epsilon of each other and average to 1. Randomised response
    of this epsilon attains it, for the prior (1/(1 + e^{epsilon/2}), e^{epsilon/2}/(1 + e^{epsilon/2})).

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.privacy_leakage_bound_from_ldp(1.0):.6f}")
    0.174069
    """
    return _leakage(STRICT.non_negative_or_infinite("epsilon", epsilon))[()]


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
    1.779948
    """
    budget = STRICT.within("budget", budget, LEAKAGE)
    limited = (budget > 0) & (budget < MAX_LEAKAGE)
    inside = np.where(limited, budget, MAX_LEAKAGE / 2.0)
    found = largest_within(_leakage, inside, inside)  # feasible from the start: the bound is at most epsilon/(4 sqrt 2)
    return np.where(limited, found, np.where(budget > 0, np.inf, 0.0))[()]


def _leakage(epsilon: Array) -> Array:
    """Return the bound, rounded up; of a tiny epsilon its tangent, which is above it by less than a rounding."""
    tiny = epsilon < 1e-7
    root = np.sqrt(spread(np.tanh(np.where(tiny, 1.0, epsilon) / 4.0)))
    value = np.where(tiny, epsilon / (4.0 * math.sqrt(2.0)), root) * SHORT_SUM_UP
    above_zero = np.where(epsilon > 0, np.nextafter(value, np.inf), 0.0)
    return np.minimum(above_zero, np.nextafter(MAX_LEAKAGE, 1.0))  # MAX_LEAKAGE is below sqrt(ln 2) by its rounding


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
    ratio, gap, log = checked(locals())
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
    total = scalar("aggregated_distance", aggregated_distance, *FRACTION)
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
        raise ValueError(f"probabilities must be as long as deficits ({gaps.size}), not of length {weights.size}")
    half = scalar("total_variation", total_variation, *FRACTION) / 2.0
    order = np.argsort(gaps)
    reached = np.array([weights[gaps <= gap].sum() for gap in gaps[order]])
    too_many = np.flatnonzero(reached > half * (1 + 1e-12))
    if too_many.size == 0:
        return float("inf")
    first = float(gaps[order][too_many[0]])
    if first == 0.0:
        raise InfeasibleBudgetError(
            f"total_variation must be at least twice the probability {reached[too_many[0]]:g} of the optima, not {2 * half:g}"
        )
    return first

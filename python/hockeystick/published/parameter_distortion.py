"""Zhang, Chen and Yang 2023, as printed: leakage, sampling, utility and their trade-offs by parameter distortion, and Algorithms 1 to 3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, random_generator, vector
from hockeystick.distortion import (
    InfeasibleBudgetError,
    aggregate,
    distort_parameters,
    fedsgd_local_step,
    jensen_shannon_distance,
    leakage_tv_coefficient,
)
from hockeystick.distortion import distortion_ratio as corrected_ratio
from hockeystick.distortion import nfl_utility_weight as corrected_weight
from hockeystick.distortion import sampled_update_variance as corrected_variance
from hockeystick.distortion.divergences import pair
from hockeystick.distortion.domains import DOMAINS, LEAKAGE, checked
from hockeystick.isrl.domains import scalars
from hockeystick.published.warning import quietly, warn_unsound

__all__ = [
    "DistortionHistory",
    "SamplingConditions",
    "TradeoffConditions",
    "bias_gap_bound",
    "distortion_ratio",
    "gaussian_tv_bounds",
    "min_distortion_for_budget",
    "nfl_utility_weight",
    "noise_variance_for_budget",
    "optimal_tradeoff_conditions",
    "privacy_leakage",
    "privacy_leakage_upper_bound",
    "run_near_optimal_utility_fl",
    "sampled_update_variance",
    "sampling_conditions",
    "sampling_probability",
    "tradeoff_upper_bound",
    "utility_loss_constant",
    "utility_loss_upper_bound",
    "variance_gap_bound",
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
    start, log, distance = checked(locals())
    coefficient = np.asarray(leakage_tv_coefficient(log))
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
    start, budget = checked(locals())
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
    start, budget, variance, dimension = checked(locals())
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
    variance, noise, dimension = checked(locals())
    size = np.minimum(1.0, noise / variance * np.sqrt(dimension))
    return (size / 100.0)[()], (1.5 * size)[()]


class SamplingConditions(NamedTuple):
    """What Equations 18 and 20 ask of one sampling probability of at most 1/2.

    Attributes
    ----------
    least : ndarray or float
        The smallest that Equation 18 allows.
    most : ndarray or float
        The largest that Equation 20 allows; 1 where every probability is allowed.
    compatible : ndarray of bool or bool
        Whether some probability satisfies both.
    """

    least: Result
    most: Result
    compatible: Result


def sampling_probability(
    unprotected: ArrayLike, budget: ArrayLike, grad_sq_norm_sum: ArrayLike, utility_constant: ArrayLike
) -> Result:
    r"""Return the sampling probability of Theorem 5.11.

    Parameters
    ----------
    unprotected, budget : array_like
        C_1 and tau, in [0, sqrt(ln 2)].
    grad_sq_norm_sum : array_like
        Sum of the records' squared gradient norms, positive.
    utility_constant : array_like
        C_6, positive; `utility_loss_constant`.

    Returns
    -------
    ndarray or float
        The smaller root of :math:`p(1-p) = C_6(C_1 - \tau)/G`; 0 where C_1 <= tau, and then no batch has a record.

    Raises
    ------
    InfeasibleBudgetError
        If there is no root, which the paper does not say.
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        Always.

    Notes
    -----
    Counterexample: the theorem promises no utility loss; zero-mean noise of variance v per coordinate always costs d v in
    expectation (`hockeystick.distortion.expected_utility_loss_additive_noise`).

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     print(f"{published.sampling_probability(0.305, 0.3, 1.0, 2.0):.9f}")
    0.010102051
    """
    start, budget, total, constant = checked(locals())
    r = _required(start, budget, total, constant)
    warn_unsound(
        f"Theorem 5.11 {PAPER} is false", "hockeystick.distortion.expected_utility_loss_additive_noise", "bound"
    )
    return _smaller_root(r)[()]


def sampling_conditions(
    unprotected: ArrayLike, budget: ArrayLike, grad_sq_norm_sum: ArrayLike, utility_constant: ArrayLike
) -> SamplingConditions:
    r"""Return what Equations 18 and 20 ask of the sampling probability; they contradict each other.

    Parameters
    ----------
    unprotected, budget, grad_sq_norm_sum, utility_constant : array_like
        C_1, tau, G and C_6, as in `sampling_probability`.

    Returns
    -------
    SamplingConditions
        With least, most and compatible.

    Raises
    ------
    InfeasibleBudgetError
        If Equation 18 has no root.
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        Always.

    Notes
    -----
    Both are said to make the utility loss 0 within the leakage tau: (18) by :math:`p(1-p)G \ge C_6(C_1 - \tau)`, (20) by
    :math:`p(1-p)G \le \tau`. The direction is opposite, C_1 and C_6 are lost, and a squared length is compared with a leakage. Both can
    hold only where :math:`C_6(C_1 - \tau) \le \tau`. The algorithm cites (18). Counterexample to (20): a full batch, p = 1, without noise
    satisfies it for every tau, and leaks C_1: .319 for a fair prior and a belief of .9, tau = .1.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     found = published.sampling_conditions(0.02, 0.01, 0.2, 4.0)
    >>> print(f"at least {found.least:.3f}, at most {found.most:.3f}: {bool(found.compatible)}")
    at least 0.276, at most 0.053: False
    """
    start, budget, total, constant = checked(locals())
    least = _smaller_root(_required(start, budget, total, constant))
    warn_unsound(f"Equation 20 {PAPER} is false", "hockeystick.distortion.ldp_epsilon_for_leakage")
    allowed = budget / total
    most = np.where(allowed < 0.25, _smaller_root(np.minimum(allowed, 0.25)), 1.0)
    compatible = constant * np.maximum(start - budget, 0.0) <= budget
    return SamplingConditions(least[()], most[()], compatible[()])


def _required(start: Array, budget: Array, total: Array, constant: Array) -> Array:
    """Return the right-hand side of Equation 18."""
    r = constant * np.maximum(start - budget, 0.0) / total
    if (r > 0.25 * (1 + 1e-12)).any():  # 1/4, rounded
        raise InfeasibleBudgetError(
            f"budget must leave C_6 (C_1 - budget)/grad_sq_norm_sum at most 1/4, not {r.max():g}"
        )
    return r


def _smaller_root(r: Array) -> Array:
    """Return the smaller p with p (1 - p) = r."""
    return np.asarray(2.0 * r / (1.0 + np.sqrt(np.maximum(1.0 - 4.0 * r, 0.0))))


def bias_gap_bound(constant: ArrayLike, total_variation: ArrayLike) -> Result:
    """Return the bias gap of Lemma 5.3.

    Parameters
    ----------
    constant : array_like
        C_3 (main text) or C_4 (appendix), >= 0.
    total_variation : array_like
        In [0, 1].

    Returns
    -------
    ndarray or float
        Their product.

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
    Counterexample: mass .1 at -R and .9 at R, against all at R, the optimum at 0: TV = .1, the bias changes by .2 R.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     print(published.bias_gap_bound(0.5, 0.1))
    0.05
    """
    constant, distance = checked(locals())
    warn_unsound(f"Lemma 5.3 {PAPER} is false", "hockeystick.distortion.bias_gap_bound", "bound")
    return (constant * distance)[()]


def variance_gap_bound(conditional_variance: ArrayLike, radius: ArrayLike, total_variation: ArrayLike) -> Result:
    """Return the variance gap of Lemma 5.4: true where protection leaves the mean, and twice as large as need be.

    Parameters
    ----------
    conditional_variance, radius, total_variation : array_like
        As in `hockeystick.distortion.variance_gap_bound`.

    Returns
    -------
    ndarray or float
        2 C_3^2 TV less the conditional variance.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.variance_gap_bound(0.3, 1.0, 0.1):.1f}")
    -0.1
    """
    variance, radius, distance = checked(locals())
    return (2.0 * radius**2 * distance - variance)[()]


def utility_loss_constant(norm: float, bias: float, bias_slope: float, *, fixed: bool = False) -> float:
    """Return the constant C_6 of Theorem 5.1, which the paper does not state, as its proof has it.

    Parameters
    ----------
    norm : float
        C_3, largest norm of a parameter, >= 0.
    bias : float
        C_4, bound on the bias, >= 0.
    bias_slope : float
        C_5, bias over total variation, >= 0.
    fixed : bool
        Use C_4 in place of C_3 where the proof has a slip.

    Returns
    -------
    float
        2 C_3^2 + C_4 (C_3 + 2 C_5).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.utility_loss_constant(1.0, 0.5, 0.1):.2f}")
    2.60
    """
    c3, c4, c5 = scalars(locals(), norm="non_negative", bias="non_negative", bias_slope="non_negative")
    return float(2.0 * c3**2 + c4 * ((c4 if fixed else c3) + 2.0 * c5))


def utility_loss_upper_bound(
    conditional_variance: ArrayLike, utility_constant: ArrayLike, total_variation: ArrayLike
) -> Result:
    """Return the utility bound of Theorem 5.1.

    Parameters
    ----------
    conditional_variance : array_like
        Expected variance of the protected parameter given the previous one, >= 0.
    utility_constant : array_like
        C_6, >= 0.
    total_variation : array_like
        In [0, 1].

    Returns
    -------
    ndarray or float
        C_6 TV less the conditional variance.

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
    Counterexample: without distortion TV and the loss are 0, and the bound is negative as soon as records are sampled.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     print(f"{published.utility_loss_upper_bound(0.5, 2.0, 0.0)}, true 0.0")
    -0.5, true 0.0
    """
    variance, constant, distance = checked(locals(), utility_constant="non_negative")
    warn_unsound(f"Theorem 5.1 {PAPER} is false", "hockeystick.distortion.utility_loss_tv_bound", "bound")
    return (constant * distance - variance)[()]


def sampled_update_variance(gradients: ArrayLike, sampling_rate: float) -> float:
    """Return the variance of the sampled update as Theorem 5.10 states it, without the 1/N of its proof.

    Parameters
    ----------
    gradients : array_like of shape (M, d) or (M,)
        Gradient of each record.
    sampling_rate : float
        p, in (0, 1).

    Returns
    -------
    float
        p (1 - p) times the sum of squared norms: right for one sampling round, unit step and no noise.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.sampled_update_variance([1.0, 2.0, 3.0], 0.2):.2f}")
    2.24
    """
    return corrected_variance(gradients, sampling_rate)  # both agree for a single sampling round


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
    start, log, constant, variance = checked(locals())
    weight = _weight(log, constant)
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
    corrected = np.asarray(corrected_weight(ratio, near_optimal_gap, log_ratio))
    warn_unsound(
        f"the weight of Theorem 5.13 {PAPER} is a quarter of what follows",
        "hockeystick.distortion.nfl_utility_weight",
        "bound",
    )
    return (corrected / 4.0)[()]


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
    return corrected_ratio(client_distances, aggregated_distance) * np.size(client_distances)


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
    start, xi, constant, gamma, gap, variance = scalars(locals(), **{**DOMAINS, "log_ratio": "positive"})
    warn_unsound(
        f"Theorem 5.14 {PAPER} rests on the false Theorem 5.12", "hockeystick.distortion.tradeoff_upper_bound", "bound"
    )
    weight = float(_weight(xi, np.asarray(constant)))
    printed = float(corrected_weight(gamma, gap, xi)) / 4.0
    match = abs(weight - printed) <= 1e-9 * weight
    return TradeoffConditions(match, start / weight, start - weight * variance)


class DistortionHistory(NamedTuple):
    """What happened in rounds 0 to T with K clients and d parameters.

    Attributes
    ----------
    parameters : ndarray of shape (T + 2, d)
        The server's parameter before the first and after each round.
    sampling_probabilities : ndarray of shape (T + 1, K)
        Probability with which each client drew each record.
    batch_sizes : ndarray of int, shape (T + 1, K)
        Records drawn; with none the client takes no step.
    noise_variances : ndarray of shape (T + 1, K)
        Variance per coordinate of each client's noise.
    """

    parameters: Array
    sampling_probabilities: Array
    batch_sizes: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    noise_variances: Array


def run_near_optimal_utility_fl(
    clients: Sequence[Callable[[Array], ArrayLike]],
    start: ArrayLike,
    *,
    rounds: int,
    budget: ArrayLike,
    unprotected: ArrayLike,
    variance: ArrayLike,
    utility_constant: float,
    learning_rate: float,
    weights: ArrayLike | None = None,
    rng: np.random.Generator,
) -> DistortionHistory:
    """Run the algorithm that is to be private and of near-optimal utility. It is neither.

    Parameters
    ----------
    clients : sequence of callable
        Each takes a parameter of shape (d,) and returns its records' gradients, of shape (M, d).
    start : array_like of shape (d,)
        The first parameter.
    rounds : int
        The last round T: as printed, t runs from 0 to T, which is T + 1 rounds.
    budget : array_like
        Largest leakage tau: one number, one of each client, shape (K,), or of each round and client, shape (T + 1, K).
    unprotected : array_like
        C_1, of the same shapes, less than .01 above the budget.
    variance : array_like
        Variance per coordinate of the unprotected parameter, of the same shapes, positive.
    utility_constant : float
        C_6, positive.
    learning_rate : float
        eta, positive.
    weights : array_like of shape (K,), optional
        Shares of the clients; as printed, n_k/n, in proportion to their records, if not given.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    DistortionHistory
        Parameters, sampling probabilities, batch sizes and noise.

    Raises
    ------
    InfeasibleBudgetError
        If a sampling probability does not exist.
    ValueError
        If an argument is outside its domain.
    TypeError
        If rng is no generator.

    Warns
    -----
    UnsoundBoundWarning
        Always: see `noise_variance_for_budget` and `sampling_probability`.

    Notes
    -----
    Where the paper leaves it open: an empty batch is no step. Counterexample to its utility: every
    round costs d times the noise variance in expectation; and its sampling probability draws one record in 77 rounds below.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     history = published.run_near_optimal_utility_fl(
    ...         [lambda w: np.ones((200, w.size))],
    ...         np.zeros(100),
    ...         rounds=3,
    ...         budget=0.3,
    ...         unprotected=0.305,
    ...         variance=1.0,
    ...         utility_constant=2.6 * 100,
    ...         learning_rate=0.1,
    ...         rng=np.random.default_rng(1),
    ...     )
    >>> print(f"{history.sampling_probabilities[0, 0]:.2e}", history.noise_variances[0, 0].round(4))
    6.50e-05 0.05
    """
    server = vector("start", STRICT.finite("start", start))
    numbers = {"rounds": rounds, "utility_constant": utility_constant, "learning_rate": learning_rate}
    rounds, utility_constant, learning_rate = scalars(numbers, utility_constant="positive")
    shape = (rounds + 1, len(clients))
    limits = _of_each("budget", STRICT.within("budget", budget, LEAKAGE), shape)
    starts = _of_each("unprotected", STRICT.within("unprotected", unprotected, LEAKAGE), shape)
    variances = _of_each("variance", STRICT.positive("variance", variance), shape)
    random_generator("rng", rng)
    warn_unsound(
        "Algorithm 1 of Zhang, Chen and Yang (2023) promises neither privacy nor utility", "hockeystick.Accountant"
    )
    # The warning of these was given above, once.
    noises = quietly(noise_variance_for_budget, starts, limits, variances, server.size)
    probability = partial(quietly, sampling_probability, utility_constant=utility_constant)
    probabilities, sizes = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    parameters = [server]
    for t in range(rounds + 1):
        sent, records = [], []
        for k, client in enumerate(clients):
            gradients = STRICT.finite("gradients", client(server))
            probabilities[t, k] = probability(starts[t, k], limits[t, k], (gradients**2).sum())
            batch = gradients[rng.random(len(gradients)) < probabilities[t, k]]
            sizes[t, k] = len(batch)
            records.append(len(gradients))
            local = fedsgd_local_step(server, batch, learning_rate=learning_rate) if len(batch) else server
            sent.append(distort_parameters(local, float(noises[t, k]), rng))
        server = aggregate(sent, np.array(records) / sum(records) if weights is None else weights)
        parameters.append(server)
    return DistortionHistory(np.array(parameters), probabilities, sizes, noises)


def _of_each(name: str, value: Array, shape: tuple[int, int]) -> Array:
    """Return an argument for each round and client."""
    if value.shape not in {(), shape[1:], shape}:
        raise ValueError(f"{name} must be one number or have the shape {shape[1:]} or {shape}, not {value.shape}")
    return np.broadcast_to(value, shape)

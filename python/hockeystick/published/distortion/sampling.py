"""Zhang, Chen and Yang 2023: the sampling probability, by Equations 18 and 20."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, broadcast
from hockeystick.distortion import InfeasibleBudgetError
from hockeystick.distortion.leakage import LEAKAGE
from hockeystick.published.warning import warn_unsound

PAPER = "of Zhang, Chen and Yang (2023)"

__all__ = ["SamplingConditions", "sampling_conditions", "sampling_probability"]


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
    start, budget, total, constant = _checked(unprotected, budget, grad_sq_norm_sum, utility_constant)
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
    start, budget, total, constant = _checked(unprotected, budget, grad_sq_norm_sum, utility_constant)
    least = _smaller_root(_required(start, budget, total, constant))
    warn_unsound(f"Equation 20 {PAPER} is false", "hockeystick.distortion.ldp_epsilon_for_leakage")
    allowed = budget / total
    most = np.where(allowed < 0.25, _smaller_root(np.minimum(allowed, 0.25)), 1.0)
    compatible = constant * np.maximum(start - budget, 0.0) <= budget
    return SamplingConditions(least[()], most[()], compatible[()])


def _checked(*arguments: ArrayLike) -> list[Array]:
    """Check C_1, tau, G and C_6."""
    unprotected, budget, grad_sq_norm_sum, utility_constant = arguments
    return broadcast(
        STRICT.within("unprotected", unprotected, LEAKAGE),
        STRICT.within("budget", budget, LEAKAGE),
        STRICT.positive("grad_sq_norm_sum", grad_sq_norm_sum),
        STRICT.positive("utility_constant", utility_constant),
    )


def _required(start: Array, budget: Array, total: Array, constant: Array) -> Array:
    """Return the right-hand side of Equation 18."""
    r = constant * np.maximum(start - budget, 0.0) / total
    if (r > 0.25 * (1 + 1e-12)).any():  # 1/4, rounded
        msg = f"budget must leave C_6 (C_1 - budget)/grad_sq_norm_sum at most 1/4, not {r.max():g}"
        raise InfeasibleBudgetError(msg)
    return r


def _smaller_root(r: Array) -> Array:
    """Return the smaller p with p (1 - p) = r."""
    return np.asarray(2.0 * r / (1.0 + np.sqrt(np.maximum(1.0 - 4.0 * r, 0.0))))

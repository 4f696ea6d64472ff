"""Asoodeh, Chen, Calmon and Ozgur 2021: the trusted aggregator."""

from __future__ import annotations

import numpy as np

from hockeystick._checks import (
    NON_NEGATIVE_OR_INFINITE,
    at_most,
    count_scalar,
    non_negative_scalar,
    positive_scalar,
    scalar,
)
from hockeystick._hidden_states.contraction import contraction_sum
from hockeystick.kernels import log_theta, theta
from hockeystick.published.warning import warn_unsound

__all__ = ["trusted_aggregator", "trusted_aggregator_delta", "trusted_aggregator_excess_risk"]

PAPER = "Corollary 1 of Asoodeh, Chen, Calmon and Ozgur (2021)"


def _rounds(num_users: int, batch_size: int) -> int:
    users = count_scalar("num_users", num_users)
    batch = count_scalar("batch_size", batch_size)
    at_most("batch_size", batch, "num_users", users)
    return users // batch


def trusted_aggregator_excess_risk(
    *,
    num_users: int,
    batch_size: int,
    noise_std: float,
    gradient_bound: float,
    gradient_std: float,
    smoothness: float,
    strong_convexity: float,
) -> float:
    r"""Return the excess risk of Corollary 1 as printed, without the noise's dimensions.

    Parameters
    ----------
    num_users, batch_size, noise_std, gradient_bound, gradient_std, smoothness, strong_convexity : float
        As in `hockeystick.utility.trusted_aggregator_excess_risk`; numbers.

    Returns
    -------
    float
        :math:`2\beta(mD^2 + G^2 + \sigma^2)/(\lambda^2n)`.

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
    Counterexample: SGD on |w|^2/2 in the unit ball of 100 dimensions with unit noise and steps 1/t: its risk tends to 50/T,
    the bound is 4/T.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     risk = published.trusted_aggregator_excess_risk(
    ...         num_users=1000,
    ...         batch_size=1,
    ...         noise_std=1.0,
    ...         gradient_bound=1.0,
    ...         gradient_std=0.0,
    ...         smoothness=1.0,
    ...         strong_convexity=1.0,
    ...     )
    >>> print(f"{risk:.3f}")
    0.004
    """
    _rounds(num_users, batch_size)
    noise = non_negative_scalar("noise_std", noise_std)
    bound = non_negative_scalar("gradient_bound", gradient_bound)
    spread = non_negative_scalar("gradient_std", gradient_std)
    beta = positive_scalar("smoothness", smoothness)
    convexity = positive_scalar("strong_convexity", strong_convexity)
    warn_unsound(
        f"the noise of {PAPER} lacks its dimensions", "hockeystick.utility.trusted_aggregator_excess_risk", "bound"
    )
    return 2.0 * beta * (batch_size * bound**2 + spread**2 + noise**2) / (convexity**2 * num_users)


def trusted_aggregator_delta(
    eps: float,
    *,
    num_users: int,
    batch_size: int,
    noise_std: float,
    lipschitz: float,
    radius: float,
    smoothness: float,
    strong_convexity: float,
) -> float:
    r"""Return the delta of Corollary 1 as printed, with sqrt(lambda m j) where sqrt(m) lambda j follows.

    Parameters
    ----------
    eps, num_users, batch_size, noise_std, lipschitz, radius, smoothness, strong_convexity : float
        As in `hockeystick.utility.trusted_aggregator_delta`; numbers. The smoothness does not enter.

    Returns
    -------
    float
        :math:`\frac mn\theta_\epsilon(\frac{2L}{\sqrt m\sigma})\sum_t\prod_{j>t}\theta_\epsilon(2\rho\sqrt{\lambda
        mj}/\sigma)`: **no upper bound**.

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
    Theorem 2, of which it is to be a case, gives more as soon as lambda j exceeds 1. It also needs 1/lambda <= 2/beta, which
    is not stated.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import format_upper, published, utility
    >>> cell = dict(
    ...     num_users=100, batch_size=1, noise_std=5.0, lipschitz=1.0, radius=1.0, smoothness=1.0, strong_convexity=0.5
    ... )
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.trusted_aggregator_delta(0.1, **cell)
    >>> print(f"printed {printed:.4f}, by Theorem 2 {format_upper(utility.trusted_aggregator_delta(0.1, **cell), '.4f')}")
    printed 0.0068, by Theorem 2 0.1025
    """
    eps = scalar("eps", eps, *NON_NEGATIVE_OR_INFINITE)
    rounds = _rounds(num_users, batch_size)
    noise = positive_scalar("noise_std", noise_std)
    clip = positive_scalar("lipschitz", lipschitz)
    ball = positive_scalar("radius", radius)
    positive_scalar("smoothness", smoothness)
    convexity = positive_scalar("strong_convexity", strong_convexity)
    warn_unsound(f"the exponent of {PAPER} is not Theorem 2's", "hockeystick.utility.trusted_aggregator_delta")
    later = theta(eps, 2.0 * ball * np.sqrt(convexity * batch_size * np.arange(1.0, rounds + 1.0)) / noise)
    first = float(theta(eps, 2.0 * clip / (np.sqrt(batch_size) * noise)))
    return float(contraction_sum(np.full(rounds, first), later, batch_size / num_users))


def trusted_aggregator(
    eps: float,
    *,
    num_users: int,
    batch_size: int,
    learning_rate: float,
    noise_std: float,
    lipschitz: float,
    radius: float,
) -> float:
    r"""Return the delta of Theorem 2's closed form as printed, also with a number of rounds n/m that is not whole.

    Parameters
    ----------
    eps, num_users, batch_size, learning_rate, noise_std, lipschitz, radius : float
        As in `hockeystick.federated.trusted_aggregator` with ``loss="convex"``; numbers.

    Returns
    -------
    float
        :math:`\frac mn\theta_\epsilon(\frac{2L}{\sqrt m\sigma})(1 - \eta^{n/m})/(1 - \eta)` with
        :math:`\eta = \theta_\epsilon(\frac{2\rho\sqrt m}{\eta\sigma})`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        If batch_size does not divide num_users.

    Notes
    -----
    Where m divides n it is `hockeystick.federated.trusted_aggregator`. Otherwise it bounds the training of floor(n/m) rounds that leaves
    users out, but not the one that takes all of them, since the noise on a smaller last batch hides less. Counterexample: linear losses,
    a batch of 100 users and one of 1, L = 3 sigma, a wide ball. At eps = 3 the formula is 1.4e-7, and the two mixtures of normal laws have
    delta 1.0e-3. `hockeystick.federated.trusted_aggregator_batches` bounds it.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import federated, format_upper, published
    >>> cell = dict(learning_rate=0.5, noise_std=1.5, lipschitz=1.0, radius=1.0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.trusted_aggregator(0.0, num_users=100, batch_size=30, **cell)
    >>> whole = federated.trusted_aggregator(0.0, num_users=100, batch_size=30, loss="convex", **cell)
    >>> print(f"printed {printed:.7f}, three rounds {format_upper(whole, '.7f')}")
    printed 0.0968762, three rounds 0.0871886
    """
    eps = scalar("eps", eps, *NON_NEGATIVE_OR_INFINITE)
    _rounds(num_users, batch_size)
    step = positive_scalar("learning_rate", learning_rate)
    noise = positive_scalar("noise_std", noise_std)
    clip = positive_scalar("lipschitz", lipschitz)
    ball = positive_scalar("radius", radius)
    if num_users % batch_size:
        what = "Theorem 2 of Asoodeh, Chen, Calmon and Ozgur (2021) needs whole batches"
        warn_unsound(what, "hockeystick.federated.trusted_aggregator_batches")
    root = np.sqrt(batch_size)
    log_later = float(log_theta(eps, 2.0 * ball * root / (step * noise)))
    rounds = num_users / batch_size
    total = np.expm1(rounds * log_later) / np.expm1(log_later) if log_later < 0 else rounds
    return float(theta(eps, 2.0 * clip / (root * noise)) * total / rounds)

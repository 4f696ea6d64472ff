"""Asoodeh, Chen, Calmon and Ozgur 2021, Corollary 2 as printed: the rate after a uniformly random round."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, at_most, count_scalar, non_negative_scalar, positive_scalar
from hockeystick.isrl import Rate
from hockeystick.published.warning import warn_unsound

__all__ = ["random_stop_excess_risk_rate"]


def random_stop_excess_risk_rate(
    *,
    num_users: int,
    batch_size: int,
    noise_std: ArrayLike,
    lipschitz: float,
    smoothness: float,
    radius: float,
    gradient_bound: float,
    strong_convexity: float,
) -> Rate:
    r"""Return the rate of Corollary 2 as printed, whose noise term has neither the dimension nor the factor 1/2.

    Parameters
    ----------
    num_users, batch_size, lipschitz, smoothness, radius, gradient_bound, strong_convexity : float
        As in `hockeystick.utility.random_stop_excess_risk_rate`; numbers. The paper writes mu B for smoothness times radius.
    noise_std : array_like
        sigma_t: a number, or one of each of the T = num_users // batch_size rounds; >= 0.

    Returns
    -------
    Rate
        :math:`((L + \beta\rho)^2 + G^2)\ln(T)/(\lambda T)` and :math:`\sum_t\eta_t\sigma_t^2/(mT)` with :math:`\eta_t = 1/(\lambda t)`.

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
    A step adds half of its length times the expected squared norm of the noise, which is :math:`d\sigma_t^2/m`: the term of noise is
    d/2 times the printed one, so that it is too small from three dimensions on. `hockeystick.utility.random_stop_excess_risk_rate` has it.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published, utility
    >>> cell = dict(num_users=10_000, batch_size=100, noise_std=1.0, lipschitz=1.0, smoothness=1.0, radius=1.0)
    >>> cell |= dict(gradient_bound=1.0, strong_convexity=0.5)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.random_stop_excess_risk_rate(**cell)
    >>> print(f"{printed.private:.6f} {utility.random_stop_excess_risk_rate(dimension=10, **cell).private:.6f}")
    0.001037 0.005187
    """
    users, batch = count_scalar("num_users", num_users), count_scalar("batch_size", batch_size)
    at_most("batch_size", batch, "num_users", users)
    rounds = users // batch
    noise = STRICT.non_negative("noise_std", noise_std)
    if noise.ndim and noise.shape != (rounds,):
        msg = f"noise_std must be a number or of shape ({rounds},), one for each round, not of shape {noise.shape}"
        raise ValueError(msg)
    clip = positive_scalar("lipschitz", lipschitz)
    beta = positive_scalar("smoothness", smoothness)
    ball = positive_scalar("radius", radius)
    bound = non_negative_scalar("gradient_bound", gradient_bound)
    convexity = positive_scalar("strong_convexity", strong_convexity)
    what = "the noise of Corollary 2 of Asoodeh, Chen, Calmon and Ozgur (2021) lacks its dimensions and a factor 1/2"
    warn_unsound(what, "hockeystick.utility.random_stop_excess_risk_rate", "bound")
    statistical = ((clip + beta * ball) ** 2 + bound**2) * np.log(rounds) / (convexity * rounds)
    steps = 1.0 / (convexity * np.arange(1.0, rounds + 1.0))
    return Rate(float(statistical), float((steps * noise**2).sum() / (batch * rounds)), 0.0)

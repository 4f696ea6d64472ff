"""Asoodeh, Chen, Calmon and Ozgur 2021: the rate after a uniformly random round."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import NumpyChecks
from hockeystick._numeric.rounding import FUNCTIONS
from hockeystick.isrl import Rate
from hockeystick.isrl.arguments import checked
from hockeystick.utility.trusted_aggregator import checked_rounds

__all__ = ["random_stop_excess_risk_rate"]


def random_stop_excess_risk_rate(
    *,
    num_users: ArrayLike,
    batch_size: ArrayLike,
    dimension: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    radius: ArrayLike,
    gradient_bound: ArrayLike,
    strong_convexity: ArrayLike,
) -> Rate:
    r"""Return the rate of the excess risk of a trusted aggregator that stops after a random round, on any users' data.

    Parameters
    ----------
    num_users, batch_size : array_like
        Users n and users per round m: T = n // m rounds.
    dimension : array_like
        Number of coordinates d.
    noise_std : array_like
        Standard deviation sigma per coordinate of the noise that each user adds to the gradient, >= 0.
    lipschitz, smoothness : array_like
        L and beta of the scalar loss l in f(W) = l(<W, x>) + r(W), |x| <= 1; positive.
    radius : array_like
        Radius of the ball of models, positive.
    gradient_bound : array_like
        Largest norm G of a user's gradient, >= 0.
    strong_convexity : array_like
        lambda, positive.

    Returns
    -------
    Rate
        :math:`((L + \beta\rho)^2 + G^2)\ln(T)/(\lambda T)`, whose constant is not known, and the noise's
        :math:`d\sigma^2\sum_{t\le T}1/t/(2\lambda mT)`, rounded up.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Corollary 2 with steps of 1/(lambda t), from Shamir 2016. The noise's term is printed without d, and without the factor 1/2: a
    step adds half of its length times the expected squared norm of the noise. So this term is d/2 times the printed one.
    `federated.trusted_aggregator_random_stop` has its delta.

    Examples
    --------
    >>> from hockeystick import utility
    >>> rate = utility.random_stop_excess_risk_rate(
    ...     num_users=10_000,
    ...     batch_size=100,
    ...     dimension=10,
    ...     noise_std=1.0,
    ...     lipschitz=1.0,
    ...     smoothness=1.0,
    ...     radius=1.0,
    ...     gradient_bound=1.0,
    ...     strong_convexity=0.5,
    ... )
    >>> print(f"{rate.statistical:.4f} {rate.private:.6f}")
    0.4605 0.005187
    """
    from scipy.special import digamma  # noqa: PLC0415 - takes longer to import than everything else here

    grid = NumpyChecks(1, "raise")
    _, batch, rounds = checked_rounds(grid, num_users, batch_size)
    dimension, noise, lipschitz, smoothness, radius, bound = checked(
        dimension=dimension,
        noise_std=noise_std,
        lipschitz=lipschitz,
        smoothness=smoothness,
        radius=radius,
        gradient_bound=gradient_bound,
    )
    convexity = grid.positive("strong_convexity", strong_convexity)
    statistical = ((lipschitz + smoothness * radius) ** 2 + bound**2) * np.log(rounds) / (convexity * rounds)
    harmonic = digamma(rounds + 1.0) + np.euler_gamma
    private = dimension * noise**2 * harmonic / (2.0 * convexity * batch * rounds) * (1.0 + FUNCTIONS)
    shared = np.broadcast_arrays(statistical, private, 0.0)
    return Rate(*(term[()] for term in shared))

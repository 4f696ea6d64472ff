"""Asoodeh, Chen, Calmon and Ozgur 2021, Section IV: the excess risk after a random round, without strong convexity."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import NumpyChecks, OnError, Result
from hockeystick.isrl.arguments import checked
from hockeystick.utility.trusted_aggregator import checked_rounds

__all__ = ["random_stop_excess_risk_convex"]


def random_stop_excess_risk_convex(
    *,
    num_users: ArrayLike,
    batch_size: ArrayLike,
    dimension: ArrayLike,
    noise_std: ArrayLike,
    gradient_bound: ArrayLike,
    radius: ArrayLike,
    learning_rate: ArrayLike | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a bound on the excess risk of a trusted aggregator that stops after a random round, for convex losses.

    Parameters
    ----------
    num_users, batch_size : array_like
        Users n and users per round m: T = n // m rounds.
    dimension : array_like
        Number of coordinates d.
    noise_std : array_like
        Standard deviation sigma per coordinate of the noise that each user adds to the gradient, >= 0.
    gradient_bound : array_like
        Largest norm G of a user's gradient, positive.
    radius : array_like
        Radius rho of the ball of models, positive.
    learning_rate : array_like, optional
        The step eta of all rounds, positive; by default the one for which the bound is smallest.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        :math:`(2\rho)^2/(2\eta T) + \eta(G^2 + d\sigma^2/m)/2`, of the broadcast shape; by default
        :math:`2\rho\sqrt{(G^2 + d\sigma^2/m)/T}`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The rate 1/sqrt(T) that the paper states, with its constant: Shalev-Shwartz and Ben-David 2014, Theorem 14.8, whose proof
    follows. Users are drawn from one distribution, so that a round's gradient is that of the risk F on average. A step moves the model no
    further from w* than :math:`|W_t - w^*|^2 - 2\eta\langle\nabla F(W_t), W_t - w^*\rangle + \eta^2(G^2 + d\sigma^2/m)`, on average; the sum over
    the rounds, from the first released model at most 2 rho away, bounds the mean of F(W_1), ..., F(W_T), which is the risk after a
    uniformly random round.

    Examples
    --------
    >>> from hockeystick import utility
    >>> risk = utility.random_stop_excess_risk_convex(
    ...     num_users=10_000, batch_size=100, dimension=10, noise_std=1.0, gradient_bound=1.0, radius=1.0
    ... )
    >>> print(f"{risk:.4f}")
    0.2098
    """
    grid = NumpyChecks(1, on_error)
    _, batch, rounds = checked_rounds(grid, num_users, batch_size)
    dimension, noise = checked(grid, dimension=dimension, noise_std=noise_std)
    bound = grid.positive("gradient_bound", gradient_bound)
    width = 2.0 * grid.positive("radius", radius)
    with np.errstate(all="ignore"):  # cells outside the domain become NaN
        moment = bound**2 + dimension * noise**2 / batch
        best = width / np.sqrt(moment * rounds)
        step = best if learning_rate is None else grid.positive("learning_rate", learning_rate)
        return grid.finish(width**2 / (2.0 * step * rounds) + step * moment / 2.0)

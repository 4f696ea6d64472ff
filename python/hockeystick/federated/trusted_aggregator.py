"""Federated learning with a trusted aggregator that releases the last model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import OnError, Result
from hockeystick.federated.arguments import AggregatorGrid, Loss

__all__ = ["trusted_aggregator", "trusted_aggregator_random_stop"]


def trusted_aggregator(
    eps: ArrayLike,
    *,
    num_users: ArrayLike,
    batch_size: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    radius: ArrayLike,
    loss: Loss,
    smoothness: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a certified delta of federated learning with a trusted aggregator that releases the last model.

    Users are split at random into T = num_users // batch_size batches, one a round, and each takes part at most once.
    The aggregator averages the batch's noisy updates and projects the model onto a ball.

    Parameters
    ----------
    eps : array_like
        The point at which delta is evaluated, >= 0; shape (...).
    num_users : array_like
        Number of users, a positive integer; shape (...).
    batch_size : array_like
        Users per round, an integer in [1, num_users]; shape (...).
    learning_rate : array_like
        Step size, positive: a constant, or shape (..., T) with one value a round, or (..., 1) for a grid of constants.
    noise_std : array_like
        Standard deviation of the noise that each user adds to the gradient, positive; shape as `learning_rate`.
    lipschitz : array_like
        Lipschitz constant of the loss (bound of the gradient norm), positive; shape as `learning_rate`.
    radius : array_like
        Radius of the ball that the model is projected onto after each round, positive; shape as `learning_rate`. The initial
        model lies in the first ball.
    loss : {"convex", "nonconvex"}
        "convex" assumes convex, smooth losses and learning_rate <= 2/smoothness, so that a gradient step does not expand;
        "nonconvex" assumes neither. Clipped gradients are "nonconvex".
    smoothness : array_like, optional
        Lipschitz constant of the gradient, >= 0; shape as `learning_rate`. Where it is given and the loss is convex, the step
        size is checked; where it is not, learning_rate <= 2/smoothness is your assumption.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Upper bound of delta, up to rounding (1e-12 relative in log delta), of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or a schedule has not one value a round.

    Notes
    -----
    Theorem 2: :math:`\frac{m}{n} \sum_t \theta_\epsilon\big(\frac{2L}{\sqrt m \sigma_t}\big)
    \prod_{j>t} \theta_\epsilon\big(\frac{d_j \sqrt m}{\eta_j \sigma_j}\big)` with :math:`d_j = 2\rho_{j-1}` for convex losses
    and :math:`2(\rho_{j-1} + \eta_j L_j)` otherwise: round j starts from the ball of the round before (the paper has one radius).
    False if users take part repeatedly, if intermediate models are seen, or if noise is shared between rounds.

    Examples
    --------
    >>> from hockeystick import federated, format_upper
    >>> deltas = federated.trusted_aggregator(
    ...     [0.5, 1.0], num_users=100, batch_size=10, learning_rate=0.5, noise_std=1.5, lipschitz=1.0, radius=1.0, loss="convex"
    ... )
    >>> print(*(format_upper(delta, ".6f") for delta in deltas))
    0.030799 0.002022
    """
    grid = AggregatorGrid(loss, num_threads, on_error)
    cells = grid.aggregation(eps, num_users, batch_size, learning_rate, noise_std, lipschitz, radius, smoothness)
    return grid.evaluate(core.trusted_aggregator, *cells, np.asarray(1.0))


def trusted_aggregator_random_stop(
    eps: ArrayLike,
    *,
    num_users: ArrayLike,
    batch_size: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    radius: ArrayLike,
    loss: Loss,
    smoothness: ArrayLike | None = None,
    suffix: ArrayLike = 1.0,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a certified delta of `trusted_aggregator` stopped after a uniformly random round.

    Parameters
    ----------
    eps : array_like
        The point at which delta is evaluated, >= 0; shape (...).
    num_users : array_like
        Number of users, a positive integer; shape (...).
    batch_size : array_like
        Users per round, an integer in [1, num_users]; shape (...).
    learning_rate : array_like
        Step size, positive: a constant, or shape (..., T) with one value a round, or (..., 1) for a grid of constants.
    noise_std : array_like
        Standard deviation of the noise that each user adds to the gradient, positive; shape as `learning_rate`.
    lipschitz : array_like
        Lipschitz constant of the loss (bound of the gradient norm), positive; shape as `learning_rate`.
    radius : array_like
        Radius of the ball that the model is projected onto after each round, positive; shape as `learning_rate`. The initial
        model lies in the first ball.
    loss : {"convex", "nonconvex"}
        As in `trusted_aggregator`.
    smoothness : array_like, optional
        As in `trusted_aggregator`.
    suffix : array_like
        The stop is uniform over the last ceil(suffix T) rounds; in (0, 1], shape (...). 1 is Corollary 3.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Upper bound of delta, up to rounding (1e-12 relative in log delta), of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or a schedule has not one value a round.

    Notes
    -----
    Corollary 3: the mean over the stopping round of Theorem 2's sum up to that round, times m/n (printed as 1/T, which is
    the same where m divides n).

    Examples
    --------
    >>> from hockeystick import federated
    >>> delta = federated.trusted_aggregator_random_stop(
    ...     1.0, num_users=100, batch_size=10, learning_rate=0.5, noise_std=1.5, lipschitz=1.0, radius=1.0, loss="convex"
    ... )
    >>> print(f"{delta:.6f}")
    0.001112
    """
    grid = AggregatorGrid(loss, num_threads, on_error)
    cells = grid.aggregation(eps, num_users, batch_size, learning_rate, noise_std, lipschitz, radius, smoothness)
    suffix = grid.fraction("suffix", suffix)
    return grid.evaluate(core.trusted_aggregator_random_stop, *cells, suffix)

"""Federated learning with a trusted aggregator that releases the last model; batches may be of different sizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import LARGEST_COUNT, STRICT, Array, OnError, Result, choice, vector
from hockeystick._hidden_states.contraction import contraction_sum
from hockeystick.federated.arguments import LOSSES, AggregatorChecks, Loss


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
    grid = AggregatorChecks(loss, num_threads, on_error)
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
    grid = AggregatorChecks(loss, num_threads, on_error)
    cells = grid.aggregation(eps, num_users, batch_size, learning_rate, noise_std, lipschitz, radius, smoothness)
    suffix = grid.fraction("suffix", suffix)
    return grid.evaluate(core.trusted_aggregator_random_stop, *cells, suffix)


def trusted_aggregator_batches(
    eps: ArrayLike,
    *,
    batch_sizes: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    radius: float,
    loss: Loss,
    smoothness: float | None = None,
    num_threads: int | None = None,
) -> Result:
    r"""Return a certified delta of `trusted_aggregator` for batches of any sizes, into which all users are split at random.

    Parameters
    ----------
    eps : array_like
        The point at which delta is evaluated, >= 0; shape (...).
    batch_sizes : array_like of shape (T,)
        Users of each round, positive integers; every user is in exactly one batch.
    learning_rate, noise_std, lipschitz : array_like
        As in `trusted_aggregator`; a number, or one of each round.
    radius : float
        Radius of the ball that the model is projected onto after each round, positive. The initial model lies in it.
    loss : {"convex", "nonconvex"}
        As in `trusted_aggregator`.
    smoothness : float, optional
        As in `trusted_aggregator`.
    num_threads : int, optional
        Threads to use; all cores by default.

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
    Theorem 2's proof for batches of :math:`m_t` users: :math:`\sum_t\frac{m_t}n\theta_\epsilon\big(\frac{2L_t}{\sqrt{m_t}\sigma_t}\big)
    \prod_{j>t}\theta_\epsilon\big(\frac{d_j\sqrt{m_j}}{\eta_j\sigma_j}\big)`, since a user is in batch t with probability
    :math:`m_t/n`. The users of a small batch have less noise around them.

    Examples
    --------
    >>> from hockeystick import federated, format_upper
    >>> cell = dict(learning_rate=0.5, noise_std=1.5, lipschitz=1.0, radius=1.0, loss="convex")
    >>> delta = federated.trusted_aggregator_batches(0.0, batch_sizes=[30, 30, 30, 10], **cell)
    >>> print(format_upper(delta, ".5f"))
    0.10389
    """
    choice("loss", loss, LOSSES)
    eps = STRICT.non_negative_or_infinite("eps", eps)
    sizes = vector("batch_sizes", STRICT.count("batch_sizes", batch_sizes))
    rounds = sizes.size
    step = _each_round("learning_rate", learning_rate, rounds)
    noise = _each_round("noise_std", noise_std, rounds)
    clip = _each_round("lipschitz", lipschitz, rounds)
    ball = STRICT.positive("radius", radius)
    beta = STRICT.non_negative("smoothness", 0.0 if smoothness is None else smoothness)
    for name, value in (("radius", ball), ("smoothness", beta)):
        if value.ndim:
            msg = f"{name} must be a number, not of shape {value.shape}"
            raise ValueError(msg)
    if sizes.sum() > LARGEST_COUNT:
        msg = f"batch_sizes must sum to at most {LARGEST_COUNT}, not {sizes.sum():g}"
        raise ValueError(msg)
    if loss == "convex":
        rule = "learning_rate must be at most 2/smoothness for a convex loss"
        STRICT.require(lambda rate, b: rate * b <= 2, rule, learning_rate=step, smoothness=beta)
    image = 2.0 * (ball + (step * clip if loss == "nonconvex" else 0.0))
    points = eps[..., np.newaxis]
    first = core.theta(points, 2.0 * clip / (np.sqrt(sizes) * noise))
    later = core.theta(points, image * np.sqrt(sizes) / (step * noise))
    return contraction_sum(first, later, sizes / sizes.sum(), num_threads=num_threads)


def _each_round(name: str, value: ArrayLike, rounds: int) -> Array:
    array = STRICT.positive(name, value)
    if array.ndim and array.shape != (rounds,):
        msg = f"{name} must be a number or of shape ({rounds},), one for each batch, not of shape {array.shape}"
        raise ValueError(msg)
    filled: Array = np.broadcast_to(array, (rounds,))
    return filled

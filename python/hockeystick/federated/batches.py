"""A trusted aggregator whose batches are of different sizes, such as a smaller last one that takes the users who remain."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import LARGEST_COUNT, STRICT, Array, Result, choice, vector
from hockeystick._hidden_states.contraction import contraction_sum
from hockeystick.federated.arguments import LOSSES, Loss

__all__ = ["trusted_aggregator_batches"]


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

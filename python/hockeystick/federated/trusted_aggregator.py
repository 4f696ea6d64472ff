"""Federated learning with a trusted aggregator that releases the last model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import LARGEST_COUNT, Array, Grid, OnError, Result, broadcast, choice

__all__ = ["trusted_aggregator", "trusted_aggregator_random_stop"]

Loss: TypeAlias = Literal["convex", "nonconvex"]

LOSSES: tuple[Loss, ...] = get_args(Loss)


class AggregatorGrid(Grid):
    """The arguments of the trusted-aggregator functions, whose arrays have the round as their last axis."""

    def __init__(self, loss: Loss, num_threads: int | None, on_error: OnError) -> None:
        super().__init__(num_threads, on_error)
        self.convex = choice("loss", loss, LOSSES) == "convex"
        self.rounds: dict[str, Array] = {}

    def aggregation(  # noqa: PLR0917, in the order of its callers' arguments
        self,
        eps: ArrayLike,
        num_users: ArrayLike,
        batch_size: ArrayLike,
        learning_rate: ArrayLike,
        noise_std: ArrayLike,
        lipschitz: ArrayLike,
        radius: ArrayLike,
        smoothness: ArrayLike | None,
    ) -> tuple[Array, ...]:
        """Check the arguments in their order; return those of a cell and keep those of the rounds."""
        cells = (
            self.non_negative_or_infinite("eps", eps),
            self.count("num_users", num_users),
            self.count("batch_size", batch_size),
        )
        self.per_round("learning_rate", learning_rate)
        self.per_round("noise_std", noise_std)
        self.per_round("lipschitz", lipschitz)
        self.per_round("radius", radius)
        self.smoothness(smoothness)
        return cells

    def per_round(self, name: str, value: ArrayLike) -> None:
        """Check an argument that may be a schedule."""
        array = self.positive(name, value)
        self.rounds[name] = array if array.ndim else array.reshape(1)

    def smoothness(self, value: ArrayLike | None) -> None:
        """Check the smoothness, where it is known, and with it the step size: a convex loss's step must not expand."""
        bound = np.atleast_1d(self.non_negative("smoothness", 0.0 if value is None else value))
        if self.convex:
            self.require(
                lambda rate, b: rate * b <= 2,
                "learning_rate must be at most 2/smoothness for a convex loss",
                learning_rate=self.rounds["learning_rate"],
                smoothness=bound,
            )
        self.rounds["smoothness"] = bound

    def length(self, num_users: Array, batch_size: Array) -> int:
        """Return the length of the schedules, 1 where all are constant."""
        self.require(
            lambda m, n: m <= n, "batch_size must be at most num_users", batch_size=batch_size, num_users=num_users
        )
        # Cells with other counts are NaN, whatever their schedules.
        legal = (num_users >= batch_size) & (batch_size >= 1) & (num_users <= LARGEST_COUNT)
        rounds = np.unique(num_users[legal] // batch_size[legal])
        for name, array in self.rounds.items():
            if array.shape[-1] != 1 and np.any(rounds != array.shape[-1]):
                wanted = " and ".join(f"{count:.0f}" for count in rounds[:3])
                msg = (
                    f"the last axis of {name} is the round: its length must be 1 or num_users // batch_size = {wanted}, "
                    f"not {array.shape[-1]}; a grid of constants has the shape (..., 1)"
                )
                raise ValueError(msg)
        longest: int = max(array.shape[-1] for array in self.rounds.values())
        return longest

    def evaluate(self, function: Callable[..., Array], *cells: Array) -> Result:
        """Broadcast cells against the leading axes of the rounds, and evaluate."""
        length = self.length(*np.broadcast_arrays(*cells[1:3]))
        wide = broadcast(*cells, *(r[..., 0] for r in self.rounds.values()))
        shape = wide[0].shape
        rows = [np.broadcast_to(r, (*shape, length)) for r in self.rounds.values()]
        return self.finish(function(wide[: len(cells)], rows, self.convex, self.threads))


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
    >>> from hockeystick import federated
    >>> delta = federated.trusted_aggregator(
    ...     [0.5, 1.0], num_users=100, batch_size=10, learning_rate=0.5, noise_std=1.5, lipschitz=1.0, radius=1.0, loss="convex"
    ... )
    >>> print(delta.round(6))
    [0.030798 0.002021]
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

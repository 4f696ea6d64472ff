"""Projected noisy SGD with Laplace noise that releases only its last iterate: the published theorem."""

from __future__ import annotations

from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import Grid, OnError, Result
from hockeystick.last_iterate.arguments import check_index, check_step

__all__ = ["pnsgd_laplace"]


def pnsgd_laplace(
    eps: ArrayLike,
    *,
    index: ArrayLike,
    num_records: ArrayLike,
    learning_rate: ArrayLike,
    noise_scale: ArrayLike,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
    diameter: ArrayLike,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a certified delta of one-dimensional projected noisy SGD with Laplace noise.

    Parameters
    ----------
    eps : array_like
        The point at which delta is evaluated, >= 0.
    index : array_like
        Step in which the record is used, an integer in [1, num_records].
    num_records : array_like
        Number of records, which is the number of steps; a positive integer.
    learning_rate : array_like
        Step size, positive, at most 2/(smoothness + strong_convexity).
    noise_scale : array_like
        Scale v of the Laplace noise (variance 2 v^2) added to the gradient, before the learning rate; positive.
    lipschitz : array_like
        Lipschitz constant of the loss (bound of the gradient), positive.
    smoothness : array_like
        Lipschitz constant of the gradient, >= 0.
    strong_convexity : array_like
        Strong convexity of the loss, in [0, smoothness].
    diameter : array_like
        Length of the interval that iterates are projected onto, positive.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Upper bound of delta, up to rounding (1e-12 relative in log delta), of the broadcast shape; exactly 0 where eps >= min(2L/v, M D/(learning_rate v)), the
        second only for records that are followed by another.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem 3: :math:`(1 - e^{\epsilon/2 - L/v})_+ (1 - e^{\epsilon/2 - MD/(2\eta v)})_+^{n-i}`.

    Examples
    --------
    >>> from hockeystick import format_upper, last_iterate
    >>> delta = last_iterate.pnsgd_laplace(
    ...     1.0, index=39, num_records=40, learning_rate=0.5, noise_scale=1.0, lipschitz=1.0, smoothness=0.5, diameter=1.0
    ... )
    >>> print(format_upper(delta, ".6f"))
    0.154819
    """
    grid = Grid(num_threads, on_error)
    eps = grid.non_negative_or_infinite("eps", eps)
    index = grid.count("index", index)
    num_records = grid.count("num_records", num_records)
    learning_rate = grid.positive("learning_rate", learning_rate)
    noise_scale = grid.positive("noise_scale", noise_scale)
    lipschitz = grid.positive("lipschitz", lipschitz)
    smoothness = grid.non_negative("smoothness", smoothness)
    strong_convexity = grid.non_negative("strong_convexity", strong_convexity)
    diameter = grid.positive("diameter", diameter)
    check_index(grid, index, num_records)
    check_step(grid, learning_rate, smoothness, strong_convexity)
    return grid.map(
        core.pnsgd_laplace,
        eps,
        index,
        num_records,
        learning_rate,
        noise_scale,
        lipschitz,
        smoothness,
        strong_convexity,
        diameter,
    )

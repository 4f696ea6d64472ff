"""The contraction coefficient of a projected kernel: exact on an interval, bounded on a ball."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import Checks, OnError, Result, broadcast
from hockeystick._checks.arguments import arrays
from hockeystick.last_iterate.arguments import noise_given


def ball_contraction(
    epsilon: ArrayLike,
    *,
    image_radius: ArrayLike,
    radius: ArrayLike,
    dimension: ArrayLike,
    noise_std: ArrayLike,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a certified bound of the contraction coefficient of a noisy step projected onto a ball.

    Parameters
    ----------
    epsilon : array_like
        The point at which the divergence is evaluated, >= 0.
    image_radius : array_like
        Radius of a ball around the same centre in which the step's map, before noise, has its values; non-negative.
    radius : array_like
        Radius of the ball that is projected onto, positive.
    dimension : array_like
        Dimension of the space, a positive integer.
    noise_std : array_like
        Standard deviation of the Gaussian noise in each coordinate, added to the map's value; positive.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Upper bound, rounding included, of the broadcast shape; exactly 0 from the largest privacy loss on.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Projection puts all that leaves the ball in one direction onto one point, where the loss between any two means is bounded:
    the kernel is purely private, with some largest loss l. Its coefficient is at most
    :math:`(e^l - e^\epsilon)_+/(e^l + 1)`, and at most that without projection. `projected_contraction` is exact on an interval.

    Examples
    --------
    >>> import hockeystick as hs
    >>> bounds = hs.last_iterate.ball_contraction([1.0, 3.0, 5.0], image_radius=1.0, radius=1.0, dimension=2, noise_std=1.0)
    >>> print(*(hs.format_upper(bound, ".4f") for bound in bounds))
    0.5099 0.1839 0.0000
    """
    grid = Checks(num_threads, on_error)
    return grid.map(core.ball_contraction, *arrays(locals(), grid).values())


def projected_contraction(
    epsilon: ArrayLike,
    *,
    image_low: ArrayLike,
    image_high: ArrayLike,
    diameter: ArrayLike,
    noise_std: ArrayLike | None = None,
    noise_scale: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return the contraction coefficient of one projected noisy step in one dimension.

    Parameters
    ----------
    epsilon : array_like
        The point at which the divergence is evaluated, >= 0.
    image_low, image_high : array_like
        Ends of the interval that the step's map, before noise, sends the domain onto; finite, in this order.
    diameter : array_like
        Length D of the interval [-D/2, D/2] that is projected onto, positive.
    noise_std, noise_scale : array_like
        Standard deviation of Gaussian noise, or scale of Laplace noise, added to the map's value (after any learning rate);
        positive. Exactly one of the two decides which noise it is.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        The largest divergence between two of the kernel's rows, :math:`\sup_{x, x'} E_{e^\epsilon}(K(x)\|K(x'))`, up to
        rounding, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If not exactly one of noise_std and noise_scale is given.

    Notes
    -----
    The coefficient is a supremum over two points (Asoodeh, Diaz and Calmon 2020, Theorem 1), here the ends of the image. What
    projection hides shows where the best threshold lies outside the interval: then the divergence is that of the atoms.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.last_iterate.projected_contraction(2.0, image_low=-1.0, image_high=1.0, diameter=1.0, noise_std=1.0)
    >>> print(f"{hs.format_upper(step, '.4f')} {hs.theta(2.0, 2.0):.4f}")
    0.1979 0.3319
    """
    name, noise = noise_given(noise_std, noise_scale)
    grid = Checks(num_threads, on_error)
    epsilon, low, high, diameter = arrays(locals(), grid, noise_std=None, noise_scale=None).values()
    scale = grid.positive(name, noise)
    rule = "image_low must be at most image_high, both finite"
    grid.require(lambda a, b: (a <= b) & np.isfinite(a) & np.isfinite(b), rule, image_low=low, image_high=high)
    cells = broadcast(epsilon, low, high, diameter, scale)
    return grid.finish(core.projected_contraction(cells, name == "noise_scale", grid.threads))

"""What steps do to distances, and what noise after each of them then hides: Equations 3 and 14 of Asoodeh, Diaz and Calmon 2020."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import NumpyChecks, OnError, Result, broadcast
from hockeystick._checks.arguments import arrays
from hockeystick._numeric.rounding import HANDFUL, UP
from hockeystick.last_iterate.arguments import check_step


def pnsgd_lipschitz(
    *,
    learning_rate: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return M of Equation 14, a Lipschitz constant of the gradient step y - learning_rate gradient(y).

    Parameters
    ----------
    learning_rate : array_like
        Step size, positive, at most 2/(smoothness + strong_convexity).
    smoothness : array_like
        Lipschitz constant beta of the gradient, >= 0.
    strong_convexity : array_like
        Strong convexity rho of the loss, in [0, smoothness].
    num_threads : int, optional
        Accepted for symmetry; the formula uses one thread.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Upper bound of :math:`\sqrt{1 - 2\eta\beta\rho/(\beta + \rho)}`: its square is above the exact one by at most 1e-14.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    For larger steps M is no Lipschitz constant: for beta = 1, rho = 0.1 and a step of 1.99 it would be 0.799, and the step expands by
    0.99. `best` uses max(|1 - learning_rate rho|, |1 - learning_rate beta|), which is never larger and holds for every step.

    Examples
    --------
    >>> from hockeystick import format_upper, last_iterate
    >>> print(format_upper(last_iterate.pnsgd_lipschitz(learning_rate=0.7, smoothness=0.5, strong_convexity=0.2), ".4f"))
    0.8945
    """
    grid = NumpyChecks(num_threads, on_error)
    eta, beta, rho = arrays(locals(), grid).values()
    check_step(grid, eta, beta, rho)
    with np.errstate(all="ignore"):  # 0/0 for linear losses, and cells outside the domain
        contracted = np.where(rho > 0, 2.0 * eta * (rho / (1.0 + rho / beta)), 0.0)
        squared = np.where(rho > 0, np.maximum(1.0 - contracted, 0.0) + 4.0 * HANDFUL, 1.0)
        return grid.finish(np.minimum(np.sqrt(squared) * UP, 1.0))


def iteration_rdp(
    order: ArrayLike,
    *,
    distance: ArrayLike,
    noise_std: ArrayLike,
    steps: ArrayLike,
    lipschitz: ArrayLike = 1.0,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a certified Renyi divergence of an iterative process started from two points.

    Every step applies a map, the same for both, and adds Gaussian noise: Y = psi(Y) + Z. It may then project onto a convex set.

    Parameters
    ----------
    order : array_like
        Order alpha of the divergence, above 1 and finite.
    distance : array_like
        Euclidean distance of the two starting points, >= 0 and finite.
    noise_std : array_like
        Standard deviation of every coordinate of the noise, positive.
    steps : array_like
        Number of steps n, a positive integer.
    lipschitz : array_like
        Lipschitz constant c of every map, >= 0; 1 for maps that do not expand.
    num_threads : int, optional
        Accepted for symmetry; the formula uses one thread.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Upper bound in nats, within 1e-12 of the formula, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    :math:`\alpha D^2/(2\sigma^2 S)` with :math:`S = \sum_{j=1}^n c^{-2j}`, which is n for c = 1: Equation 3, after Theorem 1 of Feldman,
    Mironov, Talwar and Thakurta 2018. The paper prints the distance without its square. For other c it is the optimum of
    `shifted_interpolation` from this gap; affine maps attain it, so nothing smaller follows from c.

    Examples
    --------
    >>> from hockeystick import format_upper, last_iterate
    >>> print(format_upper(last_iterate.iteration_rdp(8.0, distance=0.5, noise_std=1.0, steps=10), ".4f"))
    0.1001
    """
    grid = NumpyChecks(num_threads, on_error)
    above_one = (lambda x: (x > 1) & (x < np.inf), "be above 1 and finite")
    known = arrays(locals(), grid, order=above_one, lipschitz="non_negative")
    order, distance, noise_std, steps, lipschitz = broadcast(*known.values())
    with np.errstate(all="ignore"):  # c = 0, and cells outside the domain
        rate = -2.0 * np.log(lipschitz)
        whole = steps * np.abs(rate)
        # S from its largest term: that of the last step for c < 1, of the first one otherwise
        peak = np.where(rate > 0, whole, rate)
        others = np.where(rate == 0, steps, np.expm1(-whole) / np.expm1(-np.abs(rate)))
        log_value = np.log(order / 2.0) + 2.0 * (np.log(distance) - np.log(noise_std)) - peak - np.log(others)
        sizes = (
            np.abs(np.log(order)) + 2.0 * (np.abs(np.log(distance)) + np.abs(np.log(noise_std))) + np.abs(peak) + 64.0
        )
        value = np.nextafter(np.exp(log_value + HANDFUL * sizes) * UP, np.inf)
    return grid.finish(np.where((distance == 0) | (lipschitz == 0), 0.0, value))

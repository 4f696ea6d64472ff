"""Projected noisy SGD that releases only its last iterate: the published theorems.

One step maps y to the projection of y - learning_rate (gradient + noise) onto a convex set of the given diameter. Every
record is used in exactly one step; `index` says in which, counted from 1. The losses are `lipschitz`-Lipschitz,
`smoothness`-smooth and `strong_convexity`-strongly convex (0: convex) on the set. Clipped gradients do not qualify: clipping
keeps the Lipschitz constant but destroys the non-expansiveness of convex steps in two and more dimensions.
Adjacency: one record replaced.

Source: Asoodeh, Diaz and Calmon 2020, "Privacy Amplification of Iterative Algorithms via Contraction Coefficients".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import Checks, CoreFunction, OnError, Result
from hockeystick._checks.arguments import arrays
from hockeystick.last_iterate.arguments import check_index, check_step


def pnsgd_gaussian(
    epsilon: ArrayLike,
    *,
    index: ArrayLike,
    num_records: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
    diameter: ArrayLike,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a certified delta of projected noisy SGD with Gaussian noise for the record used in one step.

    Parameters
    ----------
    epsilon : array_like
        The point at which delta is evaluated, >= 0.
    index : array_like
        Step in which the record is used, an integer in [1, num_records].
    num_records : array_like
        Number of records, which is the number of steps; a positive integer.
    learning_rate : array_like
        Step size, positive, at most 2/(smoothness + strong_convexity).
    noise_std : array_like
        Standard deviation of the noise added to the gradient, before the learning rate; positive.
    lipschitz : array_like
        Lipschitz constant of the loss (bound of the gradient norm), positive.
    smoothness : array_like
        Lipschitz constant of the gradient, >= 0.
    strong_convexity : array_like
        Strong convexity of the loss, in [0, smoothness].
    diameter : array_like
        Diameter of the convex set that iterates are projected onto, positive.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Upper bound of delta, up to rounding (1e-12 relative in log delta), of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem 4: :math:`\theta_\epsilon(2L/\sigma)\, \theta_\epsilon(MD/(\eta\sigma))^{n-i}` with
    :math:`M = \sqrt{1 - 2\eta\beta\rho/(\beta + \rho)}`, which bounds the step's Lipschitz constant only up to the
    learning rate that is checked.

    Examples
    --------
    >>> from hockeystick import last_iterate
    >>> delta = last_iterate.pnsgd_gaussian(
    ...     1.0, index=20, num_records=40, learning_rate=0.5, noise_std=2.0, lipschitz=1.0, smoothness=0.5, diameter=1.0
    ... )
    >>> print(f"{delta:.4e}")
    1.4974e-19
    """
    return _bound(core.pnsgd_gaussian, locals())


def pnsgd_gaussian_random_stop(
    epsilon: ArrayLike,
    *,
    num_records: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
    diameter: ArrayLike,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a certified delta of projected noisy SGD stopped at a uniformly random step, for every record.

    Parameters
    ----------
    epsilon : array_like
        The point at which delta is evaluated, >= 0.
    num_records : array_like
        Number of records, which is the largest number of steps; a positive integer.
    learning_rate : array_like
        Step size, positive, at most 2/(smoothness + strong_convexity).
    noise_std : array_like
        Standard deviation of the noise added to the gradient, before the learning rate; positive.
    lipschitz : array_like
        Lipschitz constant of the loss (bound of the gradient norm), positive.
    smoothness : array_like
        Lipschitz constant of the gradient, >= 0.
    strong_convexity : array_like
        Strong convexity of the loss, in [0, smoothness].
    diameter : array_like
        Diameter of the convex set that iterates are projected onto, positive.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Upper bound of delta, up to rounding (1e-12 relative in log delta), of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem 5 prints :math:`\theta_\epsilon(2L/\sigma)/(n(1 - \theta_\epsilon(MD/(\eta\sigma))))`; this is its finite sum
    :math:`\theta_\epsilon(2L/\sigma)/n \sum_{k<n} \theta_\epsilon(MD/(\eta\sigma))^k`, which is what the proof gives for the
    record used first, the worst one, and never larger.

    Examples
    --------
    >>> from hockeystick import last_iterate
    >>> delta = last_iterate.pnsgd_gaussian_random_stop(
    ...     1.0, num_records=40, learning_rate=0.5, noise_std=2.0, lipschitz=1.0, smoothness=0.5, diameter=1.0
    ... )
    >>> print(f"{delta:.6f}")
    0.003635
    """
    return _bound(core.pnsgd_gaussian_random_stop, locals())


def pnsgd_rdp(
    epsilon: ArrayLike,
    *,
    index: ArrayLike,
    num_records: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return the certified delta that the Renyi route gives for noisy SGD: the baseline of Theorem 4.

    Parameters
    ----------
    epsilon : array_like
        The point at which delta is evaluated, >= 0.
    index : array_like
        Step in which the record is used, an integer in [1, num_records].
    num_records : array_like
        Number of records, which is the number of steps; a positive integer.
    learning_rate : array_like
        Step size, positive, at most 2/(smoothness + strong_convexity).
    noise_std : array_like
        Standard deviation of the noise added to the gradient, before the learning rate; positive.
    lipschitz : array_like
        Lipschitz constant of the loss (bound of the gradient norm), positive.
    smoothness : array_like
        Lipschitz constant of the gradient, >= 0.
    strong_convexity : array_like
        Strong convexity of the loss, in [0, smoothness].
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Upper bound of delta, up to rounding (1e-12 relative in log delta), of the broadcast shape; 1 for epsilon <= kappa, where the printed formula does not hold.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Proposition 1 (after Balle, Barthe, Gaboardi and Geumlek 2019): :math:`\exp(-(\epsilon - \kappa)^2/(4\kappa))` with
    :math:`\kappa = 2L^2 M^{n-i+1}/((n-i)\sigma^2)`, and :math:`2L^2/\sigma^2` for i = n. No domain is needed.

    Examples
    --------
    >>> from hockeystick import format_upper, last_iterate
    >>> delta = last_iterate.pnsgd_rdp(
    ...     1.0, index=20, num_records=40, learning_rate=0.5, noise_std=2.0, lipschitz=1.0, smoothness=0.5
    ... )
    >>> print(format_upper(delta, ".4e"))
    7.4386e-05
    """
    return _bound(core.pnsgd_rdp, locals())


def pnsgd_laplace(
    epsilon: ArrayLike,
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
    epsilon : array_like
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
        Upper bound of delta, up to rounding (1e-12 relative in log delta), of the broadcast shape; exactly 0 where epsilon >= min(2L/v, M D/(learning_rate v)), the
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
    return _bound(core.pnsgd_laplace, locals())


def _bound(function: CoreFunction, arguments: Mapping[str, Any]) -> Result:
    """Check the arguments of a run, and evaluate."""
    grid = Checks(arguments["num_threads"], arguments["on_error"])
    known = arrays(arguments, grid)
    if "index" in known:
        check_index(grid, known["index"], known["num_records"])
    check_step(grid, known["learning_rate"], known["smoothness"], known["strong_convexity"])
    return grid.map(function, *known.values())

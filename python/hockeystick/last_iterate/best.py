"""The smallest certified bound of the last iterate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import Grid, OnError, boolean_scalar, broadcast
from hockeystick._hidden_states.best import Best, smallest
from hockeystick.last_iterate.arguments import check_process, noise_given

__all__ = ["best", "best_random_stop"]


def best(
    eps: ArrayLike,
    *,
    index: ArrayLike,
    num_records: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike | None = None,
    noise_scale: ArrayLike | None = None,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
    diameter: ArrayLike,
    one_dimensional: bool = False,
    ball_dimension: ArrayLike | None = None,
    quick: bool = False,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Best:
    r"""Return the smallest certified delta of projected noisy SGD for the record used in one step, and what gave it.

    Parameters
    ----------
    eps : array_like
        The point at which delta is evaluated, >= 0.
    index : array_like
        Step in which the record is used, an integer in [1, num_records].
    num_records : array_like
        Number of records, which is the number of steps; a positive integer.
    learning_rate : array_like
        Step size, positive. There is no upper limit: what a large step costs is in its Lipschitz constant.
    noise_std, noise_scale : array_like
        Standard deviation of Gaussian noise, or scale of Laplace noise (one dimension only), added to the gradient before
        the learning rate; positive. Exactly one of the two decides which noise it is.
    lipschitz : array_like
        Lipschitz constant of the loss (bound of the gradient norm), positive.
    smoothness : array_like
        Lipschitz constant of the gradient, >= 0.
    strong_convexity : array_like
        Strong convexity of the loss, in [0, smoothness]; losses are convex.
    diameter : array_like
        Diameter of the convex set that iterates are projected onto, positive; infinite if there is no projection.
    one_dimensional : bool
        Whether iterates are numbers: then what the projection itself hides counts too. The same as ``ball_dimension=1``.
    ball_dimension : array_like, optional
        Dimension of the iterates, a positive integer, if the set is a Euclidean ball: then what the projection itself hides
        counts too. Gaussian noise only.
    quick : bool
        Leave out "joint", which takes milliseconds a cell; all others together take microseconds.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN (and an empty method) there.

    Returns
    -------
    Best
        `delta`, upper bounds with rounding included; `method`, the bound that is smallest; `bounds`, all of them.

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If not exactly one of noise_std and noise_scale is given, or ball_dimension together with noise_scale or one_dimensional.

    Notes
    -----
    With :math:`c = \max(|1-\eta\beta|, |1-\eta\rho|)`, g = 2L/sigma, k = n - i later steps, r = cD/(eta sigma):

    - "plain" is :math:`\theta_\epsilon(g)`, the record's own step;
    - "contraction" is Theorem 4 of Asoodeh, Diaz and Calmon 2020, :math:`\theta_\epsilon(g)\theta_\epsilon(r)^k`;
    - "nonlinear" iterates :math:`F(E) = E\,\theta_{\epsilon'}(r)`, :math:`e^{\epsilon'} = 1 + (e^\epsilon - 1)/E`, the best
      function of E that a step's kernel allows;
    - "shifted" is shifted interpolation (Bok, Su and Altschuler 2024), :math:`\theta_\epsilon(g/\sqrt{s_k})` with
      :math:`s_k = \sum_{j \le k} c^{-2j}`; it needs no diameter;
    - "hybrid" is shifted interpolation for some steps and F for the rest, the best choice of how many;
    - "renyi" is the Rényi route (Feldman et al. 2018, Balle et al. 2019), for comparison: never the smallest but at ties;
    - "projected" is the hybrid with the projected kernel's own coefficient (one_dimensional), or a bound of it that knows that
      a kernel projected onto a ball has a largest privacy loss (ball_dimension, see `ball_contraction`);
    - "joint" is that of `best_cyclic`, which for a period of at least num_records - index + 1 has the same bounds.

    Laplace noise has "plain", "contraction" and "nonlinear".

    Examples
    --------
    >>> from hockeystick import format_upper, last_iterate
    >>> best = last_iterate.best(
    ...     1.0, index=20, num_records=25, learning_rate=0.5, noise_std=0.5, lipschitz=1.0, smoothness=0.5, diameter=1.0
    ... )
    >>> print(f"{format_upper(best.delta, '.6f')} by {best.method}; {format_upper(best.bounds['contraction'], '.6f')} by contraction")
    0.366941 by joint; 0.633384 by contraction
    """
    name, noise = noise_given(noise_std, noise_scale)
    grid = Grid(num_threads, on_error)
    eps = grid.non_negative_or_infinite("eps", eps)
    index = grid.count("index", index)
    num_records = grid.count("num_records", num_records)
    process = check_process(grid, learning_rate, name, noise, lipschitz, smoothness, strong_convexity, diameter)
    one_dimensional = boolean_scalar("one_dimensional", one_dimensional)
    grid.require(lambda i, n: i <= n, "index must lie in [1, num_records]", index=index, num_records=num_records)
    dimension = np.asarray(float(one_dimensional))
    if ball_dimension is not None:
        if one_dimensional or name == "noise_scale":
            other = "one_dimensional=True" if one_dimensional else "noise_scale, since it is for Gaussian noise"
            msg = f"ball_dimension must not be given together with {other}"
            raise TypeError(msg)
        dimension = grid.count("ball_dimension", ball_dimension)
    cells = broadcast(eps, index, num_records, *process, dimension)
    if name == "noise_scale":
        return smallest(core.last_iterate_laplace_bounds(cells, grid.threads), grid)
    function = core.last_iterate_bounds if boolean_scalar("quick", quick) else core.once_bounds
    return smallest(function(cells, grid.threads), grid)


def best_random_stop(
    eps: ArrayLike,
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
) -> Best:
    r"""Return the smallest certified delta of projected noisy SGD stopped at a uniformly random step, for every record.

    Parameters
    ----------
    eps : array_like
        The point at which delta is evaluated, >= 0.
    num_records : array_like
        Number of records, which is the largest number of steps; a positive integer.
    learning_rate : array_like
        Step size, positive.
    noise_std : array_like
        Standard deviation of the noise added to the gradient, before the learning rate; positive.
    lipschitz : array_like
        Lipschitz constant of the loss (bound of the gradient norm), positive.
    smoothness : array_like
        Lipschitz constant of the gradient, >= 0.
    strong_convexity : array_like
        Strong convexity of the loss, in [0, smoothness].
    diameter : array_like
        Diameter of the convex set that iterates are projected onto, positive; infinite if there is no projection.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN (and an empty method) there.

    Returns
    -------
    Best
        `delta`, upper bounds with rounding included; `method`, the bound that is smallest; `bounds`, all of them.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The mean over the stop of the bounds of `best` for the record used first, the worst one (Asoodeh, Diaz and Calmon 2020,
    Theorem 5, whose sum has powers where these have the sharper bounds).

    Examples
    --------
    >>> from hockeystick import last_iterate
    >>> best = last_iterate.best_random_stop(
    ...     1.0, num_records=40, learning_rate=0.5, noise_std=2.0, lipschitz=1.0, smoothness=0.5, diameter=1.0
    ... )
    >>> print(f"{best.delta:.6f} by {best.method}; {best.bounds['contraction']:.6f} by contraction")
    0.003186 by nonlinear; 0.003635 by contraction
    """
    grid = Grid(num_threads, on_error)
    eps = grid.non_negative_or_infinite("eps", eps)
    num_records = grid.count("num_records", num_records)
    process = check_process(
        grid, learning_rate, "noise_std", noise_std, lipschitz, smoothness, strong_convexity, diameter
    )
    worst_index = np.asarray(1.0)
    cells = broadcast(eps, worst_index, num_records, *process, np.asarray(0.0))
    return smallest(core.last_iterate_random_stop_bounds(cells, grid.threads), grid)

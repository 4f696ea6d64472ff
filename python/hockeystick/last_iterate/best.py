"""The smallest certified bound of the last iterate, for a record that is used once or more often."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import Checks, OnError, boolean_scalar, broadcast
from hockeystick._hidden_states.best import Best, sampled_bounds, smallest
from hockeystick.last_iterate.arguments import check_index, checked, noise_given


def best(
    epsilon: ArrayLike,
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
    epsilon : array_like
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
    name, _ = noise_given(noise_std, noise_scale)
    grid = Checks(num_threads, on_error)
    epsilon, index, num_records, *process = checked(locals(), grid, ball_dimension=None)
    one_dimensional = boolean_scalar("one_dimensional", one_dimensional)
    check_index(grid, index, num_records)
    dimension = np.asarray(float(one_dimensional))
    if ball_dimension is not None:
        if one_dimensional or name == "noise_scale":
            other = "one_dimensional=True" if one_dimensional else "noise_scale, since it is for Gaussian noise"
            raise TypeError(f"ball_dimension must not be given together with {other}")
        dimension = grid.count("ball_dimension", ball_dimension)
    cells = broadcast(epsilon, index, num_records, *process, dimension)
    if name == "noise_scale":
        return smallest(core.last_iterate_laplace_bounds(cells, grid.threads), grid)
    function = core.last_iterate_bounds if boolean_scalar("quick", quick) else core.once_bounds
    return smallest(function(cells, grid.threads), grid)


def best_random_stop(
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
) -> Best:
    r"""Return the smallest certified delta of projected noisy SGD stopped at a uniformly random step, for every record.

    Parameters
    ----------
    epsilon : array_like
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
    grid = Checks(num_threads, on_error)
    epsilon, num_records, *process = checked(locals(), grid)
    worst_index = np.asarray(1.0)
    cells = broadcast(epsilon, worst_index, num_records, *process, np.asarray(0.0))
    return smallest(core.last_iterate_random_stop_bounds(cells, grid.threads), grid)


def best_cyclic(
    epsilon: ArrayLike,
    *,
    index: ArrayLike,
    period: ArrayLike,
    rounds: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
    diameter: ArrayLike,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Best:
    r"""Return the smallest certified delta of projected noisy SGD for a record used every `period` rounds, and what gave it.

    The order of batches is fixed and may be known. ``index=1, period=1`` is the record of full-batch gradient descent, used in
    every round; a period beyond the rounds is the one participation of `best`.

    Parameters
    ----------
    epsilon : array_like
        The point at which delta is evaluated, >= 0.
    index : array_like
        Round in which the record is first used, an integer in [1, rounds].
    period : array_like
        Rounds from one use to the next, a positive integer.
    rounds : array_like
        Number of rounds, a positive integer.
    learning_rate : array_like
        Step size, positive.
    noise_std : array_like
        Standard deviation of the Gaussian noise added to a round's gradient, before the learning rate; positive.
    lipschitz : array_like
        Bound of the norm of what the record adds to a round's gradient, positive: the Lipschitz constant of its loss, divided
        by the batch size where gradients are averaged.
    smoothness : array_like
        Lipschitz constant of every round's gradient, >= 0.
    strong_convexity : array_like
        Strong convexity of every round's loss, in [0, smoothness].
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
    With c, g = 2L/sigma and r as in `best`, J participations, the last one k rounds before the end:

    - "plain" is :math:`\theta_\epsilon(g\sqrt J)`, composition;
    - "contraction" is :math:`\theta_\epsilon(g\sqrt J)\theta_\epsilon(r)^k`;
    - "shifted" is shifted interpolation over all rounds, which stops growing with the rounds where the diameter is finite or c < 1
      (Bok, Su and Altschuler 2024); without a diameter it cannot be improved from c and g alone;
    - "nonlinear" iterates F on "plain" from the last participation, "hybrid" on shifted interpolation from there or later;
    - "renyi" is the Rényi route from the same parameter (Altschuler and Talwar 2022), for comparison;
    - "divided" follows the divergence at all epsilon through the last rounds. A round of the record with noise variance
      :math:`\sigma^2 = \sigma_1^2 + \sigma_2^2` contracts as by F with noise :math:`\sigma_1`, and reveals no more than a Gaussian mechanism of
      noise :math:`\sigma_2` run afterwards. Some milliseconds per cell; for domains of up to ten noise deviations;
    - "joint" follows it too, but takes in each round the largest divergence that the curve, r and a shift of the runs allow. The
      shifts pay for the record at once or over the rounds after it. About ten milliseconds per cell, for the same domains.

    Examples
    --------
    >>> from hockeystick import format_upper, last_iterate
    >>> best = last_iterate.best_cyclic(
    ...     1.0, index=1, period=1, rounds=80, learning_rate=1.0, noise_std=1.0, lipschitz=0.5, smoothness=0.0, diameter=4.0
    ... )
    >>> print(f"{format_upper(best.delta, '.3f')} by {best.method}; {format_upper(best.bounds['plain'], '.6f')} by composition")
    0.886 by joint; 0.999988 by composition
    """
    grid = Checks(num_threads, on_error)
    epsilon, index, period, rounds, *process = checked(locals(), grid)
    grid.require(lambda i, n: i <= n, "index must lie in [1, rounds]", index=index, rounds=rounds)
    return smallest(core.cyclic_bounds(broadcast(epsilon, index, rounds, *process, period), grid.threads), grid)


def best_sampled(
    epsilon: ArrayLike,
    *,
    sampling_rate: ArrayLike,
    rounds: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
    diameter: ArrayLike,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Best:
    r"""Return the smallest certified delta of projected noisy SGD for a record used at random, and what gave it.

    In every round the record is used with probability `sampling_rate`, independently of the other rounds, and nobody sees when:
    Poisson batches, or batches of a fixed size that are drawn afresh. One record is replaced.

    Parameters
    ----------
    epsilon : array_like
        The point at which delta is evaluated, >= 0.
    sampling_rate : array_like
        Probability with which the record is used in a round, in [0, 1].
    rounds : array_like
        Number of rounds, a positive integer.
    learning_rate : array_like
        Step size, positive.
    noise_std : array_like
        Standard deviation of the Gaussian noise added to a round's gradient, before the learning rate; positive.
    lipschitz : array_like
        Bound of the norm of what any record adds to a round's gradient, positive: the Lipschitz constant of a loss, divided by the
        batch size where gradients are averaged.
    smoothness : array_like
        Lipschitz constant of every round's gradient, whatever its batch, >= 0: a Poisson batch divided by its mean size can exceed
        that of a record's loss.
    strong_convexity : array_like
        Strong convexity of every round's loss, whatever its batch, in [0, smoothness].
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
    - "plain" is the composition of all rounds as sampled Gaussian mechanisms, by `hockeystick.Accountant`;
    - "sampled" is the same for the last rounds alone, with some of their noise used to hide where they started from (Bok, Su and
      Altschuler 2024; composed exactly, not by a central limit theorem);
    - "shifted" is shifted interpolation as if the record were used in every round;
    - "pattern" is the mean over all patterns of use, with F in the rounds without the record;
    - "divided" is that of `best_cyclic` with a sampled Gaussian mechanism in the place of the Gaussian one;
    - "joint" is that of `best_cyclic` for rounds in which nobody sees whether the record was used.

    `docs/core/hidden_state.md` has the proofs. Milliseconds to tenths of a second per cell.

    Examples
    --------
    >>> from hockeystick import format_upper, last_iterate
    >>> best = last_iterate.best_sampled(
    ...     1.0, sampling_rate=0.1, rounds=200, learning_rate=1.0, noise_std=1.0, lipschitz=0.25, smoothness=0.0, diameter=2.0
    ... )
    >>> print(f"{format_upper(best.delta, '.1e')} by {best.method}; {best.bounds['plain']:.1e} by composition")
    2.4e-09 by joint; 8.0e-02 by composition
    """
    grid = Checks(num_threads, on_error)
    epsilon, sampling_rate, rounds, *process = checked(locals(), grid)
    cells = broadcast(epsilon, np.asarray(1.0), rounds, *process, sampling_rate)
    return smallest(sampled_bounds(cells, grid), grid)

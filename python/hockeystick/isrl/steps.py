"""Step sizes and averages. They are choices, not bounds: any other is as private."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, at_most, count_scalar, non_negative_scalar, positive_scalar
from hockeystick.isrl.arguments import checked

__all__ = ["averaging_weights", "step_size_convex", "step_size_stich"]


def step_size_convex(
    *,
    diameter: ArrayLike,
    rounds: ArrayLike,
    lipschitz: ArrayLike,
    num_records: ArrayLike,
    num_silos: ArrayLike,
    silos_per_round: ArrayLike,
    dimension: ArrayLike,
    noise_std: ArrayLike,
    smoothness: ArrayLike,
) -> Result:
    r"""Return the constant step size that minimises the bound on the population's excess risk, for convex losses.

    Parameters
    ----------
    diameter, rounds, lipschitz, num_records, num_silos, silos_per_round, dimension, noise_std, smoothness : array_like
        As in `mb_sgd_risk_bound`.

    Returns
    -------
    ndarray or float
        :math:`\min(1/\beta, D/\sqrt{R(4L^2R/(nN) + d\sigma^2/M + L^2)})`, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The minimiser of `uniform_stability` plus `mb_sgd_empirical_bound`, in place of the step of Theorem D.1 of Lowy and
    Razaviyayn 2023 (`hockeystick.published.step_size_convex`), whose bound is larger.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> eta = isrl.step_size_convex(
    ...     diameter=2.0,
    ...     rounds=50,
    ...     lipschitz=1.0,
    ...     num_records=1000,
    ...     num_silos=25,
    ...     silos_per_round=25,
    ...     dimension=10,
    ...     noise_std=1.6,
    ...     smoothness=1.0,
    ... )
    >>> print(f"{eta:.5f}")
    0.19842
    """
    diameter, rounds, lipschitz, records, silos, taking_part, dimension, noise, smoothness = checked(
        diameter=diameter,
        rounds=rounds,
        lipschitz=lipschitz,
        num_records=num_records,
        num_silos=num_silos,
        silos_per_round=silos_per_round,
        dimension=dimension,
        noise_std=noise_std,
        smoothness=smoothness,
    )
    slope = lipschitz**2 * (4.0 * rounds / (records * silos) + 1.0) + dimension * noise**2 / taking_part
    return np.minimum(1.0 / smoothness, diameter / np.sqrt(rounds * slope))[()]


def step_size_stich(
    *,
    strong_convexity: ArrayLike,
    distance_squared: ArrayLike,
    rounds: ArrayLike,
    second_moment: ArrayLike,
    max_step: ArrayLike,
) -> Result:
    r"""Return a constant step size for strongly convex losses, to be used with `averaging_weights`.

    Parameters
    ----------
    strong_convexity : array_like
        mu, positive.
    distance_squared : array_like
        Bound on the squared distance of the start to the optimum, such as the squared diameter; positive.
    rounds : array_like
        Number of rounds R.
    second_moment : array_like
        Bound c on the mean squared norm of the noisy gradient, such as d sigma^2/M + L^2; >= 0.
    max_step : array_like
        Largest step allowed, in (0, 1/strong_convexity]; 1/(2 smoothness) in the paper.

    Returns
    -------
    ndarray or float
        :math:`\min(s, \ln(\max(2, \mu^2 r_0 R^2/c))/(\mu R))` with s the largest step; s where c = 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Stich 2019, Lemma 2; Lemma D.5 of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> eta = isrl.step_size_stich(
    ...     strong_convexity=0.1, distance_squared=4.0, rounds=500, second_moment=1.016, max_step=0.5
    ... )
    >>> print(f"{eta:.6f}")
    0.183889
    """
    convexity, distance, rounds, moment, largest = checked(
        strong_convexity=strong_convexity,
        distance_squared=distance_squared,
        rounds=rounds,
        second_moment=second_moment,
        max_step=max_step,
    )
    STRICT.positive("strong_convexity", strong_convexity)
    STRICT.require(
        lambda s, m: s * m <= 1,
        "max_step must be at most 1/strong_convexity",
        max_step=largest,
        strong_convexity=convexity,
    )
    with np.errstate(divide="ignore"):
        log = np.log(np.maximum(2.0, (convexity * rounds) ** 2 * distance / moment))
    return np.minimum(largest, log / (convexity * rounds))[()]


def averaging_weights(*, strong_convexity: float, learning_rate: float, rounds: int) -> Array:
    """Return the weights of the iterates before each step in the averaged model.

    Parameters
    ----------
    strong_convexity : float
        mu, >= 0; 0 gives equal weights.
    learning_rate : float
        Step size eta, positive, below 1/strong_convexity.
    rounds : int
        Number of rounds R, up to 10^8.

    Returns
    -------
    ndarray of shape (R,)
        In proportion to (1 - mu eta)^{-(r+1)} for r = 0..R-1, summing to 1; without overflow.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem D.1 of Lowy and Razaviyayn 2023. The last iterate has no weight.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print((7 * isrl.averaging_weights(strong_convexity=1.0, learning_rate=0.5, rounds=3)).round(6))
    [1. 2. 4.]
    """
    convexity = non_negative_scalar("strong_convexity", strong_convexity)
    rate = positive_scalar("learning_rate", learning_rate)
    rounds = count_scalar("rounds", rounds)
    at_most("rounds", rounds, "a memory of 1 GB", 10**8)
    if convexity * rate >= 1:
        msg = f"learning_rate must be below 1/strong_convexity = {1 / convexity:g}, not {rate:g}"
        raise ValueError(msg)
    weights = np.exp(np.arange(1 - rounds, 1) * -math.log1p(-convexity * rate))
    return np.asarray(weights / weights.sum())

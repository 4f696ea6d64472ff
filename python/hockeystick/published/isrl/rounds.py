"""Lowy and Razaviyayn 2023: numbers of rounds and stages with the misprints that change them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Result, at_most, count_scalar, positive_scalar
from hockeystick.isrl import Stage
from hockeystick.isrl import erm_rounds as corrected_rounds
from hockeystick.isrl import multistage_schedule as corrected_schedule
from hockeystick.isrl.arguments import checked

__all__ = ["erm_rounds", "multistage_schedule", "shuffle_composed_delta"]


def erm_rounds(
    *,
    lipschitz: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    num_records: ArrayLike,
    batch_size: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    dimension: ArrayLike,
    diameter: ArrayLike,
    smoothness: ArrayLike,
) -> Result:
    r"""Return the rounds of Theorem F.1.1 as printed, with sqrt(beta D/L) in place of beta D/L: too few for its rate if that exceeds 1.

    Parameters
    ----------
    lipschitz, silos_per_round, num_silos, num_records, batch_size, epsilon, delta, dimension, diameter, smoothness : array_like
        As in `hockeystick.isrl.erm_rounds`, for convex smooth losses.

    Returns
    -------
    ndarray or float
        The larger of :math:`(\sqrt{\beta D/L}\sqrt M\epsilon n/\sqrt{d\ln(1/\delta)})^{1/2}` and
        :math:`\epsilon^2n^2/(Kd\ln(1/\delta))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> rounds = published.erm_rounds(
    ...     smoothness=100.0,
    ...     diameter=2.0,
    ...     lipschitz=1.0,
    ...     silos_per_round=25,
    ...     num_silos=25,
    ...     num_records=1000,
    ...     batch_size=100,
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     dimension=10,
    ... )
    >>> print(f"{rounds:.3f}")
    86.859
    """
    beta, width, clip = checked(smoothness=smoothness, diameter=diameter, lipschitz=lipschitz)
    return corrected_rounds(
        lipschitz=clip,
        silos_per_round=silos_per_round,
        num_silos=num_silos,
        num_records=num_records,
        batch_size=batch_size,
        epsilon=epsilon,
        delta=delta,
        dimension=dimension,
        diameter=width,
        smoothness=np.sqrt(beta * clip / width),  # then beta D/L is its root
    )


def multistage_schedule(
    *, smoothness: float, strong_convexity: float, gradient_std: float, initial_gap: float, rounds: int
) -> list[Stage]:
    """Return the stages of Appendix E.1 as printed: phi is then always 2 beta, and stages do not halve the gap.

    Parameters
    ----------
    smoothness, strong_convexity, gradient_std, initial_gap : float
        As in `hockeystick.isrl.multistage_schedule`.
    rounds : int
        Rounds to spend in all.

    Returns
    -------
    list of Stage
        The same rounds, with R(R + 1)(R + 2) in the denominator of phi.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the first stage does not fit.

    Examples
    --------
    >>> from hockeystick import published
    >>> published.multistage_schedule(
    ...     smoothness=1.0, strong_convexity=0.1, gradient_std=1.0, initial_gap=1.0, rounds=2000
    ... )
    [Stage(rounds=1707, phi=2.0)]
    """
    stages = corrected_schedule(
        smoothness=smoothness,
        strong_convexity=strong_convexity,
        gradient_std=gradient_std,
        initial_gap=initial_gap,
        rounds=rounds,
    )

    def phi(k: int, r: int) -> float:
        scale = strong_convexity * gradient_std**2 * 2.0**k / (3.0 * initial_gap)
        return max(2.0 * smoothness, math.sqrt(scale / (r * (r + 1) * (r + 2))))

    return [Stage(stage.rounds, phi(k, stage.rounds)) for k, stage in enumerate(stages)]


def shuffle_composed_delta(epsilon: float, delta: float, *, num_silos: int, num_records: int = 1, rounds: int) -> float:
    """Return the delta of Corollary D.1 for several shuffled rounds; its epsilon has an unspecified constant.

    Parameters
    ----------
    epsilon : float
        Guarantee of each message, in (0, 1/num_records].
    delta : float
        Guarantee of each message, in (0, 1/(14 num_silos num_records rounds)].
    num_silos, num_records, rounds : int
        N, n, R.

    Returns
    -------
    float
        14 N n R delta, which rests on the round's delta that `shuffle_amplification` tells of and holds for small epsilon only.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.shuffle_composed_delta(0.005, 1e-15, num_silos=10_000, num_records=100, rounds=50):.1e}")
    7.0e-07
    """
    epsilon = positive_scalar("epsilon", epsilon)
    delta = positive_scalar("delta", delta)
    messages = count_scalar("num_silos", num_silos) * count_scalar("rounds", rounds)
    records = count_scalar("num_records", num_records)
    at_most("epsilon", epsilon, "1/num_records", 1.0 / records)
    at_most("delta", delta, "1/(14 num_silos num_records rounds)", 1.0 / (14.0 * messages * records))
    return 14.0 * messages * records * delta

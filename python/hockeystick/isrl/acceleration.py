"""Accelerated SGD: its parameters for convex losses, and what its stages reach for strongly convex ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Result, count_scalar, positive_scalar
from hockeystick.isrl.arguments import checked

__all__ = ["AcceleratedParameters", "accelerated_parameters", "multistage_bound", "multistage_rate"]


class AcceleratedParameters(NamedTuple):
    """Parameters of one run of accelerated SGD.

    Attributes
    ----------
    phi : float or ndarray
        For the run on the loss itself: that of `acsa_bound`.
    regularization : float or ndarray
        lambda = V/(r_0 sqrt(R)) of the paper's run, on the loss plus (lambda/2) |w - w_0|^2.
    regularized_phi : float or ndarray
        phi of that run, whose smoothness is beta + lambda.
    """

    phi: Result
    regularization: Result
    regularized_phi: Result


def accelerated_parameters(
    *, rounds: ArrayLike, distance_squared: ArrayLike, variance: ArrayLike, smoothness: ArrayLike
) -> AcceleratedParameters:
    r"""Return the parameters of accelerated SGD for convex losses.

    Parameters
    ----------
    rounds : array_like
        Number of rounds R.
    distance_squared : array_like
        Bound of the squared distance of the start to the optimum, such as the squared diameter; positive.
    variance : array_like
        Mean squared error V^2 of each round's gradient, >= 0; `noisy_gradient_variance`.
    smoothness : array_like
        beta, positive.

    Returns
    -------
    AcceleratedParameters
        :math:`\varphi = \max(2\beta, V\sqrt{R(R+1)(R+2)/6}/r_0)` of the steps 4 phi/(r(r+1)), :math:`\lambda = V/(r_0\sqrt R)`, and phi with beta +
        lambda in place of beta.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma E.1 and the proofs of Theorems E.1 and F.1 of Lowy and Razaviyayn 2023. The paper does not state phi; E.1 and G.2 print half of lambda, F.1
    the same. The run on the loss itself needs no lambda and has the bound `acsa_bound`; the regulariser adds up to lambda r_0^2/2 to it.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> found = isrl.accelerated_parameters(rounds=200, distance_squared=10.0, variance=25.0, smoothness=1.0)
    >>> print("{:.1f} {:.4f} {:.1f}".format(*found))
    1839.4 0.1118 1839.4
    """
    rounds, distance, variance, beta = checked(
        rounds=rounds, distance_squared=distance_squared, variance=variance, smoothness=smoothness
    )
    weight = np.sqrt(variance / (distance * rounds))
    noise = np.sqrt(variance * rounds * (rounds + 1.0) * (rounds + 2.0) / (6.0 * distance))
    return AcceleratedParameters(
        np.maximum(2.0 * beta, noise)[()], weight[()], np.maximum(2.0 * (beta + weight), noise)[()]
    )


def multistage_rate(
    *,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike,
    variance: ArrayLike,
    initial_gap: ArrayLike,
    rounds: ArrayLike,
) -> Result:
    r"""Return the rate of multi-stage accelerated SGD: order only.

    Parameters
    ----------
    smoothness, strong_convexity : array_like
        beta and mu; mu in [0, beta].
    variance : array_like
        Mean squared error V^2 of each round's gradient, >= 0.
    initial_gap : array_like
        Excess objective Delta of the start, positive.
    rounds : array_like
        Number of rounds R.

    Returns
    -------
    ndarray or float
        :math:`\Delta e^{-R\sqrt{\mu/\beta}} + V^2/(\mu R)`, with the constant 1 where none is stated.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma E.2 of Lowy and Razaviyayn 2023, from Ghadimi and Lan 2013. `multistage_bound` has all constants.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.multistage_rate(
    ...     smoothness=1.0, strong_convexity=0.1, variance=1.0, initial_gap=1.0, rounds=2000
    ... )
    >>> print(f"{rate:.4f}")
    0.0050
    """
    beta, convexity, variance, gap, rounds = checked(
        smoothness=smoothness,
        strong_convexity=strong_convexity,
        variance=variance,
        initial_gap=initial_gap,
        rounds=rounds,
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = np.where(variance > 0, variance / (convexity * rounds), 0.0)
    return (gap * np.exp(-rounds * np.sqrt(convexity / beta)) + noise)[()]


def multistage_bound(
    stages: Sequence[tuple[int, float]], *, strong_convexity: float, variance: float, initial_gap: float
) -> float:
    r"""Return a bound on the excess objective after the stages of accelerated SGD, with all its constants.

    Parameters
    ----------
    stages : sequence of (int, float)
        Rounds R_k and phi_k of each stage, phi_k at least twice the smoothness; `multistage_schedule`.
    strong_convexity : float
        mu, positive, with which the steps are made.
    variance : float
        Mean squared error V^2 of each round's gradient, positive.
    initial_gap : float
        Excess objective Delta of the start, positive.

    Returns
    -------
    float
        After each stage the gap is at most :math:`4\varphi_k\Delta_{k-1}/(\mu R_k(R_k+1)) + V^2\min((R_k+2)/(3\varphi_k), 2/(\mu(R_k+1)))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    `acsa_bound` for each stage, at the distance that strong convexity allows: r^2 <= 2 Delta_{k-1}/mu. With `multistage_schedule` every stage
    halves the gap, with the printed schedule (`hockeystick.published.multistage_schedule`) it need not.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> stages = isrl.multistage_schedule(
    ...     smoothness=1.0, strong_convexity=0.1, gradient_std=1.0, initial_gap=1.0, rounds=2000
    ... )
    >>> print(format_upper(isrl.multistage_bound(stages, strong_convexity=0.1, variance=1.0, initial_gap=1.0), ".4f"))
    0.1886
    """
    convexity = positive_scalar("strong_convexity", strong_convexity)
    variance = positive_scalar("variance", variance)
    gap = positive_scalar("initial_gap", initial_gap)
    for k, (length, scale) in enumerate(stages):
        rounds = count_scalar(f"stages[{k}][0]", length)
        phi = positive_scalar(f"stages[{k}][1]", scale)
        noise = min((rounds + 2.0) / (3.0 * phi), 2.0 / (convexity * (rounds + 1.0)))
        gap = 4.0 * phi * gap / (convexity * rounds * (rounds + 1.0)) + variance * noise
    return gap

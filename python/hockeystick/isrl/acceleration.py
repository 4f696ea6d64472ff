"""Accelerated SGD (AC-SA) and its stages: parameters, bounds with all their constants, and a rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Result, count_scalar, positive_scalar
from hockeystick.isrl.domains import checked, scalars

__all__ = [
    "AcceleratedParameters",
    "Stage",
    "accelerated_parameters",
    "acsa_bound",
    "multistage_bound",
    "multistage_rate",
    "multistage_schedule",
]


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
    rounds, distance, variance, beta = checked(locals())
    weight = np.sqrt(variance / (distance * rounds))
    noise = np.sqrt(variance * rounds * (rounds + 1.0) * (rounds + 2.0) / (6.0 * distance))
    return AcceleratedParameters(
        np.maximum(2.0 * beta, noise)[()], weight[()], np.maximum(2.0 * (beta + weight), noise)[()]
    )


def acsa_bound(
    *,
    rounds: ArrayLike,
    distance_squared: ArrayLike,
    variance: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return a bound on the excess objective of accelerated stochastic approximation (AC-SA), at its own step sizes.

    Parameters
    ----------
    rounds : array_like
        Number of rounds R.
    distance_squared : array_like
        Squared distance of the start to the optimum, positive.
    variance : array_like
        Mean squared error V^2 of each round's gradient, >= 0; `noisy_gradient_variance`.
    smoothness : array_like
        Lipschitz constant of the gradient, beta.
    strong_convexity : array_like
        Strong convexity mu, in [0, smoothness].

    Returns
    -------
    ndarray or float
        :math:`2\varphi r_0^2/(R(R+1)) + V^2 \min((R+2)/(3\varphi), 2/(\mu(R+1)))` with
        :math:`\varphi = \max(2\beta, V\sqrt{R(R+1)(R+2)/6}/r_0)`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Ghadimi and Lan 2012 with steps eta_r = 4 phi/(r(r+1)) and alpha_r = 2/(r+1); the explicit form of Lemma E.1 of Lowy and
    Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(f"{isrl.acsa_bound(rounds=10, distance_squared=10.0, variance=0.01, smoothness=1.0):.5f}")
    0.38364
    """
    rounds, distance, variance, smoothness, convexity = checked(locals())
    phi = np.maximum(2.0 * smoothness, np.sqrt(variance * rounds * (rounds + 1.0) * (rounds + 2.0) / (6.0 * distance)))
    with np.errstate(divide="ignore"):
        noise = np.minimum((rounds + 2.0) / (3.0 * phi), 2.0 / (convexity * (rounds + 1.0)))
    return (2.0 * phi * distance / (rounds * (rounds + 1.0)) + variance * noise)[()]


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
    beta, convexity, variance, gap, rounds = checked(locals())
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = np.where(variance > 0, variance / (convexity * rounds), 0.0)
    return (gap * np.exp(-rounds * np.sqrt(convexity / beta)) + noise)[()]


class Stage(NamedTuple):
    """One stage of multi-stage AC-SA: its rounds, and the parameter phi of its steps eta_r = 4 phi/(r(r+1))."""

    rounds: int
    phi: float


def multistage_schedule(
    *, smoothness: float, strong_convexity: float, gradient_std: float, initial_gap: float, rounds: int
) -> list[Stage]:
    r"""Return the stages of multi-stage accelerated SGD, each of which halves the excess objective.

    Parameters
    ----------
    smoothness, strong_convexity : float
        beta and mu, positive, mu at most beta.
    gradient_std : float
        Root mean square error V of each round's gradient, positive.
    initial_gap : float
        Excess objective Delta of the start, positive.
    rounds : int
        Rounds to spend in all.

    Returns
    -------
    list of Stage
        As many as fit, with :math:`R_k = \lceil\max(4\sqrt{2\beta/\mu}, 128V^2/(3\mu\Delta 2^{-(k+1)}))\rceil` and
        :math:`\varphi_k = \max(2\beta, \sqrt{\mu V^2R_k(R_k+1)(R_k+2)/(3\Delta 2^{-(k-1)})})`.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the first stage does not fit.

    Notes
    -----
    Appendix E.1 of Lowy and Razaviyayn 2023, which prints the product under the root in the denominator: then phi is always 2
    beta, and stages do not halve the gap.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> stages = isrl.multistage_schedule(
    ...     smoothness=1.0, strong_convexity=0.1, gradient_std=1.0, initial_gap=1.0, rounds=2000
    ... )
    >>> print([(stage.rounds, round(stage.phi, 3)) for stage in stages])
    [(1707, 12887.572)]
    """
    beta, convexity, deviation, gap, rounds = scalars(locals(), strong_convexity="positive", gradient_std="positive")
    variance = deviation**2
    stages: list[Stage] = []
    left = rounds
    while True:
        k = len(stages) + 1
        needed = max(
            4.0 * math.sqrt(2.0 * beta / convexity), 128.0 * variance * 2.0 ** (k + 1) / (3.0 * convexity * gap)
        )
        if needed > left:
            break
        r = math.ceil(needed)  # at most what is left, which is an integer
        phi = math.sqrt(convexity * variance * r * (r + 1) * (r + 2) * 2.0 ** (k - 1) / (3.0 * gap))
        stages.append(Stage(r, max(2.0 * beta, phi)))
        left -= r
    if not stages:
        raise ValueError(f"rounds must be at least {math.ceil(needed)}, those of the first stage, not {rounds}")
    return stages


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
    convexity, variance, gap = scalars(locals(), strong_convexity="positive", variance="positive")
    for k, (length, scale) in enumerate(stages):
        rounds = count_scalar(f"stages[{k}][0]", length)
        phi = positive_scalar(f"stages[{k}][1]", scale)
        noise = min((rounds + 2.0) / (3.0 * phi), 2.0 / (convexity * (rounds + 1.0)))
        gap = 4.0 * phi * gap / (convexity * rounds * (rounds + 1.0)) + variance * noise
    return float(gap)

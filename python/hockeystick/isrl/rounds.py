"""Numbers of rounds that the theorems prescribe: choices, not bounds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Result, count_scalar, positive_scalar
from hockeystick.isrl.arguments import checked

__all__ = ["Stage", "erm_rounds", "mb_sgd_rounds", "multistage_schedule"]


def mb_sgd_rounds(
    *,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    lipschitz: ArrayLike,
    silos_per_round: ArrayLike,
    num_records: ArrayLike,
    epsilon: ArrayLike,
    dimension: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return the number of rounds that Theorem D.1 prescribes for noisy mini-batch SGD; round it up.

    Parameters
    ----------
    smoothness, diameter, lipschitz : array_like
        beta, D, L; positive.
    silos_per_round, num_records : array_like
        Participating silos M, records of each n.
    epsilon : array_like
        Inter-silo record-level budget, positive.
    dimension : array_like
        Number of coordinates d.
    strong_convexity : array_like
        mu, in [0, smoothness].

    Returns
    -------
    ndarray or float
        :math:`(\beta D\sqrt M/L)\min(\sqrt n, \epsilon n/\sqrt d) + \min(nM, \epsilon^2n^2M/d)`, at least 1; for mu > 0
        :math:`\max(2\kappa\ln(\beta D^2\mu M\epsilon^2n^2/(dL^2)), \min(Mn, M\epsilon^2n^2/d))`, the logarithm at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorems D.1 and D.2 of Lowy and Razaviyayn 2023, chosen for the rate: fewer rounds often have a smaller `mb_sgd_risk_bound`.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> rounds = isrl.mb_sgd_rounds(
    ...     smoothness=2.0, diameter=1.0, silos_per_round=10, lipschitz=1.0, num_records=500, epsilon=0.1, dimension=50
    ... )
    >>> print(format_upper(rounds, ".3f"))
    544.722
    """
    beta, diameter, lipschitz, silos, records, epsilon, dimension, convexity = checked(
        smoothness=smoothness,
        diameter=diameter,
        lipschitz=lipschitz,
        silos_per_round=silos_per_round,
        num_records=num_records,
        epsilon=epsilon,
        dimension=dimension,
        strong_convexity=strong_convexity,
    )
    private = (epsilon * records) ** 2 / dimension
    statistical = silos * np.minimum(records, private)
    convex = beta * diameter * np.sqrt(silos) / lipschitz * np.sqrt(np.minimum(records, private)) + statistical
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(np.maximum(beta * diameter**2 * convexity * silos * private / lipschitz**2, 1.0))
        strong = np.maximum(2.0 * beta / convexity * log, statistical)
    return np.maximum(np.where(convexity > 0, strong, convex), 1.0)[()]


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
    diameter: ArrayLike | None = None,
    initial_gap: ArrayLike | None = None,
    smoothness: ArrayLike | None = None,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return the number of rounds of accelerated noisy mini-batch SGD for the empirical risk; round it up.

    Parameters
    ----------
    lipschitz : array_like
        L, positive.
    silos_per_round, num_silos, num_records, batch_size : array_like
        Participating silos M of N, records of each n, batch size K.
    epsilon, delta : array_like
        Inter-silo record-level budget.
    dimension : array_like
        Number of coordinates d.
    diameter : array_like, optional
        Diameter D of the domain; needed for convex smooth losses.
    initial_gap : array_like, optional
        Excess objective Delta of the start; needed for strongly convex smooth losses.
    smoothness : array_like, optional
        beta; without it the losses are not smooth.
    strong_convexity : array_like
        mu: 0 everywhere, or positive everywhere, at most smoothness.

    Returns
    -------
    ndarray or float
        The larger of :math:`\sqrt{(\beta D/L)\sqrt M\epsilon n/\sqrt{d\ln(1/\delta)}}` (without smoothness, whatever mu, :math:`\sqrt
        M\epsilon n/\sqrt{d\ln(1/\delta)}`; with it for mu > 0 :math:`\sqrt\kappa\ln(\Delta\mu M\epsilon^2n^2/(L^2d))`) and
        :math:`\epsilon^2n^2/(Kd\ln(1/\delta))`, the latter unless MK = Nn; at least 1.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the optional one that is needed is missing.

    Notes
    -----
    Theorems F.1 and F.2 of Lowy and Razaviyayn 2023, F.1.1 with beta D/L in place of its root, F.2.2 without the logarithm that it does not
    state. For M < N the silos' heterogeneity needs further rounds.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rounds = isrl.erm_rounds(
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
    305.284
    """
    lipschitz, silos, all_silos, records, batch, epsilon, delta, dimension, convexity = checked(
        lipschitz=lipschitz,
        silos_per_round=silos_per_round,
        num_silos=num_silos,
        num_records=num_records,
        batch_size=batch_size,
        epsilon=epsilon,
        delta=delta,
        dimension=dimension,
        strong_convexity=strong_convexity,
    )
    log = np.log(1.0 / delta)
    sampled = np.where(silos * batch < all_silos * records, (epsilon * records) ** 2 / (batch * dimension * log), 0.0)
    if smoothness is not None and (convexity > 0).any():
        beta, gap, convexity = checked(
            smoothness=smoothness,
            initial_gap=_needed("initial_gap", initial_gap, "smoothness is given and strong_convexity is positive"),
            strong_convexity=STRICT.positive("strong_convexity", convexity),
        )
        private = gap * convexity * silos * (epsilon * records / lipschitz) ** 2 / dimension
        optimisation = np.sqrt(beta / convexity) * np.log(np.maximum(private, 1.0))
    else:
        optimisation = np.sqrt(silos) * epsilon * records / np.sqrt(dimension * log)
        if smoothness is not None:
            beta, width = checked(smoothness=smoothness, diameter=_needed("diameter", diameter, "smoothness is given"))
            optimisation = np.sqrt(beta * width / lipschitz * optimisation)
    return np.maximum(np.maximum(optimisation, sampled), 1.0)[()]


def _needed(name: str, value: ArrayLike | None, where: str) -> ArrayLike:
    if value is None:
        msg = f"{name} must be given where {where}"
        raise ValueError(msg)
    return value


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
    beta, convexity = (float(x) for x in checked(smoothness=smoothness, strong_convexity=strong_convexity))
    positive_scalar("strong_convexity", strong_convexity)
    variance = positive_scalar("gradient_std", gradient_std) ** 2
    gap = positive_scalar("initial_gap", initial_gap)
    rounds = count_scalar("rounds", rounds)
    stages: list[Stage] = []
    left = rounds
    while True:
        k = len(stages) + 1
        needed = max(
            4.0 * math.sqrt(2.0 * beta / convexity), 128.0 * variance * 2.0 ** (k + 1) / (3.0 * convexity * gap)
        )
        if needed > left:
            break
        r = math.ceil(needed)
        if r > left:
            break
        phi = math.sqrt(convexity * variance * r * (r + 1) * (r + 2) * 2.0 ** (k - 1) / (3.0 * gap))
        stages.append(Stage(r, max(2.0 * beta, phi)))
        left -= r
    if not stages:
        msg = f"rounds must be at least {math.ceil(needed)}, those of the first stage, not {rounds}"
        raise ValueError(msg)
    return stages

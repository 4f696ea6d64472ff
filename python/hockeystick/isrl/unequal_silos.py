"""Noisy mini-batch SGD with silos of their own sizes and budgets (Appendix H): its rates, step and rounds, up to constants.

All take T = `effective_noise`: the mean of xi_i over silos, divided by the harmonic mean M of the number that take part. It is exact.
The paper has min(Xi/M', xi_max/M) in its place (`hockeystick.published.xi_aggregate`), which is never smaller.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Result
from hockeystick.isrl.arguments import checked
from hockeystick.isrl.rates import Rate, by_convexity

__all__ = ["unequal_silos_empirical_rate", "unequal_silos_rate", "unequal_silos_rounds", "unequal_silos_step"]


def unequal_silos_rate(
    *,
    lipschitz: ArrayLike,
    diameter: ArrayLike,
    silos_per_round: ArrayLike,
    num_records: ArrayLike,
    dimension: ArrayLike,
    effective_noise: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Rate:
    r"""Return the rate of the population's excess risk with silos of their own sizes and budgets.

    Parameters
    ----------
    lipschitz, diameter : array_like
        L and D, positive.
    silos_per_round : array_like
        Harmonic mean M of the number of participating silos.
    num_records : array_like
        Records of the smallest silo.
    dimension : array_like
        Number of model parameters, d.
    effective_noise : array_like
        T, the mean of `hockeystick.published.silo_xi` over M, or its printed bound `hockeystick.published.xi_aggregate`; positive.
    strong_convexity : array_like
        mu, >= 0.

    Returns
    -------
    Rate
        :math:`LD(1/\sqrt{n_{\min}M} + \sqrt{dT})`, or for mu > 0 :math:`\frac{L^2}{\mu}(1/(Mn_{\min}) + dT)`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem H.1 of Lowy and Razaviyayn 2023, the second case being equation 41.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.unequal_silos_rate(
    ...     lipschitz=1.0, diameter=2.0, silos_per_round=2.4, num_records=500, dimension=10, effective_noise=4.733e-4
    ... )
    >>> print(f"{rate.statistical:.6f} {rate.private:.6f}")
    0.057735 0.137594
    """
    lipschitz, diameter, silos, records, dimension, noise, convexity = checked(
        lipschitz=lipschitz,
        diameter=diameter,
        silos_per_round=silos_per_round,
        num_records=num_records,
        dimension=dimension,
        effective_noise=effective_noise,
        strong_convexity=strong_convexity,
    )
    return by_convexity(lipschitz, diameter, convexity, 1.0 / (silos * records), dimension * noise)


def unequal_silos_empirical_rate(
    *,
    lipschitz: ArrayLike,
    strong_convexity: ArrayLike,
    rounds: ArrayLike,
    dimension: ArrayLike,
    effective_noise: ArrayLike,
) -> Result:
    r"""Return the rate of the empirical excess risk with silos of their own sizes and budgets, for strongly convex losses.

    Parameters
    ----------
    lipschitz, strong_convexity : array_like
        L and mu, mu positive where the rate is to be finite.
    rounds, dimension : array_like
        R and d.
    effective_noise : array_like
        T, as in `unequal_silos_rate`.

    Returns
    -------
    ndarray or float
        :math:`\frac{L^2}{\mu}(1/R + dT)`, for R of at least :math:`2\kappa\ln(\beta\mu D^2/(L^2dT))`, the
        first term of `unequal_silos_rounds`; order only.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma H.1.2 of Lowy and Razaviyayn 2023, equation 42. With all its constants: `mb_sgd_empirical_bound` at `mean_noise_std`.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.unequal_silos_empirical_rate(
    ...     lipschitz=1.0, strong_convexity=0.1, rounds=500, dimension=10, effective_noise=4.733e-4
    ... )
    >>> print(f"{rate:.5f}")
    0.06733
    """
    lipschitz, convexity, rounds, dimension, noise = checked(
        lipschitz=lipschitz,
        strong_convexity=strong_convexity,
        rounds=rounds,
        dimension=dimension,
        effective_noise=effective_noise,
    )
    with np.errstate(divide="ignore"):
        return (lipschitz**2 / convexity * (1.0 / rounds + dimension * noise))[()]


def unequal_silos_step(
    *,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    lipschitz: ArrayLike,
    rounds: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    dimension: ArrayLike,
    effective_noise: ArrayLike,
) -> Result:
    r"""Return the step size that the proof of Theorem H.1 takes for convex losses.

    Parameters
    ----------
    smoothness, diameter, lipschitz, rounds : array_like
        beta, D, L, R.
    num_records, silos_per_round, dimension, effective_noise : array_like
        As in `unequal_silos_rate`.

    Returns
    -------
    ndarray or float
        :math:`\min(1/\beta, \frac{D}{L\sqrt R}\min(\sqrt{n_{\min}M/R}, 1, 1/\sqrt{dRT}))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> step = isrl.unequal_silos_step(
    ...     smoothness=1.0,
    ...     diameter=2.0,
    ...     lipschitz=1.0,
    ...     rounds=500,
    ...     num_records=500,
    ...     silos_per_round=2.4,
    ...     dimension=10,
    ...     effective_noise=4.733e-4,
    ... )
    >>> print(format_upper(step, ".6f"))
    0.058143
    """
    beta, diameter, lipschitz, rounds, records, silos, dimension, noise = checked(
        smoothness=smoothness,
        diameter=diameter,
        lipschitz=lipschitz,
        rounds=rounds,
        num_records=num_records,
        silos_per_round=silos_per_round,
        dimension=dimension,
        effective_noise=effective_noise,
    )
    shrunk = np.minimum(np.sqrt(records * silos / rounds), 1.0 / np.sqrt(dimension * rounds * noise))
    return np.minimum(1.0 / beta, diameter / (lipschitz * np.sqrt(rounds)) * np.minimum(shrunk, 1.0))[()]


def unequal_silos_rounds(
    *,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    lipschitz: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    dimension: ArrayLike,
    effective_noise: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return the number of rounds that the proof of Theorem H.1 needs; round it up.

    Parameters
    ----------
    smoothness, diameter, lipschitz : array_like
        beta, D, L.
    num_records, silos_per_round, dimension, effective_noise : array_like
        As in `unequal_silos_rate`.
    strong_convexity : array_like
        mu, in [0, smoothness].

    Returns
    -------
    ndarray or float
        :math:`(\beta D/L)\min(\sqrt{Mn_{\min}}, 1/\sqrt{dT}) + \min(n_{\min}M, 1/(dT))`, at least 1; for mu > 0
        :math:`2\kappa\ln(\beta\mu D^2/(L^2dT)) + Mn_{\min}`, the logarithm at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The convex case is printed with :math:`\sqrt{dT}` in place of its inverse (`hockeystick.published.unequal_silos_rounds`). With that,
    beta D^2/R is not below the rate: compare Theorem D.1.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> rounds = isrl.unequal_silos_rounds(
    ...     smoothness=1.0,
    ...     diameter=2.0,
    ...     lipschitz=1.0,
    ...     num_records=500,
    ...     silos_per_round=2.4,
    ...     dimension=10,
    ...     effective_noise=4.733e-4,
    ... )
    >>> print(format_upper(rounds, ".2f"))
    240.36
    """
    beta, diameter, lipschitz, records, silos, dimension, noise, convexity = checked(
        smoothness=smoothness,
        diameter=diameter,
        lipschitz=lipschitz,
        num_records=num_records,
        silos_per_round=silos_per_round,
        dimension=dimension,
        effective_noise=effective_noise,
        strong_convexity=strong_convexity,
    )
    enough = np.minimum(records * silos, 1.0 / (dimension * noise))
    convex = beta * diameter / lipschitz * np.sqrt(enough) + enough
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(np.maximum(beta * convexity * (diameter / lipschitz) ** 2 / (dimension * noise), 1.0))
        strong = 2.0 * beta / convexity * log + records * silos
    return np.maximum(np.where(convexity > 0, strong, convex), 1.0)[()]

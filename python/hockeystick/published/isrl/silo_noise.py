"""Lowy and Razaviyayn 2023, Appendix H: noise of unequal silos."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, same_length, vector
from hockeystick.isrl import harmonic_participation
from hockeystick.isrl.arguments import checked
from hockeystick.published.isrl.theorems import require_within_theorem

__all__ = ["silo_noise_sigmas", "silo_xi", "unequal_silos_rounds", "xi_aggregate"]


def silo_xi(*, num_records: ArrayLike, epsilons: ArrayLike, deltas: ArrayLike, rounds: ArrayLike) -> Array:
    r"""Return the quantity of Appendix H to which the printed noise variance of a silo is proportional.

    Parameters
    ----------
    num_records, epsilons, deltas : array_like
        n_i and the budget of each silo; one-dimensional, a single number is repeated.
    rounds : array_like
        R.

    Returns
    -------
    ndarray of shape (N,)
        :math:`\xi_i = \ln(2.5R/\delta_i)\ln(2/\delta_i)/(n_i\epsilon_i)^2`.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the lengths differ.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(published.silo_xi(num_records=[1000, 500], epsilons=[1.0, 0.5], deltas=1e-5, rounds=50))
    [0.00019946 0.0031914 ]
    """
    records, eps, delta, number = same_length(
        num_records=STRICT.count("num_records", num_records),
        epsilons=STRICT.positive("epsilons", epsilons),
        deltas=STRICT.inside("deltas", deltas),
        rounds=STRICT.count("rounds", rounds),
    )
    require_within_theorem(eps, delta)
    return np.asarray(np.log(2.5 * number / delta) * np.log(2.0 / delta) / (records * eps) ** 2)


def silo_noise_sigmas(
    *, lipschitz: ArrayLike, num_records: ArrayLike, epsilons: ArrayLike, deltas: ArrayLike, rounds: ArrayLike
) -> Array:
    r"""Return the noise that Theorem H.1 prints for unequal silos: as loose as `noisy_mb_sgd_sigma`.

    Parameters
    ----------
    lipschitz : array_like
        L.
    num_records, epsilons, deltas, rounds : array_like
        As in `silo_xi`.

    Returns
    -------
    ndarray of shape (N,)
        :math:`16L\sqrt{R\xi_i}`.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the lengths differ.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(
    ...     published.silo_noise_sigmas(
    ...         lipschitz=1.0, num_records=[1000, 500], epsilons=[1.0, 0.5], deltas=1e-5, rounds=50
    ...     )
    ... )
    [1.59784796 6.39139186]
    """
    clip = STRICT.positive("lipschitz", lipschitz)
    xi = silo_xi(num_records=num_records, epsilons=epsilons, deltas=deltas, rounds=rounds)
    return np.asarray(16.0 * clip * np.sqrt(STRICT.count("rounds", rounds) * xi))


def xi_aggregate(xi: ArrayLike, participation: Mapping[int, float]) -> Result:
    r"""Return the effective xi/M of Theorem H.1: sound, and never smaller than the exact mean.

    Parameters
    ----------
    xi : array_like
        `silo_xi`, one-dimensional.
    participation : mapping of int to float
        Probability of each number of silos in a round.

    Returns
    -------
    float
        :math:`\min(\Xi/M', \xi_{\max}/M)` with :math:`\Xi` the root mean square of the mean of the largest xi. Exact is
        mean(xi)/M.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.xi_aggregate([1.0, 4.0, 9.0], {2: 0.5, 3: 0.5}):.4f}")
    2.4042
    """
    values = np.sort(vector("xi", STRICT.non_negative("xi", xi)))[::-1]
    means = harmonic_participation(participation, values.size)
    tops = np.array([values[:number].mean() for number in participation])
    root = float(np.sqrt(np.array(list(participation.values())) @ tops**2))
    return min(root / means.harmonic_square, float(values[0]) / means.harmonic)


def unequal_silos_rounds(
    *,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    lipschitz: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    dimension: ArrayLike,
    effective_noise: ArrayLike,
) -> Result:
    r"""Return the rounds that the proof of Theorem H.1 prints for convex losses: a term is inverted, so that they are too few.

    Parameters
    ----------
    smoothness, diameter, lipschitz, num_records, silos_per_round, dimension, effective_noise : array_like
        As in `hockeystick.isrl.unequal_silos_rounds`.

    Returns
    -------
    ndarray or float
        :math:`(\beta D/L)\min(\sqrt{Mn_{\min}}, \sqrt{dT}) + \min(n_{\min}M, 1/(dT))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Counterexample: beta D/L = 10^6, M n_min = 10^4 and dT = 10^-2 give 10^5 + 100 rounds, where beta D^2/R is then 10 L D and the rate 0.11 L D.

    Examples
    --------
    >>> from hockeystick import isrl, published
    >>> setting = dict(smoothness=1e6, diameter=1.0, lipschitz=1.0, num_records=100, silos_per_round=100)
    >>> noise = dict(dimension=10, effective_noise=1e-3)
    >>> print(round(published.unequal_silos_rounds(**setting, **noise)), round(isrl.unequal_silos_rounds(**setting, **noise)))
    100100 10000100
    """
    beta, diameter, lipschitz, records, silos, dimension, noise = checked(
        smoothness=smoothness,
        diameter=diameter,
        lipschitz=lipschitz,
        num_records=num_records,
        silos_per_round=silos_per_round,
        dimension=dimension,
        effective_noise=effective_noise,
    )
    whole, private = records * silos, dimension * noise
    printed = beta * diameter / lipschitz * np.sqrt(np.minimum(whole, private)) + np.minimum(whole, 1.0 / private)
    return printed[()]

"""Lowy and Razaviyayn 2023, Appendix H: noise of unequal silos."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, same_length, vector
from hockeystick.isrl import harmonic_participation
from hockeystick.published.isrl.theorems import require_within_theorem

__all__ = ["silo_noise_sigmas", "silo_xi", "xi_aggregate"]


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

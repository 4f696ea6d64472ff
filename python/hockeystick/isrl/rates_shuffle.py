"""The rate with a shuffler, up to constants that no paper states."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick.isrl.arguments import checked
from hockeystick.isrl.rates import Rate, by_convexity

__all__ = ["shuffle_rate"]


def shuffle_rate(
    *,
    lipschitz: ArrayLike,
    diameter: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    num_records: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Rate:
    r"""Return the rate of the population's excess risk with a shuffler and equal silos.

    Parameters
    ----------
    lipschitz, diameter : array_like
        L and D, positive.
    silos_per_round, num_silos, num_records, dimension : array_like
        M, N, n, d.
    epsilon, delta : array_like
        Budget against who sees the shuffled messages.
    strong_convexity : array_like
        mu, >= 0.

    Returns
    -------
    Rate
        :math:`LD(1/\sqrt{nM} + \sqrt{d\ln(1/\delta)}/(\epsilon nN))`, or for mu > 0
        :math:`\frac{L^2}{\mu}(1/(nM) + d\ln(1/\delta)/(\epsilon^2n^2N^2))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem 5.1 of Lowy and Razaviyayn 2023: that of a trusted server.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.shuffle_rate(
    ...     lipschitz=1.0, diameter=2.0, silos_per_round=25, num_silos=25, num_records=1000, dimension=10, epsilon=1.0, delta=1e-5
    ... )
    >>> print(f"{rate.value:.6f}")
    0.013507
    """
    lipschitz, diameter, silos, all_silos, records, dimension, epsilon, delta, convexity = checked(
        lipschitz=lipschitz,
        diameter=diameter,
        silos_per_round=silos_per_round,
        num_silos=num_silos,
        num_records=num_records,
        dimension=dimension,
        epsilon=epsilon,
        delta=delta,
        strong_convexity=strong_convexity,
    )
    private = dimension * np.log(1.0 / delta) / (epsilon * records * all_silos) ** 2
    return by_convexity(lipschitz, diameter, convexity, 1.0 / (silos * records), private)

"""Numbers of rounds of shuffled mini-batch SGD: choices, not bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Result
from hockeystick.isrl.arguments import checked

__all__ = ["shuffle_rounds"]


def shuffle_rounds(
    *,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    lipschitz: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    num_records: ArrayLike,
    epsilon: ArrayLike,
    dimension: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return the number of rounds that Theorem G.1 needs for shuffled mini-batch SGD; round it up.

    Parameters
    ----------
    smoothness, diameter, lipschitz : array_like
        beta, D, L; positive.
    silos_per_round, num_silos, num_records : array_like
        Silos M of N in each round, records of each n.
    epsilon : array_like
        Budget against who sees the shuffled messages.
    dimension : array_like
        Number of coordinates d.
    strong_convexity : array_like
        mu, in [0, smoothness].

    Returns
    -------
    ndarray or float
        The largest of :math:`n^2N^2\epsilon^2/M`, :math:`N/M`, :math:`\min(nM, \epsilon^2n^2N^2/d)` and :math:`(\beta D/L)\min(\sqrt{nM}, \epsilon
        nN/\sqrt d)`; for mu > 0 the last is :math:`8\kappa\ln(\beta D^2\mu\epsilon^2n^2N^2/(dL^2))`, the logarithm at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The proof of Theorem G.1 of Lowy and Razaviyayn 2023, whose third term is printed M times smaller
    (`hockeystick.published.shuffle_rounds`): then L^2/R need not be below the rate.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> rounds = isrl.shuffle_rounds(
    ...     smoothness=1.0,
    ...     diameter=2.0,
    ...     lipschitz=1.0,
    ...     silos_per_round=100,
    ...     num_silos=100,
    ...     num_records=10,
    ...     epsilon=0.1,
    ...     dimension=2,
    ... )
    >>> print(format_upper(rounds, ".0f"))
    1000
    """
    beta, diameter, lipschitz, silos, all_silos, records, epsilon, dimension, convexity = checked(
        smoothness=smoothness,
        diameter=diameter,
        lipschitz=lipschitz,
        silos_per_round=silos_per_round,
        num_silos=num_silos,
        num_records=num_records,
        epsilon=epsilon,
        dimension=dimension,
        strong_convexity=strong_convexity,
    )
    total = (epsilon * records * all_silos) ** 2
    statistical = np.minimum(records * silos, total / dimension)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(np.maximum(beta * diameter**2 * convexity * total / (dimension * lipschitz**2), 1.0))
        strong = 8.0 * beta / convexity * log
    optimisation = np.where(convexity > 0, strong, beta * diameter / lipschitz * np.sqrt(statistical))
    return np.maximum.reduce([total / silos, all_silos / silos, statistical, optimisation])[()]

"""Silos that differ: who takes part, how noise and gradients average, and how weights change the constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import (
    STRICT,
    Array,
    at_most,
    count_scalar,
    non_negative_scalar,
    pmf,
    positive_scalar,
    vector,
)

__all__ = [
    "Participation",
    "ReweightedConstants",
    "balanced_batch_sizes",
    "harmonic_participation",
    "mean_noise_std",
    "reweighted_constants",
]


class Participation(NamedTuple):
    """Means of a random number of participating silos.

    Attributes
    ----------
    harmonic : float
        1/E[1/M_r]: the `silos_per_round` of every risk bound.
    harmonic_square : float
        1/sqrt(E[1/M_r^2]), at most `harmonic`; only the printed bounds use it.
    """

    harmonic: float
    harmonic_square: float


def harmonic_participation(participation: Mapping[int, float], num_silos: int) -> Participation:
    """Return the means of a random number of participating silos that the bounds take.

    Parameters
    ----------
    participation : mapping of int to float
        Probability of each number of silos in a round; numbers in [1, num_silos], probabilities that sum to 1.
    num_silos : int
        Number of silos.

    Returns
    -------
    Participation
        The harmonic mean, and that of squares.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Assumption 1(4) and Appendix H of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(f"{isrl.harmonic_participation({2: 0.5, 3: 0.5}, 5).harmonic:.4f}")
    2.4000
    """
    num_silos = count_scalar("num_silos", num_silos)
    numbers = np.array([count_scalar("participation", number) for number in participation], dtype=np.float64)
    probabilities = pmf("participation", list(participation.values()))
    at_most("participation", float(numbers.max()), "num_silos", num_silos)
    inverse = float(probabilities @ (1.0 / numbers))
    return Participation(1.0 / inverse, 1.0 / float(np.sqrt(probabilities @ (1.0 / numbers**2))))


def mean_noise_std(noise_stds: ArrayLike) -> float:
    """Return the common noise that the average of unequal silos' noise amounts to.

    Parameters
    ----------
    noise_stds : array_like
        Standard deviation of each silo's noise, >= 0; one-dimensional.

    Returns
    -------
    float
        The root mean square: the mean over a uniform set of M silos has variance (d/M) times its square.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Exact, since the participating silos are uniform given their number; the averages over the noisiest silos in Theorem H.1
    of Lowy and Razaviyayn 2023 are never smaller.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(f"{isrl.mean_noise_std([1.0, 2.0, 3.0, 4.0, 0.5]):.6f}")
    2.459675
    """
    stds = vector("noise_stds", STRICT.non_negative("noise_stds", noise_stds))
    return float(np.sqrt(np.mean(stds**2)))


def balanced_batch_sizes(num_records: ArrayLike, batch_size: int) -> Array:
    """Return batch sizes that draw the same share of the records of every silo.

    Parameters
    ----------
    num_records : array_like
        Records of each silo; one-dimensional.
    batch_size : int
        Batch size of the smallest silo, at most its records.

    Returns
    -------
    ndarray of shape (N,)
        Integers in proportion to num_records.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or no integers of one proportion exist.

    Notes
    -----
    Algorithm 7 of Lowy and Razaviyayn 2023: K_i/n_i is the same for all silos.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(isrl.balanced_batch_sizes([1000, 500, 2000], 25))
    [ 50.  25. 100.]
    """
    records = vector("num_records", STRICT.count("num_records", num_records))
    batch_size = count_scalar("batch_size", batch_size)
    smallest = int(records.min())
    at_most("batch_size", batch_size, "the smallest silo", smallest)
    products = [int(n) * batch_size for n in records]
    if any(product % smallest for product in products):
        msg = (
            f"batch_size must give every silo the same share of its records, not {batch_size} of {smallest} "
            f"with silos of {', '.join(f'{n:.0f}' for n in records)}"
        )
        raise ValueError(msg)
    return np.array([product // smallest for product in products], dtype=np.float64)


class ReweightedConstants(NamedTuple):
    """Constants of losses rescaled by N p_i."""

    lipschitz: float
    strong_convexity: float
    smoothness: float


def reweighted_constants(
    weights: ArrayLike, *, lipschitz: float, strong_convexity: float = 0.0, smoothness: float
) -> ReweightedConstants:
    """Return the constants of the losses N p_i f_i, whose plain mean is the weighted one.

    Parameters
    ----------
    weights : array_like
        Weight p_i of each silo, >= 0, summing to 1; positive if strong_convexity is.
    lipschitz : float
        Lipschitz constant L of each loss, positive.
    strong_convexity : float
        Strong convexity mu of each loss, >= 0.
    smoothness : float
        Smoothness beta of each loss, positive.

    Returns
    -------
    ReweightedConstants
        Largest N p_i L, smallest N p_i mu, largest N p_i beta.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Appendix H of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> constants = isrl.reweighted_constants(
    ...     [0.5, 0.3, 0.2], lipschitz=1.0, strong_convexity=0.1, smoothness=1.0
    ... )
    >>> print("{:.2f} {:.2f} {:.2f}".format(*constants))
    1.50 0.06 1.50
    """
    scale = vector("weights", pmf("weights", weights))
    scale = scale * scale.size
    lipschitz = positive_scalar("lipschitz", lipschitz)
    convexity = non_negative_scalar("strong_convexity", strong_convexity)
    smoothness = positive_scalar("smoothness", smoothness)
    if convexity > 0 and scale.min() == 0:
        msg = "weights must be positive where strong_convexity is, not 0"
        raise ValueError(msg)
    most = float(scale.max())
    return ReweightedConstants(most * lipschitz, float(scale.min()) * convexity, most * smoothness)

"""By how much one record changes a loss, and what that says about the population."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result
from hockeystick.isrl.arguments import checked

__all__ = ["population_bound", "uniform_stability"]


def uniform_stability(
    *,
    lipschitz: ArrayLike,
    rounds: ArrayLike,
    learning_rate: ArrayLike,
    num_records: ArrayLike,
    num_silos: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return by how much one record changes the loss of the model of (noisy) mini-batch SGD, in expectation.

    Parameters
    ----------
    lipschitz : array_like
        Lipschitz constant of the loss, L.
    rounds : array_like
        Number of rounds R.
    learning_rate : array_like
        Constant step size eta, at most 1/smoothness.
    num_records : array_like
        Records of each silo, n; of the smallest if they differ.
    num_silos : array_like
        Number of silos, N, of which a uniform random set takes part in each round.
    smoothness : array_like
        Lipschitz constant of the gradient, beta.
    strong_convexity : array_like
        Strong convexity mu, in [0, smoothness].

    Returns
    -------
    ndarray or float
        alpha: :math:`2L^2R\eta/(nN)`, and for mu > 0 the smaller of that and :math:`4L^2/(\mu(nN - 1))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma D.2 of Lowy and Razaviyayn 2023, which has the participating M in place of N: a silo takes part with probability
    M/N, which cancels.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> alpha = isrl.uniform_stability(
    ...     lipschitz=1.0, rounds=100, learning_rate=0.1, num_records=1000, num_silos=10, smoothness=1.0
    ... )
    >>> print(f"{alpha:.6f}")
    0.002000
    """
    lipschitz, rounds, rate, records, silos, smoothness, convexity = checked(
        lipschitz=lipschitz,
        rounds=rounds,
        learning_rate=learning_rate,
        num_records=num_records,
        num_silos=num_silos,
        smoothness=smoothness,
        strong_convexity=strong_convexity,
    )
    STRICT.require(
        lambda e, b: e * b <= 1 + 1e-12,  # 1/smoothness, rounded
        "learning_rate must be at most 1/smoothness",
        learning_rate=rate,
        smoothness=smoothness,
    )
    total = records * silos
    STRICT.require(
        lambda t, m: (t > 1) | (m == 0),
        "num_records num_silos must exceed 1 if strong_convexity is positive",
        records=total,
        strong_convexity=convexity,
    )
    return stability_of_steps(lipschitz, rounds, rate, total, convexity)[()]


def stability_of_steps(lipschitz: Array, rounds: Array, rate: Array, total: Array, convexity: Array) -> Array:
    convex = 2.0 * lipschitz**2 * rounds * rate / total
    with np.errstate(divide="ignore"):
        contracting = 4.0 * lipschitz**2 / (convexity * np.maximum(total - 1.0, 0.0))
    return np.where(convexity > 0, np.minimum(convex, contracting), convex)


def population_bound(stability: ArrayLike, empirical: ArrayLike) -> Result:
    """Return the bound on the population's excess risk from that on the sample's.

    Parameters
    ----------
    stability : array_like
        `uniform_stability`, >= 0.
    empirical : array_like
        Bound on the excess risk on the sample, >= 0.

    Returns
    -------
    ndarray or float
        Their sum.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma D.1 of Lowy and Razaviyayn 2023; all records of all silos are drawn independently from one distribution.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(isrl.population_bound(0.002, 0.85))
    0.852
    """
    return (STRICT.non_negative("stability", stability) + STRICT.non_negative("empirical", empirical))[()]

"""Lowy and Razaviyayn 2023: inter-silo record-level privacy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result
from hockeystick.isrl.arguments import checked

__all__ = [
    "min_batch_size",
    "noisy_mb_sgd_sigma",
    "one_pass_sigma",
    "step_size_convex",
    "uniform_stability",
]


def require_within_theorem(epsilon: Array, delta: Array) -> None:
    """Check what Theorems D.1 and F.1 ask of a budget."""
    STRICT.require(
        lambda e, most: e <= most,
        "epsilon must be at most 2 ln(2/delta)",
        epsilon=epsilon,
        limit=2.0 * np.log(2.0 / delta),
    )


def noisy_mb_sgd_sigma(
    *, lipschitz: ArrayLike, num_records: ArrayLike, rounds: ArrayLike, epsilon: ArrayLike, delta: ArrayLike
) -> Result:
    r"""Return the noise that Theorems D.1 and F.1 print: 4 to 31 times what is needed.

    Parameters
    ----------
    lipschitz, num_records, rounds : array_like
        L, n, R.
    epsilon, delta : array_like
        Budget of the silo; epsilon at most 2 ln(2/delta).

    Returns
    -------
    ndarray or float
        :math:`16L\sqrt{R\ln(2.5R/\delta)\ln(2/\delta)}/(n\epsilon)`, whatever the batch size, which must be at least
        `min_batch_size`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl, published
    >>> sigma = published.noisy_mb_sgd_sigma(lipschitz=1.0, num_records=1000, rounds=50, epsilon=1.0, delta=1e-5)
    >>> needed = isrl.noisy_mb_sgd_sigma(
    ...     lipschitz=1.0, num_records=1000, batch_size=8, rounds=50, epsilon=1.0, delta=1e-5
    ... )
    >>> print(f"{sigma:.6f} {format_upper(needed, '.4f')}")
    1.597848 0.2048
    """
    lipschitz, records, rounds, epsilon, delta = checked(
        lipschitz=lipschitz, num_records=num_records, rounds=rounds, epsilon=epsilon, delta=delta
    )
    require_within_theorem(epsilon, delta)
    return (
        16.0 * lipschitz * np.sqrt(rounds * np.log(2.5 * rounds / delta) * np.log(2.0 / delta)) / records / epsilon
    )[()]


def min_batch_size(*, num_records: ArrayLike, rounds: ArrayLike, epsilon: ArrayLike, delta: ArrayLike) -> Result:
    r"""Return the batch size from which on the printed noise is proven to suffice; round it up.

    Parameters
    ----------
    num_records, rounds : array_like
        n, R.
    epsilon, delta : array_like
        Budget of the silo; epsilon at most 2 ln(2/delta).

    Returns
    -------
    ndarray or float
        :math:`\epsilon n/(4\sqrt{2R\ln(2/\delta)})`.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the batch would exceed the silo, which the theorems forget.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.min_batch_size(num_records=1000, rounds=50, epsilon=1.0, delta=1e-5):.6f}")
    7.155698
    """
    records, rounds, epsilon, delta = checked(num_records=num_records, rounds=rounds, epsilon=epsilon, delta=delta)
    require_within_theorem(epsilon, delta)
    least = epsilon * records / (4.0 * np.sqrt(2.0 * rounds * np.log(2.0 / delta)))
    STRICT.require(
        lambda k, n: np.ceil(k) <= n,
        "epsilon must allow a batch within the silo",
        batch_size=least,
        num_records=records,
    )
    return least[()]


def one_pass_sigma(*, lipschitz: ArrayLike, batch_size: ArrayLike, epsilon: ArrayLike, delta: ArrayLike) -> Result:
    r"""Return the noise that Theorem E.1 prints for a single pass: up to 2.8 times what is needed.

    Parameters
    ----------
    lipschitz, batch_size : array_like
        L, K.
    epsilon, delta : array_like
        Budget of the silo; epsilon at most 8 ln(1/delta).

    Returns
    -------
    ndarray or float
        :math:`4L\sqrt{2\ln(1.25/\delta)}/(\epsilon K)`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.one_pass_sigma(lipschitz=1.0, batch_size=10, epsilon=1.0, delta=1e-5):.6f}")
    1.937922
    """
    lipschitz, batch, epsilon, delta = checked(lipschitz=lipschitz, batch_size=batch_size, epsilon=epsilon, delta=delta)
    STRICT.require(
        lambda e, most: e <= most,
        "epsilon must be at most 8 ln(1/delta)",
        epsilon=epsilon,
        limit=8.0 * np.log(1.0 / delta),
    )
    return (lipschitz * np.sqrt(32.0 * np.log(1.25 / delta)) / (epsilon * batch))[()]


def step_size_convex(
    *,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    lipschitz: ArrayLike,
    rounds: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
) -> Result:
    r"""Return the step size of Theorem D.1: right in order, with a larger bound than `hockeystick.isrl.step_size_convex`.

    Parameters
    ----------
    smoothness, diameter, lipschitz : array_like
        beta, D, L.
    rounds, num_records, silos_per_round, dimension : array_like
        R, n, M, d.
    epsilon : array_like
        Budget of each silo.

    Returns
    -------
    ndarray or float
        :math:`\min(1/\beta, \frac{D}{L\sqrt R}\min(1, \epsilon n\sqrt{M/(Rd)}, \sqrt{nM/R}))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> eta = published.step_size_convex(
    ...     smoothness=1.0,
    ...     diameter=2.0,
    ...     lipschitz=1.0,
    ...     rounds=50,
    ...     num_records=1000,
    ...     silos_per_round=25,
    ...     dimension=10,
    ...     epsilon=1.0,
    ... )
    >>> print(f"{eta:.6f}")
    0.282843
    """
    beta, diameter, lipschitz, number, records, silos, dimension, eps = checked(
        smoothness=smoothness,
        diameter=diameter,
        lipschitz=lipschitz,
        rounds=rounds,
        num_records=num_records,
        silos_per_round=silos_per_round,
        dimension=dimension,
        epsilon=epsilon,
    )
    private = eps * records * np.sqrt(silos / (number * dimension))
    shrunk = np.minimum(np.minimum(1.0, private), np.sqrt(records * silos / number))
    return np.minimum(1.0 / beta, diameter / (lipschitz * np.sqrt(number)) * shrunk)[()]


def uniform_stability(
    *,
    lipschitz: ArrayLike,
    rounds: ArrayLike,
    learning_rate: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return the stability that Lemma D.2 prints: sound, and N/M times that of `hockeystick.isrl.uniform_stability`.

    Parameters
    ----------
    lipschitz, rounds, learning_rate : array_like
        L, R, eta; eta at most 1/smoothness.
    num_records, silos_per_round : array_like
        n, M.
    smoothness, strong_convexity : array_like
        beta, mu; mu in [0, beta].

    Returns
    -------
    ndarray or float
        :math:`2L^2R\eta/(nM)`, and for mu > 0 :math:`4L^2/(\mu(Mn - 1))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain; for mu > 0 the print asks for M > 1 and n > 1.

    Examples
    --------
    >>> from hockeystick import published
    >>> alpha = published.uniform_stability(
    ...     lipschitz=1.0, rounds=100, learning_rate=0.1, num_records=1000, silos_per_round=10, smoothness=1.0
    ... )
    >>> print(f"{alpha:.6f}")
    0.002000
    """
    lipschitz, number, rate, records, silos, beta, convexity = checked(
        lipschitz=lipschitz,
        rounds=rounds,
        learning_rate=learning_rate,
        num_records=num_records,
        silos_per_round=silos_per_round,
        smoothness=smoothness,
        strong_convexity=strong_convexity,
    )
    STRICT.require(
        lambda e, b: e * b <= 1 + 1e-12,
        "learning_rate must be at most 1/smoothness",
        learning_rate=rate,
        smoothness=beta,
    )
    STRICT.require(
        lambda least, mu: (least > 1) | (mu == 0),
        "silos_per_round and num_records must exceed 1 if strong_convexity is positive",
        smallest=np.minimum(silos, records),
        strong_convexity=convexity,
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        strong = 4.0 * lipschitz**2 / (convexity * (silos * records - 1.0))
    return np.where(convexity > 0, strong, 2.0 * lipschitz**2 * number * rate / (records * silos))[()]

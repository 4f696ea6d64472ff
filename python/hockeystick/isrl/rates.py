"""Rates of the theorems, up to constants that no paper states: to see what dominates, never to plan a number with."""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Array, Result
from hockeystick.isrl.arguments import checked

__all__ = ["Rate", "erm_rate", "excess_risk_rate_iid", "hybrid_user_level_rate"]

Problem: TypeAlias = Literal["population", "empirical"]
Notion: TypeAlias = Literal["isrl", "central"]


class _Terms(NamedTuple):
    statistical: Result
    private: Result
    participation: Result


class Rate(_Terms):
    """The terms of a rate, each with the constant 1 in place of one that is not known.

    Attributes
    ----------
    statistical : float or ndarray
        What remains without privacy.
    private : float or ndarray
        What the noise costs.
    participation : float or ndarray
        What it costs that not all silos take part.
    order_only : bool
        Always True: neither an upper nor a lower bound, only how one grows.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> isrl.Rate(0.5, 0.25, 0.0).value
    0.75
    """

    __slots__ = ()
    order_only: ClassVar[bool] = True

    @property
    def value(self) -> Result:
        """The sum of the terms."""
        return self.statistical + self.private + self.participation


def rate_of(statistical: Array, private: Array, participation: Array | float = 0.0) -> Rate:
    shared = np.broadcast_arrays(statistical, private, participation)
    return Rate(*(term[()] for term in shared))


def excess_risk_rate_iid(
    *,
    lipschitz: ArrayLike,
    diameter: ArrayLike,
    silos_per_round: ArrayLike,
    num_records: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Rate:
    r"""Return the rate of the population's excess risk with inter-silo record-level privacy and equal silos.

    Parameters
    ----------
    lipschitz, diameter : array_like
        L and D, positive.
    silos_per_round, num_records, dimension : array_like
        M, n, d.
    epsilon, delta : array_like
        Budget of each silo.
    strong_convexity : array_like
        mu, >= 0.

    Returns
    -------
    Rate
        :math:`\frac{LD}{\sqrt M}(1/\sqrt n + \sqrt{d\ln(1/\delta)}/(\epsilon n))`, or for mu > 0
        :math:`\frac{L^2}{\mu M}(1/n + d\ln(1/\delta)/(\epsilon^2n^2))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem 2.1 of Lowy and Razaviyayn 2023. Privacy is free, in order, where d <= n epsilon^2.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.excess_risk_rate_iid(
    ...     lipschitz=1.0, diameter=2.0, silos_per_round=25, num_records=1000, dimension=10, epsilon=1.0, delta=1e-5
    ... )
    >>> print(f"{rate.value:.6f} {rate.order_only}")
    0.016941 True
    """
    lipschitz, diameter, silos, records, dimension, epsilon, delta, convexity = checked(
        lipschitz=lipschitz,
        diameter=diameter,
        silos_per_round=silos_per_round,
        num_records=num_records,
        dimension=dimension,
        epsilon=epsilon,
        delta=delta,
        strong_convexity=strong_convexity,
    )
    private = dimension * np.log(1.0 / delta) / (epsilon * records) ** 2
    return by_convexity(lipschitz, diameter, convexity, 1.0 / (silos * records), private / silos)


def by_convexity(lipschitz: Array, diameter: Array, convexity: Array, statistical: Array, private: Array) -> Rate:
    """Return LD sqrt(x) of both terms, or L^2/mu times them where mu > 0."""

    def risk(x: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(convexity > 0, lipschitz**2 / convexity * x, lipschitz * diameter * np.sqrt(x))

    return rate_of(risk(statistical), risk(private))


def hybrid_user_level_rate(
    *,
    lipschitz: ArrayLike,
    diameter: ArrayLike,
    dimension: ArrayLike,
    num_records: ArrayLike,
    num_silos: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
) -> Rate:
    r"""Return the rate of the excess risk with both record-level and whole-silo privacy.

    Parameters
    ----------
    lipschitz, diameter : array_like
        L and D, positive.
    dimension, num_records, num_silos : array_like
        d, n, N.
    epsilon, delta : array_like
        Budget of each whole silo; `user_level_to_isrl` gives that of a record.

    Returns
    -------
    Rate
        :math:`LD\sqrt{d\ln(n/\delta)}/(\epsilon\sqrt N)`, all of it private.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Equation 28 of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.hybrid_user_level_rate(
    ...     lipschitz=1.0, diameter=1.0, dimension=50, num_records=500, num_silos=10_000, epsilon=1.0, delta=1e-6
    ... )
    >>> print(f"{rate.value:.6f}")
    0.316466
    """
    lipschitz, diameter, dimension, records, silos, epsilon, delta = checked(
        lipschitz=lipschitz,
        diameter=diameter,
        dimension=dimension,
        num_records=num_records,
        num_silos=num_silos,
        epsilon=epsilon,
        delta=delta,
    )
    private = lipschitz * diameter * np.sqrt(dimension * np.log(records / delta) / silos) / epsilon
    return rate_of(np.zeros_like(private), private)


def erm_rate(
    *,
    lipschitz: ArrayLike,
    diameter: ArrayLike,
    silos_per_round: ArrayLike,
    num_records: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Rate:
    r"""Return the rate of the empirical excess risk with inter-silo record-level privacy.

    Parameters
    ----------
    lipschitz, diameter, silos_per_round, num_records, dimension, epsilon, delta, strong_convexity : array_like
        As in `excess_risk_rate_iid`.

    Returns
    -------
    Rate
        The private term of `excess_risk_rate_iid`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorems 4.1 and F.1 of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.erm_rate(
    ...     lipschitz=1.0, diameter=2.0, silos_per_round=25, num_records=1000, dimension=10, epsilon=1.0, delta=1e-5
    ... )
    >>> print(f"{rate.value:.6f}")
    0.004292
    """
    both = excess_risk_rate_iid(
        lipschitz=lipschitz,
        diameter=diameter,
        silos_per_round=silos_per_round,
        num_records=num_records,
        dimension=dimension,
        epsilon=epsilon,
        delta=delta,
        strong_convexity=strong_convexity,
    )
    return rate_of(np.zeros_like(both.private), both.private)

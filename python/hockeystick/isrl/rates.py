"""Rates of the theorems, up to constants that no paper states: to see what dominates, never to plan a number with."""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, choice
from hockeystick.isrl.arguments import checked

__all__ = ["Rate", "erm_rate", "excess_risk_rate_iid", "hybrid_user_level_rate", "risk_lower_bound", "shuffle_rate"]

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
    return _by_convexity(lipschitz, diameter, convexity, 1.0 / (silos * records), private / silos)


def _by_convexity(lipschitz: Array, diameter: Array, convexity: Array, statistical: Array, private: Array) -> Rate:
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
    return _by_convexity(lipschitz, diameter, convexity, 1.0 / (silos * records), private)


def risk_lower_bound(
    *,
    lipschitz: ArrayLike,
    diameter: ArrayLike,
    gradient_std: ArrayLike,
    num_silos: ArrayLike,
    num_records: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    compositionality: ArrayLike = 1.0,
    strong_convexity: ArrayLike = 0.0,
    problem: Problem = "population",
    notion: Notion = "isrl",
) -> Rate:
    r"""Return the rate below which no private algorithm can bring the excess risk.

    Parameters
    ----------
    lipschitz, diameter, gradient_std : array_like
        L, D, phi.
    num_silos, num_records, dimension : array_like
        N, n, d; n = 1 is local differential privacy.
    epsilon : array_like
        Budget, positive; at most sqrt(N) for inter-silo privacy.
    compositionality : array_like
        `compositionality_constant` C, positive; not used for central privacy.
    strong_convexity : array_like
        mu, >= 0.
    problem : {"population", "empirical"}
        Whose excess risk; the empirical has no statistical term.
    notion : {"isrl", "central"}
        Inter-silo record-level privacy of C-compositional algorithms, or central privacy.

    Returns
    -------
    Rate
        :math:`\phi D/\sqrt{Nn} + LD\min(1, \sqrt d/(\epsilon n\sqrt N C^2))`, or for mu > 0
        :math:`\phi^2/(\mu nN) + LD\min(1, d/(\epsilon^2n^2NC^4))`; central privacy has N in place of sqrt(N) C^2.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorems 2.2, D.3, D.6, F.3 and F.4 of Lowy and Razaviyayn 2023, for M = N, small delta and rounds with epsilon of about
    1/n at most.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.risk_lower_bound(
    ...     lipschitz=1.0, diameter=2.0, gradient_std=1.0, num_silos=25, num_records=1000, dimension=10, epsilon=1.0
    ... )
    >>> print(f"{rate.value:.6f}")
    0.013914
    """
    population = choice("problem", problem, ("population", "empirical")) == "population"
    central = choice("notion", notion, ("isrl", "central")) == "central"
    lipschitz, diameter, phi, silos, records, dimension, epsilon, c, convexity = checked(
        lipschitz=lipschitz,
        diameter=diameter,
        gradient_std=gradient_std,
        num_silos=num_silos,
        num_records=num_records,
        dimension=dimension,
        epsilon=epsilon,
        compositionality=compositionality,
        strong_convexity=strong_convexity,
    )
    if not central:
        STRICT.require(
            lambda e, n: e <= np.sqrt(n), "epsilon must be at most sqrt(num_silos)", epsilon=epsilon, num_silos=silos
        )
    total = records * silos
    reach = np.sqrt(dimension) / (epsilon * (total if central else records * np.sqrt(silos) * c**2))
    private = lipschitz * diameter * np.minimum(1.0, np.where(convexity > 0, reach**2, reach))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistical = np.where(convexity > 0, phi**2 / (convexity * total), phi * diameter / np.sqrt(total))
    return rate_of(statistical if population else np.zeros_like(private), private)

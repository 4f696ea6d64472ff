"""Rates of the theorems, up to constants that no paper states: to see what dominates, never to plan a number with.

Upper rates for convex and strongly convex losses, without and with a shuffler, of a single pass over unequal silos, and the rate below
which no private algorithm can bring the excess risk.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, choice
from hockeystick.isrl.domains import checked, left_out

__all__ = [
    "Rate",
    "erm_rate",
    "excess_risk_rate_iid",
    "hybrid_user_level_rate",
    "one_pass_rate",
    "one_pass_rate_sc",
    "risk_lower_bound",
    "sdp_one_pass_rate",
    "sdp_one_pass_rate_sc",
    "shuffle_rate",
]

Problem: TypeAlias = Literal["population", "empirical"]
Notion: TypeAlias = Literal["isrl", "central"]


class Rate(NamedTuple):
    """The terms of a rate, each with the constant 1 in place of one that is not known.

    Attributes
    ----------
    statistical : float or ndarray
        What remains without privacy.
    private : float or ndarray
        What the noise costs.
    participation : float or ndarray
        What it costs that not all silos take part.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> isrl.Rate(0.5, 0.25, 0.0).value
    0.75
    """

    statistical: Result
    private: Result
    participation: Result

    @property
    def order_only(self) -> bool:
        """Always True: neither an upper nor a lower bound, only how one grows."""
        return True

    @property
    def value(self) -> Result:
        """The sum of the terms."""
        return self.statistical + self.private + self.participation


def rate_of(statistical: Array, private: Array, participation: Array | float = 0.0) -> Rate:
    """Return a rate of terms that are broadcast against each other."""
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
    lipschitz, diameter, silos, records, dimension, epsilon, delta, convexity = checked(locals())
    private = dimension * np.log(1.0 / delta) / (epsilon * records) ** 2
    return by_convexity(lipschitz, diameter, convexity, 1.0 / (silos * records), private / silos)


def by_convexity(lipschitz: Array, diameter: Array, convexity: Array, statistical: Array, private: Array) -> Rate:
    """Return LD sqrt(x) of both terms, or L^2/mu times them where mu > 0."""

    def risk(x: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(convexity > 0, lipschitz**2 / convexity * x, lipschitz * diameter * np.sqrt(x))

    return rate_of(risk(statistical), risk(private))


def average_noise(
    dimension: Array, epsilon: Array, delta: Array, num_records: Array, silos: Array, *, shuffled: bool
) -> Array:
    """Return the noise's norm in a round's average gradient, in order, as a share of L: what the budget costs."""
    if shuffled:
        return np.sqrt(dimension) * np.log(dimension / delta) / (epsilon * num_records * silos)
    return np.sqrt(dimension * np.log(1.0 / delta) / silos) / (epsilon * num_records)


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
    lipschitz, diameter, dimension, records, silos, epsilon, delta = checked(locals())
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
    both = excess_risk_rate_iid(**locals())
    return rate_of(np.zeros_like(both.private), both.private)


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
    matched: bool = False,
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
    matched : bool
        Whether L is about mu D, of the same order. Then the private term of the strongly convex central bound has the factor L^2/mu in place of LD.

    Returns
    -------
    Rate
        :math:`\phi D/\sqrt{Nn} + LD\min(1, \sqrt d/(\epsilon n\sqrt N C^2))`, or for mu > 0
        :math:`\phi^2/(\mu nN) + LD\min(1, d/(\epsilon^2n^2NC^4))`; central privacy has N in place of sqrt(N) C^2.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or matched is asked for where that bound is not stated.

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
    lipschitz, diameter, phi, silos, records, dimension, epsilon, c, convexity = checked(locals())
    if not central:
        STRICT.require(
            lambda e, n: e <= np.sqrt(n), "epsilon must be at most sqrt(num_silos)", epsilon=epsilon, num_silos=silos
        )
    if matched and not (central and (convexity > 0).all()):
        raise ValueError(
            f"matched must be False unless notion is 'central' and strong_convexity positive, not {matched}"
        )
    scale = lipschitz**2 / convexity if matched else lipschitz * diameter
    total = records * silos
    reach = np.sqrt(dimension) / (epsilon * (total if central else records * np.sqrt(silos) * c**2))
    private = scale * np.minimum(1.0, np.where(convexity > 0, reach**2, reach))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistical = np.where(convexity > 0, phi**2 / (convexity * total), phi * diameter / np.sqrt(total))
    return rate_of(statistical if population else np.zeros_like(private), private)


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
    lipschitz, diameter, silos, all_silos, records, dimension, epsilon, delta, convexity = checked(locals())
    private = dimension * np.log(1.0 / delta) / (epsilon * records * all_silos) ** 2
    return by_convexity(lipschitz, diameter, convexity, 1.0 / (silos * records), private)


def _convex_rate(arguments: dict[str, Any], *, shuffled: bool) -> Rate:
    phi, diameter, records, silos, all_silos, beta, lipschitz, dimension, epsilon, delta, upsilon = checked(arguments)
    noise = average_noise(dimension, epsilon, delta, records, silos, shuffled=shuffled)
    scale = np.sqrt(left_out(silos, all_silos)) * upsilon * (lipschitz * diameter**4 / beta) ** 0.2
    return rate_of(
        phi * diameter / np.sqrt(records * silos),
        (beta**0.25 * lipschitz * diameter**1.5 * noise) ** 0.8,
        scale * (noise / silos**2.5) ** 0.2,
    )


def one_pass_rate(
    *,
    gradient_std: ArrayLike,
    diameter: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    smoothness: ArrayLike,
    lipschitz: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    heterogeneity: ArrayLike,
) -> Rate:
    r"""Return the rate of one-pass accelerated mini-batch SGD for convex losses and unequal silos.

    Parameters
    ----------
    gradient_std, diameter : array_like
        phi and D.
    num_records, silos_per_round, num_silos : array_like
        n, M, N.
    smoothness, lipschitz, dimension : array_like
        beta, L, d.
    epsilon, delta : array_like
        Budget of each silo.
    heterogeneity : array_like
        upsilon.

    Returns
    -------
    Rate
        :math:`\phi D/\sqrt{nM}`, :math:`(\beta^{1/4}LD^{3/2}\sqrt{d\ln(1/\delta)}/(\epsilon n\sqrt M))^{4/5}` and
        :math:`\sqrt{(N-M)/(N-1)}\upsilon L^{1/5}D^{4/5}\beta^{-1/5}(\sqrt{d\ln(1/\delta)}/(\epsilon nM^3))^{1/5}`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorems 3.1 and E.1 of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.one_pass_rate(
    ...     gradient_std=1.0,
    ...     diameter=2.0,
    ...     num_records=10_000,
    ...     silos_per_round=25,
    ...     num_silos=25,
    ...     smoothness=1.0,
    ...     lipschitz=1.0,
    ...     dimension=10,
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     heterogeneity=1.0,
    ... )
    >>> print(f"{rate.statistical:.4f} {rate.private:.6f}")
    0.0040 0.002670
    """
    return _convex_rate(locals(), shuffled=False)


def one_pass_rate_sc(
    *,
    gradient_std: ArrayLike,
    strong_convexity: ArrayLike,
    smoothness: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    lipschitz: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    heterogeneity: ArrayLike,
) -> Rate:
    r"""Return the rate of one-pass accelerated mini-batch SGD for strongly convex losses and unequal silos.

    Parameters
    ----------
    gradient_std : array_like
        phi.
    strong_convexity, smoothness : array_like
        mu and beta, positive; kappa is their ratio.
    num_records, silos_per_round, num_silos : array_like
        n, M, N.
    lipschitz, dimension : array_like
        L, d.
    epsilon, delta : array_like
        Budget of each silo.
    heterogeneity : array_like
        upsilon.

    Returns
    -------
    Rate
        :math:`\phi^2/(\mu nM)`, :math:`L^2\sqrt\kappa d\ln(1/\delta)/(\mu\epsilon^2n^2M)` and
        :math:`\frac{N-M}{N-1}\upsilon^2/(\mu\sqrt\kappa M)`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem E.1 of Lowy and Razaviyayn 2023; its equations 31 and 40 lack 1/mu in the first term.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.one_pass_rate_sc(
    ...     gradient_std=1.0,
    ...     strong_convexity=0.5,
    ...     smoothness=2.0,
    ...     num_records=2000,
    ...     silos_per_round=10,
    ...     num_silos=20,
    ...     lipschitz=1.0,
    ...     dimension=50,
    ...     epsilon=0.5,
    ...     delta=1e-6,
    ...     heterogeneity=2.0,
    ... )
    >>> print(f"{rate.statistical:.4f} {rate.private:.6f} {rate.participation:.6f}")
    0.0001 0.000276 0.210526
    """
    phi, convexity, beta, records, silos, all_silos, lipschitz, dimension, epsilon, delta, upsilon = checked(
        locals(), strong_convexity="positive"
    )
    root = np.sqrt(beta / convexity)
    private = dimension * np.log(1.0 / delta) * (lipschitz / (epsilon * records)) ** 2
    each = 1.0 / (convexity * silos)
    return rate_of(
        phi**2 / records * each, root * private * each, left_out(silos, all_silos) * upsilon**2 / root * each
    )


def sdp_one_pass_rate(
    *,
    gradient_std: ArrayLike,
    diameter: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    smoothness: ArrayLike,
    lipschitz: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    heterogeneity: ArrayLike,
) -> Rate:
    r"""Return the rate of one-pass accelerated mini-batch SGD with a shuffler, for convex losses and unequal silos.

    Parameters
    ----------
    gradient_std, diameter, num_records, silos_per_round, num_silos, smoothness, lipschitz, dimension : array_like
        As in `one_pass_rate`.
    epsilon, delta : array_like
        Budget against who sees the shuffled messages.
    heterogeneity : array_like
        upsilon.

    Returns
    -------
    Rate
        :math:`\phi D/\sqrt{nM}`, :math:`(\beta^{1/4}LD^{3/2}\sqrt d\ln(d/\delta)/(\epsilon nM))^{4/5}` and
        :math:`\sqrt{(N-M)/(N-1)}\upsilon L^{1/5}D^{4/5}\beta^{-1/5}(\sqrt d\ln(d/\delta)/(\epsilon nM^{3.5}))^{1/5}`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorems 5.2 and G.2 of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.sdp_one_pass_rate(
    ...     gradient_std=1.0,
    ...     diameter=2.0,
    ...     num_records=10_000,
    ...     silos_per_round=25,
    ...     num_silos=25,
    ...     smoothness=1.0,
    ...     lipschitz=1.0,
    ...     dimension=10,
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     heterogeneity=1.0,
    ... )
    >>> print(f"{rate.statistical:.4f} {rate.private:.6f}")
    0.0040 0.002266
    """
    return _convex_rate(locals(), shuffled=True)


def sdp_one_pass_rate_sc(
    *,
    gradient_std: ArrayLike,
    strong_convexity: ArrayLike,
    smoothness: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    lipschitz: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    heterogeneity: ArrayLike,
) -> Rate:
    r"""Return the rate of one-pass accelerated mini-batch SGD with a shuffler, for strongly convex losses and unequal silos.

    Parameters
    ----------
    gradient_std, strong_convexity, smoothness, num_records, silos_per_round, num_silos, lipschitz, dimension : array_like
        As in `one_pass_rate_sc`.
    epsilon, delta : array_like
        Budget against who sees the shuffled messages.
    heterogeneity : array_like
        upsilon.

    Returns
    -------
    Rate
        :math:`\phi^2/(\mu nM)`, :math:`L^2\sqrt\kappa d\ln(1/\delta)/(\mu\epsilon^2n^2M^2)` and
        :math:`\frac{N-M}{N-1}\upsilon^2/(\mu\sqrt\kappa M)`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorems 5.2 and G.2 of Lowy and Razaviyayn 2023, equations 11 and 40; 40 lacks 1/mu in the first term. Their proof has
    :math:`\ln^2(d/\delta)` in place of :math:`\ln(1/\delta)`.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.sdp_one_pass_rate_sc(
    ...     gradient_std=1.0,
    ...     strong_convexity=0.5,
    ...     smoothness=2.0,
    ...     num_records=2000,
    ...     silos_per_round=10,
    ...     num_silos=20,
    ...     lipschitz=1.0,
    ...     dimension=50,
    ...     epsilon=0.5,
    ...     delta=1e-6,
    ...     heterogeneity=2.0,
    ... )
    >>> print(f"{rate.statistical:.4f} {rate.private:.7f} {rate.participation:.6f}")
    0.0001 0.0000276 0.210526
    """
    phi, convexity, beta, records, silos, all_silos, lipschitz, dimension, epsilon, delta, upsilon = checked(
        locals(), strong_convexity="positive"
    )
    root = np.sqrt(beta / convexity)
    private = root * dimension * np.log(1.0 / delta) * (lipschitz / (epsilon * records * silos)) ** 2
    return rate_of(
        phi**2 / (convexity * records * silos),
        private / convexity,
        left_out(silos, all_silos) * upsilon**2 / (convexity * root * silos),
    )

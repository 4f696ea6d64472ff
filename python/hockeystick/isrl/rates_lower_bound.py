"""The rate below which no private algorithm can bring the excess risk."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, choice
from hockeystick.isrl.arguments import checked
from hockeystick.isrl.rates import Notion, Problem, Rate, rate_of

__all__ = ["risk_lower_bound"]


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
    _check_matched(matched, central, convexity)
    scale = lipschitz**2 / convexity if matched else lipschitz * diameter
    total = records * silos
    reach = np.sqrt(dimension) / (epsilon * (total if central else records * np.sqrt(silos) * c**2))
    private = scale * np.minimum(1.0, np.where(convexity > 0, reach**2, reach))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistical = np.where(convexity > 0, phi**2 / (convexity * total), phi * diameter / np.sqrt(total))
    return rate_of(statistical if population else np.zeros_like(private), private)


def _check_matched(matched: bool, central: bool, convexity: Array) -> None:
    """Check that the factor L^2/mu is asked for where it is stated."""
    if matched and not (central and (convexity > 0).all()):
        msg = f"matched must be False unless notion is 'central' and strong_convexity positive, not {matched}"
        raise ValueError(msg)

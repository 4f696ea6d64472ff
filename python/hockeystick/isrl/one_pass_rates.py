"""Rates of a single pass over unequal silos, up to constants that no paper states."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT
from hockeystick.isrl.arguments import checked, left_out
from hockeystick.isrl.batches import average_noise
from hockeystick.isrl.rates import Rate, rate_of

__all__ = ["one_pass_rate", "one_pass_rate_sc", "sdp_one_pass_rate"]


def _convex_rate(*, shuffled: bool, **arguments: ArrayLike) -> Rate:
    phi, diameter, records, silos, all_silos, beta, lipschitz, dimension, epsilon, delta, upsilon = checked(**arguments)
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
    return _convex_rate(
        shuffled=False,
        gradient_std=gradient_std,
        diameter=diameter,
        num_records=num_records,
        silos_per_round=silos_per_round,
        num_silos=num_silos,
        smoothness=smoothness,
        lipschitz=lipschitz,
        dimension=dimension,
        epsilon=epsilon,
        delta=delta,
        heterogeneity=heterogeneity,
    )


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
        gradient_std=gradient_std,
        strong_convexity=strong_convexity,
        smoothness=smoothness,
        num_records=num_records,
        silos_per_round=silos_per_round,
        num_silos=num_silos,
        lipschitz=lipschitz,
        dimension=dimension,
        epsilon=epsilon,
        delta=delta,
        heterogeneity=heterogeneity,
    )
    STRICT.positive("strong_convexity", strong_convexity)
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
    return _convex_rate(
        shuffled=True,
        gradient_std=gradient_std,
        diameter=diameter,
        num_records=num_records,
        silos_per_round=silos_per_round,
        num_silos=num_silos,
        smoothness=smoothness,
        lipschitz=lipschitz,
        dimension=dimension,
        epsilon=epsilon,
        delta=delta,
        heterogeneity=heterogeneity,
    )

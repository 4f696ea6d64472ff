"""Accelerated SGD in one pass with a shuffler, for strongly convex losses: its rate and its batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Result
from hockeystick.isrl.arguments import checked, left_out
from hockeystick.isrl.batches import records_over_stages
from hockeystick.isrl.rates import Rate, rate_of

__all__ = ["sdp_batch_size_sc", "sdp_one_pass_rate_sc"]


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
        gradient_std=gradient_std,
        strong_convexity=STRICT.positive("strong_convexity", strong_convexity),
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
    root = np.sqrt(beta / convexity)
    private = root * dimension * np.log(1.0 / delta) * (lipschitz / (epsilon * records * silos)) ** 2
    return rate_of(
        phi**2 / (convexity * records * silos),
        private / convexity,
        left_out(silos, all_silos) * upsilon**2 / (convexity * root * silos),
    )


def sdp_batch_size_sc(
    *,
    num_records: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike,
    initial_gap: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    silos_per_round: ArrayLike,
    lipschitz: ArrayLike,
    dimension: ArrayLike,
    gradient_std: ArrayLike,
) -> Result:
    r"""Return the batch size of one-pass accelerated mini-batch SGD with a shuffler, for strongly convex losses; round it.

    Parameters
    ----------
    num_records, smoothness, strong_convexity, initial_gap, epsilon, delta : array_like
        As in `one_pass_batch_size_sc`, the budget being that of the shuffled messages.
    silos_per_round, lipschitz, dimension, gradient_std : array_like
        M, L, d, phi.

    Returns
    -------
    ndarray or float
        :math:`K = n/(\sqrt\kappa \ln(\mu\Delta\min(\epsilon^2n^2M^2/(L^2d\ln(1/\delta)), nM/\phi^2)))`, in [1, n].

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the logarithm is not positive.

    Notes
    -----
    The proof of Theorem G.2 of Lowy and Razaviyayn 2023, with the budget of the shuffled messages, where the print has that of one silo.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> size = isrl.sdp_batch_size_sc(
    ...     num_records=10_000,
    ...     smoothness=1.0,
    ...     strong_convexity=0.1,
    ...     initial_gap=1.0,
    ...     epsilon=0.01,
    ...     delta=1e-5,
    ...     silos_per_round=25,
    ...     lipschitz=1.0,
    ...     dimension=10,
    ...     gradient_std=1.0,
    ... )
    >>> print(f"{size:.3f}")
    367.730
    """
    records, beta, convexity, gap, epsilon, delta, silos, lipschitz, dimension, phi = checked(
        num_records=num_records,
        smoothness=smoothness,
        strong_convexity=STRICT.positive("strong_convexity", strong_convexity),
        initial_gap=initial_gap,
        epsilon=epsilon,
        delta=delta,
        silos_per_round=silos_per_round,
        lipschitz=lipschitz,
        dimension=dimension,
        gradient_std=STRICT.positive("gradient_std", gradient_std),
    )
    private = (epsilon * records * silos / lipschitz) ** 2 / (dimension * np.log(1.0 / delta))
    reach = np.minimum(private, records * silos / phi**2)
    return records_over_stages(records, beta, convexity, gap, reach)

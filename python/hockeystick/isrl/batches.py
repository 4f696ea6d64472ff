"""Batch sizes that the theorems on a single pass prescribe: choices, not bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result
from hockeystick.isrl.arguments import checked

__all__ = ["one_pass_batch_size", "one_pass_batch_size_sc", "records_over_stages", "sdp_batch_size"]


def average_noise(
    dimension: Array, epsilon: Array, delta: Array, num_records: Array, silos: Array, *, shuffled: bool
) -> Array:
    """Return the noise's norm in a round's average gradient, in order, as a share of L: what the budget costs."""
    if shuffled:
        return np.sqrt(dimension) * np.log(dimension / delta) / (epsilon * num_records * silos)
    return np.sqrt(dimension * np.log(1.0 / delta) / silos) / (epsilon * num_records)


def _convex_batch_size(*, shuffled: bool, **arguments: ArrayLike) -> Result:
    lipschitz, beta, diameter, records, dimension, epsilon, delta, silos = checked(**arguments)
    noise = average_noise(dimension, epsilon, delta, records, silos, shuffled=shuffled)
    return np.clip(records * (lipschitz / (beta * diameter) * noise) ** 0.4, 1.0, records)[()]


def one_pass_batch_size(
    *,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    num_records: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    silos_per_round: ArrayLike,
) -> Result:
    r"""Return the batch size of one-pass accelerated mini-batch SGD for convex losses; round it.

    Parameters
    ----------
    lipschitz, smoothness, diameter : array_like
        L, beta, D; positive.
    num_records, dimension : array_like
        Records of each silo n, coordinates d.
    epsilon, delta : array_like
        Inter-silo record-level budget.
    silos_per_round : array_like
        Participating silos M.

    Returns
    -------
    ndarray or float
        :math:`K = (L/(\beta D))^{2/5}n^{3/5}(d\ln(1/\delta))^{1/5}/(\epsilon^{2/5}M^{1/5})`, in [1, n]; there are n // K rounds.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem E.1 of Lowy and Razaviyayn 2023; `one_pass_rate` is its rate.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> size = isrl.one_pass_batch_size(
    ...     lipschitz=1.0,
    ...     smoothness=1.0,
    ...     diameter=2.0,
    ...     num_records=10_000,
    ...     dimension=10,
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     silos_per_round=25,
    ... )
    >>> print(f"{size:.3f}")
    258.367
    """
    return _convex_batch_size(
        shuffled=False,
        lipschitz=lipschitz,
        smoothness=smoothness,
        diameter=diameter,
        num_records=num_records,
        dimension=dimension,
        epsilon=epsilon,
        delta=delta,
        silos_per_round=silos_per_round,
    )


def one_pass_batch_size_sc(
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
    r"""Return the batch size of one-pass accelerated mini-batch SGD for strongly convex losses; round it.

    Parameters
    ----------
    num_records : array_like
        Records of each silo, n.
    smoothness, strong_convexity : array_like
        beta and mu, positive.
    initial_gap : array_like
        Excess objective Delta of the start, positive.
    epsilon, delta : array_like
        Inter-silo record-level budget.
    silos_per_round, lipschitz, dimension : array_like
        M, L, d.
    gradient_std : array_like
        phi, positive.

    Returns
    -------
    ndarray or float
        :math:`K = n/(\sqrt\kappa \ln(\mu\Delta\min(\epsilon^2n^2M/(L^2d\ln(1/\delta)), nM/\phi^2)))`, in [1, n].

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the logarithm is not positive.

    Notes
    -----
    Theorem E.1 of Lowy and Razaviyayn 2023; `one_pass_rate_sc` is its rate.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> size = isrl.one_pass_batch_size_sc(
    ...     num_records=10_000,
    ...     smoothness=1.0,
    ...     strong_convexity=0.1,
    ...     initial_gap=1.0,
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     silos_per_round=25,
    ...     lipschitz=1.0,
    ...     dimension=10,
    ...     gradient_std=1.0,
    ... )
    >>> print(f"{size:.3f}")
    312.273
    """
    records, beta, convexity, gap, epsilon, delta, silos, lipschitz, dimension, phi = checked(
        num_records=num_records,
        smoothness=smoothness,
        strong_convexity=strong_convexity,
        initial_gap=initial_gap,
        epsilon=epsilon,
        delta=delta,
        silos_per_round=silos_per_round,
        lipschitz=lipschitz,
        dimension=dimension,
        gradient_std=gradient_std,
    )
    STRICT.positive("strong_convexity", strong_convexity)
    STRICT.positive("gradient_std", gradient_std)
    private = (epsilon * records / lipschitz) ** 2 * silos / (dimension * np.log(1.0 / delta))
    reach = np.minimum(private, records * silos / phi**2)
    return records_over_stages(records, beta, convexity, gap, reach)


def records_over_stages(records: Array, beta: Array, convexity: Array, gap: Array, reach: Array) -> Result:
    """Return n/(sqrt(kappa) ln(mu gap reach)), from 1 to n: the batches of a pass whose rounds the multi-stage algorithm needs."""
    inside = convexity * gap * reach
    STRICT.require(
        lambda _, x: x > 1,
        "initial_gap must be larger: the logarithm in the batch size must be positive",
        initial_gap=gap,
        argument_of_logarithm=inside,
    )
    return np.clip(records / (np.sqrt(beta / convexity) * np.log(inside)), 1.0, records)[()]


def sdp_batch_size(
    *,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    num_records: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    silos_per_round: ArrayLike,
) -> Result:
    r"""Return the batch size of one-pass accelerated mini-batch SGD with a shuffler, for convex losses; round it.

    Parameters
    ----------
    lipschitz, smoothness, diameter, num_records, dimension, epsilon, delta, silos_per_round : array_like
        As in `one_pass_batch_size`, the budget being that of the shuffled messages.

    Returns
    -------
    ndarray or float
        :math:`K = (L/(\beta D))^{2/5}n^{3/5}(d\ln^2(d/\delta))^{1/5}/(\epsilon^{2/5}M^{2/5})`, in [1, n].

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem G.2 of Lowy and Razaviyayn 2023, with the logarithm and the epsilon of its statement in place of its proof's.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> size = isrl.sdp_batch_size(
    ...     lipschitz=1.0,
    ...     smoothness=1.0,
    ...     diameter=2.0,
    ...     num_records=10_000,
    ...     dimension=10,
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     silos_per_round=25,
    ... )
    >>> print(f"{size:.3f}")
    237.990
    """
    return _convex_batch_size(
        shuffled=True,
        lipschitz=lipschitz,
        smoothness=smoothness,
        diameter=diameter,
        num_records=num_records,
        dimension=dimension,
        epsilon=epsilon,
        delta=delta,
        silos_per_round=silos_per_round,
    )

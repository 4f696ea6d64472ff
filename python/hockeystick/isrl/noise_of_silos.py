"""The noise of each of several silos of their own sizes and budgets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import (
    STRICT,
    Array,
    same_length,
)
from hockeystick.isrl.noise import noisy_mb_sgd_sigma

__all__ = ["silo_noise_sigmas"]


def silo_noise_sigmas(
    *,
    lipschitz: ArrayLike,
    num_records: ArrayLike,
    batch_sizes: ArrayLike,
    rounds: ArrayLike,
    epsilons: ArrayLike,
    deltas: ArrayLike,
) -> Array:
    """Return the noise of each of several silos of their own sizes and budgets.

    Parameters
    ----------
    lipschitz : array_like
        Clip norm of each silo; under weights p_i (`reweighted_constants`) it may be that of the silo, N p_i L.
    num_records, batch_sizes, rounds : array_like
        Records n_i, batch sizes K_i, and rounds R_i in which the silo answers. `balanced_batch_sizes` gives K_i.
    epsilons, deltas : array_like
        Budget of each silo. All arguments are one-dimensional, one number a silo; a single number is repeated.

    Returns
    -------
    ndarray of shape (N,)
        `noisy_mb_sgd_sigma` of each silo; equal silos are computed once.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the lengths differ.

    Notes
    -----
    In place of the printed constants of Appendix H of Lowy and Razaviyayn 2023 (`hockeystick.published.silo_noise_sigmas`).

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> sigmas = isrl.silo_noise_sigmas(
    ...     lipschitz=1.0, num_records=[1000, 500], batch_sizes=[1000, 500], rounds=50, epsilons=[1.0, 0.5], deltas=1e-5
    ... )
    >>> print(*(format_upper(sigma, ".5f") for sigma in sigmas))
    0.05276 0.19890
    """
    columns = same_length(
        lipschitz=STRICT.positive("lipschitz", lipschitz),
        num_records=STRICT.count("num_records", num_records),
        batch_sizes=STRICT.count("batch_sizes", batch_sizes),
        rounds=STRICT.count("rounds", rounds),
        epsilons=STRICT.positive("epsilons", epsilons),
        deltas=STRICT.inside("deltas", deltas),
    )
    known: dict[tuple[float, ...], float] = {}
    for silo in zip(*(column.tolist() for column in columns), strict=True):
        clip, records, batch, answers, epsilon, delta = silo
        if silo not in known:
            known[silo] = noisy_mb_sgd_sigma(
                lipschitz=clip,
                num_records=int(records),
                batch_size=int(batch),
                rounds=int(answers),
                epsilon=epsilon,
                delta=delta,
            )
    return np.array([known[silo] for silo in zip(*(column.tolist() for column in columns), strict=True)])

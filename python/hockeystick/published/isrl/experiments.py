"""Lowy and Razaviyayn 2023: the noise of the experiments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Result, count_scalar
from hockeystick.isrl import noisy_mb_sgd_accountant
from hockeystick.isrl.arguments import checked
from hockeystick.published.warning import warn_unsound

__all__ = ["HeuristicNoise", "experimental_batch_size", "experimental_local_sgd_sigma", "experimental_sigma"]


class HeuristicNoise(NamedTuple):
    """Noise of the paper's experiments, and what it really gives.

    Attributes
    ----------
    noise_std : float
        Standard deviation per coordinate.
    batch_size : int
        Batch size that was accounted for.
    certified_epsilon : float
        An upper bound of epsilon at the delta asked for, by `hockeystick.isrl.noisy_mb_sgd_accountant`, of batches that are drawn
        with replacement, as the paper draws them; perhaps infinite.
    """

    noise_std: float
    batch_size: int
    certified_epsilon: float


_HEURISTIC = "the noise of the experiments (Appendix I of Lowy and Razaviyayn, 2023) is a heuristic"
_INSTEAD = "hockeystick.isrl.noisy_mb_sgd_sigma"


def experimental_batch_size(*, num_records: ArrayLike, rounds: ArrayLike, epsilon: ArrayLike) -> Result:
    r"""Return the batch size that goes with `experimental_sigma`.

    Parameters
    ----------
    num_records, rounds : array_like
        n, R.
    epsilon : array_like
        Nominal budget.

    Returns
    -------
    ndarray or float
        :math:`n\sqrt\epsilon/(2\sqrt R)`; the experiments round it down.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.experimental_batch_size(num_records=1238, rounds=35, epsilon=6.0):.4f}")
    256.2903
    """
    records, rounds, epsilon = checked(num_records=num_records, rounds=rounds, epsilon=epsilon)
    return (records / 2.0 * np.sqrt(epsilon / rounds))[()]


def experimental_sigma(
    *, lipschitz: float, num_records: int, rounds: int, epsilon: float, delta: float
) -> HeuristicNoise:
    r"""Return the noise of the paper's experiments with mini-batch SGD: no certificate.

    Parameters
    ----------
    lipschitz : float
        L.
    num_records, rounds : int
        n, R.
    epsilon, delta : float
        Nominal budget of the silo.

    Returns
    -------
    HeuristicNoise
        :math:`2L\sqrt{2R\ln(1/\delta)}/(n\epsilon)` on the mean of a batch of `experimental_batch_size`, and its certified
        epsilon.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        Always.

    Notes
    -----
    Counterexample: for n = 1238, R = 35 and a nominal epsilon of 6 at delta = 1/n^2, linear losses attain at least 13.6. The paper
    draws batches with replacement (Section 4), so that a record may count several times. Drawn without replacement, the epsilon of
    the same noise lies between 8.89 and 9.36.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import format_upper, published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     noise = published.experimental_sigma(
    ...         lipschitz=1.0, num_records=1238, rounds=35, epsilon=6.0, delta=1 / 1238**2
    ...     )
    >>> print(f"{noise.noise_std:.6f} nominal 6, certified {format_upper(noise.certified_epsilon, '.2f')}")
    0.008502 nominal 6, certified 23.45
    """
    (clip, records, number, eps, d) = checked(
        lipschitz=lipschitz, num_records=num_records, rounds=rounds, epsilon=epsilon, delta=delta
    )
    warn_unsound(_HEURISTIC, _INSTEAD)
    sigma = float(2.0 * clip * np.sqrt(2.0 * number * np.log(1.0 / d)) / (records * eps))
    batch = min(max(int(records / 2.0 * np.sqrt(eps / number)), 1), num_records)
    silo = noisy_mb_sgd_accountant(
        noise_std=sigma,
        lipschitz=lipschitz,
        num_records=num_records,
        batch_size=batch,
        rounds=rounds,
        replacement=True,
    )
    return HeuristicNoise(sigma, batch, float(silo.epsilon(delta)))


def experimental_local_sgd_sigma(
    *, lipschitz: float, num_records: int, rounds: int, local_steps: int, epsilon: float, delta: float
) -> HeuristicNoise:
    r"""Return the noise of the paper's experiments with local SGD: no certificate, and far from one.

    Parameters
    ----------
    lipschitz : float
        L.
    num_records, rounds, local_steps : int
        n, R, K.
    epsilon, delta : float
        Nominal budget of the silo.

    Returns
    -------
    HeuristicNoise
        :math:`2L\sqrt{2RK\ln(1/\delta)}/(n\epsilon)` for every local step on one record, and the certified epsilon of all R K
        steps.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        Always.

    Notes
    -----
    The certified epsilon is that of releasing every step; if only the end of each round is sent, no theorem is known to give
    less. Counterexample: for linear losses the end of a round is the sum of its steps.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import format_upper, published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     noise = published.experimental_local_sgd_sigma(
    ...         lipschitz=1.0, num_records=1238, rounds=35, local_steps=443, epsilon=0.75, delta=1 / 1238**2
    ...     )
    >>> print(f"{noise.noise_std:.6f} nominal 0.75, certified {format_upper(noise.certified_epsilon, '.2f')}")
    1.431503 nominal 0.75, certified 1.67
    """
    clip, records, number, eps, d = checked(
        lipschitz=lipschitz, num_records=num_records, rounds=rounds, epsilon=epsilon, delta=delta
    )
    local_steps = count_scalar("local_steps", local_steps)
    warn_unsound(_HEURISTIC, _INSTEAD)
    sigma = float(2.0 * clip * np.sqrt(2.0 * number * local_steps * np.log(1.0 / d)) / (records * eps))
    silo = noisy_mb_sgd_accountant(
        noise_std=sigma, lipschitz=lipschitz, num_records=num_records, batch_size=1, rounds=rounds * local_steps
    )
    return HeuristicNoise(sigma, 1, float(silo.epsilon(delta)))

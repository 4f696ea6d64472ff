"""Noise that keeps what each silo sends within its budget, by the accountant: of one silo, of several, and of a single pass.

Noise is that of the mean of a batch of K clipped gradients, per coordinate: `noise_std` sigma is the accountant's
noise_multiplier sigma K/L for clip norm L, and one record replaced moves the mean by up to 2L/K.
"""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Array, Checks, OnError, Result, broadcast, positive_scalar, setting_warnings
from hockeystick._checks.arguments import arrays
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.calibration import calibrate
from hockeystick.isrl.domains import DOMAINS, PAIRS, checked, checked_vectors, scalars
from hockeystick.kernels import theta_inverse
from hockeystick.mechanisms import FixedSizeSampled, Gaussian

__all__ = [
    "noisy_mb_sgd_accountant",
    "noisy_mb_sgd_epsilon",
    "noisy_mb_sgd_sigma",
    "one_pass_sigma",
    "silo_noise_sigmas",
]

LEAST_SHARE = 1e-9  # share of the noise that a full batch would need, below which it is not sought


def noisy_mb_sgd_accountant(
    *, noise_std: float, lipschitz: float, num_records: int, batch_size: int, rounds: int, replacement: bool = False
) -> Accountant:
    """Return the accountant of one silo's transcript in noisy mini-batch SGD.

    Parameters
    ----------
    noise_std : float
        Standard deviation sigma per coordinate of the noise on the mean of the batch's clipped gradients, positive.
    lipschitz : float
        Clip norm of each record's gradient, L, positive.
    num_records : int
        Records of the silo, n.
    batch_size : int
        Records drawn, afresh in each round, K; without replacement at most num_records.
    rounds : int
        Rounds in which the silo answers, R. If it takes part in some rounds only, these count.
    replacement : bool
        Whether a record can be drawn more than once into a batch, as in the paper. It then moves the mean by 2L/K each time.

    Returns
    -------
    Accountant
        For one record replaced; its epsilon and delta are certified, as is its `explain`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    Algorithms 1 (with batches drawn afresh) and 2 of Lowy and Razaviyayn 2023. Other silos' messages may be chosen from this
    silo's earlier ones.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> silo = isrl.noisy_mb_sgd_accountant(
    ...     noise_std=0.2, lipschitz=1.0, num_records=1000, batch_size=100, rounds=50
    ... )
    >>> print(f"{silo.epsilon_bracket(1e-5):.3f}")
    0.245
    """
    noise_std, lipschitz, num_records, batch_size, rounds = scalars(
        locals(), () if replacement else PAIRS, noise_std="positive"
    )
    multiplier = positive_scalar("noise_std batch_size/lipschitz", noise_std * batch_size / lipschitz)
    step = FixedSizeSampled(Gaussian(multiplier), num_records, batch_size, replacement=replacement)
    return Accountant("replace").compose(step, rounds)


def noisy_mb_sgd_epsilon(
    delta: ArrayLike,
    *,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    num_records: ArrayLike,
    batch_size: ArrayLike,
    rounds: ArrayLike,
    replacement: bool = False,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    """Return the certified epsilon of one silo's transcript in noisy mini-batch SGD, for a grid of settings.

    Parameters
    ----------
    delta : array_like
        In (0, 1).
    noise_std, lipschitz, num_records, batch_size, rounds : array_like
        As in `noisy_mb_sgd_accountant`; they broadcast.
    replacement : bool
        As in `noisy_mb_sgd_accountant`.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Upper bound of epsilon for one record replaced, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> epsilon = isrl.noisy_mb_sgd_epsilon(
    ...     noise_std=[0.1, 0.2], lipschitz=1.0, num_records=1000, batch_size=1000, rounds=50, delta=1e-5
    ... )
    >>> print(epsilon.round(3))
    [0.497 0.234]
    """
    grid = Checks(num_threads, on_error)
    cells = arrays(locals(), grid, **DOMAINS | {"noise_std": "positive"})
    records = cells["num_records"]
    if not replacement:
        rule = "batch_size must be at most num_records"
        grid.require(lambda k, n: k <= n, rule, batch_size=cells["batch_size"], num_records=records)

    setting_warnings.warn(setting_warnings.large_delta(cells["delta"], records))
    one = functools.partial(_epsilon_of_cell, replacement=replacement, strict=grid.strict)
    wide = np.stack(broadcast(*cells.values()))
    with ThreadPoolExecutor(grid.threads) as pool:
        values = list(pool.map(one, wide.reshape(len(cells), -1).T))
    return grid.finish(np.array(values, dtype=np.float64).reshape(wide.shape[1:]))


def _epsilon_of_cell(cell: Array, *, replacement: bool, strict: bool) -> float:
    """Return epsilon of one setting; NaN where it is refused, unless that is to be told."""
    delta, noise, clip, *counts = cell.tolist()
    records, batch, steps = (int(count) if count.is_integer() else 0 for count in counts)
    try:
        silo = noisy_mb_sgd_accountant(
            noise_std=noise,
            lipschitz=clip,
            num_records=records,
            batch_size=batch,
            rounds=steps,
            replacement=replacement,
        )
        return float(silo.epsilon(delta)) if delta > 0 else np.nan
    except ValueError:
        if strict:
            raise
        return np.nan


def noisy_mb_sgd_sigma(
    *,
    lipschitz: float,
    num_records: int,
    batch_size: int,
    rounds: int,
    epsilon: float,
    delta: float,
    replacement: bool = False,
) -> float:
    """Return the least noise of noisy mini-batch SGD that keeps one silo's transcript within a budget.

    Parameters
    ----------
    lipschitz : float
        Clip norm of each record's gradient, L, positive.
    num_records : int
        Records of the silo, n.
    batch_size : int
        Records drawn afresh in each round, K; without replacement at most num_records.
    rounds : int
        Rounds in which the silo answers, R.
    epsilon : float
        Budget for one record replaced, positive and finite.
    delta : float
        Budget, in (0, 1).
    replacement : bool
        As in `noisy_mb_sgd_accountant`.

    Returns
    -------
    float
        Standard deviation per coordinate of the noise on the mean of the batch's gradients: the feasible end, to 1e-9.

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    4 to 32 times less than the printed constant of Theorem D.1 of Lowy and Razaviyayn 2023
    (`hockeystick.published.noisy_mb_sgd_sigma`); `docs/isrl/isrl.md` has a table.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> sigma = isrl.noisy_mb_sgd_sigma(
    ...     lipschitz=1.0, num_records=1000, batch_size=100, rounds=50, epsilon=1.0, delta=1e-5
    ... )
    >>> print(f"{sigma:.6f}")
    0.060972
    """
    lipschitz, num_records, batch_size, rounds, epsilon, delta = scalars(locals(), () if replacement else PAIRS)
    setting_warnings.warn(setting_warnings.large_delta(delta, num_records))

    shape = {"num_records": num_records, "batch_size": batch_size, "rounds": rounds}

    @functools.cache
    def silo(noise_std: float, copies: bool) -> Accountant:
        return noisy_mb_sgd_accountant(noise_std=noise_std, lipschitz=lipschitz, **shape, replacement=copies)

    def search(feasible: float, step: float, *, copies: bool) -> float:
        # Down by steps, since far below the answer an evaluation is slow.
        while feasible > LEAST_SHARE * full and silo(feasible / step, copies).epsilon(delta) <= epsilon:
            feasible /= step
        bracket = (feasible / step, feasible)
        return float(calibrate(lambda x: silo(x, copies), epsilon=epsilon, delta=delta, bracket=bracket))

    # Sampling only helps: a batch of everything, or of one record K times, needs the most noise. The rest is for the engine's error.
    weight = 1 if replacement else batch_size
    full = 1.05 * one_pass_sigma(lipschitz=lipschitz, batch_size=weight, epsilon=epsilon, delta=delta) * rounds**0.5
    if replacement and batch_size < num_records:  # copies need little more noise than batches without them
        near = 1.25 * search(full, 2.0, copies=False)
        if near < full and silo(near, True).epsilon(delta) <= epsilon:
            return search(near, 1.25, copies=True)
    return search(full, 2.0, copies=replacement)


MARGIN = 1e-9  # more noise than the closed form, to cover its rounding


def one_pass_sigma(*, lipschitz: ArrayLike, batch_size: ArrayLike, epsilon: ArrayLike, delta: ArrayLike) -> Result:
    """Return the noise of a single pass over disjoint batches that keeps one silo's transcript within a budget.

    Parameters
    ----------
    lipschitz : array_like
        Clip norm of each record's gradient, L, positive.
    batch_size : array_like
        Records in each batch, K; a record is in one batch only.
    epsilon : array_like
        Budget for one record replaced, positive and finite.
    delta : array_like
        Budget, in (0, 1).

    Returns
    -------
    ndarray or float
        Standard deviation per coordinate of the noise on the mean of the batch's gradients, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The analytic Gaussian mechanism (Balle and Wang 2018) of sensitivity 2L/K: no composition, since batches are disjoint.
    Theorem E.1 of Lowy and Razaviyayn 2023 prints up to 2.8 times as much (`hockeystick.published.one_pass_sigma`).

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> print(format_upper(isrl.one_pass_sigma(lipschitz=1.0, batch_size=10, epsilon=1.0, delta=1e-5), ".6f"))
    0.746127
    """
    lipschitz, batch_size, epsilon, delta = checked(locals())
    sigma = 2.0 * lipschitz / batch_size / theta_inverse(epsilon, delta) * (1.0 + MARGIN)
    return np.nextafter(sigma, np.inf)[()]  # subnormal numbers round by more than the margin


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
    columns = checked_vectors(locals(), batch_sizes="count", epsilons="positive", deltas="inside")

    @functools.cache
    def needed(*silo: float) -> float:
        clip, *counts, epsilon, delta = silo
        shape: dict[str, Any] = dict(zip(("num_records", "batch_size", "rounds"), map(int, counts), strict=True))
        return noisy_mb_sgd_sigma(lipschitz=clip, **shape, epsilon=epsilon, delta=delta)

    return np.array([needed(*silo) for silo in zip(*(column.tolist() for column in columns), strict=True)])

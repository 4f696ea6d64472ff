"""DP-SGD in one call for a whole grid: delta, epsilon, and what a budget allows.

In every step each record is in the batch with probability `sampling_rate`, independently (Poisson sampling; shuffled or fixed-size
batches are other mechanisms), its gradient is clipped, and Gaussian noise of standard deviation `noise_multiplier` times the clip
norm is added to the sum. Data sets are adjacent if one has one record more. All steps' results may be released. Results are certified upper
ends of both directions (Zhu, Dong and Wang 2022 have the dominating pairs); at rate 1 and for one step they are exact, rounding charged.
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import Checks, OnError, Result, count_scalar, setting_warnings
from hockeystick.accounting.accountant import Accountant
from hockeystick.mechanisms import Gaussian, PoissonSampled
from hockeystick.mechanisms.base import Adjacency

__all__ = [
    "dpsgd_certificate",
    "dpsgd_delta",
    "dpsgd_epsilon",
    "dpsgd_noise_multiplier",
    "dpsgd_sampling_rate",
    "dpsgd_steps",
]


def dpsgd_certificate(
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    lower: bool = False,
    slack: float = 0.0,
    adjacency: Adjacency = "add_or_remove",
) -> str:
    """Return a certificate of DP-SGD: a claim in JSON that a program proves which shares no code with this library.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over clip norm, in [1e-2, 1e6].
    sampling_rate : float
        Probability with which each record is in a step's batch, in [0, 1].
    steps : int
        Number of optimiser steps, in [1, 1e9].
    epsilon, delta : float, optional
        Exactly one of the two, of which `Accountant.certificate` claims the other.
    lower : bool
        Claim the lower end.
    slack : float
        Share of delta, in [0, 1], that the claim has to spare.
    adjacency : {"add_or_remove", "replace"}
        Which data sets are adjacent.

    Returns
    -------
    str
        That of `Accountant.certificate` for these steps.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or not exactly one of `epsilon` and `delta` is given.
    TypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import json
    >>> import hockeystick as hs
    >>> json.loads(hs.dpsgd_certificate(1.0, 0.25, 1000, delta=0.125))["ledger"][0]["count"]
    '1000'
    """
    noise = Gaussian(noise_multiplier)
    step, count = PoissonSampled(noise, sampling_rate), count_scalar("steps", steps)
    setting_warnings.warn(*setting_warnings.dpsgd(sampling_rate, step.sampling_rate, count, noise.noise_multiplier))
    training = Accountant(adjacency).compose(step, count)
    return training.certificate(epsilon=epsilon, delta=delta, lower=lower, slack=slack)


def dpsgd_delta(
    noise_multiplier: ArrayLike,
    sampling_rate: ArrayLike,
    steps: ArrayLike,
    epsilon: ArrayLike,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    """Return a certified upper bound of delta after DP-SGD.

    Parameters
    ----------
    noise_multiplier : array_like
        Noise standard deviation over clip norm, positive; infinity leaks nothing.
    sampling_rate : array_like
        Probability with which each record is in a step's batch, in [0, 1].
    steps : array_like
        Number of optimiser steps, a non-negative integer up to 2^53.
    epsilon : array_like
        The point at which delta is evaluated, non-negative; infinity is legal.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        delta, of the broadcast shape: an upper bound, rounding included. Exactly 0 where nothing is leaked.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Poisson sampling, Gaussian noise, add-or-remove adjacency; the module says what that assumes.

    Examples
    --------
    >>> import hockeystick as hs
    >>> delta = hs.dpsgd_delta(1.0, 0.01, 1000, [1.0, 2.0])
    >>> print(delta[0] < 5e-3, delta[1] < 5e-6)
    True True
    """
    grid = Checks(num_threads, on_error)
    noise_multiplier = grid.positive_or_infinite("noise_multiplier", noise_multiplier)
    rates = grid.probability("sampling_rate", sampling_rate)
    steps = grid.count_or_zero("steps", steps)
    epsilon = grid.non_negative_or_infinite("epsilon", epsilon)
    setting_warnings.warn(
        *setting_warnings.dpsgd(sampling_rate, rates, steps, noise_multiplier),
        setting_warnings.epsilon_like_delta(epsilon),
    )
    return grid.map(core.dpsgd_delta, noise_multiplier, rates, steps, epsilon)


def dpsgd_epsilon(
    noise_multiplier: ArrayLike,
    sampling_rate: ArrayLike,
    steps: ArrayLike,
    delta: ArrayLike,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    """Return a certified upper bound of epsilon after DP-SGD.

    Parameters
    ----------
    noise_multiplier : array_like
        Noise standard deviation over clip norm, positive; infinity leaks nothing.
    sampling_rate : array_like
        Probability with which each record is in a step's batch, in [0, 1].
    steps : array_like
        Number of optimiser steps, a non-negative integer up to 2^53.
    delta : array_like
        Target delta in [0, 1].
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        epsilon, of the broadcast shape: an upper bound, rounding included; infinity where delta = 0 and anything is leaked.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Poisson sampling, Gaussian noise, add-or-remove adjacency; the module says what that assumes.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(f"{hs.dpsgd_epsilon(1.0, 0.01, 1000, 1e-5):.2f}")
    1.83
    """
    grid = Checks(num_threads, on_error)
    noise_multiplier = grid.positive_or_infinite("noise_multiplier", noise_multiplier)
    rates = grid.probability("sampling_rate", sampling_rate)
    steps = grid.count_or_zero("steps", steps)
    delta = grid.probability("delta", delta)
    found = grid.map(core.dpsgd_epsilon, noise_multiplier, rates, steps, delta)
    setting_warnings.warn(
        *setting_warnings.dpsgd(sampling_rate, rates, steps, noise_multiplier), setting_warnings.no_privacy(found)
    )
    return found


def dpsgd_noise_multiplier(
    sampling_rate: ArrayLike,
    steps: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    """Return the least noise multiplier with which DP-SGD keeps a budget.

    Parameters
    ----------
    sampling_rate : array_like
        Probability with which each record is in a step's batch, in [0, 1].
    steps : array_like
        Number of optimiser steps, a non-negative integer up to 2^53.
    epsilon : array_like
        Budget, non-negative; infinity is legal.
    delta : array_like
        Target delta in [0, 1].
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Noise multiplier, of the broadcast shape, to the width of the engine's brackets: the feasible end, whose
        `dpsgd_epsilon` at `delta` was computed and is at most `epsilon`. 0 where any noise will do, infinity where none will.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Poisson sampling, Gaussian noise, add-or-remove adjacency; the module says what that assumes.

    Examples
    --------
    >>> import hockeystick as hs
    >>> noise_multiplier = hs.dpsgd_noise_multiplier(0.01, 100, 1.0, 1e-5)
    >>> bool(hs.dpsgd_epsilon(noise_multiplier, 0.01, 100, 1e-5) <= 1.0)
    True
    """
    grid = Checks(num_threads, on_error)
    rates = grid.probability("sampling_rate", sampling_rate)
    steps = grid.count_or_zero("steps", steps)
    epsilon = grid.non_negative_or_infinite("epsilon", epsilon)
    delta = grid.probability("delta", delta)
    setting_warnings.warn(*setting_warnings.dpsgd(sampling_rate, rates, steps))
    return grid.map(core.dpsgd_noise_multiplier, rates, steps, epsilon, delta)


def dpsgd_steps(
    noise_multiplier: ArrayLike,
    sampling_rate: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    """Return the largest number of steps of DP-SGD within a budget.

    Parameters
    ----------
    noise_multiplier : array_like
        Noise standard deviation over clip norm, positive; infinity leaks nothing.
    sampling_rate : array_like
        Probability with which each record is in a step's batch, in [0, 1].
    epsilon : array_like
        Budget, non-negative; infinity is legal.
    delta : array_like
        Target delta in [0, 1].
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray, int or float
        Number of steps, of the broadcast shape; an int for numbers, float64 in arrays and where it is infinite: the largest, to the width of the engine's brackets, for which `dpsgd_delta` is at most
        `delta` and `dpsgd_epsilon` at most `epsilon`. 0 if not even one step fits, infinity where there is no limit, otherwise at most 2^53 - 1.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The number is the largest wherever one step more moves epsilon and delta by more than the widths of their brackets. Elsewhere, with many
    steps or rare samples, a few steps more are undecided: up to the first number for which the lower end of `Accountant.epsilon_bracket` exceeds `epsilon`.

    Poisson sampling, Gaussian noise, add-or-remove adjacency; the module says what that assumes.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.dpsgd_steps(20.0, 1.0, 1.0, 1e-5))
    28
    """
    grid = Checks(num_threads, on_error)
    noise_multiplier = grid.positive_or_infinite("noise_multiplier", noise_multiplier)
    rates = grid.probability("sampling_rate", sampling_rate)
    epsilon = grid.non_negative_or_infinite("epsilon", epsilon)
    delta = grid.probability("delta", delta)
    setting_warnings.warn(
        setting_warnings.integer_rate(sampling_rate), setting_warnings.swapped(noise_multiplier, rates)
    )
    found = grid.map(core.dpsgd_steps, noise_multiplier, rates, epsilon, delta)
    return int(found) if isinstance(found, float) and math.isfinite(found) else found


def dpsgd_sampling_rate(
    noise_multiplier: ArrayLike,
    steps: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    """Return the largest sampling rate with which DP-SGD keeps a budget.

    Parameters
    ----------
    noise_multiplier : array_like
        Noise standard deviation over clip norm, positive; infinity leaks nothing.
    steps : array_like
        Number of optimiser steps, a non-negative integer up to 2^53.
    epsilon : array_like
        Budget, non-negative; infinity is legal.
    delta : array_like
        Target delta in [0, 1].
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Sampling rate, of the broadcast shape, to the width of the engine's brackets: the feasible end, whose
        `dpsgd_epsilon` at `delta` was computed and is at most `epsilon`. 1 where there is no limit, 0 where none will do.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Poisson sampling, Gaussian noise, add-or-remove adjacency; the module says what that assumes.

    Examples
    --------
    >>> import hockeystick as hs
    >>> rate = hs.dpsgd_sampling_rate(2.0, 50, 1.0, 1e-5)
    >>> bool(hs.dpsgd_epsilon(2.0, rate, 50, 1e-5) <= 1.0)
    True
    """
    grid = Checks(num_threads, on_error)
    noise_multiplier = grid.positive_or_infinite("noise_multiplier", noise_multiplier)
    steps = grid.count_or_zero("steps", steps)
    epsilon = grid.non_negative_or_infinite("epsilon", epsilon)
    delta = grid.probability("delta", delta)
    return grid.map(core.dpsgd_sampling_rate, noise_multiplier, steps, epsilon, delta)

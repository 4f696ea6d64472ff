"""riskcal: attack risk of DP-SGD and of any accountant, certified, under riskcal's names; riskcal is not imported.

Risk is that of the strongest membership attack on one record: its advantage, its false-negative rate beta at a
false-positive rate alpha, and its chance of being wrong under a prior (Kulynych et al. 2024, 2025). Upper ends of the
advantage and lower ends of the others, so that no attack does better.
"""

from __future__ import annotations

import math
import warnings
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from hockeystick import risk
from hockeystick._checks import OPEN_PROBABILITY, STRICT, Result, probability_scalar, scalar
from hockeystick._numeric.rounding import SHORT_SUM
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.calibration import calibrate
from hockeystick.accounting.dpsgd import dpsgd_noise_multiplier
from hockeystick.mechanisms import Gaussian, PoissonSampled

__all__ = [
    "find_noise_multiplier_for_advantage",
    "find_noise_multiplier_for_err_rates",
    "get_advantage_for_dpsgd",
    "get_bayes_risk",
    "get_beta_for_dpsgd",
]

SMALLEST_NOISE = 1e-3  # where a search ends


def get_advantage_for_dpsgd(
    noise_multiplier: float, sample_rate: float, num_steps: int, grid_step: float | None = None
) -> float:
    """Return a certified upper bound on the advantage of any attack on DP-SGD.

    Parameters
    ----------
    noise_multiplier, sample_rate, num_steps : float
        As for `hockeystick.dpsgd_delta`, one number each.
    grid_step : optional
        Taken, because riskcal takes it, and not needed.

    Returns
    -------
    float
        Largest true-positive minus false-positive rate.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import format_upper
    >>> print(format_upper(get_advantage_for_dpsgd(1.0, 0.01, 1000), ".3f"))
    0.162
    """
    del grid_step
    return _training(noise_multiplier, sample_rate, num_steps).advantage()


def get_beta_for_dpsgd(
    noise_multiplier: float, sample_rate: float, num_steps: int, alpha: ArrayLike, grid_step: float | None = None
) -> Result:
    """Return a certified lower bound on the false-negative rate of any attack on DP-SGD.

    Parameters
    ----------
    noise_multiplier, sample_rate, num_steps : float
        As for `hockeystick.dpsgd_delta`, one number each.
    alpha : array_like
        False-positive rate in [0, 1].
    grid_step : optional
        Taken, because riskcal takes it, and not needed.

    Returns
    -------
    ndarray or float
        As `Accountant.trade_off`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import format_lower
    >>> print(format_lower(get_beta_for_dpsgd(1.0, 0.01, 1000, 0.1), ".3f"))
    0.805
    """
    del grid_step
    return _training(noise_multiplier, sample_rate, num_steps).trade_off(alpha)


def get_bayes_risk(accountant: Accountant, prior: ArrayLike) -> Result:
    """Return a certified lower bound on the probability that an attack guesses wrong.

    Parameters
    ----------
    accountant : Accountant
        What was composed.
    prior : array_like
        Probability that the record is in the data, in [0, 1], known to the attacker.

    Returns
    -------
    ndarray or float
        `hockeystick.risk.bayes_risk` of every prior.

    Raises
    ------
    ValueError
        If prior is outside its domain.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.format_lower(get_bayes_risk(hs.Accountant().compose(hs.Gaussian(2.0)), 0.5), ".3f"))
    0.401
    """
    priors = STRICT.probability("prior", prior)
    return np.array([risk.bayes_risk(accountant, p) for p in priors.ravel().tolist()]).reshape(priors.shape)[()]


def find_noise_multiplier_for_advantage(  # noqa: PLR0917, the order is theirs
    advantage: float,
    sample_rate: float,
    num_steps: int,
    grid_step: float | None = None,
    advantage_tol: float | None = None,
    noise_min: float | None = None,
    noise_max: float | None = None,
    advantage_error: float | None = None,
    mu_error: float | None = None,
    mu_min: float | None = None,
    mu_max: float | None = None,
) -> float:
    """Return the least noise multiplier of DP-SGD at which no attack has a larger advantage.

    Parameters
    ----------
    advantage : float
        In [0, 1].
    sample_rate, num_steps : float
        As for `hockeystick.dpsgd_noise_multiplier`.
    grid_step, advantage_tol, noise_min, noise_max : optional
        Taken, because riskcal takes them, and not needed.
    advantage_error, mu_error, mu_min, mu_max : optional
        Their former names, with riskcal's `DeprecationWarning`.

    Returns
    -------
    float
        The certified advantage there does not exceed the target: it is delta at epsilon 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import format_upper
    >>> print(format_upper(find_noise_multiplier_for_advantage(0.1, 0.01, 1000), ".2f"))
    1.43
    """
    del grid_step, advantage_tol, noise_min, noise_max
    _former_names(advantage_error=advantage_error, mu_error=mu_error, mu_min=mu_min, mu_max=mu_max)
    advantage = probability_scalar("advantage", advantage)
    return float(dpsgd_noise_multiplier(sample_rate, num_steps, 0.0, advantage))


def find_noise_multiplier_for_err_rates(  # noqa: PLR0917, the order is theirs
    alpha: float,
    beta: float,
    sample_rate: float,
    num_steps: int,
    grid_step: float | None = None,
    beta_tol: float | None = None,
    noise_min: float | None = None,
    noise_max: float | None = None,
    beta_error: float | None = None,
    mu_error: float | None = None,
    mu_min: float | None = None,
    mu_max: float | None = None,
) -> float:
    """Return the least noise multiplier of DP-SGD at which no attack has both error rates below the given ones.

    Parameters
    ----------
    alpha : float
        False-positive rate, in (0, 1).
    beta : float
        False-negative rate, non-negative and less than 1 - alpha.
    sample_rate, num_steps : float
        As for `hockeystick.dpsgd_noise_multiplier`.
    grid_step, beta_tol, noise_min, noise_max : optional
        Taken, because riskcal takes them, and not needed.
    beta_error, mu_error, mu_min, mu_max : optional
        Their former names, with riskcal's `DeprecationWarning`.

    Returns
    -------
    float
        To a relative 1e-9; the certified false-negative rate at alpha was computed there and is at least beta.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or no noise suffices.

    Examples
    --------
    >>> from hockeystick import format_upper
    >>> print(format_upper(find_noise_multiplier_for_err_rates(0.1, 0.8, 0.01, 1000), ".2f"))
    0.97
    """
    del grid_step, beta_tol, noise_min, noise_max
    _former_names(beta_error=beta_error, mu_error=mu_error, mu_min=mu_min, mu_max=mu_max)
    alpha = scalar("alpha", alpha, *OPEN_PROBABILITY)
    beta = scalar("beta", beta, lambda x: 0 <= x < 1 - alpha, f"lie in [0, {1 - alpha:g})")
    training = partial(_training, sample_rate=sample_rate, num_steps=num_steps)
    tpr = max(1.0 - beta - SHORT_SUM, alpha)  # rounded down, so that `trade_off` is at least beta
    enough = float(dpsgd_noise_multiplier(sample_rate, num_steps, 0.0, tpr - alpha))  # by the advantage alone
    if enough == 0.0:
        return 0.0
    if enough == math.inf or risk.true_positive_rate(training(enough), alpha) > tpr:
        raise ValueError(f"beta must be below 1 - alpha by more than rounding, not {beta} at alpha={alpha}")
    less = 0.5 * enough
    while less > SMALLEST_NOISE and float(risk.true_positive_rate(training(less), alpha)) <= tpr:
        less *= 0.5
    return float(calibrate(training, tpr=tpr, fpr=alpha, bracket=(less, enough)))


def _former_names(**given: float | None) -> None:
    """Warn of names that riskcal will drop."""
    for name, value in given.items():
        if value is not None:
            warnings.warn(f"{name} is deprecated in riskcal 1.2 and not needed here", DeprecationWarning, stacklevel=3)


def _training(noise_multiplier: float, sample_rate: float, num_steps: int) -> Accountant:
    return Accountant().compose(PoissonSampled(Gaussian(noise_multiplier), sample_rate), num_steps)

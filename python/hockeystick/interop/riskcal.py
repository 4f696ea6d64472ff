"""riskcal: attack risk of DP-SGD and of any accountant, certified, under riskcal's names; riskcal is not imported.

Risk is that of the strongest membership attack on one record: its advantage, its false-negative rate beta at a
false-positive rate alpha, and its chance of being wrong under a prior (Kulynych et al. 2024, 2025). Upper ends of the
advantage and lower ends of the others, so that no attack does better.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Grid, Result, scalar
from hockeystick._numeric.rounding import DOWN
from hockeystick._numeric.search import Probe, narrow
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.dpsgd import dpsgd_noise_multiplier
from hockeystick.mechanisms import Gaussian, PoissonSampled

__all__ = [
    "find_noise_multiplier_for_advantage",
    "find_noise_multiplier_for_err_rates",
    "get_advantage_for_dpsgd",
    "get_bayes_risk",
    "get_beta_for_dpsgd",
]


def get_advantage_for_dpsgd(noise_multiplier: float, sample_rate: float, num_steps: int) -> float:
    """Return a certified upper bound on the advantage of any attack on DP-SGD.

    Parameters
    ----------
    noise_multiplier, sample_rate, num_steps : float
        As for `hockeystick.dpsgd_delta`, one number each.

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
    return _training(noise_multiplier, sample_rate, num_steps).advantage()


def get_beta_for_dpsgd(noise_multiplier: float, sample_rate: float, num_steps: int, alpha: ArrayLike) -> Result:
    """Return a certified lower bound on the false-negative rate of any attack on DP-SGD.

    Parameters
    ----------
    noise_multiplier, sample_rate, num_steps : float
        As for `hockeystick.dpsgd_delta`, one number each.
    alpha : array_like
        False-positive rate in [0, 1].

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
        min(prior, 1 - prior) (1 - delta(|log(prior/(1 - prior))|)).

    Raises
    ------
    ValueError
        If prior is outside its domain.

    Notes
    -----
    The error of a test that rejects on A is prior P(not A) + (1 - prior) Q(A), at least prior (1 - E_g(P|Q)) with
    g = (1 - prior)/prior; where g < 1, the same with P and Q exchanged (Kulynych et al. 2025, Proposition D.1).

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.format_lower(get_bayes_risk(hs.Accountant().compose(hs.Gaussian(2.0)), 0.5), ".3f"))
    0.401
    """
    priors = Grid(None, "raise").probability("prior", prior)
    smaller = np.minimum(priors, 1.0 - priors)
    with np.errstate(divide="ignore"):
        eps = np.abs(np.log(1.0 - smaller) - np.log(smaller)) * DOWN
    return smaller * np.maximum(1.0 - accountant.delta(eps), 0.0) * DOWN


def find_noise_multiplier_for_advantage(  # noqa: PLR0917, the order is theirs
    advantage: float,
    sample_rate: float,
    num_steps: int,
    grid_step: float | None = None,
    advantage_tol: float | None = None,
    noise_min: float | None = None,
    noise_max: float | None = None,
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

    Returns
    -------
    float
        To a relative 1e-6; the certified false-negative rate at alpha was computed there and is at least beta.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or noise multipliers up to 1e9 do not suffice.

    Examples
    --------
    >>> from hockeystick import format_upper
    >>> print(format_upper(find_noise_multiplier_for_err_rates(0.1, 0.8, 0.01, 1000), ".2f"))
    0.97
    """
    del grid_step, beta_tol, noise_min, noise_max
    alpha = scalar("alpha", alpha, lambda x: 0 < x < 1, "lie in (0, 1)")
    beta = scalar("beta", beta, lambda x: 0 <= x < 1 - alpha, f"lie in [0, {1 - alpha:g})")

    def lacking(log_noise: float) -> float:
        return beta - float(_training(math.exp(log_noise), sample_rate, num_steps).trade_off(alpha))

    ends = [Probe(x, lacking(x)) for x in (math.log(1e-3), math.log(1e9))]
    if ends[1].excess > 0:
        msg = f"beta must be within reach of noise multipliers up to 1e9, not {beta}"
        raise ValueError(msg)
    if ends[0].excess <= 0:
        return math.exp(ends[0].x)
    found = narrow(lacking, ends[1], ends[0], tolerance=1e-7)
    return math.exp(found.x)


def _training(noise_multiplier: float, sample_rate: float, num_steps: int) -> Accountant:
    return Accountant().compose(PoissonSampled(Gaussian(noise_multiplier), sample_rate), num_steps)

"""Asoodeh, Diaz and Calmon 2020: projected noisy SGD, Proposition 1 and Theorem 5 as printed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, broadcast
from hockeystick.kernels import theta
from hockeystick.last_iterate.arguments import check_index, check_step
from hockeystick.published.warning import warn_unsound

__all__ = ["pnsgd_gaussian_random_stop", "pnsgd_rdp"]


def _step(learning_rate: ArrayLike, smoothness: ArrayLike, strong_convexity: ArrayLike) -> tuple[Array, Array]:
    """Check a step; return its length and M of Equation 14."""
    eta = STRICT.positive("learning_rate", learning_rate)
    beta = STRICT.non_negative("smoothness", smoothness)
    rho = STRICT.non_negative("strong_convexity", strong_convexity)
    check_step(STRICT, eta, beta, rho)
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = np.where(rho > 0, 1.0 - 2.0 * eta * rho / (1.0 + rho / beta), 1.0)
    return eta, np.sqrt(np.maximum(squared, 0.0))


def pnsgd_rdp(
    eps: ArrayLike,
    *,
    index: ArrayLike,
    num_records: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return the delta of Proposition 1 as printed, also where eps is at most kappa.

    Parameters
    ----------
    eps, index, num_records, learning_rate, noise_std, lipschitz, smoothness, strong_convexity : array_like
        As in `hockeystick.last_iterate.pnsgd_rdp`.

    Returns
    -------
    ndarray or float
        :math:`\exp(-(\epsilon - \kappa)^2/(4\kappa))`: an upper bound for eps > kappa, **none below**.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        If some eps is at most kappa.

    Notes
    -----
    The conversion from Renyi divergences takes the order (eps + kappa)/(2 kappa), which is above 1 only for eps > kappa.
    Counterexample: linear losses with L = 2 sigma, the last record: kappa = 8. At eps = 1e-4 the formula is .135, and the two normal laws,
    four deviations apart, have delta .954. `hockeystick.last_iterate.pnsgd_rdp` is 1 there.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import format_upper, last_iterate, published
    >>> cell = dict(index=1, num_records=1, learning_rate=1.0, noise_std=0.5, lipschitz=1.0, smoothness=0.0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.pnsgd_rdp(1e-4, **cell)
    >>> exact = last_iterate.pnsgd_gaussian(1e-4, diameter=1.0, **cell)  # one step: plain noise
    >>> print(f"printed {printed:.3f}, exact {format_upper(exact, '.3f')}")
    printed 0.135, exact 0.955
    """
    eps = STRICT.non_negative("eps", eps)
    index = STRICT.count("index", index)
    num_records = STRICT.count("num_records", num_records)
    noise = STRICT.positive("noise_std", noise_std)
    bound = STRICT.positive("lipschitz", lipschitz)
    _, m = _step(learning_rate, smoothness, strong_convexity)
    check_index(STRICT, index, num_records)
    eps, later, m, kappa = broadcast(eps, num_records - index, m, 2.0 * (bound / noise) ** 2)
    kappa = np.where(later > 0, kappa / np.maximum(later, 1.0) * m ** (later + 1.0), kappa)
    if np.any(eps <= kappa):
        what = "Proposition 1 of Asoodeh, Diaz and Calmon (2020) says nothing for eps at most kappa"
        warn_unsound(what, "hockeystick.last_iterate.pnsgd_rdp")
    with np.errstate(divide="ignore", invalid="ignore"):
        delta = np.where(kappa > 0, np.exp(-((eps - kappa) ** 2) / (4.0 * kappa)), 0.0)
    return delta[()]


def pnsgd_gaussian_random_stop(
    eps: ArrayLike,
    *,
    num_records: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
    diameter: ArrayLike,
) -> Result:
    r"""Return the delta of Theorem 5 as printed: the whole geometric series in place of its first n terms.

    Parameters
    ----------
    eps, num_records, learning_rate, noise_std, lipschitz, smoothness, strong_convexity, diameter : array_like
        As in `hockeystick.last_iterate.pnsgd_gaussian_random_stop`.

    Returns
    -------
    ndarray or float
        :math:`\theta_\epsilon(2L/\sigma)/(n(1 - \theta_\epsilon(MD/(\eta\sigma))))`: an upper bound, loose, which can exceed 1.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Sound: the series is above its first n terms, which `hockeystick.last_iterate.pnsgd_gaussian_random_stop` adds up. Infinite
    where the coefficient is 1 in doubles.

    Examples
    --------
    >>> from hockeystick import format_upper, last_iterate, published
    >>> cell = dict(num_records=40, learning_rate=0.1, noise_std=1.0, lipschitz=1.0, smoothness=0.5, diameter=1.0)
    >>> printed = published.pnsgd_gaussian_random_stop(0.0, **cell)
    >>> print(f"{printed:.2f}", format_upper(last_iterate.pnsgd_gaussian_random_stop(0.0, **cell), ".4f"))
    29770.00 0.6827
    """
    eps = STRICT.non_negative_or_infinite("eps", eps)
    num_records = STRICT.count("num_records", num_records)
    noise = STRICT.positive("noise_std", noise_std)
    bound = STRICT.positive("lipschitz", lipschitz)
    width = STRICT.positive("diameter", diameter)
    eta, m = _step(learning_rate, smoothness, strong_convexity)
    with np.errstate(divide="ignore"):
        factor = 1.0 / (1.0 - np.asarray(theta(eps, m * width / (eta * noise))))
        printed: Result = theta(eps, 2.0 * bound / noise) * factor / num_records
    return printed
